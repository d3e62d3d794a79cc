//! One pool as decisions see it: its nodes sorted by free GPUs and by shape, and its fragmentation.

use super::shape::{Counted, Kind, N_CLASSES, Shape};
use crate::cluster::{Composition, MAX_GPUS, NodeId, NodeSet, PerSize, Pool};
use crate::fragmentation::PoolFragmentation;

/// The nodes of one pool, indexed. Members of its sets are positions within the pool, which ascend with node numbers.
#[derive(Clone, Debug)]
pub struct PoolState {
    pool: Pool,
    shapes: &'static [Shape],
    nodes: Vec<NodeId>,
    n_schedulable: u32,
    fragmentation: PoolFragmentation,
    n_partial: u64,
    n_outside: u64,
    /// The number of schedulable nodes by free GPUs.
    n_by_free: PerSize<u32>,
    /// Those nodes, once somebody asked for the index.
    by_free: Option<Box<PerSize<NodeSet>>>,
    /// Schedulable nodes by the class of their shape.
    by_class: [NodeSet; N_CLASSES],
    /// Which classes have a node.
    filled: u64,
    open_vacancy: NodeSet,
    /// Nodes whose set has room for a slot, and partial pool nodes: what the invariant allows one of.
    n_with_room: u32,
    n_partial_pools: u32,
}

