//! The rank key: which candidate of a job is best.
//!
//! The order is lexicographic and exact: nothing saturates, and nothing is weighed against anything else. From best to
//! worst, each only where all before it are equal:
//!
//! | word | smaller is better |
//! |---|---|
//! | 0 | nodes that leave Σ |
//! | 1 | N·ΔSIF = Δpartial − ΔΦ*, shifted by 2^31 to be unsigned |
//! | 2 | instances moved |
//! | 3 | GPUs moved |
//! | 4 | empty nodes opened |
//! | 5 | free GPUs left on the touched nodes |
//! | 6 | racks |
//! | 7 | NVLink domains |
//!
//! and then the position in the batch. An infeasible candidate has no key: it has no rank.

use super::abi::{Candidate, NONE, ScoreRow};
use super::batch::{Batch, Scores};

/// The key of a feasible candidate; the order of the array is the order of the candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankKey(pub [u32; 8]);

impl RankKey {
    /// The key of a candidate; `None` if it is infeasible.
    pub fn of(row: &ScoreRow, candidate: &Candidate) -> Option<Self> {
        if row.reason != 0 {
            return None;
        }
        let sif = delta_sif_nodes(row, candidate);
        Some(Self([
            row.left,
            sif as u32 ^ 1 << 31,
            candidate.moves,
            candidate.moved_gpus,
            row.opened,
            row.residual,
            candidate.racks,
            candidate.domains,
        ]))
    }
}

/// N·ΔSIF of a candidate: avoidable partial nodes after less before. A batch is built so that it fits.
pub fn delta_sif_nodes(row: &ScoreRow, candidate: &Candidate) -> i32 {
    row.delta_partial.wrapping_sub(candidate.delta_phi_star)
}

/// The best of some candidates of a batch, given their rows; `NONE` if none is feasible.
pub(super) fn best_of(batch: &Batch, rows: &[ScoreRow], candidates: std::ops::Range<usize>) -> u32 {
    let keys = candidates.filter_map(|c| RankKey::of(&rows[c], &batch.candidates()[c]).map(|key| (key, c as u32)));
    keys.min().map_or(NONE, |(_, candidate)| candidate)
}

/// The ranks of a batch: see `Scores::ranks`.
pub(super) fn ranks(batch: &Batch, scores: &Scores) -> Vec<u32> {
    let mut ranks = vec![0; batch.len()];
    let mut order = Vec::new();
    for job in 0..batch.n_jobs() {
        order.clear();
        order.extend(batch.candidates_of(job).filter_map(|c| scores.key(batch, c).map(|key| (key, c))));
        order.sort_unstable();
        for (position, &(_, candidate)) in order.iter().enumerate() {
            ranks[candidate] = position as u32 + 1;
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_stand_in_the_documented_order() {
        let row = ScoreRow { delta_partial: 1, left: 2, opened: 3, residual: 4, ..Default::default() };
        let candidate =
            Candidate { moves: 5, moved_gpus: 6, racks: 7, domains: 8, delta_phi_star: 3, ..Default::default() };
        assert_eq!(RankKey::of(&row, &candidate), Some(RankKey([2, (1 << 31) - 2, 5, 6, 3, 4, 7, 8])));
        assert_eq!(RankKey::of(&ScoreRow { reason: 1, ..row }, &candidate), None);
    }

    #[test]
    fn negative_is_before_positive() {
        let key = |delta_partial| RankKey::of(&ScoreRow { delta_partial, ..Default::default() }, &Candidate::default());
        assert!(key(-125_000) < key(-1));
        assert!(key(-1) < key(0));
        assert!(key(0) < key(125_000));
    }
}
