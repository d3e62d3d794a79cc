//! Shares: several instances on one device, each of which asks for some of its thousandths. The device counts as one busy
//! instance of one GPU, from the first share to the last; how much of it is left is kept beside the bitmap, and only for
//! nodes that have shares.

use rustc_hash::FxHashMap;

use super::capacity::MAX_GPUS;
use super::ids::{JobId, NodeId};
use super::ledger::{Cluster, Instance};
use super::node::{GpuMask, Node, gpu_indices};
use super::request::WHOLE_GPU;

impl Cluster {
    /// The thousandths that are left of each device of a node: all of a free one, none of one that an instance holds
    /// whole, that is broken or not there.
    pub fn gpu_milli_left(&self, node: NodeId) -> [u16; MAX_GPUS] {
        let mut left = [0; MAX_GPUS];
        gpu_indices(self.node(node).free()).for_each(|gpu| left[usize::from(gpu)] = WHOLE_GPU);
        for (gpu, milli) in self.shared_left(node) {
            left[usize::from(gpu)] = milli;
        }
        left
    }

    /// The devices of a node that shares lie on, ascending, and the thousandths that are left of each.
    pub fn shared_left(&self, node: NodeId) -> impl Iterator<Item = (u8, u16)> + '_ {
        let shared = self.node(node).shared;
        let used = if shared == 0 { None } else { self.shares.get(&node) };
        let left = move |gpu: u8| used.map_or(0, |used| WHOLE_GPU - used[usize::from(gpu)]);
        gpu_indices(shared).map(move |gpu| (gpu, left(gpu)))
    }

    /// The device of a node for a share of so many thousandths: of those that have enough left the one that has the least,
    /// the lowest of equal ones. So a device that is shared comes before one that is free.
    pub fn device_for_share(&self, node: NodeId, gpu_milli: u16) -> Option<GpuMask> {
        let able = self.shared_left(node).filter(|&(_, left)| left >= gpu_milli);
        let shared = able.min_by_key(|&(gpu, left)| (left, gpu)).map(|(gpu, _)| 1 << gpu);
        let free = self.node(node).free();
        shared.or((free != 0).then_some(free & free.wrapping_neg()))
    }

    /// How many shares of so many thousandths the devices of a node can take that are shared already.
    pub fn room_on_shared(&self, node: NodeId, gpu_milli: u16) -> u32 {
        self.shared_left(node).map(|(_, left)| u32::from(left / gpu_milli)).sum()
    }

    /// A job that holds a device, whole or a share of it. O(instances) where it is shared.
    pub(super) fn holder(&self, node: NodeId, gpu: u8) -> Option<JobId> {
        let owner = self.owner(node, gpu).map(|owner| self.instance(owner));
        let share = || {
            let here = |one: &&Instance| one.node() == Some(node) && one.gpus() >> gpu & 1 == 1;
            self.instances.iter().find(here)
        };
        owner.or_else(share).map(|instance| instance.job())
    }

    /// Whether a device is shared and has so much left.
    pub(super) fn has_left(&self, node: NodeId, gpu: GpuMask, gpu_milli: u16) -> bool {
        self.shared_left(node).any(|(shared, left)| gpu == 1 << shared && left >= gpu_milli)
    }
}

/// A share of a device comes or goes. True if the device becomes or ceases to be shared by that.
pub(super) fn step(
    shares: &mut FxHashMap<NodeId, [u16; MAX_GPUS]>,
    node: &mut Node,
    id: NodeId,
    gpu: GpuMask,
    gpu_milli: u16,
    comes: bool,
) -> bool {
    let used = &mut shares.entry(id).or_default()[gpu.trailing_zeros() as usize];
    let others = if comes { *used } else { *used - gpu_milli };
    *used = if comes { others + gpu_milli } else { others };
    debug_assert!(*used <= WHOLE_GPU, "shares of {gpu:#b} on {id:?} hold {used} thousandths");
    if *used == 0 {
        node.shared &= !gpu;
    } else {
        node.shared |= gpu;
    }
    if node.shared == 0 {
        shares.remove(&id);
    }
    others == 0
}
