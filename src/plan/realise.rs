//! From a solution in classes to nodes and instances.

use rustc_hash::{FxHashMap, FxHashSet};

use super::columns::{Columns, Meaning};
use super::layout::{Counts, GUEST, Layout, Mover};
use super::manner::{Effect, Manner, Order};
use super::relocation::bond;
use crate::cluster::{Cluster, InstanceId, JobId, NodeId};

/// One move of a running instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Move {
    pub(super) instance: InstanceId,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
}

/// Who goes where, and on which nodes the guests come. No order is implied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rough {
    pub(super) moves: Vec<Move>,
    /// A node for each guest.
    pub(super) hosts: Vec<NodeId>,
}

/// A node that loses instances.
struct Loser {
    node: NodeId,
    room: Option<usize>,
    leaves: Vec<Mover>,
}

/// Chooses nodes and instances for a solution: those of few jobs, receivers that lose nothing where there are any, and of
/// what is alike in this manner. `None` if the solution cannot be carried out, which its rows rule out.
pub(super) fn realise(
    cluster: &Cluster,
    layout: &Layout,
    columns: &Columns,
    inside: Option<&[NodeId]>,
    guests: i64,
    values: &[i64],
    manner: Manner,
) -> Option<Rough> {
    let inside: Option<FxHashSet<NodeId>> = inside.map(|nodes| nodes.iter().copied().collect());
    let mut by_cell: Vec<Vec<(usize, i64)>> = vec![Vec::new(); columns.cells.len()];
    for (at, (meaning, &value)) in columns.meanings.iter().zip(values).enumerate() {
        if let Meaning::Leave { cell, .. } = meaning
            && value > 0
        {
            by_cell[*cell].push((at, value));
        }
    }
    let mut movers = layout.movers_on.iter().flatten().map(|&(_, instance)| cluster.instance(instance).job());
    let all_alone = movers.all(|job| cluster.job(job).instances() == 1);
    let mut chooser = Chooser { cluster, layout, disturbed: FxHashSet::default(), all_alone };
    let mut losers = Vec::new();
    let mut left: FxHashMap<NodeId, &Counts> = FxHashMap::default();
    // The nodes of each room that lose nothing; those that lose something come after them.
    let n_rooms = columns.meanings.iter().filter_map(Meaning::room).max().map_or(0, |room| room + 1);
    let mut rooms: Vec<Vec<NodeId>> = vec![Vec::new(); n_rooms];
    for (cell, wanted) in columns.cells.iter().zip(by_cell) {
        let members = layout.members[cell.class as usize].iter().copied();
        let is_here = |node: &NodeId| inside.as_ref().is_none_or(|inside| inside.contains(node)) == cell.inside;
        let mut nodes: Vec<NodeId> = members.filter(is_here).collect();
        if manner.leave == Order::Last {
            nodes.reverse();
        }
        for &(at, value) in &wanted {
            let Meaning::Leave { leave, room, .. } = &columns.meanings[at] else { continue };
            if leave.is_empty() {
                continue;
            }
            if manner.leave == Order::Tidy {
                nodes.sort_by_cached_key(|&node| (Effect::of(cluster, layout, node, leave, &Vec::new()), node));
            }
            for _ in 0..value {
                let (at, leaves) = chooser.choose(&nodes, leave)?;
                left.insert(nodes[at], leave);
                losers.push(Loser { node: nodes.remove(at), room: *room, leaves });
            }
        }
        let rest = wanted.iter().find_map(|&(at, _)| match &columns.meanings[at] {
            Meaning::Leave { leave, room, .. } if leave.is_empty() => Some(*room),
            _ => None,
        });
        if let Some(Some(room)) = rest {
            nodes.sort_unstable();
            rooms[room].extend(nodes);
        }
    }
    let n_kept: Vec<usize> = rooms.iter().map(Vec::len).collect();
    for loser in &losers {
        if let Some(room) = loser.room {
            rooms[room].push(loser.node);
        }
    }
    if manner.receive == Order::Last {
        for (nodes, &n_kept) in rooms.iter_mut().zip(&n_kept) {
            nodes[..n_kept].reverse();
            nodes[n_kept..].reverse();
        }
    }
    let effect = |node: NodeId, receive: &Counts| {
        let none = Vec::new();
        Effect::of(cluster, layout, node, left.get(&node).copied().unwrap_or(&none), receive)
    };
    let effect = (manner.receive == Order::Tidy).then_some(&effect as EffectOf<'_>);
    let seats = seats(columns, values, rooms, &n_kept, effect)?;
    seat(cluster, layout, losers, seats, guests)
}

impl Meaning {
    fn room(&self) -> Option<usize> {
        match self {
            Meaning::Leave { room, .. } => *room,
            Meaning::Receive { room, .. } => Some(*room),
        }
    }
}

/// A seat for an item on a node, and whether the node loses nothing.
struct Place {
    item: u16,
    node: NodeId,
    kept: bool,
}

/// What a room receives, and how many rooms do.
type Packing<'a> = (&'a Counts, i64);

