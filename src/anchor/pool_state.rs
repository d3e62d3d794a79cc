//! One pool as decisions see it: its nodes sorted by free GPUs and by shape, and its fragmentation.

use super::shape::{Kind, Shape};
use crate::cluster::{Composition, MAX_GPUS, NodeId, NodeSet, PerSize, Pool};
use crate::fragmentation::PoolFragmentation;

/// The nodes of one pool, indexed. Members of its sets are positions within the pool, which ascend with node numbers.
#[derive(Clone, Debug)]
pub struct PoolState {
    pool: Pool,
    nodes: Vec<NodeId>,
    n_schedulable: u32,
    fragmentation: PoolFragmentation,
    n_partial: u64,
    n_outside: u64,
    by_free: PerSize<NodeSet>,
    empty: NodeSet,
    pools_by_busy: PerSize<NodeSet>,
    slotted_by_room: PerSize<NodeSet>,
    open_vacancy: NodeSet,
    outside: NodeSet,
}

impl PoolState {
    pub(super) fn new(pool: Pool, nodes: Vec<NodeId>) -> Self {
        let set = NodeSet::new(nodes.len() as u32);
        let sets = || std::array::from_fn(|_| set.clone());
        Self {
            pool,
            n_schedulable: 0,
            fragmentation: PoolFragmentation::new(pool.capacity),
            n_partial: 0,
            n_outside: 0,
            by_free: sets(),
            empty: set.clone(),
            pools_by_busy: sets(),
            slotted_by_room: sets(),
            open_vacancy: set.clone(),
            outside: set.clone(),
            nodes,
        }
    }

    /// Its capacity and model.
    pub fn pool(&self) -> Pool {
        self.pool
    }

    /// Working GPUs a node.
    pub fn capacity(&self) -> u8 {
        self.pool.capacity
    }

    /// Its nodes, ascending.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// The number of its schedulable nodes.
    pub fn n_schedulable(&self) -> u32 {
        self.n_schedulable
    }

    /// Nodes with some but not all GPUs busy.
    pub fn n_partial(&self) -> u64 {
        self.n_partial
    }

    /// Nodes outside Σ.
    pub fn n_outside(&self) -> u64 {
        self.n_outside
    }

    /// What runs here, and Φ*.
    pub fn fragmentation(&self) -> &PoolFragmentation {
        &self.fragmentation
    }

    /// What runs here, and Φ*, which may have to be worked out.
    pub fn fragmentation_mut(&mut self) -> &mut PoolFragmentation {
        &mut self.fragmentation
    }

    /// The node at a position.
    pub fn node_at(&self, position: u32) -> NodeId {
        self.nodes[position as usize]
    }

    /// Schedulable nodes with exactly this many free GPUs.
    pub fn with_free(&self, gpus: u8) -> &NodeSet {
        &self.by_free[usize::from(gpus)]
    }

    /// Schedulable nodes that hold nothing.
    pub fn empty(&self) -> &NodeSet {
        &self.empty
    }

    /// Schedulable nodes that hold exactly this many 1-GPU instances and nothing else.
    pub fn pools_with(&self, ones: u8) -> &NodeSet {
        &self.pools_by_busy[usize::from(ones)]
    }

    /// Schedulable slotted nodes of Σ with exactly this unprofiled room.
    pub fn slotted_with_room(&self, room: u8) -> &NodeSet {
        &self.slotted_by_room[usize::from(room)]
    }

    /// Schedulable slotted nodes of Σ with a vacancy that no filler holds.
    pub fn open_vacancy(&self) -> &NodeSet {
        &self.open_vacancy
    }

    /// Schedulable nodes outside Σ.
    pub fn outside(&self) -> &NodeSet {
        &self.outside
    }

    /// Enters a node that holds `composition`. Its instances are not counted here.
    pub(super) fn enter(&mut self, position: u32, composition: Composition, schedulable: bool) {
        self.n_schedulable += u32::from(schedulable);
        self.count(composition, 1);
        if schedulable {
            self.sort_in(position, composition);
        }
    }

    /// A node changed what it holds.
    pub(super) fn change(&mut self, position: u32, from: Composition, to: Composition, schedulable: bool) {
        self.count(from, -1);
        self.count(to, 1);
        if schedulable {
            self.sort_out(position, from);
            self.sort_in(position, to);
        }
    }

    fn count(&mut self, composition: Composition, by: i64) {
        let busy = composition.busy();
        if busy > 0 && busy < self.pool.capacity {
            self.n_partial = self.n_partial.wrapping_add_signed(by);
        }
        if !Shape::of(self.pool.capacity, composition).in_space() {
            self.n_outside = self.n_outside.wrapping_add_signed(by);
        }
    }

    fn sort_in(&mut self, position: u32, composition: Composition) {
        self.by_free[usize::from(self.pool.capacity - composition.busy())].insert(position);
        let shape = Shape::of(self.pool.capacity, composition);
        self.set_of(shape).insert(position);
        if shape.kind == Kind::Slotted && shape.open_vacancy() > 0 {
            self.open_vacancy.insert(position);
        }
    }

    fn sort_out(&mut self, position: u32, composition: Composition) {
        self.by_free[usize::from(self.pool.capacity - composition.busy())].remove(position);
        let shape = Shape::of(self.pool.capacity, composition);
        self.set_of(shape).remove(position);
        if shape.kind == Kind::Slotted && shape.open_vacancy() > 0 {
            self.open_vacancy.remove(position);
        }
    }

    fn set_of(&mut self, shape: Shape) -> &mut NodeSet {
        match shape.kind {
            Kind::Empty => &mut self.empty,
            Kind::Pool => &mut self.pools_by_busy[usize::from(shape.ones)],
            Kind::Slotted => &mut self.slotted_by_room[usize::from(shape.room)],
            Kind::Outside(_) => &mut self.outside,
        }
    }

    /// The most instances of `gpus` (at least 1) that fit on the schedulable nodes as they are, GPUs alone.
    pub fn max_instances(&self, gpus: u8) -> u64 {
        (gpus..=MAX_GPUS as u8).map(|free| u64::from(free / gpus) * u64::from(self.with_free(free).len())).sum()
    }
}
