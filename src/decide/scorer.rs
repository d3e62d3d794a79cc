//! Places by score: the node of the best score, instance after instance, without a scan of all nodes a decision.
//!
//! For every distinct request the score of each node is kept, in a [`Tournament`] that knows the best. A log tells which
//! nodes changed; a request that is asked for again scores those that changed since it was asked for last, each once. An
//! instance on any node that fits lowers by exactly one what that node can still take, so that a gang that fits is placed
//! whole, whatever the scores (see `placer.rs`).

use super::bulk_scorer::BulkScorer;
use super::need::{Need, Needs};
use super::policy::score::Scoring;
use super::policy::{Arithmetic, Order};
use super::region::RegionRoom;
use super::tournament::Tournament;
use crate::anchor::{State, Transaction};
use crate::cluster::{Cluster, GpuMask, JobId, NodeId, RequestId, Within};
use crate::evaluate::{Backend, EvalError};
use crate::fragmentation::fgd::{Ask, Typical};

/// The most scores that are kept; beyond it, the request that was not asked for the longest is forgotten.
const MOST_SCORES: usize = 1 << 24;

/// Scores nodes for requests, and remembers.
#[derive(Debug)]
pub(super) struct Scorer {
    scoring: Scoring,
    /// The nodes in the order that decides between equal scores, and the place of each in it.
    nodes: Vec<NodeId>,
    places: Vec<u32>,
    changes: Changes,
    tables: Vec<Option<Table>>,
    n_tables: usize,
    /// Who scores all nodes for a request that comes for the first time, if not this thread.
    bulk: Option<Bulk>,
    fault: Option<EvalError>,
}

/// A backend, and what it knows.
#[derive(Debug)]
struct Bulk {
    scorer: BulkScorer,
    /// Changes that its nodes know of.
    seen: u64,
}

/// The scores of one request.
#[derive(Debug)]
struct Table {
    /// Changes that the scores know of.
    seen: u64,
    scores: Tournament,
}

impl Scorer {
    /// Without any score yet.
    pub(super) fn new(cluster: &Cluster, scoring: Scoring) -> Self {
        let mut nodes: Vec<NodeId> = cluster.node_ids().collect();
        if scoring.arithmetic == Arithmetic::Peer {
            nodes.sort_by_key(|&node| cluster.node_name(node));
        }
        let mut places = vec![0; nodes.len()];
        nodes.iter().enumerate().for_each(|(place, node)| places[node.index()] = place as u32);
        let changes = Changes::new(nodes.len());
        Self { scoring, nodes, places, changes, tables: Vec::new(), n_tables: 0, bulk: None, fault: None }
    }

    /// Lets a backend score for requests that come for the first time, if it can score as this policy does. If it fails,
    /// now or later, this thread scores again, with the same results.
    pub(super) fn score_on(&mut self, backend: Box<dyn Backend>, cluster: &Cluster) {
        let Some(typical) = self.scoring.is_a_kernel() else { return };
        let seen = self.changes.now();
        match BulkScorer::new(backend, cluster, typical) {
            Ok(scorer) => self.bulk = Some(Bulk { scorer, seen }),
            Err(error) => self.fault = Some(error),
        }
    }

    /// Scores for these typical pods from now on. If they are others than before, what was kept is forgotten.
    pub(super) fn set_typical(&mut self, cluster: &Cluster, typical: Typical) {
        let Some(scoring) = self.scoring.with_typical(cluster, typical) else { return };
        self.scoring = scoring;
        self.tables.iter_mut().for_each(|table| *table = None);
        self.n_tables = 0;
        if let (Some(bulk), Some(typical)) = (&mut self.bulk, self.scoring.is_a_kernel()) {
            bulk.scorer.set_typical(cluster, typical);
        }
    }

    /// Why the backend scores no longer.
    pub(super) fn fault(&self) -> Option<&EvalError> {
        self.fault.as_ref()
    }

    /// The backend, if there is one, for another use.
    pub(super) fn into_backend(self) -> Option<Box<dyn Backend>> {
        self.bulk.map(|bulk| bulk.scorer.into_backend())
    }