/// What becomes of a node that so much comes to.
type EffectOf<'a> = &'a dyn Fn(NodeId, &Counts) -> Effect;

/// Seats on concrete nodes. Packings with movers go to nodes that lose nothing, the guests' own to those that do; or, with
/// an effect, to those where it is best.
fn seats(
    columns: &Columns,
    values: &[i64],
    rooms: Vec<Vec<NodeId>>,
    n_kept: &[usize],
    effect: Option<EffectOf<'_>>,
) -> Option<Vec<Place>> {
    let mut packings: Vec<Vec<Packing<'_>>> = vec![Vec::new(); rooms.len()];
    for (meaning, &value) in columns.meanings.iter().zip(values) {
        if let Meaning::Receive { room, receive } = meaning
            && value > 0
        {
            packings[*room].push((receive, value));
        }
    }
    let mut seats = Vec::new();
    for ((nodes, mut packings), &n_kept) in rooms.iter().zip(packings).zip(n_kept) {
        packings.sort_by_key(|(receive, _)| receive.iter().all(|&(item, _)| usize::from(item) == GUEST));
        if let Some(effect) = effect {
            let mut left: Vec<(NodeId, bool)> =
                nodes.iter().enumerate().map(|(at, &node)| (node, at < n_kept)).collect();
            for (receive, value) in packings {
                let has_movers = receive.iter().any(|&(item, _)| usize::from(item) != GUEST);
                left.sort_by_cached_key(|&(node, kept)| (has_movers && !kept, effect(node, receive), node));
                if left.len() < value as usize {
                    return None;
                }
                for (node, kept) in left.drain(..value as usize) {
                    for &(item, n) in receive {
                        seats.extend((0..n).map(|_| Place { item, node, kept }));
                    }
                }
            }
            continue;
        }
        let all: i64 = packings.iter().map(|&(_, value)| value).sum();
        let guests_only = packings.iter().filter(|(receive, _)| receive.iter().all(|&(item, _)| item == 0));
        let guests_only: i64 = guests_only.map(|&(_, value)| value).sum();
        // Guests alone take the last nodes, unless they are all needed anyway.
        let skip = (nodes.len() as i64 - all).max(0) as usize;
        let mixed = (all - guests_only) as usize;
        let order = nodes.iter().enumerate().take(mixed).chain(nodes.iter().enumerate().skip(mixed + skip));
        let mut order = order.map(|(at, &node)| (node, at < n_kept));
        for (receive, value) in packings {
            for _ in 0..value {
                let (node, kept) = order.next()?;
                for &(item, n) in receive {
                    seats.extend((0..n).map(|_| Place { item, node, kept }));
                }
            }
        }
    }
    Some(seats)
}

