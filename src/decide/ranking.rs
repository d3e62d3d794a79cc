//! What a window of the queue is ranked for beforehand, in parallel: for every distinct request that has to test nodes
//! one by one, the first nodes of the policy's order, or the room of each region.
//!
//! All of it is about the state at some moment: the start of the window, or, if a device ranked while the window before
//! was decided, the start of that one. A decision uses what is said of nodes that nothing touched since, and looks at the
//! touched ones itself; so its result is that of a fresh search, whatever the window.

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
    /// Who ranks nodes, if not the indexes of the state. It knows the nodes as they were when the window was opened.
    ranker: Option<Ranker>,
    /// The requests of the next window that the ranker has begun to rank nodes for.
    begun: Vec<RequestId>,
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
        self.touched.next_window(state.cluster(), false);
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
        self.begun.clear();
    }

    /// Ranks for the requests of a window, and lets a device begin with those of the `next` one; requests may repeat.
    pub(super) fn open(
        &mut self,
        state: &State,
        needs: &Needs,
        order: Order,
        [requests, next]: [&[RequestId]; 2],
        threads: Option<&rayon::ThreadPool>,
    ) {
        let begun = std::mem::take(&mut self.begun);
        self.close();
        self.requests = to_rank(requests, needs);
        if self.requests.is_empty() && self.ranker.is_none() {
            return;
        }
        self.of_request.resize(state.cluster().requests().len(), NONE);
        for (at, request) in self.requests.iter().enumerate() {
            self.of_request[request.index()] = at as u32;
        }
        let n_nodes = for_nodes(&self.requests, needs).len();
        let asked_before = !begun.is_empty() && begun == self.requests[..n_nodes];
        if !asked_before {
            self.update_ranker(state);
        }
        let by_backend = self.ask_backend(state, order, n_nodes);
        self.rankings.extend(by_backend.into_iter().map(nodes_ranked));
        rank(state, needs, order, &self.requests[self.rankings.len()..], threads, &mut self.rankings);
        if asked_before {
            self.update_ranker(state);
        }
        self.touched.next_window(state.cluster(), asked_before);
        self.begin(state, needs, order, next);
    }

    /// Tells the backend what the nodes are now that were touched since the last window was opened.
    fn update_ranker(&mut self, state: &State) {
        if let Some(ranker) = &mut self.ranker {
            let updated = ranker.update(state, self.touched.in_this_window());
            self.believe(updated);
        }
    }

    /// Lets the backend begin to rank for the next window, if it works by itself.
    fn begin(&mut self, state: &State, needs: &Needs, order: Order, next: &[RequestId]) {
        let Some(ranker) = &mut self.ranker else { return };
        let mut requests = to_rank(next, needs);
        requests.truncate(for_nodes(&requests, needs).len());
        if requests.is_empty() {
            return;
        }
        let begun = ranker.begin(state, order, &requests);
        if self.believe(begun) == Some(true) {
            self.begun = requests;
        }
    }

    /// What the backend says, unless it has failed: it is asked no more then.
    fn believe<T>(&mut self, answer: Result<T, EvalError>) -> Option<T> {
        if let Err(error) = &answer {
            self.ranker = None;
            self.fault = Some(error.clone());
        }
        answer.ok()
    }

    /// The nodes for the first so many requests, or nothing if there is no backend or none any more.
    fn ask_backend(&mut self, state: &State, order: Order, n_requests: usize) -> Vec<Vec<NodeId>> {
        let Some(ranker) = self.ranker.as_mut().filter(|_| n_requests > 0) else { return Vec::new() };
        let answer = ranker.rank(state, order, &self.requests[..n_requests]);
        self.believe(answer).unwrap_or_default()
    }

    /// What was found for a request, if it was ranked.
    pub(super) fn ranking(&self, request: RequestId) -> Option<&Ranking> {
        let &at = self.of_request.get(request.index())?;
        self.rankings.get(at as usize)
    }

    /// Which nodes changed since the rankings were asked for.
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

/// The requests that are worth ranking for, each once: first those for nodes, which a backend can work out, then those
/// for regions.
fn to_rank(requests: &[RequestId], needs: &Needs) -> Vec<RequestId> {
    let worth_it = |request: &RequestId| {
        let need = needs.of(*request);
        // A share may go beside others, which no ranking of nodes knows.
        (need.limited && !need.is_share()) || need.within.is_some()
    };
    let mut requests: Vec<RequestId> = requests.iter().copied().filter(worth_it).collect();
    requests.sort_unstable_by_key(|&request| (needs.of(request).within.is_some(), request));
    requests.dedup();
    requests
}

/// Of requests in that order, those for nodes.
fn for_nodes<'r>(requests: &'r [RequestId], needs: &Needs) -> &'r [RequestId] {
    &requests[..requests.partition_point(|&request| needs.of(request).within.is_none())]
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

/// The nodes that changed since the rankings of a window were asked for, and the domains and racks that changed since it
/// was opened.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// The number of the window. A stamp says in which one something was touched last.
    now: u64,
    /// The first window whose touches count for nodes: this one, or the one before.
    since: u64,
    node_stamps: Vec<u64>,
    domain_stamps: Vec<u64>,
    rack_stamps: Vec<u64>,
    nodes: Vec<NodeId>,
}

impl Touched {
    /// Another window begins. If its rankings of nodes were asked for when the one before began, the touches of that one
    /// go on counting.
    fn next_window(&mut self, cluster: &Cluster, asked_before: bool) {
        if self.node_stamps.is_empty() {
            self.node_stamps = vec![0; cluster.nodes().len()];
            self.domain_stamps = vec![0; cluster.n_domains()];
            self.rack_stamps = vec![0; cluster.n_racks()];
        }
        self.now += 1;
        self.since = self.now - u64::from(asked_before);
        let Self { since, node_stamps, nodes, .. } = self;
        nodes.retain(|node| node_stamps[node.index()] >= *since);
    }

    fn add(&mut self, cluster: &Cluster, id: NodeId) {
        let stamp = &mut self.node_stamps[id.index()];
        if *stamp == self.now {
            return;
        }
        if *stamp < self.since {
            self.nodes.push(id);
        }
        *stamp = self.now;
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

    /// Those that were touched since this window was opened.
    fn in_this_window(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().copied().filter(|node| self.node_stamps[node.index()] == self.now)
    }

    /// Whether a node was touched.
    pub(super) fn contains(&self, node: NodeId) -> bool {
        self.node_stamps[node.index()] >= self.since
    }

    /// Whether a node of a region was touched since this window was opened, which is when regions are ranked.
    pub(super) fn region(&self, within: Within, number: usize) -> bool {
        let stamps = match within {
            Within::Domain => &self.domain_stamps,
            Within::Rack => &self.rack_stamps,
        };
        stamps[number] == self.now
    }
}
