//! Clusters and job streams made from a seed. Integers alone, so that a seed gives the same bytes on every machine.

mod arbitrary;
mod cluster;
mod mix;
mod stream;

pub use arbitrary::arbitrary_cluster;
pub use cluster::{ClusterOptions, synthetic_cluster};
pub use mix::Mix;
pub use stream::{StreamOptions, synthetic_queue, synthetic_trace};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Random integers from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    /// `purpose` keeps apart what one seed makes: a cluster and its queue must not draw the same numbers.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(purpose);
        Self(rng)
    }

    /// An integer below `n`; 0 if `n` is 0. The bias of at most n / 2^64 does not matter here.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }

    /// One of these, by weight; the last if no weight is above 0.
    pub(crate) fn weighted<T: Copy>(&mut self, table: &[(T, u64)]) -> Option<T> {
        let mut at = self.below(table.iter().map(|&(_, weight)| weight).sum());
        for &(value, weight) in table {
            if at < weight {
                return Some(value);
            }
            at -= weight;
        }
        table.last().map(|&(value, _)| value)
    }
}
