//! The best candidate of every job: the least rank key, the first of equals.

use crate::evaluate::abi::ScoreRow;
use crate::evaluate::batch::Batch;
use crate::evaluate::rank::best_of;

/// One candidate number a job, `NONE` where none is feasible.
pub fn best_candidate(batch: &Batch, rows: &[ScoreRow], best: &mut [u32]) {
    for (job, best) in best.iter_mut().enumerate() {
        *best = best_of(batch, rows, batch.candidates_of(job));
    }
}
