//! Shares of a candidate: which devices they may have, and how much of each the candidate's own have taken.

use super::{BatchBuilder, Place};
use crate::cluster::{Cluster, GpuMask, NodeId, WHOLE_GPU, gpu_indices};

/// Thousandths of a device that shares of the candidate have taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    node: NodeId,
    gpu: u8,
    milli: u16,
}

impl BatchBuilder {
    /// Puts a share of the candidate on the device that it names, or on the one that is best. A device that other shares lie
    /// on is as good as free as long as enough of it is left; the first share of a free device takes it. False if the
    /// device that is named, or every device, has too little left.
    pub(super) fn arrive_beside(&mut self, cluster: &Cluster, place: Place, gpu_milli: u16) -> bool {
        let node = cluster.node(place.node);
        let load = self.load(place.node);
        let open = (node.free() | load.freed) & !load.taken;
        let wanted = place.gpus.unwrap_or(GpuMask::MAX);
        let beside =
            self.left_beside(cluster, place.node).filter(|&(gpu, left)| wanted >> gpu & 1 == 1 && left >= gpu_milli);
        let gpu = match beside.map(|(gpu, left)| (left, gpu)).min() {
            Some((_, gpu)) => gpu,
            None if wanted & open == 0 => return false,
            None => (wanted & open).trailing_zeros() as u8,
        };
        self.shares.push(Given { node: place.node, gpu, milli: gpu_milli });
        // Opened by this share, if it is the first of all.
        open >> gpu & 1 == 0 || self.take(cluster, place.node, 1 << gpu)
    }

    /// The devices of a node that shares lie on, those of the candidate included, and what is left of each.
    fn left_beside(&self, cluster: &Cluster, id: NodeId) -> impl Iterator<Item = (u8, u16)> + '_ {
        let given = move |gpu: u8| self.shares.iter().filter(move |given| given.node == id && given.gpu == gpu);
        let opened = self.shares.iter().filter(|given| given.node == id).fold(0, |mask, given| mask | 1 << given.gpu);
        let before = cluster.gpu_milli_left(id);
        gpu_indices(cluster.node(id).shared() | opened).map(move |gpu| {
            // A device that a move has freed was held whole, and has all of it left.
            let all = if before[usize::from(gpu)] == 0 && opened >> gpu & 1 == 1 {
                WHOLE_GPU
            } else {
                before[usize::from(gpu)]
            };
            (gpu, all.saturating_sub(given(gpu).map(|given| given.milli).sum()))
        })
    }
}
