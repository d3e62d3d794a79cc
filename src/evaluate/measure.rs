//! How fast the processor scores, beside the limit of its memory in the same run.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::abi::Touch;
use super::backend::{Backend, EvalError};
use super::batch::{Batch, Scores};
use super::cpu::Cpu;
use crate::cluster::Cluster;

/// What was measured: the best of several passes each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Touches scored a second.
    pub touches_per_s: f64,
    /// Bytes of touches scored a second.
    pub bytes_per_s: f64,
    /// Bytes a second of a plain sequential read of the same touches with as many threads.
    pub limit_bytes_per_s: f64,
}

impl Speed {
    /// The share of the limit that scoring reaches.
    pub fn of_limit(&self) -> f64 {
        self.bytes_per_s / self.limit_bytes_per_s
    }
}

/// Scores `batch` on `cluster` with `threads` threads, `passes` times in turn with plain reads of its touches.
///
/// # Errors
/// If the batch is about another cluster, or the threads cannot be started.
pub fn score_candidates(cluster: &Cluster, batch: &Batch, threads: usize, passes: usize) -> Result<Speed, EvalError> {
    let mut cpu = Cpu::new(threads)?;
    cpu.load(cluster)?;
    EvalError::check_batch(batch, cluster.nodes().len())?;
    let mut scores = Scores::default();
    scores.resize(batch);
    // The first touch of the rows' pages is the system's work, not ours.
    cpu.score(batch, &mut scores.rows);
    let (mut scoring, mut reading) = (Duration::MAX, Duration::MAX);
    for _ in 0..passes.max(1) {
        reading = reading.min(time(|| {
            black_box(read(&cpu, batch.touches()));
        }));
        scoring = scoring.min(time(|| cpu.score(black_box(batch), &mut scores.rows)));
        black_box(&scores);
    }
    let bytes = size_of_val(batch.touches()) as f64;
    let a_second = |amount: f64, time: Duration| amount / time.as_secs_f64().max(1e-9);
    Ok(Speed {
        touches_per_s: a_second(batch.touches().len() as f64, scoring),
        bytes_per_s: a_second(bytes, scoring),
        limit_bytes_per_s: a_second(bytes, reading),
    })
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The plain read: the sum of all words, by as many threads as the backend has.
fn read(cpu: &Cpu, touches: &[Touch]) -> u64 {
    match cpu.pool() {
        None => plain_read(touches),
        Some(pool) => {
            let piece = touches.len().div_ceil(cpu.threads() * 8).max(1);
            pool.install(|| touches.par_chunks(piece).map(plain_read).reduce(|| 0, u64::wrapping_add))
        }
    }
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
