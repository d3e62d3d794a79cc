//! The rows that every backend reads and writes: the same bytes on the host, in CUDA and in WGSL.
//!
//! Only 32-bit words and parts of them (WGSL has no 64-bit integer), sizes that are loaded in steps of 8 or 16 bytes,
//! no padding. A kernel needs no table of compositions: what it asks of a node *after* a change follows from four
//! small numbers, and those change by addition.

use bytemuck::{Pod, Zeroable};

use crate::anchor::{Outside, Shape};
use crate::cluster::{Cluster, GpuMask, MAX_GPUS, Node, NodeId, UNLIMITED, slot_width};

/// "None" in a word that otherwise holds an index: no rack, no node, no candidate.
pub const NONE: u32 = u32::MAX;

/// Five small numbers of a node in fields of six bits, each shifted so that its top bit answers a question:
///
/// | bits | number | top bit |
/// |---|---|---|
/// | 0..6 | slot widths of its anchors + 31 | it has an anchor |
/// | 6..12 | slack (vacancy less 1-GPU instances) + 32 | the slack is not negative |
/// | 12..18 | free GPUs + 31 | it is not full |
/// | 18..24 | busy GPUs + 31 | it is not empty |
/// | 24..30 | slot widths less capacity + 31 | its slots overflow |
///
/// and bit 30: it is outside Σ now, which follows from the rest and spares the kernels the work.
///
/// The *difference* of two such words without bit 30, wrapping, is the step from one to the other: a step is added to
/// the state of a node without looking at it, and steps add up. Bit 30 then still tells what was before the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct PackedState(pub u32);

const SLACK: u32 = 6;
const FREE: u32 = 12;
const BUSY: u32 = 18;
const OVER: u32 = 24;
const FIELD: u32 = 0x3f;

impl PackedState {
    /// Top bit of its field: it has an anchor.
    pub const ANCHOR: u32 = 1 << 5;
    /// Top bit of its field: its slack is not negative.
    pub const SLACK: u32 = 1 << 11;
    /// Top bit of its field: it is not full.
    pub const NOT_FULL: u32 = 1 << 17;
    /// Top bit of its field: it is not empty.
    pub const NOT_EMPTY: u32 = 1 << 23;
    /// Top bit of its field: its slots overflow.
    pub const OVERFLOW: u32 = 1 << 29;
    /// It was outside Σ before any step.
    pub const WAS_OUTSIDE: u32 = 1 << 30;

    /// The state of a node of `capacity` that holds `busy` GPUs in this shape.
    pub fn new(capacity: u8, shape: Shape, busy: u8) -> Self {
        let word = u32::from(31 + shape.widths)
            | u32::from(32 + shape.vacancy - shape.ones) << SLACK
            | u32::from(31 + capacity - busy) << FREE
            | u32::from(31 + busy) << BUSY
            | u32::from(31 + shape.widths - capacity) << OVER;
        let outside = if shape.in_space() { 0 } else { Self::WAS_OUTSIDE };
        Self(word | outside)
    }

    /// What one instance of `gpus` GPUs more adds to the state of a node of `capacity`.
    pub fn step_of(gpus: u8, capacity: u8) -> u32 {
        let gpus32 = u32::from(gpus);
        let busy = (gpus32 << BUSY).wrapping_sub(gpus32 << FREE);
        match gpus {
            0 => 0,
            1 => busy.wrapping_sub(1 << SLACK),
            _ => {
                let width = u32::from(slot_width(gpus, capacity));
                let slots = width.wrapping_add(width << OVER);
                busy.wrapping_add(slots).wrapping_add(width.wrapping_sub(gpus32) << SLACK)
            }
        }
    }

    /// The state after a step.
    pub fn after(self, step: u32) -> Self {
        Self(self.0.wrapping_add(step))
    }

