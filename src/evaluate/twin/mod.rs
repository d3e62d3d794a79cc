//! The serial reference of every kernel: one file and one function of the same name each, as plain as can be. What a
//! kernel means is what its twin says.

pub mod apply_edits;
pub mod best_candidate;
pub mod census;
pub mod rank_nodes;
pub mod score_candidates;
pub mod score_fgd;

use std::hint::black_box;

use super::abi::{NodeEdit, ScoreRow};
use super::backend::{Backend, EvalError};
use super::batch::{Batch, Scores};
use super::census::Census;
use super::fgd::{FgdQuery, FgdRow};
use super::measure::{self, Speed};
use super::node_rows::NodeRows;
use super::query::NodeQuery;

/// The twins as a backend: what other backends are compared with.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    state: NodeRows,
}

impl Reference {
    /// With no nodes loaded.
    pub fn new() -> Self {
        Self::default()
    }

    /// The nodes that are loaded, with all edits.
    pub fn nodes(&self) -> &NodeRows {
        &self.state
    }
}

impl Backend for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
        self.state.clone_from(nodes);
        Ok(())
    }

    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        EvalError::check_edits(edits, self.state.len())?;
        apply_edits::apply_edits(&mut self.state, edits);
        Ok(())
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        EvalError::check_batch(batch, self.state.len())?;
        out.resize(batch);
        score_candidates::score_candidates(&self.state, batch, &mut out.rows);
        best_candidate::best_candidate(batch, &out.rows, &mut out.best);
        Ok(())
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        EvalError::check_query(query, self.state.pools)?;
        out.resize(query.width(), 0);
        rank_nodes::rank_nodes(&self.state, query, out);
        Ok(())
    }

    fn score_fgd(&mut self, query: &FgdQuery, out: &mut Vec<FgdRow>) -> Result<(), EvalError> {
        EvalError::check_query(query.demands(), self.state.pools)?;
        out.resize(query.len() * self.state.len(), FgdRow::REFUSED);
        score_fgd::score_fgd(&self.state, query, out);
        Ok(())
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        census::census(&self.state, out);
        Ok(())
    }

    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        EvalError::check_batch(batch, self.state.len())?;
        let mut rows = vec![ScoreRow::default(); batch.len()];
        let score = || score_candidates::score_candidates(&self.state, black_box(batch), black_box(&mut rows));
        Ok(measure::speed(batch, passes, score, || _ = black_box(measure::plain_read(batch.touches()))))
    }
}
