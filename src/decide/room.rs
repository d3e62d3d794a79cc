//! Room for a job that is blocked, by moves of what runs: what the policy `make-room` asks for.
//!
//! Which moves are the fewest is a question for `plan/`, which builds on this module; so the commit loop is given somebody
//! who knows. See `plan::FewestMoves`.

use std::fmt;

use super::need::Need;
use super::why;
use crate::anchor::{State, Transaction};
use crate::cluster::{Cluster, EditError, InstanceId, JobId, NodeId, PoolId, Request};

/// Who knows which moves of running instances let a job start.
pub trait RoomMaker: fmt::Debug + Send {
    /// Moves that let all instances of a job start, which does not run and does not fit as things are. `None` if there are
    /// none within the limits, or none is known. The answer depends on the arguments alone.
    fn make_room(&mut self, cluster: &Cluster, job: JobId, limits: RoomLimits) -> Option<Room>;
}

/// What a job may cost those that run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomLimits {
    /// The most instances that may be moved; `None` is no limit.
    pub most_moves: Option<u32>,
    /// What a start is worth; `None` is whatever the moves cost.
    pub worth: Option<Worth>,
}

/// What the start of a job is worth, in seconds, and what it costs those that move for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worth {
    /// The wait that it saves; `None` where the job would wait forever.
    pub wait_s: Option<u64>,
    /// The pause of a job that moves, where its own times say nothing else (see `JobTimes::move_cost_s`).
    pub pause_s: u64,
    /// What each job that moves costs at least.
    pub price_s: u64,
}

impl Worth {
    /// Nothing: no job may be moved.
    pub const NONE: Self = Self { wait_s: Some(0), pause_s: 0, price_s: 0 };

    /// Whether a start is worth that these jobs move: if the sum of what each costs is less than the wait.
    pub fn is_more_than(&self, cluster: &Cluster, jobs: &[JobId]) -> bool {
        let cost = |job: &JobId| cluster.job_times(*job).move_cost_s.unwrap_or(self.pause_s).max(self.price_s);
        self.wait_s.is_none_or(|wait_s| jobs.iter().map(cost).fold(0, u64::saturating_add) < wait_s)
    }
}

impl RoomLimits {
    /// Whether nothing at all may be moved.
    pub(super) fn forbid_all(&self) -> bool {
        self.most_moves == Some(0) || self.worth.is_some_and(|worth| worth.wait_s == Some(0))
    }
}

/// Moves, all at once, and where the job then starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Who goes where. All stop, then all take their new places.
    pub moves: Vec<(InstanceId, NodeId)>,
    /// A node for each instance of the job.
    pub hosts: Vec<NodeId>,
}

impl Room {
    /// Carries it out, on the lowest free devices. The job has instance numbers.
    ///
    /// # Errors
    /// The first step that is not possible; the caller then drops the transaction.
    pub(super) fn carry_out(&self, transaction: &mut Transaction<'_>, job: JobId) -> Result<(), EditError> {
        for &(instance, _) in &self.moves {
            transaction.free(instance)?;
        }
        for &(instance, node) in &self.moves {
            transaction.take_lowest(instance, node)?;
        }
        let mut instances = transaction.cluster().instances_of(job).zip(&self.hosts);
        debug_assert_eq!(transaction.cluster().instances_of(job).len(), self.hosts.len(), "a node for each instance");
        instances.try_for_each(|(instance, &node)| transaction.take_lowest(instance, node))
    }
}

/// Whether it is GPUs that a blocked job lacks, on nodes of its models or together in one domain or rack. Where CPU or memory
/// alone keeps it out, no room is made: programs with many kinds of CPU requests take long, and seldom find a plan.
pub(super) fn lacks_gpus(state: &State, request: &Request, instances: u32) -> bool {
    let gpus_alone = Request { cpu_milli: 0, memory_mib: 0, ..request.clone() };
    request.gpus > 0 && !why::fits(state, &Need::new(state.cluster(), &gpus_alone), instances)
}

/// Whether a job could fit if everything were packed anew, GPUs alone: false where no moves help. Pins are overlooked; nodes
/// of several kinds, between which instances may move, and cordoned ones make it say true. O(log instances) questions to the
/// solver.
pub(super) fn may_fit_repacked(state: &mut State, need: &Need, instances: u32) -> bool {
    let nodes = state.cluster().nodes().len() as u64;
    if state.pools().len() != 1 || u64::from(state.pool(PoolId(0)).n_schedulable()) != nodes {
        return true;
    }
    let fragmentation = state.pool_mut(PoolId(0)).fragmentation_mut();
    let demand = *fragmentation.demand();
    fragmentation.solver().max_more(&demand, need.gpus, nodes) >= u64::from(instances)
}