    /// Whether a bit is set.
    pub fn is(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    /// The slot widths of its anchors together.
    pub fn widths(self) -> i32 {
        self.field(0) - 31
    }

    /// Vacancy less 1-GPU instances; negative without anchors or outside Σ.
    pub fn slack(self) -> i32 {
        self.field(SLACK) - 32
    }

    /// Free GPUs.
    pub fn free(self) -> i32 {
        self.field(FREE) - 31
    }

    /// Busy GPUs.
    pub fn busy(self) -> i32 {
        self.field(BUSY) - 31
    }

    /// Capacity less slot widths; negative if they overflow.
    pub fn room(self) -> i32 {
        31 - self.field(OVER)
    }

    /// Why the node is outside Σ, if it is.
    pub fn outside(self) -> Option<Outside> {
        if self.is(Self::OVERFLOW) {
            Some(Outside::SlotsOverflow)
        } else if self.is(Self::ANCHOR) && !self.is(Self::SLACK) {
            Some(Outside::NoVacancy)
        } else {
            None
        }
    }

    fn field(self, at: u32) -> i32 {
        (self.0 >> at & FIELD) as i32
    }
}

/// The hot part of a node: 8 bytes, so that 100,000 nodes stay in a core's own cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct NodeBits {
    /// Devices that work, their number.
    pub capacity: u8,
    /// Zero.
    pub unused: u8,
    /// Devices that work and that nobody holds; in the high half of its word, as `Touch::taken` is.
    pub free: GpuMask,
    /// The numbers that steps are added to.
    pub state: PackedState,
}

impl NodeBits {
    /// The row of a node.
    pub fn of(node: &Node) -> Self {
        let (capacity, composition) = (node.capacity(), node.composition());
        let state = PackedState::new(capacity, Shape::of(capacity, composition), composition.busy());
        Self { capacity, unused: 0, free: node.free(), state }
    }
}

/// Free CPU and memory of a node, signed: negative if a snapshot has it overcommitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct NodeAmounts {
    /// Free milli-cores; `i32::MAX` if the node sets no limit, which nothing exceeds.
    pub cpu: i32,
    /// Free MiB, in the same manner.
    pub memory: i32,
}

impl NodeAmounts {
    /// The row of a node.
    pub fn of(node: &Node) -> Self {
        Self {
            cpu: free_amount(node.cpu_milli(), node.cpu_used()),
            memory: free_amount(node.memory_mib(), node.memory_used()),
        }
    }

    /// Whether a need can be met.
    pub fn meets(self, need: Need) -> (bool, bool) {
        (need.cpu <= self.cpu, need.memory <= self.memory)
    }
}

/// A limited node has at most `MAX_AMOUNT` = `i32::MAX` − 1, so `i32::MAX` is free to mean "no limit".
fn free_amount(all: u32, used: u64) -> i32 {
    if all == UNLIMITED {
        return i32::MAX;
    }
    let free = i64::from(all) - i64::try_from(used).unwrap_or(i64::MAX);
    free.clamp(i64::from(i32::MIN) + 1, i64::from(i32::MAX) - 1) as i32
}

/// What a candidate asks of one node's CPU and memory, net of what its moves free there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Need {
    /// Milli-cores; `Need::NOTHING` if no instance that asks for any arrives, `i32::MAX` if more than a node can have.
    pub cpu: i32,
    /// MiB, in the same manner.
    pub memory: i32,
}

impl Need {
    /// What every node can meet, an overcommitted one too.
    pub const NOTHING: i32 = i32::MIN;

    /// No need at all: entry 0 of every table of needs.
    pub const NONE: Self = Self { cpu: Self::NOTHING, memory: Self::NOTHING };

    /// One amount, of what arrives and what leaves. Beyond ±(2^31 − 2), more than any node has, it saturates towards
    /// refusal.
    pub fn amount(arrives: u64, leaves: u64) -> i32 {
        if arrives == 0 {
            return Self::NOTHING;
        }
        let net = i128::from(arrives) - i128::from(leaves);
        net.clamp(i128::from(i32::MIN) + 2, i128::from(i32::MAX)) as i32
    }
}

