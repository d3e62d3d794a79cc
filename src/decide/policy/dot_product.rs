//! Dot product: the node whose free CPU and GPUs are least aligned with what is asked (Grandl et al., *Multi-resource
//! Packing for Cluster Schedulers*, SIGCOMM 2014, who take the most aligned; FGD's simulator, whose policy of this name
//! this is, takes the least, that is the fullest for what is asked).
//!
//! CPU and GPUs are made comparable by a node of 128 cores and 8 GPUs, the largest of the trace that the simulator plays.
//! Nodes without a limit of CPU count as if none were left. Memory is not looked at.

use super::score::{GPU_MILLI, MILLI_CORES, Node};

/// Milli-cores that weigh as much as a milli-GPU.
const CORES_A_GPU: i64 = 16;

/// The dot product, in units of (milli-core)²: the less, the better.
pub(super) fn exact(node: &Node<'_>) -> i64 {
    let cpu = i64::from(node.cpu_left()) * i64::from(node.ask.cpu_milli);
    let gpus = i64::from(node.left.idle()) * i64::from(node.asked_milli());
    cpu + gpus * CORES_A_GPU * CORES_A_GPU
}

/// The score of FGD's simulator, 0 to 100: higher is better.
pub(super) fn peer(node: &Node<'_>) -> i64 {
    let cpu = (f64::from(node.cpu_left()) / MILLI_CORES) * (f64::from(node.ask.cpu_milli) / MILLI_CORES);
    let gpus = (f64::from(node.left.idle()) / GPU_MILLI) * (f64::from(node.asked_milli()) / GPU_MILLI);
    (100.0 * (1.0 - (cpu + gpus) / 2.0)) as i64
}
