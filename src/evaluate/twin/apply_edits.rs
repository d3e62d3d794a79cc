//! Replaces the rows of edited nodes.

use crate::evaluate::abi::NodeEdit;
use crate::evaluate::node_rows::NodeRows;

/// Every node at most once; all of them exist.
pub fn apply_edits(state: &mut NodeRows, edits: &[NodeEdit]) {
    for edit in edits {
        let node = edit.node as usize;
        state.bits[node] = edit.bits;
        state.amounts[node] = edit.amounts;
        state.attributes[node] = edit.attributes;
        state.gpu_milli[node] = edit.gpu_milli;
    }
}