impl PoolState {
    pub(super) fn new(pool: Pool, nodes: Vec<NodeId>) -> Self {
        let set = NodeSet::new(nodes.len() as u32);
        Self {
            pool,
            shapes: Shape::table(pool.capacity),
            n_schedulable: 0,
            fragmentation: PoolFragmentation::new(pool.capacity),
            n_partial: 0,
            n_outside: 0,
            n_by_free: [0; MAX_GPUS + 1],
            by_free: None,
            by_class: std::array::from_fn(|_| set.clone()),
            filled: 0,
            open_vacancy: set,
            n_with_room: 0,
            n_partial_pools: 0,
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

    /// The number of schedulable nodes with exactly this many free GPUs.
    pub fn n_with_free(&self, gpus: u8) -> u32 {
        self.n_by_free[usize::from(gpus)]
    }

    /// Schedulable nodes with exactly this many free GPUs; `None` without [`super::State::index_free_gpus`].
    pub fn with_free(&self, gpus: u8) -> Option<&NodeSet> {
        self.by_free.as_ref().map(|sets| &sets[usize::from(gpus)])
    }

    pub(super) fn index_free(&mut self, sets: PerSize<NodeSet>) {
        self.by_free = Some(Box::new(sets));
    }

    /// Schedulable nodes that hold nothing.
    pub fn empty(&self) -> &NodeSet {
        &self.by_class[usize::from(Shape::class_of(Kind::Empty, 0))]
    }

    /// Schedulable nodes that hold exactly this many 1-GPU instances and nothing else.
    pub fn pools_with(&self, ones: u8) -> &NodeSet {
        debug_assert!(ones > 0);
        &self.by_class[usize::from(Shape::class_of(Kind::Pool, ones))]
    }

    /// Which numbers of 1-GPU instances some schedulable pool node holds: bit n for n of them.
    pub fn pool_sizes(&self) -> u32 {
        (self.filled & 0x1_fffe) as u32
    }

    /// Schedulable slotted nodes of Σ with exactly this unprofiled room.
    pub fn slotted_with_room(&self, room: u8) -> &NodeSet {
        &self.by_class[usize::from(Shape::class_of(Kind::Slotted, room))]
    }

    /// Which amounts of unprofiled room some schedulable slotted node of Σ has: bit r for room r.
    pub fn slotted_rooms(&self) -> u32 {
        (self.filled >> Shape::class_of(Kind::Slotted, 0)) as u32 & 0x1_ffff
    }

    /// Schedulable slotted nodes of Σ with unprofiled room for a slot.
    pub fn n_with_room(&self) -> u32 {
        self.n_with_room
    }

    /// Schedulable pool nodes with a free GPU.
    pub fn n_partial_pools(&self) -> u32 {
        self.n_partial_pools
    }

    /// Whether the invariant holds for the schedulable nodes: none outside Σ, at most one slotted node with room, at
    /// most one partial pool node, no vacancy open while a pool node has an instance for it. O(1).
    pub fn is_compact(&self) -> bool {
        self.outside().is_empty()
            && self.n_with_room <= 1
            && self.n_partial_pools <= 1
            && (self.open_vacancy.is_empty() || self.pool_sizes() == 0)
    }

    /// Schedulable slotted nodes of Σ with a vacancy that no filler holds.
    pub fn open_vacancy(&self) -> &NodeSet {
        &self.open_vacancy
    }

    /// Schedulable nodes outside Σ.
    pub fn outside(&self) -> &NodeSet {
        &self.by_class[N_CLASSES - 1]
    }

    /// Enters a node that holds `composition`. Its instances are not counted here.
    pub(super) fn enter(&mut self, position: u32, composition: Composition, schedulable: bool) {
        let shape = self.shapes[usize::from(composition.number())];
        self.n_partial += u64::from(shape.is(Counted::PARTIAL));
        self.n_outside += u64::from(shape.is(Counted::OUTSIDE));
        if schedulable {
            self.uncordon(position, composition);
        }
    }

    /// A node that holds `composition` takes instances from now on. It was counted before.
    pub(super) fn uncordon(&mut self, position: u32, composition: Composition) {
        let shape = self.shapes[usize::from(composition.number())];
        let free = usize::from(self.pool.capacity - shape.busy);
        self.n_schedulable += 1;
        self.n_by_free[free] += 1;
        if let Some(sets) = &mut self.by_free {
            sets[free].insert(position);
        }
        self.n_with_room += u32::from(shape.is(Counted::WITH_ROOM));
        self.n_partial_pools += u32::from(shape.is(Counted::PARTIAL_POOL));
        self.by_class[usize::from(shape.class())].insert(position);
        self.filled |= 1 << shape.class();
        if shape.is(Counted::OPEN) {
            self.open_vacancy.insert(position);
        }
    }

    /// A schedulable node that holds `composition` takes no more instances. It stays counted.
    pub(super) fn cordon(&mut self, position: u32, composition: Composition) {
        let shape = self.shapes[usize::from(composition.number())];
        let free = usize::from(self.pool.capacity - shape.busy);
        self.n_schedulable -= 1;
        self.n_by_free[free] -= 1;
        if let Some(sets) = &mut self.by_free {
            sets[free].remove(position);
        }
        self.n_with_room -= u32::from(shape.is(Counted::WITH_ROOM));
        self.n_partial_pools -= u32::from(shape.is(Counted::PARTIAL_POOL));
        let class = &mut self.by_class[usize::from(shape.class())];
        class.remove(position);
        self.filled &= !(u64::from(class.is_empty()) << shape.class());
        if shape.is(Counted::OPEN) {
            self.open_vacancy.remove(position);
        }
    }

    /// A node holds one instance more, or one less, than before. Returns how many GPUs it has busy that were free; fewer
    /// than 0 if they became free.
    pub(super) fn change(&mut self, position: u32, from: Composition, to: Composition, schedulable: bool) -> i8 {
        let before = self.shapes[usize::from(from.number())];
        let after = self.shapes[usize::from(to.number())];
        if after.busy > before.busy {
            self.fragmentation.add(after.busy - before.busy, 1);
        } else {
            self.fragmentation.remove(before.busy - after.busy, 1);
        }
        let taken = after.busy as i8 - before.busy as i8;
        let moved = |counted: u8| i32::from(after.is(counted)) - i32::from(before.is(counted));
        let counts_differ = !before.counts_like(after);
        if counts_differ {
            self.n_partial = self.n_partial.wrapping_add_signed(moved(Counted::PARTIAL).into());
            self.n_outside = self.n_outside.wrapping_add_signed(moved(Counted::OUTSIDE).into());
        }
        if !schedulable {
            return taken;
        }
        let (had_free, has_free) = (self.pool.capacity - before.busy, self.pool.capacity - after.busy);
        self.n_by_free[usize::from(had_free)] -= 1;
        self.n_by_free[usize::from(has_free)] += 1;
        if let Some(sets) = &mut self.by_free {
            sets[usize::from(had_free)].remove(position);
            sets[usize::from(has_free)].insert(position);
        }
        if before.class() != after.class() {
            let old = &mut self.by_class[usize::from(before.class())];
            old.remove(position);
            self.filled &= !(u64::from(old.is_empty()) << before.class());
            self.by_class[usize::from(after.class())].insert(position);
            self.filled |= 1 << after.class();
        }
        if counts_differ {
            self.n_with_room = self.n_with_room.wrapping_add_signed(moved(Counted::WITH_ROOM));
            self.n_partial_pools = self.n_partial_pools.wrapping_add_signed(moved(Counted::PARTIAL_POOL));
            match moved(Counted::OPEN) {
                1 => self.open_vacancy.insert(position),
                -1 => self.open_vacancy.remove(position),
                _ => {}
            }
        }
        taken
    }

    /// The most instances of `gpus` (at least 1) that fit on the schedulable nodes as they are, GPUs alone.
    pub fn max_instances(&self, gpus: u8) -> u64 {
        (gpus..=MAX_GPUS as u8).map(|free| u64::from(free / gpus) * u64::from(self.n_with_free(free))).sum()
    }
}
