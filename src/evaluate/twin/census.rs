//! Counts the nodes.

use crate::evaluate::census::Census;
use crate::evaluate::state::State;

/// All counts, afresh.
pub fn census(state: &State, out: &mut Census) {
    out.reset(state.pools);
    for (node, attributes) in state.bits.iter().zip(&state.attributes) {
        out.count(node, attributes);
    }
}
