//! GPU packing: devices in use before free devices, nodes in use before empty nodes, as AntMan packs them (Xiao et al.,
//! *AntMan: Dynamic Scaling on GPU Clusters for Deep Learning*, OSDI 2020), in the form of FGD's simulator.
//!
//! Of devices in use the fullest, of nodes in use the one that opens the fewest devices, of empty nodes the smallest. All
//! nodes are alike to a CPU-only instance.

use super::score::Node;
use crate::cluster::{GpuMask, gpu_indices};

/// A tier in the high half, the place within it in the low: the less, the better.
pub(super) fn exact(node: &Node<'_>, gpus: GpuMask) -> i64 {
    let (tier, place) = match kind(node, gpus) {
        Kind::CpuOnly => (0, 0),
        Kind::Used => (0, gpu_indices(gpus).map(|gpu| i64::from(node.left.gpu_milli[usize::from(gpu)])).sum()),
        Kind::Opens(devices) => (1, i64::from(devices)),
        Kind::Empty => (2, i64::from(node.capacity)),
    };
    tier << 32 | place
}

/// The score of the simulator, 0 to 100: higher is better.
pub(super) fn peer(node: &Node<'_>, gpus: GpuMask) -> i64 {
    match kind(node, gpus) {
        Kind::CpuOnly => 0,
        Kind::Used => {
            let per_cent = |gpu| i64::from(node.left.gpu_milli[usize::from(gpu)]) * 100 / 1000;
            (100 - gpu_indices(gpus).map(per_cent).sum::<i64>() / 10).max(50)
        }
        Kind::Opens(devices) => (50 - i64::from(devices)).max(33),
        Kind::Empty => (33 - i64::from(node.capacity)).max(i64::from(node.capacity)),
    }
}

/// What a placement uses.
enum Kind {
    /// No device.
    CpuOnly,
    /// Only devices in use.
    Used,
    /// So many free devices of a node in use.
    Opens(u32),
    /// An empty node.
    Empty,
}

fn kind(node: &Node<'_>, gpus: GpuMask) -> Kind {
    if node.ask.gpus == 0 {
        return Kind::CpuOnly;
    }
    if node.free.count_ones() == u32::from(node.capacity) {
        return Kind::Empty;
    }
    match (gpus & node.free).count_ones() {
        0 => Kind::Used,
        devices => Kind::Opens(devices),
    }
}
