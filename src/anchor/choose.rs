//! Which node Place gives to the next instance (§4, Place), among those where the node is in Σ afterwards.
//!
//! The order is one key, smallest first: for an anchor, slotted nodes by least unprofiled room, then empty nodes by
//! smallest capacity; for a 1-GPU instance, open vacancies, then partial pool nodes by least free GPUs, then empty nodes
//! by smallest capacity. Ties go to the lowest node.

use std::sync::Arc;

use super::shape::{Kind, Shape};
use super::state::State;
use crate::cluster::{NodeId, PoolId, Request, RequestId, WHOLE_GPU, slot_width};

/// Where a job may go, worked out once for all its instances.
#[derive(Debug)]
pub(super) struct Scope<'n> {
    /// Pools whose nodes are large enough and of an allowed model, by capacity, then number.
    pools: Arc<[PoolId]>,
    /// The only nodes that are asked, if the job must lie within one domain or rack.
    region: Option<&'n [NodeId]>,
    /// Whether CPU or memory can forbid a node.
    limited: bool,
}

/// The place of a node in the order; see the module.
pub(super) type PlaceKey = (u8, u8, NodeId);

impl<'n> Scope<'n> {
    pub(super) fn new(state: &mut State, id: RequestId, region: Option<&'n [NodeId]>) -> Self {
        let pools = state.pools_admitting(id);
        let request = state.cluster().request(id);
        Self { pools, region, limited: request.cpu_milli > 0 || request.memory_mib > 0 }
    }

    pub(super) fn pools(&self) -> &[PoolId] {
        &self.pools
    }

    /// The nodes of the scope when it is a region.
    pub(super) fn region(&self) -> Option<&'n [NodeId]> {
        self.region
    }

    pub(super) fn admits(&self, state: &State, node: NodeId, request: &Request) -> bool {
        !self.limited || state.cluster().has_cpu_and_memory(node, request)
    }

    /// The node for one instance more, if any.
    pub(super) fn choose(&self, state: &State, request: &Request) -> Option<NodeId> {
        match self.region {
            Some(nodes) => {
                let key = |&node: &NodeId| place_key(state, node, request);
                nodes.iter().filter_map(key).min().map(|(_, _, node)| node)
            }
            None if request.gpus >= 2 => self.choose_slot(state, request),
            None => self.choose_one(state, request),
        }
    }

    fn choose_slot(&self, state: &State, request: &Request) -> Option<NodeId> {
        let rooms_of = |id: PoolId| {
            let pool = state.pool(id);
            pool.slotted_rooms() & (u32::MAX << slot_width(request.gpus, pool.capacity()))
        };
        let mut rooms = self.pools.iter().fold(0, |rooms, &id| rooms | rooms_of(id));
        while rooms != 0 {
            let room = rooms.trailing_zeros() as u8;
            rooms &= rooms - 1;
            let with_room = self.pools.iter().filter(|&&id| rooms_of(id) >> room & 1 == 1);
            let first = with_room
                .filter_map(|&id| self.first(state, id, state.pool(id).slotted_with_room(room), request))
                .min();
            if first.is_some() {
                return first;
            }
        }
        self.choose_empty(state, request)
    }

    fn choose_one(&self, state: &State, request: &Request) -> Option<NodeId> {
        let vacancies = self.pools.iter().filter_map(|&id| {
            let pool = state.pool(id);
            self.first(state, id, pool.open_vacancy(), request)
        });
        if let Some(node) = vacancies.min() {
            return Some(node);
        }
        // Bit f: some pool node has f GPUs free.
        let free_of = |id: PoolId| {
            let pool = state.pool(id);
            (pool.pool_sizes().reverse_bits() >> (31 - u32::from(pool.capacity()))) & !1
        };
        let mut frees = self.pools.iter().fold(0, |frees, &id| frees | free_of(id));
        while frees != 0 {
            let free = frees.trailing_zeros() as u8;
            frees &= frees - 1;
            let partial = self.pools.iter().filter(|&&id| free_of(id) >> free & 1 == 1).filter_map(|&id| {
                let pool = state.pool(id);
                self.first(state, id, pool.pools_with(pool.capacity() - free), request)
            });
            let first = partial.min();
            if first.is_some() {
                return first;
            }
        }
        self.choose_empty(state, request)
    }

    fn choose_empty(&self, state: &State, request: &Request) -> Option<NodeId> {
        let mut best: Option<(u8, NodeId)> = None;
        for &id in self.pools.iter() {
            let pool = state.pool(id);
            if best.is_some_and(|(capacity, _)| capacity < pool.capacity()) {
                break;
            }
            if let Some(node) = self.first(state, id, pool.empty(), request)
                && best.is_none_or(|(_, other)| node < other)
            {
                best = Some((pool.capacity(), node));
            }
        }
        best.map(|(_, node)| node)
    }

    /// The lowest node of a set that has the CPU and memory.
    fn first(&self, state: &State, pool: PoolId, set: &crate::cluster::NodeSet, request: &Request) -> Option<NodeId> {
        let pool = state.pool(pool);
        if !self.limited {
            return set.first().map(|position| pool.node_at(position));
        }
        set.iter().map(|position| pool.node_at(position)).find(|&node| self.admits(state, node, request))
    }
}