    /// Scores for those of some requests that have no scores yet, all at once, if there is a backend.
    pub(super) fn prepare(&mut self, cluster: &Cluster, needs: &Needs, requests: &[RequestId]) {
        if self.bulk.is_none() {
            return;
        }
        self.make_room(cluster);
        let lacks = |request: &RequestId| self.tables[request.index()].is_none() && needs.of(*request).within.is_none();
        let mut requests: Vec<RequestId> = requests.iter().copied().filter(lacks).collect();
        requests.sort_unstable();
        requests.dedup();
        requests.truncate((MOST_SCORES / self.nodes.len().max(1)).saturating_sub(self.n_tables));
        if !requests.is_empty() {
            self.score_in_bulk(cluster, &requests);
        }
    }

    /// Lets the backend score for these requests. False if there is none, or none any more.
    fn score_in_bulk(&mut self, cluster: &Cluster, requests: &[RequestId]) -> bool {
        let Some(Bulk { scorer, seen }) = &mut self.bulk else { return false };
        let now = self.changes.now();
        let updated = match self.changes.reach(*seen) {
            true => scorer.update(cluster, self.changes.since(*seen)),
            false => scorer.reload(cluster),
        };
        *seen = now;
        match updated.and_then(|()| scorer.score(cluster, requests)) {
            Ok(tables) => {
                for (request, scores) in requests.iter().zip(tables) {
                    let table = self.tables[request.index()].replace(Table { seen: now, scores });
                    self.n_tables += usize::from(table.is_none());
                }
                true
            }
            Err(error) => {
                self.bulk = None;
                self.fault = Some(error);
                false
            }
        }
    }

    /// Makes room for the scores of all requests that there are.
    fn make_room(&mut self, cluster: &Cluster) {
        self.tables.resize_with(cluster.requests().len(), || None);
    }

    /// Says that a node changed.
    pub(super) fn changed(&mut self, node: NodeId) {
        self.changes.push(node);
    }

    /// Places all instances of the job, which has instance numbers, and returns the sum of their scores. `None` if it
    /// cannot be done; the caller then drops the transaction.
    pub(super) fn place(&mut self, transaction: &mut Transaction<'_>, job: JobId, needs: &Needs) -> Option<i64> {
        let cluster = transaction.cluster();
        let need = needs.of(cluster.job(job).request());
        let region = match need.within {
            None => None,
            Some(within) => match choose_region(transaction.state(), need, within, cluster.job(job).instances()) {
                None => return None,
                Some(region) => Some((within, region)),
            },
        };
        self.place_in(transaction, job, needs, region)
    }

    /// The same on the nodes of a region, or on any.
    pub(super) fn place_in(
        &mut self,
        transaction: &mut Transaction<'_>,
        job: JobId,
        needs: &Needs,
        region: Option<(Within, usize)>,
    ) -> Option<i64> {
        let cluster = transaction.cluster();
        let request = cluster.job(job).request();
        let (need, ask) = (needs.of(request), Ask::of(cluster.request(request)));
        let mut sum = 0i64;
        for instance in transaction.cluster().instances_of(job) {
            let chosen = match region {
                None => self.best(transaction.cluster(), request, need, &ask),
                Some((within, region)) => {
                    self.best_of(transaction.state(), &transaction.state().regions(within)[region], need, &ask)
                }
            };
            let taken = chosen.filter(|&(_, node, gpus)| transaction.take(instance, node, gpus).is_ok());
            debug_assert_eq!(taken, chosen, "the chosen node cannot host the instance");
            let Some((score, node, _)) = taken else {
                self.taken_back(transaction);
                return None;
            };
            sum = sum.saturating_add(score);
            self.changes.push(node);
        }
        Some(sum)
    }

    /// By how much [`Scorer::place`] would let the fragment grow, if the policy is built on FGD. The caller drops the
    /// transaction in any case.
    pub(super) fn growth(&mut self, transaction: &mut Transaction<'_>, job: JobId, needs: &Needs) -> Option<i64> {
        let sum = self.place(transaction, job, needs)?;
        self.taken_back(transaction);
        Some(sum)
    }

    /// What was tried is taken back, and so has changed again.
    pub(super) fn taken_back(&mut self, transaction: &Transaction<'_>) {
        transaction.log().iter().for_each(|edit| self.changes.push(edit.node()));
    }

