//! What a census counts. Words only, so that a device adds them up as they are.

use bytemuck::{Pod, Zeroable};

use super::abi::{NodeAttributes, NodeBits, PackedState};
use crate::anchor::Outside;
use crate::cluster::{MAX_GPUS, N_COMPOSITIONS};

/// The counts of one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PoolCensus {
    /// All nodes.
    pub nodes: u32,
    /// Nodes that take no new instances.
    pub unschedulable: u32,
    /// Nodes of which no device is held; those without a working device among them.
    pub empty: u32,
    /// Nodes of which some but not all working devices are held.
    pub partial: u32,
    /// Nodes of which all working devices are held.
    pub full: u32,
    /// Nodes outside Σ whose slots are too wide together.
    pub slots_overflow: u32,
    /// Nodes outside Σ with more 1-GPU instances than vacancy.
    pub no_vacancy: u32,
    /// Nodes by the number of free GPUs.
    pub by_free: [u32; MAX_GPUS + 1],
}

impl PoolCensus {
    /// Free GPUs.
    pub fn free_gpus(&self) -> u64 {
        self.by_free.iter().enumerate().map(|(free, &nodes)| free as u64 * u64::from(nodes)).sum()
    }

    /// Nodes outside Σ.
    pub fn outside(&self) -> u32 {
        self.slots_overflow + self.no_vacancy
    }

    /// The counts of two disjoint sets of nodes together.
    pub fn add(&mut self, other: &Self) {
        let words: &mut [u32; 24] = bytemuck::cast_mut(self);
        let others: &[u32; 24] = bytemuck::cast_ref(other);
        words.iter_mut().zip(others).for_each(|(word, other)| *word += other);
    }
}

/// The counts of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// By pool.
    pub pools: Vec<PoolCensus>,
    /// Nodes by the number of their composition, all pools together.
    pub compositions: Vec<u32>,
}

impl Census {
    /// All counts zero.
    pub fn reset(&mut self, pools: usize) {
        self.pools.clear();
        self.pools.resize(pools, PoolCensus::default());
        self.compositions.clear();
        self.compositions.resize(N_COMPOSITIONS, 0);
    }

    /// Counts one node more.
    pub fn count(&mut self, node: &NodeBits, attributes: &NodeAttributes) {
        self.compositions[usize::from(attributes.composition)] += 1;
        let pool = &mut self.pools[attributes.pool as usize];
        pool.nodes += 1;
        pool.unschedulable += u32::from(attributes.flags & NodeAttributes::SCHEDULABLE == 0);
        pool.by_free[node.free.count_ones() as usize] += 1;
        // A node without a working device is full: it has no room.
        if !node.state.is(PackedState::NOT_FULL) {
            pool.full += 1;
        } else if node.state.is(PackedState::NOT_EMPTY) {
            pool.partial += 1;
        } else {
            pool.empty += 1;
        }
        match node.state.outside() {
            Some(Outside::SlotsOverflow) => pool.slots_overflow += 1,
            Some(Outside::NoVacancy) => pool.no_vacancy += 1,
            None => {}
        }
    }

    /// All pools together.
    pub fn total(&self) -> PoolCensus {
        let mut total = PoolCensus::default();
        self.pools.iter().for_each(|pool| total.add(pool));
        total
    }

    /// The counts of two disjoint sets of nodes together.
    pub fn add(&mut self, other: &Self) {
        self.pools.iter_mut().zip(&other.pools).for_each(|(pool, other)| pool.add(other));
        self.compositions.iter_mut().zip(&other.compositions).for_each(|(count, other)| *count += other);
    }
}
