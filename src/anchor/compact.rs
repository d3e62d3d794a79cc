//! Compact: restores the invariant of §4 in one pool, and Σ where it was left.
//!
//! The paper names an order of passes; run literally it leaves up to three avoidable partial nodes. What theorem 1 needs
//! is this: **at most one slotted node has unprofiled room, at most one pool node is partial, and no vacancy is open
//! while a pool node holds a 1-GPU instance.** Each step below makes a measure smaller (nodes outside Σ, then slotted
//! nodes with room; open vacancies; partial pool nodes), so it ends. It is greedy, pair by pair, the cheapest first; no
//! global optimum is claimed.

use rustc_hash::{FxHashMap, FxHashSet};

use super::mover::Mover;
use super::pair::PairPlan;
use super::shape::{Kind, NARROWEST_SLOT, Outside, Shape};
use crate::cluster::{Composition, InstanceId, NodeId, NodeSet, PoolId, UNLIMITED};

/// How many nodes of one kind are compared for the cheapest pair. Two are enough in a compact pool, where one event
/// leaves few; more only matter while a foreign cluster is brought towards Σ.
const LOOK: usize = 4;

/// How many nodes that refuse for reasons of their own (topology, CPU, memory) are asked before a step gives up for this
/// event. Nodes on which nothing may move are not asked, or only one of a kind.
pub(super) const PATIENCE: usize = 1024;

/// Compacts a pool as far as budget and pinned instances allow. True if it was or is compact now, false if something
/// is left that another event may repair.
pub(super) fn compact(mover: &mut Mover<'_, '_>, pool: PoolId) -> bool {
    let mut stuck = Stuck::default();
    loop {
        fill_from_outside(mover, pool);
        if improve_a_pair(mover, pool, &mut stuck) {
            continue;
        }
        if !fill_open_vacancies(mover, pool) && !merge_pool_nodes(mover, pool) {
            break;
        }
        // With other pool nodes, other pairs may do.
        stuck = Stuck::default();
    }
    let state = mover.transaction.state().pool(pool);
    state.outside().is_empty() && stuck.pairs.is_empty() && !mover.short_of_budget
}

/// Moves 1-GPU instances that are too many on nodes outside Σ into open vacancies.
fn fill_from_outside(mover: &mut Mover<'_, '_>, pool: PoolId) {
    if mover.transaction.state().pool(pool).outside().is_empty() {
        return;
    }
    let mut from = 0;
    while let Some(position) = mover.transaction.state().pool(pool).outside().next(from) {
        from = position + 1;
        let source = mover.transaction.state().pool(pool).node_at(position);
        let mut at = 0;
        while shape(mover, source).excess_ones() > 0 {
            let Some(vacancy) = mover.transaction.state().pool(pool).open_vacancy().next(at) else { return };
            let target = mover.transaction.state().pool(pool).node_at(vacancy);
            if !mover.move_a_one(source, target) {
                at = vacancy + 1;
            }
        }
    }
}

fn shape(mover: &Mover<'_, '_>, node: NodeId) -> Shape {
    let node = mover.transaction.cluster().node(node);
    Shape::of(node.capacity(), node.composition())
}

/// What could not be improved in this event and is not tried again in it.
#[derive(Default)]
struct Stuck {
    pairs: FxHashSet<(NodeId, NodeId)>,
    /// Kinds of nodes all of whose pairs are stuck, each with one such node, which later pairs may still need.
    kinds: FxHashMap<NodeKind, NodeId>,
    /// How many of these kinds are one node alone.
    alone: usize,
}

/// What decides how a node can be repacked: nodes of one kind are stuck together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct NodeKind {
    held: Composition,
    /// The part of it that may move.
    movable: Composition,
    /// The node itself, if CPU, memory or topology has a say too.
    alone: Option<NodeId>,
}

