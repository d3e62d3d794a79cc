//! Moves carried out one after another on books of their own, as long as somebody finds a seat that is free.

use rustc_hash::FxHashMap;

use super::amounts::{Amounts, Home, change, fits, free, sum, takes};
use super::guests::{Guests, Tally};
use super::realise::{Move, Rough};
use super::site::Site;
use crate::cluster::{InstanceId, JobId, NodeId, RequestId};

/// Whom a walk prefers among those that help as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taste {
    Large,
    Small,
}

impl Taste {
    pub(super) const ALL: [Self; 2] = [Self::Large, Self::Small];
}

/// An instance that has not reached its seat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) instance: InstanceId,
    pub(super) at: NodeId,
    pub(super) seat: NodeId,
    pub(super) kind: u32,
    /// It has moved already, to a spare place.
    pub(super) parked: bool,
}

/// Instances that can take each other's seats.
#[derive(Clone, Copy, Debug)]
struct Kind {
    take: Amounts,
    request: RequestId,
    home: Home,
}

/// How much it helps that an instance leaves its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// Nobody waits there, or nobody fits then.
    None,
    /// Somebody fits then.
    Some,
    /// All that come there fit then.
    All,
}

/// A walk from what runs to what a plan wants.
pub(super) struct Walk<'a> {
    pub(super) site: Site<'a>,
    taste: Taste,
    pub(super) guests: Option<Guests<'a>>,
    pub(super) tally: Tally,
    wanted: &'a [NodeId],
    kinds: Vec<Kind>,
    kind_of: FxHashMap<JobId, u32>,
    pub(super) pending: Vec<Pending>,
    /// By node: what is free now, what will be in the end without guests, what is still to come.
    pub(super) room: Vec<Amounts>,
    pub(super) last: Vec<Amounts>,
    pub(super) coming: Vec<Amounts>,
    pub(super) moves: Vec<Move>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(site: Site<'a>, rough: &'a Rough, taste: Taste) -> Self {
        let cluster = site.cluster;
        let room: Vec<Amounts> = cluster.node_ids().map(|node| free(cluster, node)).collect();
        let mut walk = Self {
            site,
            taste,
            guests: Guests::of(site, &rough.hosts),
            tally: Tally { now: 0, last: 0 },
            wanted: &rough.hosts,
            kinds: Vec::new(),
            kind_of: FxHashMap::default(),
            pending: Vec::with_capacity(rough.moves.len()),
            last: room.clone(),
            coming: vec![[0; 3]; room.len()],
            room,
            moves: Vec::new(),
        };
        for one in &rough.moves {
            let kind = walk.kind(one.instance);
            let take = walk.kinds[kind as usize].take;
            change(&mut walk.last[one.from.index()], take, 1);
            change(&mut walk.last[one.to.index()], take, -1);
            change(&mut walk.coming[one.to.index()], take, 1);
            walk.pending.push(Pending { instance: one.instance, at: one.from, seat: one.to, kind, parked: false });
        }
        if let Some(guests) = &walk.guests {
            walk.tally = Tally::new(guests, &walk.room, &walk.last);
        }
        walk
    }

    pub(super) fn run(mut self) -> Option<Rough> {
        // Every move but a detour settles an instance, and none makes two detours.
        while !self.is_done() {
            self.settle_safe();
            let goes_on = self.is_done() || self.step() || self.reseat() || self.detour();
            if !goes_on {
                return None;
            }
        }
        let hosts = match &self.guests {
            Some(guests) => guests.hosts(self.wanted, &self.room)?,
            None => Vec::new(),
        };
        Some(Rough { moves: self.moves, hosts })
    }

    /// Whether the guests fit, or all have reached their seats.
    fn is_done(&self) -> bool {
        self.pending.is_empty() || self.guests.as_ref().is_some_and(|guests| self.tally.now >= guests.count)
    }

    pub(super) fn kind(&mut self, instance: InstanceId) -> u32 {
        let cluster = self.site.cluster;
        let job = cluster.instance(instance).job();
        if let Some(&known) = self.kind_of.get(&job) {
            return known;
        }
        let (request, home) = (cluster.job(job).request(), Home::of(cluster, job));
        let known = self.kinds.iter().position(|kind| (kind.request, kind.home) == (request, home));
        let number = known.unwrap_or_else(|| {
            self.kinds.push(Kind { take: takes(cluster.request(request)), request, home });
            self.kinds.len() - 1
        });
        self.kind_of.insert(job, number as u32);
        number as u32
    }

    pub(super) fn take(&self, kind: u32) -> Amounts {
        self.kinds[kind as usize].take
    }

    pub(super) fn admits(&self, node: NodeId, kind: u32) -> bool {
        let (cluster, kind) = (self.site.cluster, &self.kinds[kind as usize]);
        cluster.admits(node, cluster.request(kind.request)) && kind.home.holds(cluster, node)
    }

    /// Carries out a move, and keeps count of the guests that fit.
    pub(super) fn make(&mut self, instance: InstanceId, from: NodeId, to: NodeId, take: Amounts) {
        for (node, sign) in [(from, 1), (to, -1)] {
            let before = self.room[node.index()];
            change(&mut self.room[node.index()], take, sign);
            if let Some(guests) = &self.guests {
                self.tally.now += guests.on(node, self.room[node.index()]) - guests.on(node, before);
            }
        }
        self.moves.push(Move { instance, from, to });
    }

    /// Makes the moves to nodes that have room for all that still come there: they can only help the others.
    fn settle_safe(&mut self) {
        loop {
            // Whoever waits at a spare place where nobody else wants to go may wait longer: its seat may be of use to another.
            let waits_well = |one: &Pending| one.parked && self.coming[one.at.index()] == [0; 3];
            let is_safe =
                |one: &Pending| fits(self.coming[one.seat.index()], self.room[one.seat.index()]) && !waits_well(one);
            let (safe, rest): (Vec<Pending>, Vec<Pending>) = self.pending.iter().partition(|one| is_safe(one));
            self.pending = rest;
            if safe.is_empty() {
                return;
            }
            for one in safe {
                let take = self.take(one.kind);
                change(&mut self.coming[one.seat.index()], take, -1);
                self.make(one.instance, one.at, one.seat, take);
            }
        }
    }

    /// How much it helps that so much is freed on a node.
    pub(super) fn use_of(&self, waits: &FxHashMap<NodeId, Vec<Amounts>>, node: NodeId, take: Amounts) -> Use {
        let room = sum(self.room[node.index()], take);
        match waits.get(&node) {
            Some(_) if fits(self.coming[node.index()], room) => Use::All,
            Some(all) if all.iter().any(|&other| fits(other, room)) => Use::Some,
            _ => Use::None,
        }
    }

    /// What waits for room on each node, each kind once.
    pub(super) fn waits(&self) -> FxHashMap<NodeId, Vec<Amounts>> {
        let mut waits: FxHashMap<NodeId, Vec<Amounts>> = FxHashMap::default();
        for one in &self.pending {
            let (list, take) = (waits.entry(one.seat).or_default(), self.take(one.kind));
            if !list.contains(&take) {
                list.push(take);
            }
        }
        waits
    }

    /// The order of sizes that the walk likes.
    pub(super) fn size_key(&self, take: Amounts) -> i64 {
        if self.taste == Taste::Large { -take[0] } else { take[0] }
    }

    /// Moves somebody to a seat that has room, be it that of another who is alike. False if no seat has room.
    fn step(&mut self) -> bool {
        let waits = self.waits();
        // Of each kind those who help most by leaving, and from two nodes, as nobody moves to where it is.
        let mut helpers: Vec<Vec<(Use, usize)>> = vec![Vec::new(); self.kinds.len()];
        for (at, one) in self.pending.iter().enumerate() {
            let help = self.use_of(&waits, one.at, self.take(one.kind));
            helpers[one.kind as usize].push((help, at));
        }
        for list in &mut helpers {
            list.sort_by_key(|&(help, at)| (std::cmp::Reverse(help), at));
        }
        let mut possible = Vec::new();
        for (owner, one) in self.pending.iter().enumerate() {
            let take = self.take(one.kind);
            if !fits(take, self.room[one.seat.index()]) {
                continue;
            }
            let own = self.use_of(&waits, one.at, take);
            let other = helpers[one.kind as usize].iter().find(|&&(_, at)| self.pending[at].at != one.seat);
            let (help, leaver) = other.copied().filter(|&(help, _)| help > own).unwrap_or((own, owner));
            possible.push((std::cmp::Reverse(help), leaver != owner, self.size_key(take), owner, leaver));
        }
        possible.sort_unstable();
        // Of those who set others free, as many as have nothing to do with each other; of the rest only one.
        let mut settled: Vec<usize> = Vec::new();
        for (help, _, _, owner, leaver) in possible {
            let (seat, take) = (self.pending[owner].seat, self.take(self.pending[owner].kind));
            let first = settled.is_empty();
            let alone = !settled.contains(&owner) && !settled.contains(&leaver) && self.pending[leaver].at != seat;
            if first || help.0 == Use::All && alone && fits(take, self.room[seat.index()]) {
                self.pending[owner].seat = std::mem::replace(&mut self.pending[leaver].seat, seat);
                self.settle(leaver);
                settled.push(leaver);
            }
            if help.0 < Use::All {
                break;
            }
        }
        let any = !settled.is_empty();
        self.leave_out(settled);
        any
    }

    /// Moves an instance to its seat; it is still to be taken out of `pending`.
    pub(super) fn settle(&mut self, at: usize) {
        let one = self.pending[at];
        let take = self.take(one.kind);
        change(&mut self.coming[one.seat.index()], take, -1);
        self.make(one.instance, one.at, one.seat, take);
    }

    /// Takes those out of `pending` that have reached their seats, and those whose seat is now where they are.
    pub(super) fn leave_out(&mut self, mut settled: Vec<usize>) {
        settled.sort_unstable();
        let mut position = 0;
        let (coming, kinds) = (&mut self.coming, &self.kinds);
        self.pending.retain(|one| {
            position += 1;
            let stays = one.at == one.seat;
            let gone = settled.binary_search(&(position - 1)).is_ok();
            if stays && !gone {
                change(&mut coming[one.seat.index()], kinds[one.kind as usize].take, -1);
            }
            !stays && !gone
        });
    }
}
