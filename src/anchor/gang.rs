//! Place for a whole gang: all instances inside Σ, or none.
//!
//! The instances of a gang are alike, so one after the other on the node of least key finds a placement if each step
//! can stay inside Σ: an instance on a node lowers what that node can still take by exactly one. What this misses are
//! nodes that several anchors bring (back) into Σ at once: a pool node with two 1-GPU instances takes no anchor of 3, but
//! two of them, whose vacancies make the two its fillers. Such *jumps* are added where the steps do not suffice.

use super::choose::{Scope, by_cpu_and_memory, steps};
use super::compact::{PATIENCE, has_movable};
use super::mover::Mover;
use super::shape::{Kind, Shape};
use crate::cluster::{InstanceId, JobId, NodeId, Request, slot_width};

/// Places all instances of the job, which has instance numbers. False, with nothing changed, if it cannot be done
/// without moves other than those of fillers.
#[inline]
pub(super) fn place_gang(mover: &mut Mover<'_, '_>, job: JobId) -> bool {
    let id = mover.transaction.cluster().job(job).request();
    let request = mover.transaction.cluster().request(id).clone();
    if let Some((within, number)) = mover.region {
        let nodes = mover.transaction.state().regions(within)[number].clone();
        return place_in(mover, job, &request, Some(&nodes));
    }
    let Some(within) = request.within else {
        return place_in(mover, job, &request, None);
    };
    let regions = mover.transaction.state().regions(within);
    let wanted = mover.transaction.cluster().job(job).instances();
    // Of the regions that can take the gang step by step the tightest keeps the others whole, and an intact one is opened
    // last; after them, all others.
    let mut order: Vec<(bool, bool, u64, usize)> = regions
        .iter()
        .enumerate()
        .filter(|(_, nodes)| could_hold(mover, nodes, &request, wanted))
        .map(|(i, nodes)| {
            let room = room_in(mover, nodes, &request);
            (room < u64::from(wanted), mover.transaction.state().is_intact(nodes), room, i)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().any(|(.., i)| {
        let nodes = mover.transaction.state().regions(within)[i].clone();
        place_in(mover, job, &request, Some(&nodes))
    })
}

/// How many instances a region can take one by one.
pub(super) fn room_in(mover: &Mover<'_, '_>, nodes: &[NodeId], request: &Request) -> u64 {
    let state = mover.transaction.state();
    if request.gpus == 0 {
        return nodes.iter().map(|&node| u64::from(cpu_only_room(mover, node, request))).sum();
    }
    nodes.iter().map(|&node| u64::from(steps(state, node, request))).sum()
}

/// Whether a region has the GPUs at all.
pub(super) fn could_hold(mover: &Mover<'_, '_>, nodes: &[NodeId], request: &Request, wanted: u32) -> bool {
    let cluster = mover.transaction.cluster();
    if request.is_share() {
        return room_in(mover, nodes, request) >= u64::from(wanted);
    }
    let free: u64 = nodes.iter().map(|&node| u64::from(cluster.node(node).free_gpus())).sum();
    free >= u64::from(wanted) * u64::from(request.gpus)
}

/// Places all instances of the job on the nodes of a region, or on any. False, with nothing changed, if it cannot be done.
pub(super) fn place_in(mover: &mut Mover<'_, '_>, job: JobId, request: &Request, region: Option<&[NodeId]>) -> bool {
    let id = mover.transaction.cluster().job(job).request();
    let scope = Scope::new(mover.transaction.state_mut(), id, region);
    if mover.transaction.cluster().job(job).instances() == 1 && request.gpus > 0 {
        // What follows in general, without a list.
        let instance = mover.transaction.cluster().instances_of(job).next();
        if let Some(instance) = instance
            && request.is_share()
            && take_beside(mover, instance, request, &scope)
        {
            return true;
        }
        let node = scope.choose(mover.transaction.state(), request);
        if let (Some(instance), Some(node)) = (instance, node)
            && mover.transaction.take_lowest(instance, node).is_ok()
        {
            fill_vacancy(mover, node);
            return true;
        }
    }
    let instances: Vec<InstanceId> = mover.transaction.cluster().instances_of(job).collect();
    if request.gpus == 0 {
        return place_cpu_only(mover, &instances, request, region);
    }
    let start = mover.checkpoint();
    let placed = step_by_step(mover, &instances, request, &scope);
    if placed == instances.len() || finish_by_jumps(mover, &instances[placed..], request, &scope) {
        return true;
    }
    mover.rollback(start);
    if jumps_first(mover, &instances, request, &scope) {
        return true;
    }
    mover.rollback(start);
    false
}

/// Places as many instances as go one by one; returns how many.
fn step_by_step(mover: &mut Mover<'_, '_>, instances: &[InstanceId], request: &Request, scope: &Scope<'_>) -> usize {
    for (placed, &instance) in instances.iter().enumerate() {
        if request.is_share() && take_beside(mover, instance, request, scope) {
            continue;
        }
        let Some(node) = scope.choose(mover.transaction.state(), request) else { return placed };
        if mover.transaction.take_lowest(instance, node).is_err() {
            return placed;
        }
        fill_vacancy(mover, node);
    }
    instances.len()
}

/// Puts a share on a device beside other shares, which changes no composition. False where no such device has enough left.
fn take_beside(mover: &mut Mover<'_, '_>, instance: InstanceId, request: &Request, scope: &Scope<'_>) -> bool {
    let among = |node: NodeId| scope.region().is_none_or(|nodes| nodes.binary_search(&node).is_ok());
    let device = mover.transaction.state().device_beside(request, among);
    device.is_some_and(|(node, gpu)| mover.transaction.take(instance, node, gpu).is_ok())
}

/// Draws fillers for the vacancy of a slotted node out of pool nodes of its pool, the least busy first.
pub(super) fn fill_vacancy(mover: &mut Mover<'_, '_>, node: NodeId) {
    let pool = mover.transaction.cluster().node(node).pool();
    let capacity = mover.transaction.state().pool(pool).capacity();
    if mover.transaction.state().pool(pool).pool_sizes() == 0 {
        return;
    }
    let held = mover.transaction.cluster().node(node);
    if Shape::of(capacity, held.composition()).open_vacancy() == 0 {
        return;
    }
    let mut patience = PATIENCE;
    for ones in 1..=capacity {
        if mover.transaction.state().pool(pool).pool_sizes() >> ones & 1 == 0 {
            continue;
        }
        let mut from = 0;
        while let Some(donor) = mover.transaction.state().pool(pool).pools_with(ones).next(from) {
            let held = mover.transaction.cluster().node(node);
            let shape = Shape::of(capacity, held.composition());
            if shape.kind != Kind::Slotted || shape.open_vacancy() == 0 {
                return;
            }
            let donor_node = mover.transaction.state().pool(pool).node_at(donor);
            if mover.move_a_one(donor_node, node) {
                // The donor has one less now: it is at hand again as long as it has any.
                if ones > 1 {
                    drain_into(mover, donor_node, node);
                }
            } else {
                // A donor on which nothing may move has not been asked.
                patience -= usize::from(has_movable(mover, donor_node));
                if mover.short_of_budget || patience == 0 {
                    return;
                }
            }
            from = donor + 1;
        }
    }
}

/// Moves 1-GPU instances from a pool node to a slotted node while it has an open vacancy.
fn drain_into(mover: &mut Mover<'_, '_>, donor: NodeId, node: NodeId) {
    loop {
        let held = mover.transaction.cluster().node(node);
        let open = Shape::of(held.capacity(), held.composition()).open_vacancy();
        if open == 0 || !mover.move_a_one(donor, node) {
            return;
        }
    }
}

/// A node that takes no instance alone, but `least` to `most` of them at once inside Σ.
#[derive(Clone, Copy, Debug)]
struct Jump {
    least: u32,
    most: u32,
    node: NodeId,
}

/// All jumps of the scope, those of least need first.
fn jumps(mover: &Mover<'_, '_>, request: &Request, scope: &Scope<'_>, wanted: u32) -> Vec<Jump> {
    let state = mover.transaction.state();
    let mut jumps = Vec::new();
    let mut consider = |id: NodeId| {
        let node = state.cluster().node(id);
        if !state.cluster().admits(id, request) || steps(state, id, request) > 0 {
            return;
        }
        let limit = by_cpu_and_memory(state, id, request).min(wanted);
        let mut composition = node.composition();
        let mut jump: Option<Jump> = None;
        for n in 1..=limit {
            match composition.with(request.gpus) {
                Some(next) if next.busy() <= node.capacity() => composition = next,
                _ => break,
            }
            if Shape::of(node.capacity(), composition).in_space() {
                let least = jump.map_or(n, |jump| jump.least);
                jump = Some(Jump { least, most: n, node: id });
            }
        }
        jumps.extend(jump);
    };
    if request.gpus < 2 {
        // An instance of one GPU brings no node into Σ.
    } else if let Some(nodes) = scope.region() {
        nodes.iter().copied().for_each(&mut consider);
    } else {
        for &pool in scope.pools() {
            let pool = state.pool(pool);
            let width = slot_width(request.gpus, pool.capacity());
            if width == request.gpus {
                // Without a vacancy of their own they bring no node into Σ.
                continue;
            }
            let most = pool.capacity() / width * (width - request.gpus);
            let sets = (1..=most).map(|ones| pool.pools_with(ones)).chain([pool.outside()]);
            sets.flat_map(|set| set.iter()).for_each(|position| consider(pool.node_at(position)));
        }
    }
    jumps.sort_by_key(|jump| (jump.least, std::cmp::Reverse(jump.most), jump.node));
    jumps
}

fn take_jump(mover: &mut Mover<'_, '_>, instances: &[InstanceId], node: NodeId) -> bool {
    instances.iter().all(|&instance| mover.transaction.take_lowest(instance, node).is_ok())
}

/// Places the rest of a gang, after its steps, on jumps.
fn finish_by_jumps(mover: &mut Mover<'_, '_>, rest: &[InstanceId], request: &Request, scope: &Scope<'_>) -> bool {
    let mut rest = rest;
    for jump in jumps(mover, request, scope, rest.len() as u32) {
        let n = rest.len().min(jump.most as usize);
        if rest.is_empty() || n < jump.least as usize {
            continue;
        }
        if !take_jump(mover, &rest[..n], jump.node) {
            return false;
        }
        rest = &rest[n..];
    }
    rest.is_empty()
}

/// The other order: a choice of jumps that makes the sum come out, then steps. Exact without moves: the jumps are chosen
/// by dynamic programming for the least total of `least` at each total of `most`.
fn jumps_first(mover: &mut Mover<'_, '_>, instances: &[InstanceId], request: &Request, scope: &Scope<'_>) -> bool {
    let wanted = instances.len();
    let jumps = jumps(mover, request, scope, wanted as u32);
    if jumps.is_empty() {
        return false;
    }
    // The sums below count what stands now; what fillers drawn on the way leave free comes on top.
    let state = mover.transaction.state();
    let by_steps: u64 = match scope.region() {
        Some(nodes) => nodes.iter().map(|&node| u64::from(steps(state, node, request))).sum(),
        None => {
            let nodes = scope.pools().iter().flat_map(|&pool| state.pool(pool).nodes());
            nodes.map(|&node| u64::from(steps(state, node, request))).sum()
        }
    };
    let missing = (wanted as u64).saturating_sub(by_steps) as usize;
    let Some(chosen) = cheapest_jumps(&jumps, missing, wanted) else { return false };
    let mut rest = instances;
    let mut spare = Vec::new();
    for jump in chosen {
        let (now, later) = rest.split_at(jump.least as usize);
        if !take_jump(mover, now, jump.node) {
            return false;
        }
        rest = later;
        spare.push((jump.node, jump.most - jump.least));
    }
    let placed = step_by_step(mover, rest, request, scope);
    rest = &rest[placed..];
    for (node, spare) in spare {
        let n = rest.len().min(spare as usize);
        if !take_jump(mover, &rest[..n], node) {
            return false;
        }
        rest = &rest[n..];
    }
    rest.is_empty()
}

/// Jumps that take at least `missing` instances together and need at most `wanted`; those that need the fewest.
///
/// There are few kinds of jumps, so copies of one kind are tried in powers of two: a table of kinds times the logarithm
/// of their number, times `missing`. Beyond a size that no cluster here reaches the kind of best ratio is taken alone.
fn cheapest_jumps(jumps: &[Jump], missing: usize, wanted: usize) -> Option<Vec<Jump>> {
    const MOST_CELLS: usize = 1 << 26;
    let mut kinds: std::collections::BTreeMap<(u32, u32), Vec<Jump>> = std::collections::BTreeMap::new();
    for &jump in jumps {
        kinds.entry((jump.least, jump.most)).or_default().push(jump);
    }
    // Of many alike, no more are of use than it takes to reach `missing`.
    for (&(_, most), alike) in &mut kinds {
        alike.truncate(missing.div_ceil(most as usize).max(1));
    }
    if kinds.len() > 1
        && kinds.values().map(|alike| alike.len().ilog2() as usize + 1).sum::<usize>() * missing > MOST_CELLS
    {
        let ratio = |kind: &(u32, u32)| (kind.0 * 256 / kind.1, *kind);
        let best = kinds.keys().copied().min_by_key(ratio);
        kinds.retain(|kind, _| Some(*kind) == best);
    }
    if kinds.len() == 1 {
        let alike = kinds.into_values().next()?;
        let enough = alike.len() * alike[0].most as usize >= missing;
        return (enough && alike.len() * alike[0].least as usize <= wanted).then_some(alike);
    }
    // Copies in groups of 1, 2, 4, …, and the rest: any number of copies is a sum of some of them.
    let mut groups: Vec<&[Jump]> = Vec::new();
    for alike in kinds.values() {
        let (mut rest, mut size) = (&alike[..], 1);
        while !rest.is_empty() {
            let (group, left) = rest.split_at(size.min(rest.len()));
            groups.push(group);
            (rest, size) = (left, size * 2);
        }
    }
    // Cell m of row i: the smallest sum of `least` of the first i groups whose sum of `most` is at least m.
    let mut table = vec![u32::MAX; missing + 1];
    table[0] = 0;
    let sum = |group: &[Jump], of: fn(&Jump) -> u32| group.iter().map(of).sum::<u32>();
    for (row, group) in groups.iter().enumerate() {
        let (least, most) = (sum(group, |jump| jump.least), sum(group, |jump| jump.most) as usize);
        let start = row * (missing + 1);
        for m in 0..=missing {
            let without = table[start + m];
            let with = if m == 0 { u32::MAX } else { table[start + m.saturating_sub(most)].saturating_add(least) };
            table.push(without.min(with));
        }
    }
    let last = groups.len() * (missing + 1);
    if table[last + missing] as usize > wanted {
        return None;
    }
    let (mut chosen, mut m) = (Vec::new(), missing);
    for (row, group) in groups.iter().enumerate().rev() {
        if table[row * (missing + 1) + m] != table[(row + 1) * (missing + 1) + m] {
            chosen.extend_from_slice(group);
            m = m.saturating_sub(sum(group, |jump| jump.most) as usize);
        }
    }
    Some(chosen)
}

fn cpu_only_room(mover: &Mover<'_, '_>, node: NodeId, request: &Request) -> u32 {
    let state = mover.transaction.state();
    if state.cluster().admits(node, request) { by_cpu_and_memory(state, node, request) } else { 0 }
}

/// CPU-only instances go to the lowest nodes that can take them: Σ knows nothing of them.
fn place_cpu_only(
    mover: &mut Mover<'_, '_>,
    instances: &[InstanceId],
    request: &Request,
    region: Option<&[NodeId]>,
) -> bool {
    let start = mover.checkpoint();
    let all: Vec<NodeId>;
    let nodes = match region {
        Some(nodes) => nodes,
        None => {
            all = mover.transaction.cluster().node_ids().collect();
            &all
        }
    };
    let mut rest = instances;
    for &node in nodes {
        if rest.is_empty() {
            break;
        }
        let n = (cpu_only_room(mover, node, request) as usize).min(rest.len());
        for &instance in &rest[..n] {
            if mover.transaction.take(instance, node, 0).is_err() {
                mover.rollback(start);
                return false;
            }
        }
        rest = &rest[n..];
    }
    if !rest.is_empty() {
        mover.rollback(start);
    }
    rest.is_empty()
}