impl NodeKind {
    fn of(mover: &Mover<'_, '_>, id: NodeId) -> Self {
        let cluster = mover.transaction.cluster();
        let node = cluster.node(id);
        let mut movable = Composition::EMPTY;
        let mut alone = node.cpu_milli() != UNLIMITED || node.memory_mib() != UNLIMITED;
        for instance in cluster.instances_on(id) {
            let held = cluster.instance(instance);
            if cluster.job(held.job()).migratable() {
                let request = cluster.request_of(held.job());
                movable = movable.with(request.gpus).unwrap_or(movable);
                alone |= request.within.is_some() || request.cpu_milli > 0 || request.memory_mib > 0;
            }
        }
        Self { held: node.composition(), movable, alone: alone.then_some(id) }
    }
}

impl Stuck {
    /// Whether nothing more is to be expected of a node.
    fn has(&self, mover: &Mover<'_, '_>, node: NodeId) -> bool {
        !self.kinds.is_empty() && self.kinds.contains_key(&NodeKind::of(mover, node))
    }

    fn add(&mut self, mover: &Mover<'_, '_>, node: NodeId) {
        let kind = NodeKind::of(mover, node);
        if self.kinds.insert(kind, node).is_none() {
            self.alone += usize::from(kind.alone.is_some());
        }
    }

    /// Two nodes were repacked: other pairs with either may do now, and other kinds with what they have become.
    fn repacked(&mut self, first: NodeId, second: NodeId) {
        let touches = |node: NodeId| node == first || node == second;
        self.pairs.retain(|&(one, two)| !touches(one) && !touches(two));
        // Nodes that stand alone may be very many, and are only asked again once pool nodes have changed.
        self.kinds.retain(|kind, &mut node| kind.alone.is_some() && !touches(node));
        self.alone = self.kinds.len();
    }
}

/// Repacks the pair that is best to repack. False if there is none.
fn improve_a_pair(mover: &mut Mover<'_, '_>, pool: PoolId, stuck: &mut Stuck) -> bool {
    loop {
        let state = mover.transaction.state().pool(pool);
        if state.outside().is_empty() && state.n_with_room() < 2 {
            return false;
        }
        let Promising { fresh, pairs } = promising_pairs(mover, pool, stuck);
        if improve_one_of(mover, pool, pairs, stuck) {
            return true;
        }
        // Behind nodes that cannot be repacked may be some that can.
        if fresh.is_empty() || stuck.alone >= PATIENCE {
            return false;
        }
        fresh.into_iter().for_each(|node| stuck.add(mover, node));
    }
}

/// What may be better after repacking.
struct Promising {
    /// Nodes that are not given up and that have room or are outside Σ.
    fresh: Vec<NodeId>,
    /// Pairs with at least one of those.
    pairs: Vec<(NodeId, NodeId)>,
}

fn promising_pairs(mover: &Mover<'_, '_>, pool: PoolId, stuck: &Stuck) -> Promising {
    let pool = mover.transaction.state().pool(pool);
    let few = |set: &NodeSet| -> Vec<NodeId> {
        set.iter().map(|position| pool.node_at(position)).filter(|&node| !stuck.has(mover, node)).take(LOOK).collect()
    };
    let outside = few(pool.outside());
    let rooms = (NARROWEST_SLOT..pool.capacity()).filter(|room| pool.slotted_rooms() >> room & 1 == 1);
    let with_room: Vec<NodeId> = rooms.flat_map(|room| few(pool.slotted_with_room(room))).collect();
    let mut pairs = Vec::new();
    for (i, &first) in with_room.iter().enumerate() {
        pairs.extend(with_room[i + 1..].iter().map(|&second| (first, second)));
    }
    if !outside.is_empty() {
        let first_of = |set: &NodeSet| set.first().map(|position| pool.node_at(position));
        let helpers = (1..=pool.capacity()).filter_map(|ones| first_of(pool.pools_with(ones)));
        let helpers: Vec<NodeId> = with_room.iter().copied().chain(helpers).chain(first_of(pool.empty())).collect();
        for (i, &first) in outside.iter().enumerate() {
            pairs.extend(outside[i + 1..].iter().chain(&helpers).map(|&second| (first, second)));
        }
    }
    let fresh: Vec<NodeId> = outside.into_iter().chain(with_room).collect();
    // What could not be repacked among its own kind may be with others.
    let mut given_up: Vec<NodeId> = stuck.kinds.values().copied().collect();
    given_up.sort_unstable();
    pairs.extend(fresh.iter().flat_map(|&first| given_up.iter().map(move |&second| (first, second))));
    pairs.retain(|pair| !stuck.pairs.contains(pair));
    Promising { fresh, pairs }
}

