//! A backend that ranks nodes for the windows of a commit loop.

use super::policy::Order;
use crate::anchor::State;
use crate::cluster::{NodeId, RequestId};
use crate::evaluate::abi::{NONE, NodeEdit};
use crate::evaluate::{Backend, EvalError, NodeOrder, NodeQuery, NodeRows};

/// A backend on which the nodes of the loop's cluster are resident, as they were when it was last brought up to date.
pub(super) struct Ranker {
    backend: Box<dyn Backend>,
    query: NodeQuery,
    edits: Vec<NodeEdit>,
    answers: Vec<u32>,
}

impl Ranker {
    /// Loads the cluster; `most` nodes will be ranked a request.
    pub(super) fn new(mut backend: Box<dyn Backend>, state: &State, most: usize) -> Result<Self, EvalError> {
        backend.load(&NodeRows::of(state.cluster())?)?;
        Ok(Self { backend, query: NodeQuery::new(state.cluster(), most), edits: Vec::new(), answers: Vec::new() })
    }

    /// Brings these nodes up to date.
    pub(super) fn update(&mut self, state: &State, changed: impl Iterator<Item = NodeId>) -> Result<(), EvalError> {
        self.edits.clear();
        self.edits.extend(changed.map(|node| NodeEdit::of(state.cluster(), node)));
        self.backend.apply(&self.edits)
    }

    /// Begins to rank for each request, on the nodes as they were last brought up to date. False if the backend does
    /// nothing before it is asked for the answer.
    pub(super) fn begin(&mut self, state: &State, order: Order, requests: &[RequestId]) -> Result<bool, EvalError> {
        self.ask_for(state, order, requests);
        self.backend.begin_ranking(&self.query)
    }

    /// Ranks for each request: the first nodes of the order, best first. If that was begun, and nothing was brought up to
    /// date since, it only waits for the answer.
    pub(super) fn rank(
        &mut self,
        state: &State,
        order: Order,
        requests: &[RequestId],
    ) -> Result<Vec<Vec<NodeId>>, EvalError> {
        self.ask_for(state, order, requests);
        self.backend.rank_nodes(&self.query, &mut self.answers)?;
        let nodes = |class| self.answers[self.query.slots(class)].iter().take_while(|&&node| node != NONE);
        Ok((0..requests.len()).map(|class| nodes(class).map(|&node| NodeId(node)).collect()).collect())
    }

    fn ask_for(&mut self, state: &State, order: Order, requests: &[RequestId]) {
        let order = match order {
            Order::FewestFree => NodeOrder::BestFit,
            Order::MostFree => NodeOrder::WorstFit,
            Order::LowestNumber => NodeOrder::FirstFit,
        };
        let cluster = state.cluster();
        self.query.clear();
        for &request in requests {
            self.query.push(cluster, cluster.request(request), order, None, None);
        }
    }
}

impl std::fmt::Debug for Ranker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ranker").field("backend", &self.backend.name()).finish_non_exhaustive()
    }
}
