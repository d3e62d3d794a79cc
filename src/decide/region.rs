//! Regions: the domains or racks that a gang with `within` must choose one of.

use super::need::Need;
use crate::anchor::State;
use crate::cluster::NodeId;

/// What the choice among regions looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegionRoom {
    /// How many instances fit.
    pub(super) room: u64,
    /// Free GPUs on its schedulable nodes, whoever may use them.
    pub(super) free: u64,
}

impl RegionRoom {
    /// Counts a region as it is. O(its nodes).
    pub(super) fn of(state: &State, need: &Need, nodes: &[NodeId]) -> Self {
        let mut all = Self { room: 0, free: 0 };
        for &id in nodes {
            let node = state.cluster().node(id);
            all.room += need.room(state.cluster(), id);
            all.free += if node.schedulable() { u64::from(node.free_gpus()) } else { 0 };
        }
        all
    }
}
