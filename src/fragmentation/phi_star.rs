//! Φ*, the inherent fragmentation of a demand.

use thiserror::Error;

use super::solver::Solver;
use super::{Counts, Objective, counts};
use crate::cluster::MAX_GPUS;
use crate::workload::Demand;

/// The largest count of one size that the exact arithmetic is laid out for.
pub const MAX_COUNT: u64 = 1 << 40;

/// What proved an optimum, from the cheapest to the dearest argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// The Workload Composition Condition holds: a closed form.
    Wcc,
    /// Complementary sizes were matched, and a closed form covers what is left.
    Matching,
    /// A demand that differs only by such matches was solved before.
    Memory,
    /// A packing meets the bound of the linear relaxation.
    DualBound,
    /// An exhaustive search.
    Search,
    /// Gomory's group relaxation.
    GroupRelaxation,
    /// Branch and bound over an integer program.
    BranchAndBound,
}

impl Method {
    /// A stable name for outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wcc => "wcc",
            Self::Matching => "matching",
            Self::Memory => "memory",
            Self::DualBound => "dual-bound",
            Self::Search => "search",
            Self::GroupRelaxation => "group-relaxation",
            Self::BranchAndBound => "branch-and-bound",
        }
    }
}

/// Φ* of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solution {
    /// The fewest partial nodes over all packings, on any number of nodes.
    pub partial: u64,
    /// What proved it.
    pub method: Method,
}

/// Why Φ* of a demand cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DemandError {
    /// No such nodes.
    #[error("a capacity of {0} GPUs; expected 1 to 16")]
    Capacity(u8),
    /// An instance that no node can hold.
    #[error("an instance of {gpus} GPUs; expected at most the capacity, {capacity}")]
    Size {
        /// The size of the instance.
        gpus: u8,
        /// The capacity of the nodes.
        capacity: u8,
    },
    /// More instances than the arithmetic is laid out for.
    #[error("{n} instances of {gpus} GPUs; expected at most {MAX_COUNT}")]
    Count {
        /// The size of the instances.
        gpus: u8,
        /// How many there are.
        n: u64,
    },
}

/// Exact Φ* for one capacity, with what earlier answers proved.
#[derive(Clone, Debug)]
pub struct PhiStar {
    capacity: u8,
    partial: Solver,
    bins: Solver,
}

impl PhiStar {
    /// A solver for nodes of `capacity` GPUs.
    pub fn new(capacity: u8) -> Self {
        let size = usize::from(capacity);
        Self { capacity, partial: Solver::new(size, Objective::Partial), bins: Solver::new(size, Objective::Bins) }
    }

    /// Φ*.
    pub fn solve(&mut self, demand: &Demand) -> Solution {
        let counts = counts(demand);
        if super::wcc(self.capacity, demand).is_some_and(|wcc| wcc.holds) {
            let partial = u64::from(!demand.gpus().is_multiple_of(u64::from(self.capacity)));
            return Solution { partial, method: Method::Wcc };
        }
        let (partial, method) = self.partial.solve(&counts);
        Solution { partial, method }
    }

    /// fewest
    pub fn fewest_nodes(&mut self, demand: &Demand) -> u64 {
        self.bins.solve(&counts(demand)).0
    }
}
