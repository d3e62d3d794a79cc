//! (in work)

mod group;
mod phi_star;
mod program;
mod reduce;
mod search;
mod simplex;
mod solver;
#[cfg(test)]
mod tests;
mod wcc;

pub use phi_star::*;
use reduce::Counts;
pub use wcc::{Wcc, wcc};
use crate::workload::Demand;

/// What is minimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Objective {
    /// Partial bins.
    Partial,
    /// Bins.
    Bins,
}

fn counts(demand: &Demand) -> Counts {
    let mut counts = Counts::default();
    for (gpus, n) in demand.sizes() {
        counts[usize::from(gpus)] = n;
    }
    counts
}
