//! Φ*, the inherent fragmentation of a demand, and the fewest nodes that hold it.

use thiserror::Error;

use super::solver::Solver;
use super::{Objective, counts, wcc};
use crate::cluster::MAX_GPUS;
use crate::workload::Demand;

/// The largest count of one size that the exact arithmetic is laid out for.
pub const MAX_COUNT: u64 = 1 << 40;

/// What proved an optimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The Workload Composition Condition holds: a closed form.
    Wcc,
    /// Complementary sizes were matched, and a closed form covers what was left.
    Matching,
    /// A packing that meets the bound of the linear relaxation.
    DualBound,
    /// Branch and bound over an integer program, every bound of it exact.
    IntegerProgram,
}

impl Method {
    /// A stable name for outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wcc => "wcc",
            Self::Matching => "matching",
            Self::DualBound => "dual-bound",
            Self::IntegerProgram => "integer-program",
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
    /// There are no such nodes.
    #[error("a capacity of {0} GPUs; expected 1 to {MAX_GPUS}")]
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

/// Φ* of `demand` on nodes of `capacity` GPUs: the least number of partial nodes over all its packings, on any number
/// of nodes (COMPASS-ABS, arXiv 2606.09200, eq. 1). Exact for every demand; see [`PhiStar`] for the cost.
///
/// # Errors
/// A capacity that is not 1..=16, an instance larger than it, or more than [`MAX_COUNT`] instances of a size.
pub fn phi_star(capacity: u8, demand: &Demand) -> Result<Solution, DemandError> {
    if !(1..=MAX_GPUS).contains(&usize::from(capacity)) {
        return Err(DemandError::Capacity(capacity));
    }
    for (gpus, n) in demand.sizes() {
        if gpus > capacity {
            return Err(DemandError::Size { gpus, capacity });
        }
        if n > MAX_COUNT {
            return Err(DemandError::Count { gpus, n });
        }
    }
    Ok(PhiStar::new(capacity).solve(demand))
}

/// Exact answers about the ideal packings of demands on nodes of one capacity, with a memory of what earlier answers
/// proved.
///
/// Nothing here depends on the order of the questions except the time they take. A question costs O(1) where the
/// Workload Composition Condition holds. Else, whatever the counts are, it is an integer program with at most eight rows
/// (complementary sizes are matched first) and a column for each way to fill a node (66 at capacity 8, 914 at 16), and
/// typically costs microseconds at capacity 8 and some tens of them at 16. The worst case is exponential in the number
/// of columns, as for any exact method; what the hardest demands found cost is in `benches/RESULTS.md`, the test module
/// `effort` looks for harder ones, and [`PhiStar::steps`] tells what the questions asked so far took.
///
/// No size of a demand may be larger than the capacity, and no count larger than [`MAX_COUNT`]; [`phi_star`] checks
/// that.
#[derive(Clone, Debug)]
pub struct PhiStar {
    capacity: u8,
    partial: Solver,
    bins: Solver,
}

impl PhiStar {
    /// A solver for nodes of `capacity` GPUs. Cheap: tables are made when a demand first needs them.
    pub fn new(capacity: u8) -> Self {
        let gpus = usize::from(capacity);
        Self { capacity, partial: Solver::new(gpus, Objective::Partial), bins: Solver::new(gpus, Objective::Bins) }
    }

    /// Φ* of `demand`: the least number of partial nodes over all its packings, on any number of nodes.
    pub fn solve(&mut self, demand: &Demand) -> Solution {
        self.check(demand);
        if wcc(self.capacity, demand).is_some_and(|wcc| wcc.holds) {
            let partial = u64::from(!demand.gpus().is_multiple_of(u64::from(self.capacity)));
            return Solution { partial, method: Method::Wcc };
        }
        let (partial, method) = self.partial.solve(&counts(demand));
        Solution { partial, method }
    }

    /// The fewest nodes that hold `demand`. A packing onto so few nodes may have more than Φ* partial ones (at capacity
    /// 11 some demands have no packing that is best in both).
    pub fn fewest_nodes(&mut self, demand: &Demand) -> u64 {
        self.check(demand);
        self.bins.solve(&counts(demand)).0
    }

    /// The largest `k` such that `demand` and `k` more instances of `gpus` GPUs fit onto `nodes` nodes; 0 if not even
    /// `demand` does, if no node can hold such an instance, or for CPU-only instances (size 0).
    ///
    /// O(log k) questions to the solver.
    pub fn max_more(&mut self, demand: &Demand, gpus: u8, nodes: u64) -> u64 {
        self.check(demand);
        if gpus == 0 || gpus > self.capacity {
            return 0;
        }
        let used = self.fewest_nodes(demand);
        let Some(unused) = nodes.checked_sub(used) else { return 0 };
        // `low` more fit on the nodes that an ideal packing leaves empty, and more than `high` exceed the free GPUs.
        let (gpus64, capacity) = (u64::from(gpus), u64::from(self.capacity));
        let mut low = unused.saturating_mul(capacity / gpus64);
        let mut high = (nodes.saturating_mul(capacity) - demand.gpus()) / gpus64;
        // What fits k times fits k - 1 times. The bound is often the answer, so it is asked first.
        let mut middle = high;
        while low < high {
            if self.fit(demand, gpus, middle, nodes) {
                low = middle;
            } else {
                high = middle - 1;
            }
            middle = low + (high - low).div_ceil(2);
        }
        low
    }

    /// Whether `demand` and `more` instances of `gpus` GPUs fit onto `nodes` nodes.
    fn fit(&mut self, demand: &Demand, gpus: u8, more: u64, nodes: u64) -> bool {
        let mut counts = counts(demand);
        counts[usize::from(gpus)] += more;
        self.bins.lower_bound(&counts) <= nodes && self.bins.solve(&counts).0 <= nodes
    }

    /// How many steps branch and bound took so far, over all questions; 0 as long as cheaper arguments decided them. A step
    /// costs up to some tenths of a millisecond at capacity 16.
    pub fn steps(&self) -> u64 {
        self.partial.steps() + self.bins.steps()
    }

    fn check(&self, demand: &Demand) {
        debug_assert!(demand.largest() <= self.capacity, "an instance larger than {} GPUs", self.capacity);
        debug_assert!(demand.sizes().all(|(_, n)| n <= MAX_COUNT), "more than {MAX_COUNT} instances of a size");
    }
}
