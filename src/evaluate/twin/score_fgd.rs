//! By how much the fragment of each node grows if it takes an instance, for each class of demand.

use crate::evaluate::fgd::{FgdQuery, FgdRow};
use crate::evaluate::node_rows::NodeRows;

/// A row for every node, class by class.
pub fn score_fgd(state: &NodeRows, query: &FgdQuery, out: &mut [FgdRow]) {
    for class in 0..query.len() {
        for node in 0..state.len() {
            out[class * state.len() + node] = query.score(class, state, node);
        }
    }
}
