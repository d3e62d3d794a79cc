//! Places gangs without moves: best-fit, worst-fit, first-fit and random.
//!
//! A gang's instances are alike, and an instance on a node lowers by exactly one what that node can still take. So
//! placing them one by one, each on any node that fits, places the whole gang if any placement of it exists, whatever
//! the order. With `within`, one region must be chosen first that can take them all; inside it the same holds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::need::{Need, Needs};
use super::policy::random::{self, Draws};
use super::policy::{Key, Order};
use super::ranking::{Ranking, Touched, Window};
use super::region::RegionRoom;
use super::walk::Walk;
use crate::anchor::{State, Transaction};
use crate::cluster::{Cluster, JobId, NodeId, RequestId, Within};

/// Touched nodes beyond which a fresh search is cheaper than looking at them all.
const MANY_TOUCHED: usize = 512;

/// Buffers of the placements, reused from job to job.
#[derive(Debug, Default)]
pub(super) struct Placer {
    frontier: BinaryHeap<Reverse<Key>>,
    fitting: Vec<NodeId>,
    candidates: Vec<u32>,
}

impl Placer {
    /// Places all instances of the job, which has instance numbers, in the order of a policy. False if it cannot be done;
    /// the caller then drops the transaction.
    pub(super) fn place_in_order(
        &mut self,
        transaction: &mut Transaction<'_>,
        job: JobId,
        needs: &Needs,
        window: &Window,
        order: Order,
    ) -> bool {
        let request = transaction.cluster().job(job).request();
        let need = needs.of(request);
        let wanted = u64::from(transaction.cluster().job(job).instances());
        if let Some(within) = need.within {
            let state = transaction.state();
            let region = self.choose_region(state, need, within, request, window, wanted, order);
            return region.is_some_and(|region| self.fill_region(transaction, job, need, (within, region), order));
        }
        if !need.limited && need.gpus > 0 && !need.gpus_fit(transaction.state(), wanted) {
            return false;
        }
        match window.ranking(request) {
            Some(Ranking::Nodes { nodes, complete }) if window.touched().nodes().len() <= MANY_TOUCHED => {
                self.place_ranked(transaction, job, need, order, Ranked::new(nodes, *complete, window.touched()))
            }
            _ => {
                let mut walk = Walk::new(order);
                each_instance(transaction, job, None, |state| walk.next(state, need))
            }
        }
    }

    /// The same with each instance on any node that fits.
    pub(super) fn place_by_lot(
        &mut self,
        transaction: &mut Transaction<'_>,
        job: JobId,
        needs: &Needs,
        draws: &mut Draws,
    ) -> bool {
        let need = needs.of(transaction.cluster().job(job).request());
        let wanted = u64::from(transaction.cluster().job(job).instances());
        let Some(within) = need.within else {
            if !need.limited && need.gpus > 0 && !need.gpus_fit(transaction.state(), wanted) {
                return false;
            }
            return each_instance(transaction, job, None, |state| random::choose(draws, state, need));
        };
        let state = transaction.state();
        self.candidates.clear();
        for (number, nodes) in state.regions(within).iter().enumerate() {
            if need.fit_on(state.cluster(), nodes.iter().copied(), wanted) {
                self.candidates.push(number as u32);
            }
        }
        if self.candidates.is_empty() {
            return false;
        }
        let region = self.candidates[draws.below(self.candidates.len() as u64) as usize] as usize;
        self.fill_region_by_lot(transaction, job, needs, (within, region), draws)
    }

    /// The same on the nodes of one region.
    pub(super) fn fill_region_by_lot(
        &mut self,
        transaction: &mut Transaction<'_>,
        job: JobId,
        needs: &Needs,
        region: (Within, usize),
        draws: &mut Draws,
    ) -> bool {
        let need = needs.of(transaction.cluster().job(job).request());
        let state = transaction.state();
        let cluster = state.cluster();
        let nodes = state.regions(region.0)[region.1].iter().copied();
        self.fitting.clear();
        self.fitting.extend(nodes.filter(|&node| need.fits(cluster.node(node))));
        let fitting = &mut self.fitting;
        let mut at = None;
        each_instance(transaction, job, Some(region), |state| {
            // Only the node that was chosen last can have stopped fitting, but where shares went beside others.
            if let Some(at) = at
                && !need.fits(state.cluster().node(fitting[at]))
            {
                fitting.swap_remove(at);
            }
            while !fitting.is_empty() {
                let drawn = draws.below(fitting.len() as u64) as usize;
                if need.fits(state.cluster().node(fitting[drawn])) {
                    at = Some(drawn);
                    return Some(fitting[drawn]);
                }
                fitting.swap_remove(drawn);
            }
            at = None;
            None
        })
    }

