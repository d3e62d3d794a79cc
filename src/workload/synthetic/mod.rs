//! Clusters and job streams made from a seed. Integers alone, so that a seed gives the same bytes on every machine.

mod arbitrary;
mod arrivals;
mod cluster;
mod mix;
mod stream;

pub use arbitrary::arbitrary_cluster;
pub use arrivals::{Arrivals, HOURS};
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

    /// An integer of the exponential distribution of this mean, rounded down.
    ///
    /// -ln(u) of a uniform u of 64 bits, in fixed point: its binary logarithm by squaring, a bit a time, so that no
    /// machine's mathematical library has a say.
    pub(crate) fn exponential(&mut self, mean: u64) -> u64 {
        const LN_2: u128 = 2_977_044_472; // In 2^-32.
        let u = self.0.next_u64().max(1);
        let mut log2 = u128::from(u.leading_zeros()) + 1;
        let mut mantissa = u128::from(u << u.leading_zeros());
        // -log2(u / 2^64) is `log2` less the logarithm of the mantissa in [1, 2): 32 bits of it.
        for _ in 0..32 {
            mantissa = (mantissa * mantissa) >> 63;
            let bit = mantissa >> 64;
            mantissa >>= bit;
            log2 = (log2 << 1) - bit;
        }
        let units = (log2 * LN_2) >> 32;
        u64::try_from((units * u128::from(mean)) >> 32).unwrap_or(u64::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_draws_have_the_mean_and_the_tail() {
        let mut dice = Dice::new(7, 9);
        let (n, mean) = (200_000u64, 1_000_000u64);
        let draws: Vec<u64> = (0..n).map(|_| dice.exponential(mean)).collect();
        // Standard errors: 0.22 % of the mean, 0.6 % and 1.6 % of the shares.
        assert!((draws.iter().sum::<u64>() / n).abs_diff(mean) < mean / 100);
        let beyond = |means: u64| draws.iter().filter(|&&draw| draw > means * mean).count() as f64 / n as f64;
        assert!((beyond(2) / (-2f64).exp() - 1.0).abs() < 0.02, "{}", beyond(2));
        assert!((beyond(4) / (-4f64).exp() - 1.0).abs() < 0.06, "{}", beyond(4));
        assert_eq!(dice.exponential(0), 0);
    }
}
