//! Counts the nodes.

use crate::evaluate::census::Census;
use crate::evaluate::node_rows::NodeRows;

/// All counts, afresh.
pub fn census(state: &NodeRows, out: &mut Census) {
    out.reset(state.pools);
    for (node, attributes) in state.bits.iter().zip(&state.attributes) {
        out.count(node, attributes);
    }
}
