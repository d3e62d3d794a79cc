//! Questions for nodes: which are the best for an instance of some request.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::abi::{NONE, Need, NodeAttributes, NodeBits, PackedState};
use super::node_rows::NodeRows;
use crate::cluster::{Cluster, DomainId, PoolId, RackId, Request, WHOLE_GPU, slot_width};

/// In which order nodes are preferred. Ties go to the lowest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum NodeOrder {
    /// The lowest number.
    FirstFit = 0,
    /// The least free GPUs that are enough.
    BestFit = 1,
    /// The most free GPUs.
    WorstFit = 2,
    /// COMPASS Place (§4.3), which never leaves Σ. An anchor: slotted nodes of least room that is enough, then empty
    /// nodes of the smallest capacity. A 1-GPU instance: open vacancies, then pool nodes of the least free GPUs, then
    /// empty nodes of the smallest capacity. A CPU-only instance: the lowest number.
    Compass = 3,
}

impl NodeOrder {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::FirstFit, Self::BestFit, Self::WorstFit, Self::Compass];

    /// The order of this number; the last one for numbers that are none.
    fn from_number(number: u32) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or(Self::Compass)
    }
}

/// One class of demand: what an instance asks of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct DemandClass {
    /// GPUs an instance.
    pub gpus: u32,
    /// Milli-cores an instance; `Need::NOTHING` for none.
    pub cpu: i32,
    /// MiB an instance; `Need::NOTHING` for none.
    pub memory: i32,
    /// A `NodeOrder`'s number.
    pub order: u32,
    /// The only domain, `NONE` for any.
    pub domain: u32,
    /// The only rack, `NONE` for any.
    pub rack: u32,
    /// Where the bit set of allowed pools begins, `NONE` if all are.
    pub pools_at: u32,
    /// Thousandths of each of the GPUs; the orders do not look at it.
    pub gpu_milli: u32,
}

impl DemandClass {
    /// No GPUs, no CPU and no memory, on any node.
    pub(super) const ANYWHERE: Self = Self {
        gpus: 0,
        cpu: Need::NOTHING,
        memory: Need::NOTHING,
        order: NodeOrder::FirstFit as u32,
        domain: NONE,
        rack: NONE,
        pools_at: NONE,
        gpu_milli: WHOLE_GPU as u32,
    };
}

/// Several classes of demand that are asked for at once; the best `k` nodes are wanted for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeQuery {
    k: usize,
    pools: usize,
    classes: Vec<DemandClass>,
    pool_bits: Vec<u32>,
}

impl NodeQuery {
    /// No class yet; `k` nodes will be wanted for each.
    pub fn new(cluster: &Cluster, k: usize) -> Self {
        Self { k, pools: cluster.pools().len(), ..Self::default() }
    }

    /// These classes, none of which restricts the pools.
    pub(super) fn of_classes(pools: usize, k: usize, classes: Vec<DemandClass>) -> Self {
        Self { k, pools, classes, pool_bits: Vec::new() }
    }

    /// Adds a class: nodes for one instance of this request, in this domain and rack if any are named. The request's
    /// `within` binds instances together and is not looked at. Returns the class's number.
    pub fn push(
        &mut self,
        cluster: &Cluster,
        request: &Request,
        order: NodeOrder,
        domain: Option<DomainId>,
        rack: Option<RackId>,
    ) -> usize {
        let pools_at = if request.models.is_none() {
            NONE
        } else {
            let at = self.pool_bits.len();
            self.pool_bits.resize(at + self.pools.div_ceil(32), 0);
            for pool in (0..self.pools).filter(|&pool| cluster.pool_admits(PoolId(pool as u32), request)) {
                self.pool_bits[at + pool / 32] |= 1 << (pool % 32);
            }
            at as u32
        };
        self.classes.push(DemandClass {
            gpus: u32::from(request.gpus),
            cpu: Need::amount(request.cpu_milli.into(), 0),
            memory: Need::amount(request.memory_mib.into(), 0),
            order: order as u32,
            domain: domain.map_or(NONE, |domain| domain.0),
            rack: rack.map_or(NONE, |rack| rack.0),
            pools_at,
            gpu_milli: request.gpu_milli.into(),
        });
        self.classes.len() - 1
    }

    /// Forgets the classes, keeps the buffers.
    pub fn clear(&mut self) {
        self.classes.clear();
        self.pool_bits.clear();
    }

    /// The number of classes.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// True if there is no class.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// How many nodes are wanted for each class.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The number of pools of the cluster that it is about.
    pub fn pools(&self) -> usize {
        self.pools
    }

    /// The classes.
    pub fn classes(&self) -> &[DemandClass] {
        &self.classes
    }

    /// The bit sets of pools.
    pub fn pool_bits(&self) -> &[u32] {
        &self.pool_bits
    }

    /// The number of answers: `k` a class.
    pub fn width(&self) -> usize {
        self.k * self.classes.len()
    }

    /// Where the answers for a class stand.
    pub fn slots(&self, class: usize) -> Range<usize> {
        class * self.k..(class + 1) * self.k
    }

    /// How good a node is for a class, smaller is better; `None` if it cannot host it.
    pub fn key(&self, class: usize, state: &NodeRows, node: u32) -> Option<u32> {
        let class = &self.classes[class];
        let at = node as usize;
        let bits = &state.bits[at];
        if bits.free.count_ones() < class.gpus {
            return None;
        }
        let key = order_key(class, bits)?;
        self.admits(class, state, at).then_some(key)
    }

    /// Whether a node may host a class and has CPU and memory for it.
    pub(super) fn admits(&self, class: &DemandClass, state: &NodeRows, node: usize) -> bool {
        let (amounts, attributes) = (&state.amounts[node], &state.attributes[node]);
        let pool = attributes.pool as usize;
        attributes.flags & NodeAttributes::SCHEDULABLE != 0
            && (class.domain == NONE || class.domain == attributes.domain)
            && (class.rack == NONE || class.rack == attributes.rack)
            && (class.pools_at == NONE || self.pool_bits[class.pools_at as usize + pool / 32] >> (pool % 32) & 1 == 1)
            && class.cpu <= amounts.cpu
            && class.memory <= amounts.memory
    }
}

/// Above every key of a node that holds something.
const EMPTY_NODES: u32 = 64;
/// Above every open vacancy.
const POOL_NODES: u32 = 32;

fn order_key(class: &DemandClass, node: &NodeBits) -> Option<u32> {
    let free = node.free.count_ones();
    match NodeOrder::from_number(class.order) {
        NodeOrder::FirstFit => Some(0),
        NodeOrder::BestFit => Some(free),
        NodeOrder::WorstFit => Some(16 - free),
        NodeOrder::Compass if class.gpus == 0 => Some(0),
        NodeOrder::Compass if node.state.is(PackedState::WAS_OUTSIDE) => None,
        NodeOrder::Compass if !node.state.is(PackedState::NOT_EMPTY) => Some(EMPTY_NODES + u32::from(node.capacity)),
        NodeOrder::Compass => {
            let slotted = node.state.is(PackedState::ANCHOR);
            match (class.gpus, slotted) {
                (1, true) => (node.state.slack() > 0).then_some(0),
                (1, false) => Some(POOL_NODES + free),
                (_, false) => None,
                (gpus, true) => {
                    let room = node.state.room();
                    let width = i32::from(slot_width(gpus as u8, node.capacity));
                    (room >= width).then_some(room as u32)
                }
            }
        }
    }
}