/// Who takes which seat. Seats on nodes that lose nothing are free at once, so whoever stands in another's way gets them.
/// Whoever must stay with others chooses first, a seat in the same region if there is one.
fn seat(cluster: &Cluster, layout: &Layout, losers: Vec<Loser>, seats: Vec<Place>, guests: i64) -> Option<Rough> {
    let mut free: Vec<Vec<NodeId>> = vec![Vec::new(); layout.items.len()];
    let mut waited_for: FxHashSet<NodeId> = FxHashSet::default();
    // Taken from the end: first the seats that are free at once.
    for kept in [false, true] {
        for seat in seats.iter().filter(|seat| seat.kept == kept) {
            free[usize::from(seat.item)].push(seat.node);
            if !kept && usize::from(seat.item) != GUEST {
                waited_for.insert(seat.node);
            }
        }
    }
    let spare = free[GUEST].len().checked_sub(usize::try_from(guests).ok()?)?;
    let hosts = free[GUEST].split_off(spare);
    let mut rough = Rough { moves: Vec::new(), hosts };
    let mut losers = losers;
    losers.sort_by_key(|loser| (!waited_for.contains(&loser.node), loser.node));
    let leaves = losers.iter().flat_map(|loser| loser.leaves.iter().map(|&mover| (loser.node, mover)));
    let (bound, others): (Vec<_>, Vec<_>) = leaves.partition(|&(_, (_, instance))| bond(cluster, instance).is_some());
    for (from, (item, instance)) in bound.into_iter().chain(others) {
        let free = &mut free[usize::from(item)];
        let near = bond(cluster, instance).and_then(|within| {
            let region = |node: NodeId| cluster.node(node).region(within);
            free.iter().rposition(|&node| node != from && region(node) == region(from))
        });
        // Its own node is no move; another's seat will do.
        let at = near.or_else(|| free.iter().rposition(|&node| node != from));
        let to = free.remove(at.or(free.len().checked_sub(1))?);
        if to != from {
            rough.moves.push(Move { instance, from, to });
        }
    }
    rough.moves.sort_unstable();
    Some(rough)
}

/// The position of a node, and the instances that leave it.
type Choice = (usize, Vec<Mover>);

struct Chooser<'a> {
    cluster: &'a Cluster,
    layout: &'a Layout,
    disturbed: FxHashSet<JobId>,
    /// Whether every job that may be moved has one instance.
    all_alone: bool,
}

impl Chooser<'_> {
    /// The node, by its position, and the instances on it that leave, such that few of them must stay with others and few
    /// jobs more are disturbed.
    fn choose(&mut self, nodes: &[NodeId], leave: &[(u16, u16)]) -> Option<Choice> {
        let mut best: Option<((usize, usize), Choice)> = None;
        for (at, &node) in nodes.iter().enumerate() {
            let (new, leaves) = self.leaves(node, leave);
            let bound = leaves.iter().filter(|&&(_, instance)| bond(self.cluster, instance).is_some()).count();
            if best.as_ref().is_none_or(|(least, _)| (bound, new) < *least) {
                // Where no job has a second instance that may move, one node is as good as another.
                let last = bound == 0 && (new == 0 || self.all_alone);
                best = Some(((bound, new), (at, leaves)));
                if last {
                    break;
                }
            }
        }
        let (_, (at, leaves)) = best?;
        let jobs: Vec<JobId> = leaves.iter().map(|&(_, instance)| self.cluster.instance(instance).job()).collect();
        self.disturbed.extend(jobs);
        Some((at, leaves))
    }

    /// Which instances of a node would leave, and how many jobs that are not yet disturbed they are of.
    fn leaves(&self, node: NodeId, leave: &[(u16, u16)]) -> (usize, Vec<Mover>) {
        let movers = &self.layout.movers_on[node.index()];
        let mut leaves = Vec::new();
        let mut new: Vec<JobId> = Vec::new();
        for &(item, n) in leave {
            let of_item = movers.iter().filter(|&&(other, _)| other == item).copied();
            let mut of_item: Vec<Mover> = of_item.collect();
            // Those that need not stay with others; of jobs that are disturbed already; of the job with the most instances
            // here.
            let job = |instance| self.cluster.instance(instance).job();
            let here = |of: JobId| of_item.iter().filter(|&&(_, instance)| job(instance) == of).count();
            let keys: Vec<_> = of_item
                .iter()
                .map(|&(_, instance)| {
                    let job = job(instance);
                    let known = self.disturbed.contains(&job) || new.contains(&job);
                    let is_bound = bond(self.cluster, instance).is_some();
                    (is_bound, !known, std::cmp::Reverse(here(job)), job, instance)
                })
                .collect();
            let mut order: Vec<usize> = (0..of_item.len()).collect();
            order.sort_by_key(|&at| keys[at]);
            of_item = order.into_iter().map(|at| of_item[at]).take(usize::from(n)).collect();
            for &(_, instance) in &of_item {
                let job = job(instance);
                if !self.disturbed.contains(&job) && !new.contains(&job) {
                    new.push(job);
                }
            }
            leaves.extend(of_item);
        }
        (new.len(), leaves)
    }
}
