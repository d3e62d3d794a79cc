//! The serial reference of every kernel: one file and one function of the same name each, as plain as can be. What a
//! kernel means is what its twin says.

pub mod apply_edits;
pub mod best_candidate;
pub mod census;
pub mod rank_nodes;
pub mod score_candidates;

use super::abi::NodeEdit;
use super::backend::{Backend, EvalError};
use super::batch::{Batch, Scores};
use super::census::Census;
use super::query::NodeQuery;
use super::state::State;
use crate::cluster::Cluster;

/// The twins as a backend: what other backends are compared with.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    state: State,
}

impl Reference {
    /// With no nodes loaded.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Backend for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn load(&mut self, cluster: &Cluster) -> Result<(), EvalError> {
        self.state.load(cluster)
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

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        census::census(&self.state, out);
        Ok(())
    }
}
