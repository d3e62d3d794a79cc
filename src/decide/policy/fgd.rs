//! FGD: the node, and of a node the device, on which the placement makes the fragment grow the least (Weng et al., *Beware of
//! Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent*, USENIX ATC 2023).
//!
//! The fragment is for what is typical: see [`crate::fragmentation::fgd`]. The paper places single pods; a gang is placed
//! instance after instance. A typical pod that asks for CPU alone counts all idle GPUs as fragment, as in the authors'
//! simulator.

use super::score::Node;
use crate::cluster::GpuMask;
use crate::fragmentation::fgd::{Typical, exact, peer};

/// By how much the fragment grows, and the devices.
pub(super) fn exact(node: &Node<'_>, typical: &Typical) -> Option<(i64, GpuMask)> {
    exact::growth(typical.pods(), typical.allowed(node.pool), &node.left, node.ask)
}

/// The score of the authors' simulator, 0 to 100, higher is better, and the devices.
pub(super) fn peer(node: &Node<'_>, typical: &Typical, popularity: &[f64]) -> Option<(i64, GpuMask)> {
    peer::best(typical.pods(), popularity, typical.allowed(node.pool), &node.left, node.ask)
}
