//! The processor's backend: the same rows as the twins, as fast as memory allows.

mod nodes;
mod score;
#[cfg(target_arch = "x86_64")]
mod simd;

use std::hint::black_box;

use rayon::prelude::*;

use super::abi::{NodeEdit, ScoreRow, Touch};
use super::backend::{Backend, EvalError};
use super::batch::{Batch, Scores};
use super::census::Census;
use super::fgd::{FgdQuery, FgdRow};
use super::measure::{self, Speed, plain_read};
use super::node_rows::NodeRows;
use super::query::NodeQuery;
use super::rank::best_of;
use super::twin;

/// Pieces of work a thread: enough that a slow one does not hold up the rest.
const PIECES: usize = 8;

/// Touches and candidates, or nodes, that are worth waking the threads for: one is done with fewer before all are awake.
const WORTH_THREADS: usize = 1 << 13;

/// Evaluates on the processor, with a number of threads of its own.
#[derive(Debug)]
pub struct Cpu {
    state: NodeRows,
    threads: usize,
    /// `None` for one thread: everything then runs on the caller's.
    pool: Option<rayon::ThreadPool>,
    how: How,
}

/// How candidates are scored.
#[derive(Clone, Copy, Debug)]
enum How {
    /// With what every processor has.
    Portable,
    /// With AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2(simd::Avx2),
}

impl How {
    fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = simd::Avx2::detect() {
            return Self::Avx2(avx2);
        }
        Self::Portable
    }

    fn score(self, state: &NodeRows, batch: &Batch, first: usize, rows: &mut [ScoreRow]) {
        match self {
            Self::Portable => score::score(state, batch, first, rows),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.score(state, batch, first, rows),
        }
    }
}

impl Cpu {
    /// With this many threads; 0 is one a core.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub fn new(threads: usize) -> Result<Self, EvalError> {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        let build = || {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let builder = builder.thread_name(|number| format!("evaluate-{number}"));
            builder.build().map_err(|error| EvalError::Threads(threads, error.to_string()))
        };
        let pool = if threads == 1 { None } else { Some(build()?) };
        Ok(Self { state: NodeRows::default(), threads, pool, how: How::best() })
    }

    /// With this many threads, and no instruction that the build does not ask for.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub fn portable(threads: usize) -> Result<Self, EvalError> {
        Ok(Self { how: How::Portable, ..Self::new(threads)? })
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The threads, if there are several and this much work is worth waking them for.
    fn pool_for(&self, work: usize) -> Option<&rayon::ThreadPool> {
        self.pool.as_ref().filter(|_| work >= WORTH_THREADS)
    }

    /// The rows that are loaded, with all edits.
    pub(super) fn rows(&self) -> &NodeRows {
        &self.state
    }

    /// Scores a batch into `rows`, one a candidate.
    fn score(&self, batch: &Batch, rows: &mut [ScoreRow]) {
        let Some(pool) = self.pool_for(batch.touches().len() + batch.len()) else {
            return self.how.score(&self.state, batch, 0, rows);
        };
        let pieces = split(batch, self.threads * PIECES, rows);
        pool.install(|| {
            pieces.into_par_iter().for_each(|(first, rows)| self.how.score(&self.state, batch, first, rows))
        });
    }
}

impl Cpu {
    /// A plain read with all threads: the sum of all words.
    fn read(&self, touches: &[Touch]) -> u64 {
        match &self.pool {
            None => plain_read(touches),
            Some(pool) => {
                let piece = touches.len().div_ceil(self.threads * PIECES).max(1);
                pool.install(|| touches.par_chunks(piece).map(plain_read).reduce(|| 0, u64::wrapping_add))
            }
        }
    }
}

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
        self.state.clone_from(nodes);
        Ok(())
    }

    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        EvalError::check_edits(edits, self.state.len())?;
        // A delta is a handful of rows; there is nothing to be clever about.
        twin::apply_edits::apply_edits(&mut self.state, edits);
        Ok(())
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        EvalError::check_batch(batch, self.state.len())?;
        out.resize(batch);
        self.score(batch, &mut out.rows);
        let rows = &out.rows;
        let best = |(job, best): (usize, &mut u32)| *best = best_of(batch, rows, batch.candidates_of(job));
        match self.pool_for(batch.len() + batch.n_jobs()) {
            None => out.best.iter_mut().enumerate().for_each(best),
            Some(pool) => pool.install(|| out.best.par_iter_mut().enumerate().for_each(best)),
        }
        Ok(())
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        EvalError::check_query(query, self.state.pools)?;
        out.resize(query.width(), 0);
        match self.pool_for(query.len() * self.state.len()) {
            None => nodes::rank_nodes(&self.state, query, out),
            Some(pool) => pool.install(|| nodes::rank_nodes_in_pool(&self.state, query, out)),
        }
        Ok(())
    }

    fn score_fgd(&mut self, query: &FgdQuery, out: &mut Vec<FgdRow>) -> Result<(), EvalError> {
        EvalError::check_query(query.demands(), self.state.pools)?;
        let nodes = self.state.len();
        out.resize(query.len() * nodes, FgdRow::REFUSED);
        let score = |(at, row): (usize, &mut FgdRow)| {
            *row = query.score_by_gauge(at / nodes, &self.state, at % nodes);
        };
        match self.pool_for(out.len() * query.pods().len()) {
            None => out.iter_mut().enumerate().for_each(score),
            Some(pool) => pool.install(|| out.par_iter_mut().enumerate().for_each(score)),
        }
        Ok(())
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        match self.pool_for(self.state.len()) {
            None => twin::census::census(&self.state, out),
            Some(pool) => pool.install(|| nodes::census(&self.state, out)),
        }
        Ok(())
    }

    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        EvalError::check_batch(batch, self.state.len())?;
        let mut scores = Scores::default();
        scores.resize(batch);
        // The first touch of the rows' pages is the system's work, not ours.
        self.score(batch, &mut scores.rows);
        let score = || self.score(black_box(batch), black_box(&mut scores.rows));
        Ok(measure::speed(batch, passes, score, || _ = black_box(self.read(batch.touches()))))
    }
}

/// Cuts the rows of a batch into pieces of about as many touches each, with the first candidate of each.
fn split<'a>(batch: &Batch, pieces: usize, mut rows: &'a mut [ScoreRow]) -> Vec<(usize, &'a mut [ScoreRow])> {
    let offsets = batch.offsets();
    // A candidate costs something even without touches.
    let cost = |candidate: usize| offsets[candidate] as usize + candidate;
    let target = cost(batch.len()).div_ceil(pieces).max(1);
    let mut out = Vec::with_capacity(pieces + 1);
    let mut first = 0;
    while first < batch.len() {
        let goal = cost(first) + target;
        let (mut low, mut high) = (first + 1, batch.len());
        while low < high {
            let middle = low.midpoint(high);
            if cost(middle) < goal {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let (head, tail) = rows.split_at_mut(low - first);
        out.push((first, head));
        (rows, first) = (tail, low);
    }
    out
}
