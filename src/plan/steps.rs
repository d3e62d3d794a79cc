//! A plan carried out on the ledger: the proof that it can be, and the devices.

use super::realise::{Move, Rough};
use super::ways::Way;
use crate::cluster::{Cluster, Edit, EditError, GpuMask, InstanceId, JobId, NodeId, lowest_gpus};

/// How the moves of a plan are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All movers stop, then everything is placed.
    #[default]
    StopFirst,
    /// One move after another, each to a place that is free at that moment.
    Hitless,
}

impl Mode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::StopFirst, Self::Hitless];

    /// The word on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::StopFirst => "stop-first",
            Mode::Hitless => "hitless",
        }
    }
}

/// One move of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whose instance.
    pub job: JobId,
    /// Which.
    pub instance: InstanceId,
    /// Where it runs before.
    pub from: NodeId,
    /// Where it runs then.
    pub to: NodeId,
    /// On which devices.
    pub gpus: GpuMask,
}

/// A plan that was carried out.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) steps: Vec<Step>,
    pub(super) place: Vec<(NodeId, GpuMask)>,
    pub(super) after: Cluster,
}

/// Carries out a plan, the moves in their order, on a copy of the cluster.
///
/// # Errors
/// The first edit that is not possible.
pub(super) fn carry_out(cluster: &Cluster, guest: Option<JobId>, rough: &Rough, mode: Mode) -> Result<Done, EditError> {
    let mut trial = Trial::new(cluster, guest);
    let Way { steps, place } = trial.carry_out(rough, mode)?;
    Ok(Done { steps, place, after: trial.cluster })
}

/// A copy of a cluster on which plans are carried out, and taken back.
pub(super) struct Trial {
    cluster: Cluster,
    guests: Vec<InstanceId>,
    /// What was done, in its order.
    done: Vec<Edit>,
}

impl Trial {
    pub(super) fn new(cluster: &Cluster, guest: Option<JobId>) -> Self {
        let mut cluster = cluster.clone();
        let mut guests = Vec::new();
        if let Some(job) = guest {
            let numbered = cluster.number_instances(job);
            debug_assert!(numbered, "a queued job has no instances yet, and there were numbers left for all that run");
            guests.extend(cluster.instances_of(job));
        }
        Self { cluster, guests, done: Vec::new() }
    }

    /// Carries out a plan; the steps, and where the guests came.
    pub(super) fn carry_out(&mut self, rough: &Rough, mode: Mode) -> Result<Way, EditError> {
        if mode == Mode::StopFirst {
            for one in &rough.moves {
                self.stop(one)?;
            }
        }
        let mut steps = Vec::with_capacity(rough.moves.len());
        for one in &rough.moves {
            if mode == Mode::Hitless {
                self.stop(one)?;
            }
            let gpus = self.start(one.instance, one.to)?;
            let job = self.cluster.instance(one.instance).job();
            steps.push(Step { job, instance: one.instance, from: one.from, to: one.to, gpus });
        }
        let mut hosts = Vec::with_capacity(rough.hosts.len());
        for (at, &node) in rough.hosts.iter().enumerate() {
            let gpus = match self.guests.get(at) {
                Some(&instance) => self.start(instance, node)?,
                None => 0,
            };
            hosts.push((node, gpus));
        }
        Ok(Way { steps, place: hosts })
    }

    /// Takes back all that was done.
    pub(super) fn take_back(&mut self) {
        self.cluster.undo(&std::mem::take(&mut self.done));
    }

    fn stop(&mut self, one: &Move) -> Result<(), EditError> {
        let gpus = self.cluster.instance(one.instance).gpus();
        self.apply(Edit::Free { instance: one.instance, node: one.from, gpus })
    }

    /// Puts an instance on the lowest free devices of a node.
    fn start(&mut self, instance: InstanceId, node: NodeId) -> Result<GpuMask, EditError> {
        let size = self.cluster.request_of(self.cluster.instance(instance).job()).gpus;
        let gpus = lowest_gpus(self.cluster.node(node).free(), size).ok_or(EditError::GpuBusy(node))?;
        self.apply(Edit::Take { instance, node, gpus })?;
        Ok(gpus)
    }

    fn apply(&mut self, edit: Edit) -> Result<(), EditError> {
        self.cluster.apply_one(edit)?;
        self.done.push(edit);
        Ok(())
    }
}
