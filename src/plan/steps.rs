//! A plan carried out on the ledger: the proof that it can be, and the devices.

use super::realise::{Move, Rough};
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
    pub(super) hosts: Vec<(NodeId, GpuMask)>,
    pub(super) after: Cluster,
}

/// Carries out a plan, the moves in their order, on a copy of the cluster.
///
/// # Errors
/// The first edit that is not possible.
pub(super) fn carry_out(cluster: &Cluster, guest: Option<JobId>, rough: &Rough, mode: Mode) -> Result<Done, EditError> {
    let mut after = cluster.clone();
    if mode == Mode::StopFirst {
        for one in &rough.moves {
            stop(&mut after, one)?;
        }
    }
    let mut steps = Vec::with_capacity(rough.moves.len());
    for one in &rough.moves {
        if mode == Mode::Hitless {
            stop(&mut after, one)?;
        }
        let gpus = start(&mut after, one.instance, one.to)?;
        let job = after.instance(one.instance).job();
        steps.push(Step { job, instance: one.instance, from: one.from, to: one.to, gpus });
    }
    let mut hosts = Vec::with_capacity(rough.hosts.len());
    if let Some(job) = guest {
        let numbered = after.number_instances(job);
        debug_assert!(numbered, "a queued job has no instances yet, and there were numbers left for all that run");
        let instances: Vec<InstanceId> = after.instances_of(job).collect();
        for (instance, &node) in instances.into_iter().zip(&rough.hosts) {
            hosts.push((node, start(&mut after, instance, node)?));
        }
    } else {
        hosts.extend(rough.hosts.iter().map(|&node| (node, 0)));
    }
    Ok(Done { steps, hosts, after })
}

fn stop(cluster: &mut Cluster, one: &Move) -> Result<(), EditError> {
    let gpus = cluster.instance(one.instance).gpus();
    cluster.apply_one(Edit::Free { instance: one.instance, node: one.from, gpus })
}

/// Puts an instance on the lowest free devices of a node.
fn start(cluster: &mut Cluster, instance: InstanceId, node: NodeId) -> Result<GpuMask, EditError> {
    let size = cluster.request_of(cluster.instance(instance).job()).gpus;
    let gpus = lowest_gpus(cluster.node(node).free(), size).ok_or(EditError::GpuBusy(node))?;
    cluster.apply_one(Edit::Take { instance, node, gpus })?;
    Ok(gpus)
}
