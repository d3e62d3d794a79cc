//! What can be taken off a demand before anything is searched, without changing the optimum.
//!
//! **Complementary pairs.** Let `a + b = G` and let the demand hold an instance of `a` and another of `b`. Then some
//! optimal packing has a bin `{a, b}`. Proof: take an optimal packing; let `A` be the bin of `a`, `S` the rest of `A`
//! with sum `s <= b`, and `B` the bin of `b` (if `A = B` there is nothing to do, as `a + b = G` leaves no room for more).
//! Swap `b` against `S`. Now `A = {a, b}` is full, and the fill of `B` sank by `b - s >= 0`, so everything still fits
//! and no bin was added. If `s = b` both fills are as before. If `s < b`, then `A` was partial and is full, while `B`
//! may have become partial or empty: one partial bin fewer and at most one more. So neither the number of partial bins
//! nor the number of bins grew. Taking the pair out is therefore exact, for both objectives, and may be repeated.
//! The same with `b = G / 2 = a`, and trivially for an instance of `G` (it is a full bin wherever it is).
//!
//! **Lone instances.** If an instance of `a < G` fits together with no other instance of the demand, it is alone in its
//! bin in every packing: one partial bin.
//!
//! After this at most one size of each pair `{k, G - k}` is left, so at most eight sizes, and at most one instance of
//! `G / 2`.

use super::Objective;
use crate::cluster::MAX_GPUS;

/// Counts by size, index 0 unused.
pub(super) type Counts = [u64; MAX_GPUS + 1];

/// The most distinct sizes that a reduced demand can hold.
pub(super) const MAX_SIZES: usize = 8;

/// All GPUs of `counts`.
pub(super) fn total(counts: &Counts) -> u64 {
    counts.iter().enumerate().map(|(gpus, n)| gpus as u64 * n).sum()
}

/// The sizes that occur, as bits: bit `g` for size `g`.
pub(super) fn signature(counts: &Counts) -> u32 {
    counts.iter().enumerate().fold(0, |bits, (gpus, &n)| if gpus > 0 && n > 0 { bits | 1 << gpus } else { bits })
}

/// Takes everything out of `counts` whose bins are settled (see the module's proof), and returns the cost of those bins.
pub(super) fn reduce(capacity: usize, objective: Objective, counts: &mut Counts) -> u64 {
    let mut full = counts[capacity];
    counts[capacity] = 0;
    for small in 1..=(capacity - 1) / 2 {
        let pairs = counts[small].min(counts[capacity - small]);
        counts[small] -= pairs;
        counts[capacity - small] -= pairs;
        full += pairs;
    }
    if capacity.is_multiple_of(2) {
        full += counts[capacity / 2] / 2;
        counts[capacity / 2] %= 2;
    }
    let mut cost = match objective {
        Objective::Partial => 0,
        Objective::Bins => full,
    };
    // The smallest size is what fits best beside any other.
    if let Some(smallest) = (1..capacity).find(|&gpus| counts[gpus] > 0) {
        for gpus in (capacity - smallest + 1..capacity).rev() {
            cost += counts[gpus];
            counts[gpus] = 0;
        }
        if counts[smallest] == 1 && counts.iter().sum::<u64>() == 1 {
            cost += 1;
            counts[smallest] = 0;
        }
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_halves_wholes_and_lone_instances_go() {
        let mut counts = Counts::default();
        (counts[8], counts[7], counts[1], counts[4], counts[5], counts[3], counts[6]) = (3, 5, 2, 5, 4, 6, 2);
        // 7+1 twice, 5+3 four times, 4+4 twice; then 3, 4, 6 and 7 are left: 7 and 6 are alone.
        assert_eq!(reduce(8, Objective::Partial, &mut counts), 3 + 2);
        assert_eq!((counts[3], counts[4], signature(&counts)), (2, 1, 0b11000));
    }

    #[test]
    fn a_single_small_instance_is_alone() {
        let mut counts = Counts::default();
        counts[2] = 1;
        assert_eq!(reduce(8, Objective::Bins, &mut counts), 1);
        assert_eq!(total(&counts), 0);
    }
}
