//! How full each node was at a moment.

use crate::cluster::Cluster;

/// The busy GPUs of each node at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// When, in seconds of the trace.
    pub at: u64,
    /// Busy GPUs by node, in the order of the cluster.
    pub busy: Vec<u8>,
}

impl Occupancy {
    /// Of a cluster as it stands.
    pub(super) fn of(cluster: &Cluster, at: u64) -> Self {
        Self { at, busy: cluster.nodes().iter().map(|node| node.composition().busy()).collect() }
    }
}
