//! What can move at all while every move needs a place that is free: a bound on plans of one move after another.
//!
//! An instance makes its first move to a node on which so much is free then. More than what is free now and what those
//! leave who can move at all is never free there. So whoever finds no place even in that much stays where it is, in every
//! order of whatever moves; what fits nowhere at first may fit once others are known to move.

use rustc_hash::FxHashMap;

use super::amounts::{Amounts, change, fits, free, takes};
use super::guests::Guests;
use super::site::Site;
use crate::cluster::{NodeId, RequestId};

/// What can move at all.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// Of each job, whether one of its instances can.
    pub(super) movable: Vec<bool>,
    /// Of each node, what is free if all leave that can.
    room: Vec<Amounts>,
    /// Instances that may move and cannot.
    pub(super) stuck: u64,
    /// Instances that may move.
    pub(super) movers: u64,
}

impl Reach {
    /// Takes as many rounds over the nodes as moves must wait for each other in a row.
    pub(super) fn of(site: &Site<'_>) -> Self {
        let cluster = site.cluster;
        let mut room: Vec<Amounts> = cluster.node_ids().map(|node| free(cluster, node)).collect();
        let mut movable = vec![false; site.movable.len()];
        let mut stuck: Vec<_> = site.movers().collect();
        let movers = stuck.len() as u64;
        loop {
            let mut open: FxHashMap<RequestId, [Option<NodeId>; 2]> = FxHashMap::default();
            let before = stuck.len();
            let mut left = Vec::new();
            stuck.retain(|&(instance, from)| {
                let job = cluster.instance(instance).job();
                let request = cluster.request_of(job);
                let open = open.entry(cluster.job(job).request()).or_insert_with(|| {
                    let take = takes(request);
                    let is_open = |&node: &NodeId| cluster.admits(node, request) && fits(take, room[node.index()]);
                    let mut nodes = cluster.node_ids().filter(is_open);
                    [nodes.next(), nodes.next()]
                });
                let moves = open.iter().flatten().any(|&to| to != from);
                if moves {
                    movable[job.index()] = true;
                    left.push((from, takes(request)));
                }
                !moves
            });
            if stuck.len() == before {
                return Self { movable, room, stuck: before as u64, movers };
            }
            left.into_iter().for_each(|(node, take)| change(&mut room[node.index()], take, 1));
        }
    }

    /// Whether the guests would fit if all left at once that can move; if not, no order of moves makes room for them.
    pub(super) fn holds_guests(&self, site: &Site<'_>) -> bool {
        let nodes = |inside: Option<Vec<NodeId>>| inside.unwrap_or_else(|| site.cluster.node_ids().collect());
        site.spots(super::layout::Rules::ALL).into_iter().any(|spot| {
            let guests = Guests::new(*site, spot.count);
            let held: i64 = nodes(spot.inside).into_iter().map(|node| guests.on(node, self.room[node.index()])).sum();
            held >= spot.count
        })
    }

    /// The nodes that a move can leave or reach, or that hold guests as they are.
    pub(super) fn live(&self, site: &Site<'_>) -> Vec<bool> {
        let cluster = site.cluster;
        let mut live: Vec<bool> = vec![false; self.room.len()];
        let mut requests: Vec<RequestId> = Vec::new();
        for (instance, node) in site.movers() {
            let job = cluster.instance(instance).job();
            live[node.index()] |= self.movable[job.index()];
            if self.movable[job.index()] && !requests.contains(&cluster.job(job).request()) {
                requests.push(cluster.job(job).request());
            }
        }
        let guests = Guests::new(*site, i64::from(u32::MAX));
        for node in cluster.node_ids() {
            let room = self.room[node.index()];
            let fits = |&request: &RequestId| {
                let request = cluster.request(request);
                cluster.admits(node, request) && fits(takes(request), room)
            };
            live[node.index()] |= guests.on(node, room) > 0 || requests.iter().any(fits);
        }
        live
    }
}
