//! The best nodes for each class of demand.

use crate::evaluate::abi::NONE;
use crate::evaluate::node_rows::NodeRows;
use crate::evaluate::query::NodeQuery;

/// `k` node numbers a class, best first, the rest `NONE`.
pub fn rank_nodes(state: &NodeRows, query: &NodeQuery, out: &mut [u32]) {
    for class in 0..query.len() {
        let mut keys: Vec<(u32, u32)> =
            (0..state.len() as u32).filter_map(|node| query.key(class, state, node).map(|key| (key, node))).collect();
        keys.sort_unstable();
        let best = keys.into_iter().map(|(_, node)| node).chain(std::iter::repeat(NONE));
        for (slot, node) in out[query.slots(class)].iter_mut().zip(best) {
            *slot = node;
        }
    }
}
