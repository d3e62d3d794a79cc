//! How a batch is cut into pieces that fit the device, and how what they find is put together.

use std::ops::Range;

use crate::evaluate::abi::{Candidate, NONE, ScoreRow, Touch};
use crate::evaluate::batch::{Batch, Scores};

/// Bytes on the device for a candidate, besides its touches: its offset, given reason, static columns and row.
const CANDIDATE: usize = 2 * size_of::<u32>() + size_of::<Candidate>() + size_of::<ScoreRow>();

/// A piece of a batch: whole candidates. A job may lie in several; then each finds its best, and the host compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) candidates: Range<usize>,
    /// The jobs that have candidates in it, and those without any that stand between them.
    pub(super) jobs: Range<usize>,
    /// The first of `jobs` has candidates in the chunk before as well.
    pub(super) goes_on: bool,
}

impl Chunk {
    /// All of a batch.
    pub(super) fn whole(batch: &Batch) -> Self {
        Self { candidates: 0..batch.len(), jobs: 0..batch.n_jobs(), goes_on: false }
    }

    /// Where its touches stand in the batch.
    pub(super) fn touches(&self, batch: &Batch) -> Range<usize> {
        let offset = |candidate: usize| batch.offsets()[candidate] as usize;
        offset(self.candidates.start)..offset(self.candidates.end)
    }

    /// The offsets of its jobs, and the end, as if no job had candidates elsewhere.
    pub(super) fn job_offsets(&self, batch: &Batch) -> impl Iterator<Item = u32> {
        let (first, end) = (self.candidates.start as u32, self.candidates.end as u32);
        batch.jobs()[self.jobs.start..=self.jobs.end].iter().map(move |&offset| offset.clamp(first, end))
    }

    /// Enters the best candidates that were found in it. Those of the chunks before are there, and all rows up to here.
    pub(super) fn enter_best(&self, batch: &Batch, found: &[u32], out: &mut Scores) {
        let before = self.goes_on.then(|| out.best[self.jobs.start]);
        out.best[self.jobs.clone()].copy_from_slice(found);
        let Some(before) = before.filter(|&before| before != NONE) else { return };
        let found = out.best[self.jobs.start];
        // An earlier candidate goes before a later one with the same key.
        if found == NONE || out.key(batch, before as usize) <= out.key(batch, found as usize) {
            out.best[self.jobs.start] = before;
        }
    }
}

/// Cuts a batch into chunks of about so many bytes, in order. Larger is only a chunk of one candidate, which names no
/// node twice and so has no more touches than there are nodes.
pub(super) fn chunks(batch: &Batch, bytes: usize) -> Vec<Chunk> {
    let offsets = batch.offsets();
    let cost = |candidate: usize| offsets[candidate] as usize * size_of::<Touch>() + candidate * CANDIDATE;
    let mut chunks: Vec<Chunk> = Vec::with_capacity(cost(batch.len()) / bytes.max(1) + 1);
    let (mut first, mut job) = (0, 0);
    while first < batch.len() {
        let most = cost(first) + bytes;
        let end = end_of(first + 1, batch.len(), |end| cost(end) <= most);
        let goes_on = batch.jobs()[job] < first as u32;
        let jobs_end = match end == batch.len() {
            true => batch.n_jobs(),
            false => end_of(job + 1, batch.n_jobs(), |next| (batch.jobs()[next - 1] as usize) < end),
        };
        chunks.push(Chunk { candidates: first..end, jobs: job..jobs_end, goes_on });
        // The last job of this chunk is the first of the next if it is not at its end.
        job = if batch.jobs()[jobs_end] as usize > end { jobs_end - 1 } else { jobs_end };
        first = end;
    }
    chunks
}

/// The last of `least..=most` for which `fits` holds, which does for none after one for which it does not; `least` is
/// taken for fitting.
fn end_of(least: usize, most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (least, most);
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::abi::Need;
    use crate::evaluate::batch::BatchRows;
    use crate::evaluate::rank::best_of;
    use crate::evaluate::synthetic::Numbers;

    /// Jobs of 0, 1 and many candidates, each of 0, 1 or many touches.
    fn batch(seed: u64) -> Batch {
        let mut numbers = Numbers::new(seed);
        let nodes = 40;
        let mut rows = BatchRows { nodes, needs: vec![Need::NONE], ..BatchRows::default() };
        rows.jobs.push(0);
        rows.offsets.push(0);
        for job in 0..numbers.below(12) {
            for _ in 0..[0, 0, 1, numbers.below(30)][numbers.below(4) as usize] {
                for node in 0..[0, 1, numbers.below(40)][numbers.below(3) as usize] {
                    rows.touches.push(Touch { node, ..Touch::default() });
                }
                rows.offsets.push(rows.touches.len() as u32);
                rows.given.push(0);
                rows.candidates.push(Candidate { job, moves: numbers.below(3), ..Candidate::default() });
            }
            rows.jobs.push(rows.candidates.len() as u32);
        }
        Batch::from_rows(rows).unwrap()
    }

    #[test]
    fn chunks_cover_everything_once_and_their_best_make_the_best() {
        for seed in 0..500 {
            let batch = batch(seed);
            let mut numbers = Numbers::new(seed + 7);
            let row = |_| ScoreRow { reason: numbers.below(2), ..ScoreRow::default() };
            let mut out = Scores { rows: (0..batch.len()).map(row).collect(), best: vec![7; batch.n_jobs()] };
            let expected: Vec<u32> =
                (0..batch.n_jobs()).map(|job| best_of(&batch, &out.rows, batch.candidates_of(job))).collect();
            let (mut candidate, mut job) = (0, 0);
            let chunks = chunks(&batch, 1 + 100 * (seed as usize % 30));
            for chunk in &chunks {
                assert_eq!(chunk.candidates.start, candidate);
                assert_eq!(chunk.jobs.start + usize::from(chunk.goes_on), job);
                (candidate, job) = (chunk.candidates.end, chunk.jobs.end);
                assert!(!chunk.candidates.is_empty());
                let offsets: Vec<u32> = chunk.job_offsets(&batch).collect();
                let of = |pair: &[u32]| best_of(&batch, &out.rows, pair[0] as usize..pair[1] as usize);
                let found: Vec<u32> = offsets.windows(2).map(of).collect();
                assert_eq!(offsets[0] as usize, chunk.candidates.start);
                assert_eq!(offsets[offsets.len() - 1] as usize, chunk.candidates.end);
                chunk.enter_best(&batch, &found, &mut out);
            }
            assert_eq!(candidate, batch.len(), "seed {seed}");
            if !chunks.is_empty() {
                assert_eq!((job, &out.best), (batch.n_jobs(), &expected), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_chunk_is_no_larger_than_asked_unless_one_candidate_is() {
        let batch = batch(3);
        for bytes in [1, 500, 2000, usize::MAX >> 1] {
            for chunk in chunks(&batch, bytes) {
                let n = chunk.candidates.len();
                let size = chunk.touches(&batch).len() * size_of::<Touch>() + n * CANDIDATE;
                assert!(size <= bytes || n == 1);
            }
        }
        assert_eq!(chunks(&batch, usize::MAX >> 1), [Chunk::whole(&batch)]);
    }
}
