//! Moves one after another, where the plan as it stands has no order.
//!
//! Four things help, tried in this turn whenever no target is free: instances that are alike trade their seats; a seat is
//! given up for another one that is as good; a cycle is broken through a spare place, to which one of its members moves
//! until its seat is free; something else makes way for good. The last two cost a move more. Which order is best is not
//! known, so that some are tried, and the cheapest is kept; whether it is the best of all is for a bound to say.

use rustc_hash::FxHashMap;

use super::amounts::{Amounts, change, fits, sum};
use super::realise::{Move, Rough};
use super::shorten::shortened;
use super::site::Site;
use super::walk::{Taste, Use, Walk};
use crate::cluster::{Cluster, InstanceId, NodeId};

/// So many of the nodes that have room are looked at for another seat.
const MOST_LOOKED_AT: usize = 64;

/// An order of moves that serves the same guests, each target free when its move begins. `None` if none was found.
pub(super) fn order_with_detours(site: &Site<'_>, rough: &Rough) -> Option<Rough> {
    let walks = Taste::ALL.into_iter().filter_map(|taste| Walk::new(*site, rough, taste).run());
    let shortened = walks.map(|walk| shortened(site, walk));
    shortened.min_by_key(|rough| (cost(site, &rough.moves), rough.moves.len()))
}

/// What moves cost by the measure of a site, those of instances that move twice included. For jobs that is a bound.
pub(super) fn cost(site: &Site<'_>, moves: &[Move]) -> i64 {
    moves.iter().map(|one| site.move_cost(site.cluster.instance(one.instance).job())).sum()
}