/// Whether anything on a node may move at all.
pub(super) fn has_movable(mover: &Mover<'_, '_>, node: NodeId) -> bool {
    let cluster = mover.transaction.cluster();
    cluster.instances_on(node).any(|instance| cluster.job(cluster.instance(instance).job()).migratable())
}

/// Carries out the best plan of the best pair that can be carried out: repairs first, then the fewest GPUs moved.
fn improve_one_of(mover: &mut Mover<'_, '_>, pool: PoolId, pairs: Vec<(NodeId, NodeId)>, stuck: &mut Stuck) -> bool {
    let capacity = mover.transaction.state().pool(pool).capacity();
    let mut ranked = Vec::with_capacity(pairs.len());
    for (first, second) in pairs {
        let (one, two) = (composition(mover, first), composition(mover, second));
        let plans = mover.transaction.state_mut().pair_plans.of(capacity, one, two);
        if let Some(best) = plans.first() {
            let repaired = outside_of(mover, first) + outside_of(mover, second) - best.after.0;
            ranked.push((std::cmp::Reverse(repaired), best.gpus, best.moves, best.after, first, second));
        }
    }
    ranked.sort_unstable();
    for (_, _, _, _, first, second) in ranked {
        let (one, two) = (composition(mover, first), composition(mover, second));
        let plans = mover.transaction.state_mut().pair_plans.of(capacity, one, two);
        if plans.iter().any(|plan| carry_out(mover, plan, first, second)) {
            stuck.repacked(first, second);
            return true;
        }
        stuck.pairs.insert((first, second));
    }
    false
}

fn composition(mover: &Mover<'_, '_>, node: NodeId) -> Composition {
    mover.transaction.cluster().node(node).composition()
}

fn outside_of(mover: &Mover<'_, '_>, node: NodeId) -> u8 {
    u8::from(!shape(mover, node).in_space())
}

/// Carries out a plan with instances that may move; false, with nothing changed, if pins, topology, CPU, memory or the
/// budget forbid it.
fn carry_out(mover: &mut Mover<'_, '_>, plan: &PairPlan, first: NodeId, second: NodeId) -> bool {
    let mut movers: Vec<(InstanceId, NodeId)> = Vec::with_capacity(usize::from(plan.moves));
    for (from, to, counts) in [(first, second, &plan.to_second), (second, first, &plan.to_first)] {
        let mut left = *counts;
        if left.iter().all(|&n| n == 0) {
            continue;
        }
        let cluster = mover.transaction.cluster();
        for instance in cluster.instances_on(from) {
            let n = &mut left[cluster.instance(instance).gpus().count_ones() as usize];
            if *n > 0 && mover.may_move(instance, to) {
                *n -= 1;
                movers.push((instance, to));
            }
        }
        if left.iter().any(|&n| n > 0) {
            return false;
        }
    }
    let spent = movers.iter().filter(|(instance, _)| mover.transaction.counts_as_move(*instance)).count();
    if spent > mover.allowance() {
        mover.short_of_budget = true;
        return false;
    }
    let start = mover.checkpoint();
    let done = movers.iter().all(|&(instance, _)| mover.transaction.free(instance).is_ok())
        && movers.iter().all(|&(instance, to)| mover.transaction.take_lowest(instance, to).is_ok());
    if !done {
        mover.rollback(start);
    }
    done
}

/// Fills open vacancies out of pool nodes.
fn fill_open_vacancies(mover: &mut Mover<'_, '_>, pool: PoolId) -> bool {
    let mut changed = false;
    let mut from = 0;
    while let Some(position) = mover.transaction.state().pool(pool).open_vacancy().next(from) {
        if mover.transaction.state().pool(pool).pool_sizes() == 0 {
            break;
        }
        from = position + 1;
        let node = mover.transaction.state().pool(pool).node_at(position);
        let before = mover.transaction.log().len();
        super::gang::fill_vacancy(mover, node);
        changed |= mover.transaction.log().len() > before;
        if mover.short_of_budget {
            break;
        }
    }
    changed
}