    /// The first region of the order, by free GPUs and number, that can take the whole gang.
    #[expect(clippy::too_many_arguments, reason = "all of them are what one decision is about")]
    fn choose_region(
        &self,
        state: &State,
        need: &Need,
        within: Within,
        request: RequestId,
        window: &Window,
        wanted: u64,
        order: Order,
    ) -> Option<usize> {
        let ranked = match window.ranking(request) {
            Some(Ranking::Regions(rooms)) => Some(rooms),
            _ => None,
        };
        let rooms = state.regions(within).iter().enumerate().map(|(number, nodes)| match ranked {
            Some(rooms) if !window.touched().region(within, number) => (number, rooms[number]),
            _ => (number, RegionRoom::of(state, need, nodes)),
        });
        let able = rooms.filter(|(_, room)| room.room >= wanted);
        able.min_by_key(|&(number, room)| room.key(order, number as u32)).map(|(number, _)| number)
    }

    /// Places all instances of the job in the order of a policy on the nodes of one region.
    pub(super) fn fill_region(
        &mut self,
        transaction: &mut Transaction<'_>,
        job: JobId,
        need: &Need,
        region: (Within, usize),
        order: Order,
    ) -> bool {
        let state = transaction.state();
        self.frontier.clear();
        self.frontier.extend(
            state.regions(region.0)[region.1]
                .iter()
                .filter_map(|&node| key(state.cluster(), need, order, node))
                .map(Reverse),
        );
        let frontier = &mut self.frontier;
        let mut last = None;
        each_instance(transaction, job, Some(region), |state| {
            put_back(frontier, last, state, need, order);
            // One that does not fit any more has lost its CPU to shares beside others.
            let mut nodes = std::iter::from_fn(|| frontier.pop().map(|Reverse((_, number))| NodeId(number)));
            last = nodes.find(|&node| need.fits(state.cluster().node(node)));
            last
        })
    }

    fn place_ranked(
        &mut self,
        transaction: &mut Transaction<'_>,
        job: JobId,
        need: &Need,
        order: Order,
        mut ranked: Ranked<'_>,
    ) -> bool {
        let cluster = transaction.cluster();
        let touched = ranked.touched.nodes().iter();
        self.frontier.clear();
        self.frontier.extend(touched.filter_map(|&node| key(cluster, need, order, node)).map(Reverse));
        let frontier = &mut self.frontier;
        let mut last = None;
        let mut walk: Option<Walk> = None;
        each_instance(transaction, job, None, |state| {
            if let Some(walk) = &mut walk {
                return walk.next(state, need);
            }
            put_back(frontier, last, state, need, order);
            // The best touched node, or the best of the others, which the ranking names.
            last = match (ranked.peek(), frontier.peek()) {
                (None, _) if !ranked.complete => {
                    let fresh = walk.insert(Walk::new(order));
                    return fresh.next(state, need);
                }
                (Some(node), top) => {
                    let free = u64::from(state.cluster().node(node).free_gpus());
                    if top.is_none_or(|&Reverse(top)| order.key(free, node.0) < top) {
                        ranked.skip();
                        Some(node)
                    } else {
                        frontier.pop().map(|Reverse((_, number))| NodeId(number))
                    }
                }
                (None, _) => frontier.pop().map(|Reverse((_, number))| NodeId(number)),
            };
            last
        })
    }
}

/// Gives each instance of a job the lowest free devices of the node that `choose` names, but a share a device beside
/// others of the region, if one has enough left. False as soon as there is no node.
fn each_instance(
    transaction: &mut Transaction<'_>,
    job: JobId,
    region: Option<(Within, usize)>,
    mut choose: impl FnMut(&State) -> Option<NodeId>,
) -> bool {
    for instance in transaction.cluster().instances_of(job) {
        let state = transaction.state();
        let within = |id: NodeId| region.is_none_or(|region| state.is_in(id, region));
        if let Some((node, gpu)) = state.device_beside(state.cluster().request_of(job), within)
            && transaction.take(instance, node, gpu).is_ok()
        {
            continue;
        }
        let Some(node) = choose(transaction.state()) else { return false };
        if transaction.take_lowest(instance, node).is_err() {
            debug_assert!(false, "the chosen node {node:?} cannot host the instance");
            return false;
        }
    }
    true
}

/// The place of a node in the order, if it fits.
fn key(cluster: &Cluster, need: &Need, order: Order, id: NodeId) -> Option<Key> {
    let node = cluster.node(id);
    need.fits(node).then(|| order.key(u64::from(node.free_gpus()), id.0))
}

/// Enters the node that just took an instance again, at its new place, if it fits another.
fn put_back(frontier: &mut BinaryHeap<Reverse<Key>>, last: Option<NodeId>, state: &State, need: &Need, order: Order) {
    if let Some(node) = last {
        frontier.extend(key(state.cluster(), need, order, node).map(Reverse));
    }
}

/// The untouched nodes of a ranking, best first.
#[derive(Debug)]
struct Ranked<'w> {
    nodes: std::slice::Iter<'w, NodeId>,
    complete: bool,
    touched: &'w Touched,
}

impl<'w> Ranked<'w> {
    fn new(nodes: &'w [NodeId], complete: bool, touched: &'w Touched) -> Self {
        Self { nodes: nodes.iter(), complete, touched }
    }

    fn peek(&mut self) -> Option<NodeId> {
        while let Some(&node) = self.nodes.as_slice().first() {
            if !self.touched.contains(node) {
                return Some(node);
            }
            self.nodes.next();
        }
        None
    }

    fn skip(&mut self) {
        self.nodes.next();
    }
}
