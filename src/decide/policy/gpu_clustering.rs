//! GPU clustering: instances of one kind (shares, or so many whole GPUs) on nodes of their own, as Gandiva places them (Xiao
//! et al., *Gandiva: Introspective Cluster Scheduling for Deep Learning*, OSDI 2018), in the form of FGD's simulator.
//!
//! First nodes that hold instances of this kind alone, then those that hold others too, then empty ones, then those that
//! hold others alone; among these the one with the least GPU left. All nodes are alike to a CPU-only instance.

use super::score::Node;
use crate::cluster::WHOLE_GPU;

/// A tier in the high half, milli-GPU left in the low: the less, the better.
pub(super) fn exact(node: &Node<'_>) -> i64 {
    match tier(node) {
        None => 0,
        Some(tier) => (tier as i64) << 32 | i64::from(node.left.idle()),
    }
}

/// The score of the simulator, 0 to 100: higher is better. Nodes are taken to have 8 GPUs.
pub(super) fn peer(node: &Node<'_>) -> i64 {
    const FULL: i64 = 8 * WHOLE_GPU as i64;
    let base = 25 * (FULL - i64::from(node.left.idle())) / FULL;
    tier(node).map_or(0, |tier| base + [75, 50, 25, 0][tier as usize])
}

/// How a node's instances compare with the one that comes.
#[derive(Clone, Copy)]
enum Tier {
    Alike,
    Mixed,
    Empty,
    Others,
}

fn tier(node: &Node<'_>) -> Option<Tier> {
    let gpus = node.ask.gpus;
    if gpus == 0 {
        return None;
    }
    let whole_ones = u32::from(node.composition.count(1)) - node.shared.count_ones();
    let shares = node.shared != 0;
    let holds = |size: u8| if size == 1 { whole_ones > 0 } else { node.composition.count(size) > 0 };
    let alike = if node.ask.is_share() { shares } else { holds(gpus) };
    let kinds = u32::from(shares) + (1..=node.capacity).map(|size| u32::from(holds(size))).sum::<u32>();
    Some(match (alike, kinds) {
        (true, 1) => Tier::Alike,
        (true, _) => Tier::Mixed,
        (false, 0) => Tier::Empty,
        (false, _) => Tier::Others,
    })
}
