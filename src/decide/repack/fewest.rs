//! Everything that can move freely, onto the fewest nodes.

use super::free_nodes;
use super::pattern::pack;
use crate::anchor::Transaction;
use crate::cluster::{Composition, InstanceId, MAX_GPUS, NodeId, PerSize, PoolId};
use crate::fragmentation::PhiStar;
use crate::workload::Demand;

/// Repacks a pool if that frees a node. Of the packings onto the fewest nodes it takes the one that comes first by [`pack`];
/// each node then gets the composition, of those still to be given, that it already holds the most GPUs of, the best
/// pairs first.
pub(super) fn repack(transaction: &mut Transaction<'_>, pool: PoolId) {
    let nodes = free_nodes(transaction.state(), pool);
    let capacity = transaction.state().pool(pool).capacity();
    let holds = |transaction: &Transaction<'_>, node| transaction.cluster().node(node).composition();
    let held = nodes.iter().map(|&node| holds(transaction, node));
    let demand: Demand =
        held.flat_map(|held| (1..=capacity).map(move |size| (size, u64::from(held.count(size))))).collect();
    let mut oracle = PhiStar::new(capacity);
    if oracle.fewest_nodes(&demand) >= nodes.len() as u64 {
        return;
    }
    let packing = pack(capacity, &demand, &mut oracle);
    let compositions: Vec<Composition> = nodes.iter().map(|&node| holds(transaction, node)).collect();
    let targets = assign(&compositions, &packing);
    let start = transaction.checkpoint();
    if move_to(transaction, &nodes, &targets).is_none() {
        debug_assert!(false, "what moves freely did not fit");
        transaction.rollback(start);
    }
}

/// GPUs that two compositions have in common.
fn overlap(one: Composition, other: Composition) -> u8 {
    (1..=MAX_GPUS as u8).map(|size| size * one.count(size).min(other.count(size))).sum()
}

/// What each node is to hold.
fn assign(compositions: &[Composition], packing: &[(Composition, u64)]) -> Vec<Composition> {
    let mut left: Vec<u64> = packing.iter().map(|&(_, times)| times).collect();
    let mut pairs: Vec<(u8, usize, usize)> = Vec::with_capacity(compositions.len() * packing.len());
    for (node, &held) in compositions.iter().enumerate() {
        pairs.extend(packing.iter().enumerate().map(|(at, &(target, _))| (overlap(held, target), node, at)));
    }
    // A node that holds exactly what it is to hold comes before one that holds more than that.
    let surplus = |&(common, node, _): &(u8, usize, usize)| compositions[node].busy() - common;
    pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.0), surplus(pair), pair.1, pair.2));
    let mut targets = vec![None; compositions.len()];
    for (_, node, at) in pairs {
        if targets[node].is_none() && left[at] > 0 {
            left[at] -= 1;
            targets[node] = Some(packing[at].0);
        }
    }
    targets.into_iter().map(|target| target.unwrap_or(Composition::EMPTY)).collect()
}

/// Moves what is too much on a node to where it is too little.
fn move_to(transaction: &mut Transaction<'_>, nodes: &[NodeId], targets: &[Composition]) -> Option<()> {
    let mut afloat: PerSize<Vec<InstanceId>> = Default::default();
    for (&node, &target) in nodes.iter().zip(targets) {
        let mut kept = [0u8; MAX_GPUS + 1];
        let held: Vec<InstanceId> = transaction.cluster().instances_on(node).collect();
        for instance in held {
            let size = transaction.cluster().instance(instance).gpus().count_ones() as u8;
            if kept[usize::from(size)] < target.count(size) {
                kept[usize::from(size)] += 1;
            } else {
                transaction.free(instance).ok()?;
                afloat[usize::from(size)].push(instance);
            }
        }
    }
    for (&node, &target) in nodes.iter().zip(targets) {
        for size in (1..=MAX_GPUS as u8).rev() {
            let lacks = target.count(size) - transaction.cluster().node(node).composition().count(size);
            for _ in 0..lacks {
                transaction.take_lowest(afloat[usize::from(size)].pop()?, node).ok()?;
            }
        }
    }
    Some(())
}
