//! The devices that shares lie on, by how much of them is left.

use std::collections::BTreeSet;

use super::state::State;
use crate::cluster::{Cluster, GpuMask, NodeId, Request, WHOLE_GPU};

/// The shared devices of schedulable nodes: thousandths that are left, node, device.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedDevices {
    by_left: BTreeSet<(u16, NodeId, u8)>,
    left: u64,
}

impl SharedDevices {
    /// All of a node.
    pub(super) fn enter(&mut self, cluster: &Cluster, node: NodeId) {
        for (gpu, left) in cluster.shared_left(node) {
            self.change(node, gpu, None, Some(left));
        }
    }

    /// A device of a schedulable node had so much left, and has so much now; `None` where it is not shared.
    pub(super) fn change(&mut self, node: NodeId, gpu: u8, before: Option<u16>, after: Option<u16>) {
        if let Some(before) = before {
            self.by_left.remove(&(before, node, gpu));
            self.left -= u64::from(before);
        }
        if let Some(after) = after {
            self.by_left.insert((after, node, gpu));
            self.left += u64::from(after);
        }
    }
}

impl State {
    /// Thousandths of GPUs that are left on schedulable nodes, of devices that are free and of those that are shared.
    pub fn free_gpu_milli(&self) -> u64 {
        self.free_gpus() * u64::from(WHOLE_GPU) + self.shared.left
    }

    /// The shared devices of schedulable nodes that have at least so much left, those that have the least first, then by
    /// node and device; and what is left of each.
    pub fn shared_devices(&self, gpu_milli: u16) -> impl Iterator<Item = (NodeId, u8, u16)> + '_ {
        self.shared.by_left.range((gpu_milli, NodeId(0), 0)..).map(|&(left, node, gpu)| (node, gpu, left))
    }

    /// The device for a share beside other shares: of the nodes that can take the request, and of which `among` is true,
    /// the device of which the least is left that is enough. Every policy looks here before it opens a free device.
    pub fn device_beside(&self, request: &Request, among: impl Fn(NodeId) -> bool) -> Option<(NodeId, GpuMask)> {
        if !request.is_share() {
            return None;
        }
        let cluster = self.cluster();
        let can = |node| cluster.admits(node, request) && cluster.has_cpu_and_memory(node, request) && among(node);
        self.shared_devices(request.gpu_milli).find(|&(node, ..)| can(node)).map(|(node, gpu, _)| (node, 1 << gpu))
    }
}