/// The cold part of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct NodeAttributes {
    /// The pool's number.
    pub pool: u32,
    /// The domain's number, or `NONE`.
    pub domain: u32,
    /// The rack's number, or `NONE`.
    pub rack: u32,
    /// The composition's number.
    pub composition: u16,
    /// `SCHEDULABLE`.
    pub flags: u16,
}

impl NodeAttributes {
    /// Instances may be placed here.
    pub const SCHEDULABLE: u16 = 1;

    /// The row of a node.
    pub fn of(node: &Node) -> Self {
        Self {
            pool: node.pool().0,
            domain: node.domain().map_or(NONE, |domain| domain.0),
            rack: node.rack().map_or(NONE, |rack| rack.0),
            composition: node.composition().number(),
            flags: if node.schedulable() { Self::SCHEDULABLE } else { 0 },
        }
    }
}

/// What is left of each device of a node, in thousandths: all of a free one, none of one that is held whole, that is
/// broken or not there. Aligned as words are, which all rows are copied by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(4))]
pub struct NodeGpuMilli {
    /// By the device's number.
    pub left: [u16; MAX_GPUS],
}

impl NodeGpuMilli {
    /// The row of a node.
    pub fn of(cluster: &Cluster, id: NodeId) -> Self {
        Self { left: cluster.gpu_milli_left(id) }
    }
}

/// The rows of one node after edits, as they replace those that are resident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct NodeEdit {
    /// Which node.
    pub node: u32,
    /// Zero.
    pub unused: [u32; 3],
    /// Its hot row.
    pub bits: NodeBits,
    /// Its amounts.
    pub amounts: NodeAmounts,
    /// Its attributes.
    pub attributes: NodeAttributes,
    /// What is left of its devices.
    pub gpu_milli: NodeGpuMilli,
}

impl NodeEdit {
    /// The rows of a node as the cluster has it now.
    pub fn of(cluster: &Cluster, id: NodeId) -> Self {
        let node = cluster.node(id);
        Self {
            node: id.0,
            unused: [0; 3],
            bits: NodeBits::of(node),
            amounts: NodeAmounts::of(node),
            attributes: NodeAttributes::of(node),
            gpu_milli: NodeGpuMilli::of(cluster, id),
        }
    }

    /// The rows of all nodes that a batch of edits has changed, each once, ascending: devices apply them in no order.
    pub fn after(cluster: &Cluster, edits: &[crate::cluster::Edit]) -> Vec<Self> {
        let mut nodes: Vec<NodeId> = edits.iter().map(crate::cluster::Edit::node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.into_iter().map(|node| Self::of(cluster, node)).collect()
    }
}

/// What a candidate does to one node. A candidate names a node at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Touch {
    /// The node.
    pub node: u32,
    /// Index into the table of needs; 0 is none.
    pub need: u32,
    /// Devices that its moves give back.
    pub freed: GpuMask,
    /// Devices that it takes; they must be free or among `freed`.
    pub taken: GpuMask,
    /// The step of the node's `PackedState`.
    pub step: u32,
}

/// What is known of a candidate without looking at any node's load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Candidate {
    /// The job's number.
    pub job: u32,
    /// Running instances that change their node.
    pub moves: u32,
    /// The GPUs of those.
    pub moved_gpus: u32,
    /// Racks that the job's instances lie in; nodes without one count as one more.
    pub racks: u32,
    /// NVLink domains that the job's instances lie in; nodes without one count as one more.
    pub domains: u32,
    /// Φ* after less Φ* before, summed over pools.
    pub delta_phi_star: i32,
    /// Zero.
    pub unused: [u32; 2],
}

