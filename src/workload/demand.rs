//! Demand counts: how many instances of each size run, the only thing that inherent fragmentation depends on.

use crate::cluster::{MAX_GPUS, PerSize};

/// How many instances of each size there are. CPU-only instances (size 0) are never counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Demand {
    counts: PerSize<u64>,
}

impl Demand {
    /// No instances.
    pub const fn new() -> Self {
        Self { counts: [0; MAX_GPUS + 1] }
    }

    /// The number of instances of `gpus` GPUs, 1..=16.
    pub fn count(&self, gpus: u8) -> u64 {
        self.counts[usize::from(gpus)]
    }

    /// Adds `n` instances of `gpus` GPUs. Size 0 is ignored.
    pub fn add(&mut self, gpus: u8, n: u64) {
        if gpus != 0 {
            self.counts[usize::from(gpus)] += n;
        }
    }

    /// Removes `n` instances of `gpus` GPUs, which must be there. Size 0 is ignored.
    pub fn remove(&mut self, gpus: u8, n: u64) {
        if gpus != 0 {
            let count = &mut self.counts[usize::from(gpus)];
            debug_assert!(*count >= n, "removing {n} of {count} instances of {gpus} GPUs");
            *count -= n;
        }
    }

    /// All GPUs asked for: the sum of size times count.
    pub fn gpus(&self) -> u64 {
        self.sizes().map(|(gpus, n)| u64::from(gpus) * n).sum()
    }

    /// The sizes that occur, ascending, with their counts.
    pub fn sizes(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        (1..=MAX_GPUS as u8).map(|gpus| (gpus, self.count(gpus))).filter(|&(_, n)| n > 0)
    }

    /// The largest size that occurs, or 0 if there is none.
    pub fn largest(&self) -> u8 {
        self.sizes().last().map_or(0, |(gpus, _)| gpus)
    }
}

impl FromIterator<(u8, u64)> for Demand {
    fn from_iter<I: IntoIterator<Item = (u8, u64)>>(items: I) -> Self {
        let mut demand = Self::new();
        for (gpus, n) in items {
            demand.add(gpus, n);
        }
        demand
    }
}
