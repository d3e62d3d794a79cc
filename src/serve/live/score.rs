//! Candidates that are scored: those of all callers who wait, in one batch.

mod resolve;

use super::Live;
use crate::cluster::Cluster;
use crate::evaluate::{Batch, BatchBuilder, CandidateSet, PhiChanges, Scores, empty_nodes};
use crate::formats::FormatError;
use crate::serve::fault::ServeError;
use crate::serve::version::Version;
pub use resolve::resolve_candidates;

/// Registers the jobs of a call, and looks up its candidates of them.
pub type Candidates = Box<dyn FnOnce(&mut Cluster) -> Result<Vec<CandidateSet>, FormatError> + Send>;

/// Candidates of one caller.
pub struct ScoreCall {
    /// For which version; `None` for any.
    pub version: Option<Version>,
    /// The jobs, and the candidates of them.
    pub candidates: Candidates,
}

/// The scores of one caller's candidates.
#[derive(Debug)]
pub struct Scored {
    /// The version that they are about.
    pub version: Version,
    /// The batch of these candidates alone.
    pub batch: Batch,
    /// Their scores.
    pub scores: Scores,
    /// Nodes that hold nothing, before.
    pub empty_nodes: u64,
}

/// What scoring keeps from one call to the next.
#[derive(Debug, Default)]
pub(super) struct Scoring {
    builder: BatchBuilder,
    /// Of this version.
    known: Option<(Version, PhiChanges, u64)>,
    together: Batch,
    scores: Scores,
}

impl Live {
    /// Scores the candidates of several callers, each on the cluster as it is, in one evaluation. Nothing has changed
    /// afterwards; answers come in the order of the calls.
    pub fn score(&mut self, calls: Vec<ScoreCall>) -> Vec<Result<Scored, ServeError>> {
        let mut together = std::mem::take(&mut self.scoring.together);
        together.clear();
        let built: Vec<Result<Batch, ServeError>> =
            calls.into_iter().map(|call| self.build(call, &mut together)).collect();
        let mut scores = std::mem::take(&mut self.scoring.scores);
        let evaluated = self.evaluate(&together, &mut scores);
        let (mut candidates, mut jobs) = (0, 0);
        let version = self.version();
        let empty_nodes = self.scoring.known.as_ref().map_or(0, |(_, _, empty)| *empty);
        let answer = |built: Result<Batch, ServeError>| {
            let batch = built?;
            let (first, first_job) = (candidates, jobs);
            candidates += batch.len();
            jobs += batch.n_jobs();
            evaluated.clone().map_err(ServeError::from)?;
            let scores = scores.part(first..candidates, first_job..jobs);
            Ok(Scored { version, batch, scores, empty_nodes })
        };
        let answers = built.into_iter().map(answer).collect();
        (self.scoring.together, self.scoring.scores) = (together, scores);
        answers
    }

    /// The batch of one caller, which is also put behind those of the others.
    fn build(&mut self, call: ScoreCall, together: &mut Batch) -> Result<Batch, ServeError> {
        self.check(call.version)?;
        let version = self.version();
        let state = self.state.as_mut().ok_or(ServeError::NoCluster)?;
        let Scoring { builder, known, .. } = &mut self.scoring;
        if known.as_ref().is_none_or(|(of, ..)| *of != version) {
            *known = Some((version, PhiChanges::new(state), empty_nodes(state.cluster())));
        }
        let Some((_, phi, _)) = known else { return Err(ServeError::NoCluster) };
        let mark = state.cluster().mark_jobs();
        let built = state.enqueue(call.candidates).map_err(ServeError::from).and_then(|sets| {
            let mut batch = Batch::default();
            builder.build(state.cluster(), &sets, &mut |changes| phi.delta(changes), &mut batch)?;
            together.append(&batch)?;
            Ok(batch)
        });
        state.forget_since(mark);
        built
    }

    fn evaluate(&mut self, batch: &Batch, scores: &mut Scores) -> Result<(), crate::evaluate::EvalError> {
        match &self.state {
            Some(state) if !batch.is_empty() => self.resident.current(state.cluster())?.evaluate(batch, scores),
            _ => {
                scores.resize(batch);
                Ok(())
            }
        }
    }
}
