//! The running account of one pool: what runs there, and Φ* after every event.

use super::wcc::vacancy;
use super::{PhiStar, Wcc};
use crate::workload::Demand;

/// What runs in one pool (nodes of one capacity and model), with Φ* kept up to date.
///
/// [`add`](Self::add) and [`remove`](Self::remove) are O(1) and undo each other exactly: Φ* depends on the counts alone,
/// so a discarded transaction leaves no trace but a warmer memory. Φ* is O(1) while the Workload Composition
/// Condition holds or nothing changed, and else a question to a [`PhiStar`] that remembers what it proved for this pool
/// before: dual vectors bound every demand of the same sizes, whatever its counts, so one event rarely needs
/// more than a few multiplications and a look-up.
#[derive(Clone, Debug)]
pub struct PoolFragmentation {
    capacity: u8,
    demand: Demand,
    gpus: u64,
    /// 1-GPU instances less the fillers that all slots need; meaningful where the capacity is a power of two.
    slack: i64,
    /// Φ* of `demand`, if asked since the last change.
    known: Option<u64>,
    solver: PhiStar,
}

impl PoolFragmentation {
    /// An empty pool of nodes of `capacity` GPUs.
    pub fn new(capacity: u8) -> Self {
        Self { capacity, demand: Demand::new(), gpus: 0, slack: 0, known: Some(0), solver: PhiStar::new(capacity) }
    }

    /// GPUs a node.
    pub fn capacity(&self) -> u8 {
        self.capacity
    }

    /// What runs.
    pub fn demand(&self) -> &Demand {
        &self.demand
    }

    /// All GPUs in use.
    pub fn gpus(&self) -> u64 {
        self.gpus
    }

    /// `n` instances of `gpus` GPUs start. CPU-only ones (size 0) change nothing; others must fit a node.
    pub fn add(&mut self, gpus: u8, n: u64) {
        debug_assert!(gpus <= self.capacity, "an instance of {gpus} GPUs in a pool of {}", self.capacity);
        if gpus > 0 && n > 0 {
            self.demand.add(gpus, n);
            self.gpus += u64::from(gpus) * n;
            self.slack += self.weight(gpus) * n as i64;
            self.known = None;
        }
    }

    /// `n` instances of `gpus` GPUs end; they must be running.
    pub fn remove(&mut self, gpus: u8, n: u64) {
        if gpus > 0 && n > 0 {
            self.demand.remove(gpus, n);
            self.gpus -= u64::from(gpus) * n;
            self.slack -= self.weight(gpus) * n as i64;
            self.known = None;
        }
    }

    /// The Workload Composition Condition; `None` where the capacity is no power of two.
    pub fn wcc(&self) -> Option<Wcc> {
        self.capacity.is_power_of_two().then(|| Wcc::from_slack(i128::from(self.slack)))
    }

    /// Φ*: the least number of partial nodes over all packings of what runs.
    pub fn phi_star(&mut self) -> u64 {
        if let Some(known) = self.known {
            return known;
        }
        let partial = if self.wcc().is_some_and(|wcc| wcc.holds) {
            u64::from(!self.gpus.is_multiple_of(u64::from(self.capacity)))
        } else {
            self.solver.solve(&self.demand).partial
        };
        self.known = Some(partial);
        partial
    }

    /// The solver of this pool, for other questions about its packings.
    pub fn solver(&mut self) -> &mut PhiStar {
        &mut self.solver
    }

    /// What one instance adds to the slack.
    fn weight(&self, gpus: u8) -> i64 {
        if gpus == 1 { 1 } else { -i64::from(vacancy(self.capacity, gpus)) }
    }
}