/// The place of a node in the order, or `None` if one instance more cannot go there inside Σ.
pub(super) fn place_key(state: &State, id: NodeId, request: &Request) -> Option<PlaceKey> {
    let cluster = state.cluster();
    let node = cluster.node(id);
    let capacity = node.capacity();
    if request.gpus > capacity || !cluster.admits(id, request) || !cluster.has_cpu_and_memory(id, request) {
        return None;
    }
    let shape = Shape::of(capacity, node.composition());
    match shape.kind {
        Kind::Empty => Some((2, capacity, id)),
        Kind::Slotted if request.gpus == 1 => (shape.open_vacancy() > 0).then_some((0, 0, id)),
        Kind::Slotted => (shape.room >= node.slot_width(request.gpus)).then_some((0, shape.room, id)),
        Kind::Pool if request.gpus == 1 && shape.ones < capacity => Some((1, capacity - shape.ones, id)),
        Kind::Pool | Kind::Outside(_) => None,
    }
}

/// Whether one instance more can go to a node inside Σ, without a move.
pub fn takes(state: &State, id: NodeId, request: &Request) -> bool {
    place_key(state, id, request).is_some()
}

/// How many instances more can go to a node one after the other, each step inside Σ.
pub(super) fn steps(state: &State, id: NodeId, request: &Request) -> u32 {
    let node = state.cluster().node(id);
    if request.is_share() {
        return steps_of_shares(state, id, request);
    }
    if place_key(state, id, request).is_none() {
        return 0;
    }
    let shape = Shape::of(node.capacity(), node.composition());
    let by_gpus = match (request.gpus, shape.kind) {
        (1, Kind::Slotted) => shape.open_vacancy(),
        (1, _) => node.free_gpus(),
        (gpus, _) => shape.room / node.slot_width(gpus),
    };
    u32::from(by_gpus).min(by_cpu_and_memory(state, id, request))
}

/// The same for shares: beside others first, then on devices that instances of one GPU could open.
fn steps_of_shares(state: &State, id: NodeId, request: &Request) -> u32 {
    let cluster = state.cluster();
    if !cluster.admits(id, request) {
        return 0;
    }
    let opened = Request { gpu_milli: WHOLE_GPU, cpu_milli: 0, memory_mib: 0, ..request.clone() };
    let on_opened = steps(state, id, &opened) * u32::from(WHOLE_GPU / request.gpu_milli);
    let by_gpus = cluster.room_on_shared(id, request.gpu_milli) + on_opened;
    by_gpus.min(by_cpu_and_memory(state, id, request))
}

/// How many instances a node's free CPU and memory are enough for.
pub(super) fn by_cpu_and_memory(state: &State, id: NodeId, request: &Request) -> u32 {
    state.cluster().node(id).room_by_cpu_and_memory(request.cpu_milli, request.memory_mib)
}
