//! How fragmented a cluster is, and how much of that no scheduler could avoid (COMPASS-ABS, arXiv 2606.09200, section 2).
//!
//! A node is empty, partial or full ([`node_kind`]). Φ* ([`PhiStar`]) is the least number of partial nodes over all
//! packings of what runs; what a cluster has beyond that is avoidable ([`Fragmentation::n_sif`]). All of it is exact:
//! no floating point number takes part in an answer.
//!
//! [`fgd`] measures something else: how much of the idle GPUs what usually comes could not use.
//!
//! How Φ* is found, from the cheap to the dear, each with its proof at the top of its file:
//!
//! | file | argument |
//! | --- | --- |
//! | `wcc.rs` | with fillers for all slots, a closed form |
//! | `reduce.rs` | instances of complementary sizes share a node in some optimal packing |
//! | `simplex.rs` | a dual vector of the linear relaxation over node patterns bounds every demand of its sizes |
//! | `search.rs` | the few instances that rounding the relaxation leaves are packed by an exhaustive search |
//! | `program.rs`, `group.rs` | branch and bound, where rounding does not meet the bound |

pub mod fgd;
mod group;
mod phi_star;
mod pool;
mod program;
mod reduce;
mod search;
mod simplex;
mod solver;
#[cfg(test)]
mod tests;
mod totals;
mod wcc;

pub use phi_star::{DemandError, MAX_COUNT, Method, PhiStar, Solution, phi_star};
pub use pool::PoolFragmentation;
pub use totals::{Fragmentation, NodeCounts, NodeKind, delta_n_sif, node_kind};
pub use wcc::{Wcc, wcc};

use crate::workload::Demand;
use reduce::Counts;

/// What a packing is to have the fewest of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Objective {
    /// Partial bins.
    Partial,
    /// Bins.
    Bins,
}

/// The counts of a demand by size.
fn counts(demand: &Demand) -> Counts {
    let mut counts = Counts::default();
    for (gpus, n) in demand.sizes() {
        counts[usize::from(gpus)] = n;
    }
    counts
}
