//! Regions: the domains or racks that a gang with `within` must choose one of.

use super::need::Need;
use super::policy::Order;
use crate::anchor::State;
use crate::cluster::NodeId;

/// What the choice among regions looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegionRoom {
    /// How many instances fit.
    pub(super) room: u64,
    /// Free GPUs on its schedulable nodes, whoever may use them.
    pub(super) free: u64,
    /// Whether nobody uses any of it: see [`State::is_intact`].
    pub(super) intact: bool,
}

/// The place of a region among those that hold the gang, smallest first.
pub(super) type RegionKey = (bool, u64, u32);

impl RegionRoom {
    /// Counts a region as it is. O(its nodes).
    pub(super) fn of(state: &State, need: &Need, nodes: &[NodeId]) -> Self {
        let mut all = Self { room: 0, free: 0, intact: state.is_intact(nodes) };
        for &id in nodes {
            let node = state.cluster().node(id);
            all.room += need.room(state.cluster(), id);
            all.free += if node.schedulable() { u64::from(node.free_gpus()) } else { 0 };
        }
        all
    }

    /// The same for whoever asks nothing of it: it has no room.
    pub(super) fn unasked(state: &State, nodes: &[NodeId]) -> Self {
        let open = nodes.iter().map(|&id| state.cluster().node(id)).filter(|node| node.schedulable());
        let free = open.map(|node| u64::from(node.free_gpus())).sum();
        Self { room: 0, free, intact: state.is_intact(nodes) }
    }

    /// Its place in an order of regions, with its number. Where the fewest free GPUs come first, so that room stays
    /// whole elsewhere, an intact region comes after all others, however small it is.
    pub(super) fn key(self, order: Order, number: u32) -> RegionKey {
        let (free, number) = order.key(self.free, number);
        (self.intact && order == Order::FewestFree, free, number)
    }
}
