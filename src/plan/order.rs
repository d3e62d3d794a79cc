//! An order of moves in which each target is free when its move begins.

use rustc_hash::{FxHashMap, FxHashSet};

use super::amounts::{Amounts, change, fits, free, takes};
use super::realise::Move;
use crate::cluster::{Cluster, NodeId};

/// Sets of moves that are looked at in one component before it is given up.
const MOST_SETS: usize = 50_000;

/// An order of these moves, each made once, in which each target has room when its move begins. `None` if there is
/// none, or none was found in reasonable time.
pub(super) fn hitless_order(cluster: &Cluster, moves: &[Move]) -> Option<Vec<Move>> {
    let mut room: FxHashMap<NodeId, Amounts> = FxHashMap::default();
    for one in moves {
        for node in [one.from, one.to] {
            room.insert(node, free(cluster, node));
        }
    }
    let takes: Vec<Amounts> =
        moves.iter().map(|one| takes(cluster.request_of(cluster.instance(one.instance).job()))).collect();
    let mut order = Vec::with_capacity(moves.len());
    let mut left: Vec<usize> = (0..moves.len()).collect();
    take_safe(moves, &takes, &mut room, &mut left, &mut order);
    for component in components(moves, &left) {
        if component.len() > 128 {
            return None;
        }
        let mut search = Search { moves, takes: &takes, component: &component, seen: FxHashSet::default() };
        let all = if component.len() == 128 { u128::MAX } else { (1 << component.len()) - 1 };
        let mut found = Vec::new();
        if !search.go(all, &mut room, &mut found) {
            return None;
        }
        order.extend(found);
    }
    Some(order.into_iter().map(|at| moves[at]).collect())
}

fn make(one: &Move, take: Amounts, room: &mut FxHashMap<NodeId, Amounts>, sign: i64) {
    for (node, sign) in [(one.from, sign), (one.to, -sign)] {
        if let Some(room) = room.get_mut(&node) {
            change(room, take, sign);
        }
    }
}

/// Makes the moves to nodes that have room for all that still come there: they can only help the others.
fn take_safe(
    moves: &[Move],
    takes: &[Amounts],
    room: &mut FxHashMap<NodeId, Amounts>,
    left: &mut Vec<usize>,
    order: &mut Vec<usize>,
) {
    loop {
        let mut coming: FxHashMap<NodeId, Amounts> = FxHashMap::default();
        for &at in left.iter() {
            change(coming.entry(moves[at].to).or_default(), takes[at], 1);
        }
        let before = left.len();
        left.retain(|&at| {
            let one = &moves[at];
            let safe = room.get(&one.to).zip(coming.get(&one.to)).is_some_and(|(&room, &all)| fits(all, room));
            if safe {
                make(one, takes[at], room, 1);
                if let Some(sum) = coming.get_mut(&one.to) {
                    change(sum, takes[at], -1);
                }
                order.push(at);
            }
            !safe
        });
        if left.len() == before {
            return;
        }
    }
}

/// The moves that have to do with each other, by the nodes that they touch.
fn components(moves: &[Move], left: &[usize]) -> Vec<Vec<usize>> {
    let mut leader: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    fn find(leader: &mut FxHashMap<NodeId, NodeId>, node: NodeId) -> NodeId {
        let mut at = node;
        while let Some(&up) = leader.get(&at)
            && up != at
        {
            at = up;
        }
        leader.insert(node, at);
        at
    }
    for &at in left {
        let (from, to) = (find(&mut leader, moves[at].from), find(&mut leader, moves[at].to));
        leader.insert(from.max(to), from.min(to));
    }
    let mut components: Vec<(NodeId, Vec<usize>)> = Vec::new();
    for &at in left {
        let node = find(&mut leader, moves[at].to);
        match components.iter_mut().find(|(other, _)| *other == node) {
            Some((_, members)) => members.push(at),
            None => components.push((node, vec![at])),
        }
    }
    components.into_iter().map(|(_, members)| members).collect()
}

struct Search<'a> {
    moves: &'a [Move],
    takes: &'a [Amounts],
    component: &'a [usize],
    /// Sets of moves still to make that lead nowhere, or were looked at.
    seen: FxHashSet<u128>,
}

impl Search<'_> {
    /// Finds an order of the moves of a set, and appends it.
    fn go(&mut self, left: u128, room: &mut FxHashMap<NodeId, Amounts>, order: &mut Vec<usize>) -> bool {
        if left == 0 {
            return true;
        }
        if self.seen.len() >= MOST_SETS || !self.seen.insert(left) {
            return false;
        }
        for (bit, &at) in self.component.iter().enumerate() {
            let one = &self.moves[at];
            let possible = left >> bit & 1 == 1 && room.get(&one.to).is_some_and(|&room| fits(self.takes[at], room));
            if !possible {
                continue;
            }
            make(one, self.takes[at], room, 1);
            order.push(at);
            if self.go(left & !(1 << bit), room, order) {
                return true;
            }
            order.pop();
            make(one, self.takes[at], room, -1);
        }
        false
    }
}
