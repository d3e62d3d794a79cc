//! An order of moves without the hops that are not needed after all.

use super::amounts::{Amounts, change, fits, free, takes};
use super::guests::Guests;
use super::realise::{Move, Rough};
use super::site::Site;
use crate::cluster::NodeId;

/// Without the hops of instances that move twice that are not needed after all.
pub(super) fn shortened(site: &Site<'_>, mut rough: Rough) -> Rough {
    let mut at = rough.moves.len();
    while at > 0 {
        at -= 1;
        let second = rough.moves[at];
        let Some(first) = rough.moves[..at].iter().rposition(|one| one.instance == second.instance) else { continue };
        // It stays at the spare place; or it goes straight to its seat, early or late.
        let direct = Move { from: rough.moves[first].from, ..second };
        let without = |hop: usize, direct: Option<Move>| {
            let mut moves = rough.moves.clone();
            if let Some(direct) = direct {
                moves[first + at - hop] = direct;
            }
            moves.remove(hop);
            moves.retain(|one| one.from != one.to);
            served(site, &moves, &rough.hosts).map(|hosts| Rough { moves, hosts })
        };
        let stays = || without(at, None).filter(|_| !rough.hosts.is_empty());
        let shorter = stays().or_else(|| without(first, Some(direct))).or_else(|| without(at, Some(direct)));
        if let Some(shorter) = shorter {
            rough = shorter;
            at = at.min(rough.moves.len());
        }
    }
    rough
}

/// Where the guests come after these moves, each to a place that is free by then; `None` if that cannot be.
fn served(site: &Site<'_>, moves: &[Move], hosts: &[NodeId]) -> Option<Vec<NodeId>> {
    let cluster = site.cluster;
    let mut room: Vec<Amounts> = cluster.node_ids().map(|node| free(cluster, node)).collect();
    for one in moves {
        let take = takes(cluster.request_of(cluster.instance(one.instance).job()));
        if !fits(take, room[one.to.index()]) {
            return None;
        }
        change(&mut room[one.from.index()], take, 1);
        change(&mut room[one.to.index()], take, -1);
    }
    match Guests::of(*site, hosts) {
        Some(guests) => guests.hosts(hosts, &room),
        None => Some(Vec::new()),
    }
}
