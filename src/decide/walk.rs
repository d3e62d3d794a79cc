//! The nodes that fit, in a policy's order, read off the index by free GPUs as it is now.

use super::need::Need;
use super::policy::Order;
use crate::anchor::{PoolState, State};
use crate::cluster::NodeId;

/// Where a search for the next node of an order stands.
///
/// While one gang is placed, nodes only lose what they have. So what was refused stays refused, a node that took an
/// instance comes back only where it still fits, and one pass over the order is enough for the whole gang.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    order: Order,
    step: u8,
    /// Nodes below this number were refused at this step.
    from: u32,
    last: Option<NodeId>,
}

impl Walk {
    /// Before the first node.
    pub(super) fn new(order: Order) -> Self {
        Self { order, step: 0, from: 0, last: None }
    }

    /// The node for the next instance of a gang, if any is left. Without CPU and memory in the request O(pools).
    pub(super) fn next(&mut self, state: &State, need: &Need) -> Option<NodeId> {
        if self.order.stays()
            && let Some(last) = self.last
            && need.fits(state.cluster().node(last))
        {
            return Some(last);
        }
        self.last = self.search(state, need);
        self.last
    }

    /// The first so many nodes of the order.
    pub(super) fn best(order: Order, state: &State, need: &Need, most: usize) -> Vec<NodeId> {
        let mut walk = Self::new(order);
        let mut nodes = Vec::new();
        while nodes.len() < most
            && let Some(node) = walk.search(state, need)
        {
            nodes.push(node);
            walk.from = node.0 + 1;
        }
        nodes
    }

    fn search(&mut self, state: &State, need: &Need) -> Option<NodeId> {
        while let Some(levels) = self.order.levels(self.step, need.gpus) {
            let mut best: Option<NodeId> = None;
            let mut refused = false;
            for &id in &need.pools {
                let pool = state.pool(id);
                let start = position_from(pool, self.from);
                for level in *levels.start()..=(*levels.end()).min(pool.capacity()) {
                    let Some(set) = pool.with_free(level) else { continue };
                    let mut at = start;
                    while let Some(position) = set.next(at) {
                        let node = pool.node_at(position);
                        if best.is_some_and(|best| best < node) {
                            break;
                        }
                        if need.has_cpu_and_memory(state.cluster().node(node)) {
                            best = Some(node);
                            break;
                        }
                        refused = true;
                        at = position + 1;
                    }
                }
            }
            if let Some(node) = best {
                if refused {
                    self.from = node.0;
                }
                return best;
            }
            self.step += 1;
            self.from = 0;
        }
        None
    }
}

/// The position in its pool of the first node that has at least this number.
fn position_from(pool: &PoolState, number: u32) -> u32 {
    if number == 0 { 0 } else { pool.nodes().partition_point(|node| node.0 < number) as u32 }
}
