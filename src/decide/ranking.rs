//! What a window of the queue is ranked for beforehand, in parallel: for every distinct request that has to test nodes
//! one by one, the first nodes of the policy's order, or the room of each region.
//!
//! All of it is about the state at the start of the window. A decision uses what is said of nodes that nothing touched
//! since, and looks at the touched ones itself; so its result is that of a fresh search, whatever the window.

use rayon::prelude::*;

use super::need::{Need, Needs};
use super::policy::Order;
use super::ranker::Ranker;
use super::region::RegionRoom;
use super::walk::Walk;
use crate::anchor::State;
use crate::cluster::{Cluster, NodeId, RequestId, Within};
use crate::evaluate::{Backend, EvalError};

/// Nodes ranked a request.
const RANKED: usize = 64;

/// What was found for one request at the start of the window.
#[derive(Clone, Debug)]
pub(super) enum Ranking {
    /// The first nodes of the order; all that fit if `complete`.
    Nodes {
        /// Best first.
        nodes: Vec<NodeId>,
        /// Whether no other node fitted.
        complete: bool,
    },
    /// Every region's room, by its number.
    Regions(Vec<RegionRoom>),
}

/// The rankings of the open window.
#[derive(Debug, Default)]
pub(super) struct Window {
    requests: Vec<RequestId>,
    rankings: Vec<Ranking>,
    /// Where in `rankings` each request's is; `NONE` if it was not ranked.
    of_request: Vec<u32>,
    touched: Touched,
    /// Who ranks nodes, if not the indexes of the state. It knows the nodes as they were before they were touched.
    ranker: Option<Ranker>,
    fault: Option<EvalError>,
}

const NONE: u32 = u32::MAX;

impl Window {
    /// Lets a backend rank from now on. If it fails, now or later, the indexes rank again, with the same results.
    pub(super) fn rank_on(&mut self, backend: Box<dyn Backend>, state: &State) {
        match Ranker::new(backend, state, RANKED) {
            Ok(ranker) => self.ranker = Some(ranker),
            Err(error) => self.fault = Some(error),
        }
        self.touched.restart(state.cluster());
    }

    /// Why the backend ranks no longer.
    pub(super) fn fault(&self) -> Option<&EvalError> {
        self.fault.as_ref()
    }

    /// Forgets everything: nothing is ranked until the next [`Window::open`].
    pub(super) fn close(&mut self) {
        for request in self.requests.drain(..) {
            self.of_request[request.index()] = NONE;
        }
        self.rankings.clear();
    }

    /// Ranks for these requests on the state as it is; requests may repeat.
    pub(super) fn open(
        &mut self,
        state: &State,
        needs: &Needs,
        order: Order,
        requests: impl Iterator<Item = RequestId>,
        threads: Option<&rayon::ThreadPool>,
    ) {
        self.close();
        self.of_request.resize(state.cluster().requests().len(), NONE);
        for request in requests {
            let need = needs.of(request);
            // A share may go beside others, which no ranking of nodes knows.
            let ranks = (need.limited && !need.is_share()) || need.within.is_some();
            if ranks && self.of_request[request.index()] == NONE {
                self.of_request[request.index()] = self.requests.len() as u32;
                self.requests.push(request);
            }
        }
        if self.requests.is_empty() {
            return;
        }
        // Those of regions stand behind those of nodes, which a backend can work out.
        self.requests.sort_by_key(|&request| needs.of(request).within.is_some());
        for (at, request) in self.requests.iter().enumerate() {
            self.of_request[request.index()] = at as u32;
        }
        let n_nodes = self.requests.iter().filter(|&&request| needs.of(request).within.is_none()).count();
        let by_backend = self.ask_backend(state, order, n_nodes);
        self.rankings.extend(by_backend.into_iter().map(nodes_ranked));
        rank(state, needs, order, &self.requests[self.rankings.len()..], threads, &mut self.rankings);
        self.touched.restart(state.cluster());
    }

