//! A backend that scores all nodes at once, for requests that the commit loop has no scores for.

use super::tournament::Tournament;
use crate::cluster::{Cluster, NodeId, RequestId};
use crate::evaluate::abi::NodeEdit;
use crate::evaluate::{Backend, EvalError, FgdQuery, FgdRow, NodeRows};
use crate::fragmentation::fgd::Typical;

/// A backend on which the nodes of the loop's cluster are resident, as they were when it was last brought up to date.
pub(super) struct BulkScorer {
    backend: Box<dyn Backend>,
    query: FgdQuery,
    edits: Vec<NodeEdit>,
    rows: Vec<FgdRow>,
}

impl BulkScorer {
    /// Loads the cluster.
    pub(super) fn new(mut backend: Box<dyn Backend>, cluster: &Cluster, typical: &Typical) -> Result<Self, EvalError> {
        backend.load(&NodeRows::of(cluster)?)?;
        Ok(Self { backend, query: FgdQuery::new(cluster, typical), edits: Vec::new(), rows: Vec::new() })
    }

    /// Scores for these typical pods from now on.
    pub(super) fn set_typical(&mut self, cluster: &Cluster, typical: &Typical) {
        self.query = FgdQuery::new(cluster, typical);
    }

    /// Brings all nodes up to date.
    pub(super) fn reload(&mut self, cluster: &Cluster) -> Result<(), EvalError> {
        self.backend.load(&NodeRows::of(cluster)?)
    }

    /// Brings these nodes up to date, each named once.
    pub(super) fn update(&mut self, cluster: &Cluster, nodes: impl Iterator<Item = NodeId>) -> Result<(), EvalError> {
        self.edits.clear();
        self.edits.extend(nodes.map(|node| NodeEdit::of(cluster, node)));
        self.backend.apply(&self.edits)
    }

    /// Scores all nodes for each request, in the order of the nodes' numbers.
    pub(super) fn score(&mut self, cluster: &Cluster, requests: &[RequestId]) -> Result<Vec<Tournament>, EvalError> {
        self.query.clear();
        for &request in requests {
            self.query.push(cluster, cluster.request(request));
        }
        self.backend.score_fgd(&self.query, &mut self.rows)?;
        let key = |row: &FgdRow| row.growth().map_or(Tournament::NEVER, |(growth, _)| growth);
        let of_request = self.rows.chunks(cluster.nodes().len().max(1));
        Ok(of_request.map(|rows| Tournament::new(rows.iter().map(key).collect())).collect())
    }

    /// The backend, for another use.
    pub(super) fn into_backend(self) -> Box<dyn Backend> {
        self.backend
    }
}

impl std::fmt::Debug for BulkScorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BulkScorer").field("backend", &self.backend.name()).finish_non_exhaustive()
    }
}
