//! What Compact alone would make of a cluster, tried on a copy.

use crate::anchor::{Rules, State, compact};
use crate::cluster::{InstanceId, NodeId};

/// What it takes to compact, and what is left then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Instances that end on another node.
    pub moves: u64,
    /// The GPUs of those.
    pub moved_gpus: u64,
    /// Partial nodes afterwards.
    pub partial: u64,
    /// Nodes outside Σ afterwards.
    pub outside: u64,
}

/// A copy of the state, compacted until nothing moves any more: one event may leave something for the next.
pub(super) fn compacted(state: &State) -> (State, Compaction) {
    let mut copy = state.clone();
    loop {
        let mut transaction = copy.begin();
        compact(&mut transaction, &Rules::default());
        let moved = !transaction.migrations().is_empty();
        transaction.commit();
        if !moved {
            break;
        }
    }
    let mut compaction = Compaction { partial: copy.n_partial(), outside: copy.n_outside(), ..Compaction::default() };
    for job in state.cluster().job_ids().filter(|&job| state.cluster().job(job).runs()) {
        let node =
            |state: &State, instance: InstanceId| -> Option<NodeId> { state.cluster().instance(instance).node() };
        let moved = |instance: &InstanceId| node(state, *instance) != node(&copy, *instance);
        let moves = state.cluster().instances_of(job).filter(moved).count() as u64;
        compaction.moves += moves;
        compaction.moved_gpus += moves * u64::from(state.cluster().request_of(job).gpus);
    }
    (copy, compaction)
}
