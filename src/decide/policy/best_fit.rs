//! Best-fit: the node with the fewest free GPUs that still fits, ties to the lowest number.
//!
//! The baseline of COMPASS-ABS (arXiv 2606.09200, §5), where it is called after the scheduler of its first trace; what
//! Kubernetes knows as `MostAllocated`. Of domains or racks it takes the one with the fewest free GPUs that holds the
//! whole gang, and opens an intact one, of which nobody uses anything yet, only if no other holds it. A CPU-only instance goes where the fewest GPUs are free, so that it takes CPU and memory from few.
//!
//! FGD's simulator has a policy of the same name, which looks at CPU too: `best-fit:peer`, kept to compare with.

use std::ops::RangeInclusive;

use super::Key;
use super::score::{GPU_MILLI, MILLI_CORES, Node};
use crate::cluster::MAX_GPUS;

pub(super) fn key(free: u64, number: u32) -> Key {
    (free, number)
}

pub(super) fn levels(step: u8, gpus: u8) -> Option<RangeInclusive<u8>> {
    let level = gpus + step;
    (usize::from(level) <= MAX_GPUS).then_some(level..=level)
}

/// The score of FGD's simulator, 0 to 100: higher, the less is left of CPU and GPUs. It then stretches the scores of all
/// nodes that fit to 0..=100; only the best of them gets 100, so that the order does not change.
pub(super) fn peer(node: &Node<'_>) -> i64 {
    let cpu = f64::from(node.cpu_left() - node.ask.cpu_milli) / MILLI_CORES / 2.0;
    let gpus = f64::from(node.left.idle() - node.asked_milli()) / GPU_MILLI / 2.0;
    (100.0 * (1.0 - cpu - gpus)) as i64
}
