//! Whether a backend gives the bits that the twins give: what `verify` runs, and the tests.

mod batches;
mod clusters;
mod faulty;
mod queries;
mod run;

pub use faulty::Faulty;

use super::abi::{NONE, ScoreRow};
use super::backend::{Backend, EvalError};
use super::batch::{Batch, Scores};
use super::kernels::Kernel;
use run::Run;

/// What one comparison found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was compared.
    pub kernel: Kernel,
    /// Of which input.
    pub case: String,
    /// On how many nodes.
    pub nodes: usize,
    /// How many values.
    pub values: usize,
    /// The first difference: where, what the backend says, what the twin says.
    pub mismatch: Option<String>,
}

/// How much is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// Small clusters, a few of every kind: for what takes its time.
    Quick,
    /// Every kind and every edge.
    Usual,
    /// Also what takes more than one piece on any device: a batch of 144 MB, 4,096 classes, 125,000 nodes.
    Large,
}

/// Compares two results value by value.
pub fn compare<T: PartialEq + std::fmt::Debug>(kernel: Kernel, nodes: usize, found: &[T], expected: &[T]) -> Check {
    let differ = found.iter().zip(expected).position(|(found, expected)| found != expected);
    let mismatch = if found.len() != expected.len() {
        Some(format!("{} values, expected {}", found.len(), expected.len()))
    } else {
        differ.map(|at| format!("at {at}: {:?}, expected {:?}", found[at], expected[at]))
    };
    Check { kernel, case: String::new(), nodes, values: expected.len(), mismatch }
}

/// Compares what two backends make of a batch. The buffers are poisoned before, so that nothing may be left out.
///
/// # Errors
/// If one of them fails.
pub fn scores(backend: &mut dyn Backend, reference: &mut dyn Backend, batch: &Batch) -> Result<[Check; 2], EvalError> {
    let poison = ScoreRow { reason: NONE, residual: NONE, ..ScoreRow::default() };
    let mut found = Scores { rows: vec![poison; batch.len() + 1], best: vec![NONE - 1; batch.n_jobs() + 1] };
    let mut expected = Scores::default();
    backend.evaluate(batch, &mut found)?;
    reference.evaluate(batch, &mut expected)?;
    Ok([
        compare(Kernel::score_candidates, batch.nodes(), &found.rows, &expected.rows),
        compare(Kernel::best_candidate, batch.nodes(), &found.best, &expected.best),
    ])
}

/// Compares a backend with the twins on clusters made from the seed, before and after edits: `suite_of` the usual
/// extent.
///
/// # Errors
/// If the backend fails; a mismatch is no error.
pub fn suite(backend: &mut dyn Backend, seed: u64) -> Result<Vec<Check>, EvalError> {
    suite_of(backend, seed, Extent::Usual)
}

/// Compares a backend with the twins on as much as `extent` says. The same seed compares the same.
///
/// # Errors
/// If the backend fails; a mismatch is no error.
pub fn suite_of(backend: &mut dyn Backend, seed: u64, extent: Extent) -> Result<Vec<Check>, EvalError> {
    let mut run = Run::new(backend, seed, extent);
    for (number, kind) in clusters::kinds(extent).into_iter().enumerate() {
        run.on_cluster(kind, number)?;
    }
    if extent == Extent::Large {
        run.at_length()?;
    }
    Ok(run.into_checks())
}