    /// The nodes for the first so many requests, or nothing if there is no backend or none any more.
    fn ask_backend(&mut self, state: &State, order: Order, n_requests: usize) -> Vec<Vec<NodeId>> {
        let Some(ranker) = &mut self.ranker else { return Vec::new() };
        match ranker.rank(state, self.touched.nodes(), order, &self.requests[..n_requests]) {
            Ok(nodes) => nodes,
            Err(error) => {
                self.ranker = None;
                self.fault = Some(error);
                Vec::new()
            }
        }
    }

    /// What was found for a request, if it was ranked.
    pub(super) fn ranking(&self, request: RequestId) -> Option<&Ranking> {
        let &at = self.of_request.get(request.index())?;
        self.rankings.get(at as usize)
    }

    /// Which nodes changed since the window was opened.
    pub(super) fn touched(&self) -> &Touched {
        &self.touched
    }

    /// Whether anything depends on which nodes are touched.
    pub(super) fn listens(&self) -> bool {
        !self.rankings.is_empty() || self.ranker.is_some()
    }

    /// Says that a node changed.
    pub(super) fn touch(&mut self, cluster: &Cluster, node: NodeId) {
        if self.listens() {
            self.touched.add(cluster, node);
        }
    }
}

/// Appends the ranking for each request. A pure function of the state, so the threads cannot show in what it returns.
fn rank(
    state: &State,
    needs: &Needs,
    order: Order,
    requests: &[RequestId],
    threads: Option<&rayon::ThreadPool>,
    out: &mut Vec<Ranking>,
) {
    let one = |&request: &RequestId| rank_one(state, needs.of(request), order);
    match threads {
        Some(threads) => threads.install(|| out.par_extend(requests.par_iter().map(one))),
        None => out.extend(requests.iter().map(one)),
    }
}

fn nodes_ranked(nodes: Vec<NodeId>) -> Ranking {
    Ranking::Nodes { complete: nodes.len() < RANKED, nodes }
}

fn rank_one(state: &State, need: &Need, order: Order) -> Ranking {
    match need.within {
        Some(within) => {
            let rooms = state.regions(within).iter().map(|nodes| RegionRoom::of(state, need, nodes));
            Ranking::Regions(rooms.collect())
        }
        None => nodes_ranked(Walk::best(order, state, need, RANKED)),
    }
}

/// The nodes that changed since some moment, and the domains and racks that they lie in.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// Counts the restarts; a stamp that is equal to it marks what was touched since the last one.
    now: u32,
    node_stamps: Vec<u32>,
    domain_stamps: Vec<u32>,
    rack_stamps: Vec<u32>,
    nodes: Vec<NodeId>,
}

impl Touched {
    fn restart(&mut self, cluster: &Cluster) {
        self.now = self.now.wrapping_add(1);
        self.nodes.clear();
        if self.now == 0 || self.node_stamps.is_empty() {
            self.now = 1;
            self.node_stamps = vec![0; cluster.nodes().len()];
            self.domain_stamps = vec![0; cluster.n_domains()];
            self.rack_stamps = vec![0; cluster.n_racks()];
        }
    }

    fn add(&mut self, cluster: &Cluster, id: NodeId) {
        if self.contains(id) {
            return;
        }
        self.node_stamps[id.index()] = self.now;
        self.nodes.push(id);
        let node = cluster.node(id);
        if let Some(domain) = node.domain() {
            self.domain_stamps[domain.index()] = self.now;
        }
        if let Some(rack) = node.rack() {
            self.rack_stamps[rack.index()] = self.now;
        }
    }

    /// The touched nodes, in the order of their first change.
    pub(super) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// Whether a node was touched.
    pub(super) fn contains(&self, node: NodeId) -> bool {
        self.node_stamps[node.index()] == self.now
    }

    /// Whether a node of a region was touched.
    pub(super) fn region(&self, within: Within, number: usize) -> bool {
        let stamps = match within {
            Within::Domain => &self.domain_stamps,
            Within::Rack => &self.rack_stamps,
        };
        stamps[number] == self.now
    }
}
