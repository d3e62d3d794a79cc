//! Compact as algorithm 1 prints it, for comparison: pool nodes, then the slots of each width, widest first. A pass for
//! width w sees only *partial hosts* of w: nodes that hold a slot of that width and have unprofiled room for another.
//!
//! The source leaves open which host gives and which receives; here the one with the most room gives its slots, with
//! their fillers, to the one with the least, ties to the lowest node.

use super::mover::Mover;
use super::shape::{Kind, Shape};
use crate::cluster::{InstanceId, NodeId, PoolId, slot_width};

/// One compaction of a pool.
pub(super) fn compact(mover: &mut Mover<'_, '_>, pool: PoolId) {
    super::compact::merge_pool_nodes(mover, pool);
    let capacity = mover.transaction.state().pool(pool).capacity();
    let mut width = capacity.next_power_of_two() / 2;
    while width >= 2 {
        while consolidate(mover, pool, width) {}
        width /= 2;
    }
}

/// Moves one slot of a width from the emptiest partial host to the fullest. False if there are not two hosts.
fn consolidate(mover: &mut Mover<'_, '_>, pool: PoolId, width: u8) -> bool {
    let state = mover.transaction.state().pool(pool);
    let mut hosts = (width..state.capacity())
        .flat_map(|room| state.slotted_with_room(room).iter().map(move |position| (room, position)))
        .map(|(room, position)| (room, state.node_at(position)))
        .filter(|&(_, node)| slot_of(mover, node, width).is_some())
        .collect::<Vec<(u8, NodeId)>>();
    hosts.sort_unstable();
    let (Some(&(least, receiver)), Some(&(most, donor))) =
        (hosts.first(), hosts.iter().max_by_key(|h| (h.0, std::cmp::Reverse(h.1))))
    else {
        return false;
    };
    let donor = if least == most { hosts.get(1).map(|h| h.1) } else { Some(donor) };
    let Some(donor) = donor else { return false };
    let Some(anchor) = slot_of(mover, donor, width) else { return false };
    let gpus = mover.transaction.cluster().instance(anchor).gpus().count_ones() as u8;
    if !mover.move_to(anchor, receiver) {
        return false;
    }
    // The slot's fillers go with it, as far as they find a vacancy.
    for _ in 0..width - gpus {
        let left = mover.transaction.cluster().node(donor);
        let surplus = match Shape::of(left.capacity(), left.composition()) {
            shape if shape.kind == Kind::Pool => shape.ones,
            shape => shape.excess_ones(),
        };
        if surplus == 0 || !mover.move_a_one(donor, receiver) {
            break;
        }
    }
    true
}

/// A movable anchor of a slot of this width on the node; the one on the highest devices.
fn slot_of(mover: &Mover<'_, '_>, node: NodeId, width: u8) -> Option<InstanceId> {
    let cluster = mover.transaction.cluster();
    let capacity = cluster.node(node).capacity();
    let of_width = |instance: &InstanceId| {
        let held = cluster.instance(*instance);
        let gpus = held.gpus().count_ones() as u8;
        gpus >= 2 && slot_width(gpus, capacity) == width && cluster.job(held.job()).migratable()
    };
    cluster.instances_on(node).filter(of_width).last()
}