/// The score of a candidate on the resident nodes. All but the reason are zero if it is infeasible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ScoreRow {
    /// A `Reason`'s number, 0 if feasible.
    pub reason: u32,
    /// Partial nodes after less before.
    pub delta_partial: i32,
    /// Touched nodes that are in Σ before and outside afterwards.
    pub left: u32,
    /// Touched nodes that are outside Σ before and in it afterwards.
    pub entered: u32,
    /// Touched nodes that are outside Σ afterwards.
    pub outside: u32,
    /// Touched nodes that are empty before and hold something afterwards; those that become empty do not offset them.
    pub opened: u32,
    /// Empty nodes after less before.
    pub delta_empty: i32,
    /// Free GPUs of the touched nodes afterwards.
    pub residual: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Composition;

    #[test]
    fn sizes_are_what_the_kernels_load() {
        assert_eq!(size_of::<NodeBits>(), 8);
        assert_eq!(size_of::<NodeAmounts>(), 8);
        assert_eq!(size_of::<NodeAttributes>(), 16);
        assert_eq!(size_of::<NodeGpuMilli>(), 32);
        assert_eq!(align_of::<NodeGpuMilli>(), 4);
        assert_eq!(size_of::<NodeEdit>(), 80);
        assert_eq!(size_of::<Touch>(), 16);
        assert_eq!(size_of::<Candidate>(), 32);
        assert_eq!(size_of::<ScoreRow>(), 32);
    }

    /// Every transition of every capacity: the step leads to the shape that the tables have.
    #[test]
    fn steps_are_additive() {
        let state = |capacity, composition: Composition| {
            PackedState::new(capacity, Shape::of(capacity, composition), composition.busy())
        };
        let plain = |state: PackedState| state.0 & !PackedState::WAS_OUTSIDE;
        for capacity in 0..=16 {
            for before in Composition::all(capacity) {
                let shape = Shape::of(capacity, before);
                let packed = state(capacity, before);
                assert_eq!(packed.outside().is_none(), shape.in_space());
                assert_eq!(packed.is(PackedState::WAS_OUTSIDE), !shape.in_space());
                assert_eq!(packed.is(PackedState::ANCHOR), shape.has_anchor());
                assert_eq!(packed.is(PackedState::NOT_EMPTY), before.busy() > 0);
                assert_eq!(packed.is(PackedState::NOT_FULL), before.busy() < capacity);
                let numbers = [packed.widths(), packed.free(), packed.busy(), packed.room().max(0)];
                let expected = [shape.widths, capacity - before.busy(), before.busy(), shape.room];
                assert_eq!(numbers, expected.map(i32::from));
                for gpus in 1..=capacity - before.busy() {
                    let after = before.with(gpus).unwrap();
                    let step = PackedState::step_of(gpus, capacity);
                    let stepped = plain(packed.after(step));
                    assert_eq!(stepped, plain(state(capacity, after)), "{capacity} {before} + {gpus}");
                    assert_eq!(stepped.wrapping_sub(step), plain(packed));
                }
            }
        }
    }

    #[test]
    fn amounts_refuse_what_the_ledger_refuses() {
        assert_eq!(free_amount(UNLIMITED, u64::MAX), i32::MAX);
        assert_eq!(free_amount(100, 130), -30);
        assert_eq!(Need::amount(0, 50), Need::NOTHING);
        assert_eq!(Need::amount(50, 80), -30);
        assert_eq!(Need::amount(1 << 40, 0), i32::MAX);
        let full = NodeAmounts { cpu: free_amount(i32::MAX as u32 - 1, 0), memory: -30 };
        assert_eq!(full.meets(Need { cpu: i32::MAX, memory: -30 }), (false, true));
        assert_eq!(full.meets(Need { cpu: i32::MAX - 1, memory: -29 }), (true, false));
        assert_eq!(
            NodeAmounts { cpu: i32::MAX, memory: i32::MAX }.meets(Need { cpu: i32::MAX, memory: 1 }),
            (true, true)
        );
    }
}
