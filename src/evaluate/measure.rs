//! How fast a backend scores, beside the limit of its memory in the same run.

use std::time::{Duration, Instant};

use super::abi::Touch;
use super::batch::Batch;

/// What was measured: the best of several passes each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Touches scored a second.
    pub touches_per_s: f64,
    /// Bytes of touches scored a second.
    pub bytes_per_s: f64,
    /// Bytes of touches a second that a plain read of them reaches on as many threads; on a device, the bytes a second
    /// that its own copy of them reads and writes together, which is as much as a read alone could reach.
    pub limit_bytes_per_s: f64,
}

impl Speed {
    /// The speed of scoring a batch in this time, where its touches alone are read or copied in that time.
    pub fn of(batch: &Batch, scoring: Duration, limit: Duration) -> Self {
        let bytes = size_of_val(batch.touches()) as f64;
        let a_second = |amount: f64, time: Duration| amount / time.as_secs_f64().max(1e-9);
        Self {
            touches_per_s: a_second(batch.touches().len() as f64, scoring),
            bytes_per_s: a_second(bytes, scoring),
            limit_bytes_per_s: a_second(bytes, limit),
        }
    }

    /// The share of the limit that scoring reaches.
    pub fn of_limit(&self) -> f64 {
        self.bytes_per_s / self.limit_bytes_per_s
    }
}

/// Times two kinds of work on a batch, `passes` times in turn, and keeps the best of each.
pub(super) fn speed(batch: &Batch, passes: usize, mut score: impl FnMut(), mut limit: impl FnMut()) -> Speed {
    let (mut scoring, mut limiting) = (Duration::MAX, Duration::MAX);
    for _ in 0..passes.max(1) {
        limiting = limiting.min(time(&mut limit));
        scoring = scoring.min(time(&mut score));
    }
    Speed::of(batch, scoring, limiting)
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The plain sequential read on one thread: the sum of all words, eight sums at once, so that no addition waits for
/// the one before.
pub fn plain_read(touches: &[Touch]) -> u64 {
    let words: &[u64] = bytemuck::cast_slice(touches);
    let (chunks, rest) = words.as_chunks::<8>();
    let mut sums = [0u64; 8];
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, &word)| *sum = sum.wrapping_add(word));
    }
    sums.iter().chain(rest).fold(0, |sum, &word| sum.wrapping_add(word))
}