    /// The best of all nodes, with its score and the devices there.
    fn best(
        &mut self,
        cluster: &Cluster,
        request: RequestId,
        need: &Need,
        ask: &Ask,
    ) -> Option<(i64, NodeId, GpuMask)> {
        self.make_room(cluster);
        let known = |table: &Table| self.changes.reach(table.seen);
        if !self.tables[request.index()].as_ref().is_some_and(known) {
            self.score_in_bulk(cluster, &[request]);
        }
        let Self { scoring, nodes, places, changes, tables, n_tables, .. } = &mut *self;
        let key = |node: NodeId| score(scoring, cluster, need, ask, node).map_or(Tournament::NEVER, |(key, _)| key);
        match &mut tables[request.index()] {
            Some(table) if changes.reach(table.seen) => {
                for node in changes.since(table.seen) {
                    table.scores.set(places[node.index()] as usize, key(node));
                }
                table.seen = changes.now();
            }
            table => {
                *n_tables += usize::from(table.is_none());
                let keys = nodes.iter().map(|&node| key(node)).collect();
                *table = Some(Table { seen: changes.now(), scores: Tournament::new(keys) });
            }
        }
        self.forget();
        let place = self.tables[request.index()].as_ref()?.scores.first()?;
        let node = self.nodes[place];
        score(&self.scoring, cluster, need, ask, node).map(|(key, gpus)| (key, node, gpus))
    }

    /// Forgets a request if too much is kept, but never the one that was just asked for.
    fn forget(&mut self) {
        if self.n_tables > 1 && self.n_tables * self.nodes.len() > MOST_SCORES {
            let kept = self.tables.iter_mut().filter(|table| table.is_some());
            if let Some(oldest) = kept.min_by_key(|table| table.as_ref().map(|table| table.seen)) {
                *oldest = None;
                self.n_tables -= 1;
            }
        }
    }

    /// The best of some nodes, with its score and the devices there.
    fn best_of(&self, state: &State, nodes: &[NodeId], need: &Need, ask: &Ask) -> Option<(i64, NodeId, GpuMask)> {
        let scored = nodes.iter().filter_map(|&node| {
            let (key, gpus) = score(&self.scoring, state.cluster(), need, ask, node)?;
            Some((key, self.places[node.index()], node, gpus))
        });
        scored.min().map(|(key, _, node, gpus)| (key, node, gpus))
    }
}

/// The score of a node, if it can take an instance, and the devices there.
fn score(scoring: &Scoring, cluster: &Cluster, need: &Need, ask: &Ask, id: NodeId) -> Option<(i64, GpuMask)> {
    let node = cluster.node(id);
    if need.allows(node) && need.has_cpu_and_memory(node) { scoring.of(cluster, id, ask) } else { None }
}

/// The region that best-fit would take, of those that can take the whole gang.
fn choose_region(state: &State, need: &Need, within: Within, instances: u32) -> Option<usize> {
    let rooms = state.regions(within).iter().map(|nodes| RegionRoom::of(state, need, nodes));
    let able = rooms.enumerate().filter(|(_, room)| room.room >= u64::from(instances));
    able.min_by_key(|&(number, room)| room.key(Order::FewestFree, number as u32)).map(|(number, _)| number)
}

/// Which nodes changed, in the order of the changes; the oldest are forgotten.
#[derive(Debug)]
struct Changes {
    log: Vec<NodeId>,
    /// Changes that are forgotten.
    before: u64,
    /// The number of changes up to the last of each node.
    last: Vec<u64>,
}

impl Changes {
    fn new(n_nodes: usize) -> Self {
        Self { log: Vec::new(), before: 0, last: vec![0; n_nodes] }
    }

    fn push(&mut self, node: NodeId) {
        // A request that has missed so many is better off with all nodes anew.
        let most = (4 * self.last.len()).max(1024);
        if self.log.len() >= most {
            self.log.drain(..most / 2);
            self.before += most as u64 / 2;
        }
        self.log.push(node);
        self.last[node.index()] = self.now();
    }

    /// The number of changes.
    fn now(&self) -> u64 {
        self.before + self.log.len() as u64
    }

    /// Whether all changes after the first `seen` are known.
    fn reach(&self, seen: u64) -> bool {
        seen >= self.before
    }

    /// The nodes that changed after the first `seen` changes, each once. They must be known.
    fn since(&self, seen: u64) -> impl Iterator<Item = NodeId> + '_ {
        let from = (seen - self.before) as usize;
        let numbered = self.log[from..].iter().zip(seen + 1..);
        numbered.filter(|&(node, number)| self.last[node.index()] == number).map(|(&node, _)| node)
    }
}