impl Walk<'_> {
    /// Those who would help by leaving, the most helpful and cheapest first.
    fn blockers(&self) -> Vec<(Use, usize)> {
        let waits = self.waits();
        let all = self.pending.iter().enumerate();
        let mut blockers: Vec<(Use, usize)> =
            all.map(|(at, one)| (self.use_of(&waits, one.at, self.take(one.kind)), at)).collect();
        blockers.retain(|&(help, _)| help > Use::None);
        blockers.sort_by_key(|&(help, at)| {
            let one = &self.pending[at];
            (std::cmp::Reverse(help), self.cost(one.instance), self.size_key(self.take(one.kind)), at)
        });
        blockers
    }

    fn cost(&self, instance: InstanceId) -> i64 {
        self.site.move_cost(self.site.cluster.instance(instance).job())
    }

    /// For a kind, the nodes that have room for one now, the fullest first.
    fn open_to(&self, kind: u32) -> Vec<NodeId> {
        let take = self.take(kind);
        let open = |&node: &NodeId| fits(take, self.room[node.index()]) && self.admits(node, kind);
        let mut nodes: Vec<NodeId> = self.site.cluster.node_ids().filter(open).collect();
        nodes.sort_by_key(|&node| (self.room[node.index()], node));
        nodes
    }

    /// Whether the guests would all fit in the end if so much stayed free on one node and were taken on another.
    fn guests_allow(&self, freed: NodeId, taken: NodeId, take: Amounts) -> Option<i64> {
        let Some(guests) = &self.guests else { return None };
        let of = |node: NodeId, sign: i64| {
            let (before, mut after) = (self.last[node.index()], self.last[node.index()]);
            change(&mut after, take, sign);
            guests.on(node, after) - guests.on(node, before)
        };
        let last = self.tally.last + of(freed, 1) + of(taken, -1);
        (fits(take, self.last[taken.index()]) && last >= guests.count).then_some(last)
    }

    /// Gives somebody who stands in the way another seat, free now and in the end. False if there is none.
    pub(super) fn reseat(&mut self) -> bool {
        if self.guests.is_none() {
            return false;
        }
        let mut open: FxHashMap<u32, Vec<NodeId>> = FxHashMap::default();
        for (_, at) in self.blockers() {
            let one = self.pending[at];
            let take = self.take(one.kind);
            let nodes = open.entry(one.kind).or_insert_with(|| {
                let mut nodes = self.open_to(one.kind);
                nodes.retain(|node| fits(take, self.last[node.index()]));
                nodes.truncate(MOST_LOOKED_AT);
                nodes
            });
            let allowed = |&&node: &&NodeId| node != one.at && self.guests_allow(one.seat, node, take).is_some();
            let Some(&to) = nodes.iter().find(allowed) else { continue };
            self.tally.last = self.guests_allow(one.seat, to, take).unwrap_or(self.tally.last);
            change(&mut self.last[one.seat.index()], take, 1);
            change(&mut self.last[to.index()], take, -1);
            change(&mut self.coming[one.seat.index()], take, -1);
            change(&mut self.coming[to.index()], take, 1);
            self.pending[at].seat = to;
            self.settle(at);
            self.leave_out(vec![at]);
            return true;
        }
        false
    }

    /// Somebody who stands in the way moves to a spare place, until its seat is free or for good. False if nobody can.
    pub(super) fn detour(&mut self) -> bool {
        let mut spare: FxHashMap<u32, Vec<NodeId>> = FxHashMap::default();
        let mut best = None;
        for (help, at) in self.blockers() {
            let one = self.pending[at];
            if one.parked {
                continue;
            }
            let take = self.take(one.kind);
            let hinders = |node: NodeId| {
                let coming = self.coming[node.index()];
                coming != [0; 3] && !fits(sum(coming, take), self.room[node.index()])
            };
            // Two are enough: nobody moves to where it is.
            let nodes = spare.entry(one.kind).or_insert_with(|| {
                let mut nodes = self.open_to(one.kind);
                nodes.sort_by_key(|&node| hinders(node));
                nodes.truncate(2);
                nodes
            });
            let Some(to) = nodes.iter().copied().find(|&node| node != one.at) else { continue };
            let key = (std::cmp::Reverse(help), hinders(to), self.cost(one.instance), self.size_key(take), at);
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, to));
            }
        }
        let Some(((.., at), to)) = best else { return self.make_way() };
        let one = self.pending[at];
        self.make(one.instance, one.at, to, self.take(one.kind));
        (self.pending[at].at, self.pending[at].parked) = (to, true);
        true
    }

    /// Something that was to stay where others wait for room moves elsewhere, for good. False if nothing can.
    fn make_way(&mut self) -> bool {
        if self.guests.is_none() {
            return false;
        }
        let waits = self.waits();
        let mut nodes: Vec<NodeId> = waits.keys().copied().collect();
        nodes.sort_unstable();
        let cluster: &Cluster = self.site.cluster;
        let mut open: FxHashMap<u32, Vec<NodeId>> = FxHashMap::default();
        for node in nodes {
            let here: Vec<InstanceId> = cluster.instances_on(node).collect();
            for instance in here {
                let moved = self.moves.iter().any(|one| one.instance == instance)
                    || self.pending.iter().any(|one| one.instance == instance);
                if moved || !self.site.movable[cluster.instance(instance).job().index()] {
                    continue;
                }
                let kind = self.kind(instance);
                let take = self.take(kind);
                if self.use_of(&waits, node, take) == Use::None {
                    continue;
                }
                let open = open.entry(kind).or_insert_with(|| {
                    let mut nodes = self.open_to(kind);
                    nodes.truncate(MOST_LOOKED_AT);
                    nodes
                });
                let allowed = |&&to: &&NodeId| to != node && self.guests_allow(node, to, take).is_some();
                let Some(&to) = open.iter().find(allowed) else { continue };
                self.tally.last = self.guests_allow(node, to, take).unwrap_or(self.tally.last);
                change(&mut self.last[node.index()], take, 1);
                change(&mut self.last[to.index()], take, -1);
                self.make(instance, node, to, take);
                return true;
            }
        }
        false
    }
}