/// Empties the least busy partial pool node into the busiest, while there are two.
pub(super) fn merge_pool_nodes(mover: &mut Mover<'_, '_>, pool: PoolId) -> bool {
    let capacity = mover.transaction.state().pool(pool).capacity();
    let mut changed = false;
    let mut patience = PATIENCE;
    for ones in 1..capacity {
        let state = mover.transaction.state().pool(pool);
        if state.n_partial_pools() < 2 {
            break;
        }
        if state.pool_sizes() >> ones & 1 == 0 {
            continue;
        }
        let mut from = 0;
        while let Some(donor) = mover.transaction.state().pool(pool).pools_with(ones).next(from) {
            from = donor + 1;
            let source = mover.transaction.state().pool(pool).node_at(donor);
            if !has_movable(mover, source) {
                continue;
            }
            changed |= empty_into_others(mover, pool, source, ones, &mut patience);
            if mover.short_of_budget || patience == 0 {
                return changed;
            }
        }
    }
    changed
}

/// Moves the 1-GPU instances of a pool node to pool nodes that are at least as busy, the busiest first.
fn empty_into_others(mover: &mut Mover<'_, '_>, pool: PoolId, source: NodeId, ones: u8, patience: &mut usize) -> bool {
    let capacity = mover.transaction.state().pool(pool).capacity();
    let mut changed = false;
    for busy in (ones..capacity).rev() {
        if mover.transaction.state().pool(pool).pool_sizes() >> busy & 1 == 0 {
            continue;
        }
        let mut from = 0;
        while let Some(position) = mover.transaction.state().pool(pool).pools_with(busy).next(from) {
            from = position + 1;
            let target = mover.transaction.state().pool(pool).node_at(position);
            if target == source {
                continue;
            }
            let mut moved = false;
            while mover.transaction.cluster().node(target).free_gpus() > 0 && mover.move_a_one(source, target) {
                moved = true;
            }
            changed |= moved;
            *patience -= usize::from(!moved);
            if shape(mover, source).kind == Kind::Empty || mover.short_of_budget || *patience == 0 {
                return changed;
            }
        }
    }
    changed
}

/// Moves what 1-GPU instances it can from nodes outside Σ to partial pool nodes, also where that repairs no node: what
/// is left may then become fillers of a job that could not be placed.
pub(super) fn drain_excess(mover: &mut Mover<'_, '_>, pool: PoolId) {
    let capacity = mover.transaction.state().pool(pool).capacity();
    let mut from = 0;
    while let Some(position) = mover.transaction.state().pool(pool).outside().next(from) {
        from = position + 1;
        let source = mover.transaction.state().pool(pool).node_at(position);
        while shape(mover, source).excess_ones() > 0 {
            let state = mover.transaction.state().pool(pool);
            let fullest = (1..capacity).rev().find_map(|ones| state.pools_with(ones).first());
            let Some(target) = fullest.map(|position| state.node_at(position)) else { return };
            if !mover.move_a_one(source, target) {
                break;
            }
        }
    }
}

/// Re-places the 1-GPU instances of a node that have become too many for its vacancy, by the 1-GPU rule: an open
/// vacancy, a partial pool node, a new pool node. What has no place stays, and the node is outside Σ until it has.
pub(super) fn replace_excess(mover: &mut Mover<'_, '_>, node: NodeId) {
    let pool = mover.transaction.cluster().node(node).pool();
    let capacity = mover.transaction.state().pool(pool).capacity();
    while shape(mover, node).kind == Kind::Outside(Outside::NoVacancy) {
        let state = mover.transaction.state().pool(pool);
        let partial = (1..capacity).rev().flat_map(|ones| state.pools_with(ones).iter());
        let targets = state.open_vacancy().iter().chain(partial).chain(state.empty().first());
        let targets: Vec<NodeId> = targets.take(2 * LOOK).map(|position| state.node_at(position)).collect();
        if !targets.into_iter().any(|target| mover.move_a_one(node, target)) {
            return;
        }
    }
}
