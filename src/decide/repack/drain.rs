//! The least used nodes, emptied one after the other.

use super::free_nodes;
use crate::anchor::{State, Transaction};
use crate::cluster::{InstanceId, NodeId, PoolId};

/// Takes the node with the fewest busy GPUs, ties to the highest number, and gives its instances, the largest first, to the
/// fullest nodes that have room and hold something, ties to the lowest number. A node that cannot be emptied whole stays
/// as it is, and ends it.
pub(super) fn repack(transaction: &mut Transaction<'_>, pool: PoolId) {
    let mut nodes = free_nodes(transaction.state(), pool);
    let busy = |transaction: &Transaction<'_>, node| transaction.cluster().node(node).composition().busy();
    while let Some(at) = (0..nodes.len()).rev().min_by_key(|&at| busy(transaction, nodes[at])) {
        // Of equals the first is taken, which is the last of the nodes.
        let source = nodes.remove(at);
        let start = transaction.checkpoint();
        if empty(transaction, pool, source).is_none() {
            transaction.rollback(start);
            return;
        }
    }
}

fn empty(transaction: &mut Transaction<'_>, pool: PoolId, source: NodeId) -> Option<()> {
    let cluster = transaction.cluster();
    let mut held: Vec<InstanceId> = cluster.instances_on(source).collect();
    held.sort_by_key(|&instance| std::cmp::Reverse(cluster.instance(instance).gpus().count_ones()));
    for instance in held {
        let target = fullest_with_room(transaction.state(), pool, source, instance)?;
        transaction.free(instance).ok()?;
        transaction.take_lowest(instance, target).ok()?;
    }
    Some(())
}

fn fullest_with_room(state: &State, pool: PoolId, source: NodeId, instance: InstanceId) -> Option<NodeId> {
    let cluster = state.cluster();
    let request = cluster.request_of(cluster.instance(instance).job());
    let pool = state.pool(pool);
    // A node that is all free holds nothing.
    (request.gpus..pool.capacity()).find_map(|free| {
        let nodes = pool.with_free(free).into_iter().flat_map(|set| set.iter()).map(|position| pool.node_at(position));
        nodes.into_iter().find(|&node| node != source && cluster.has_cpu_and_memory(node, request))
    })
}
