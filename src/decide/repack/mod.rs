//! Repackings of what runs, which some schedulers do at fixed times: all at once onto the fewest nodes, or node by node.
//!
//! Both work inside a pool and leave alone whatever they cannot move freely: see [`is_free`].

mod drain;
mod fewest;
mod pattern;

use crate::anchor::{State, Transaction};
use crate::cluster::{Cluster, InstanceId, NodeId, PoolId, UNLIMITED};

/// How a scheduler repacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repack {
    /// Everything onto the fewest nodes, with the fewest moved GPUs that a greedy assignment finds.
    FewestNodes,
    /// What the least used nodes hold onto others that are in use, node by node, as long as that empties a node.
    DrainLeastUsed,
}

impl Repack {
    /// Moves instances; the transaction has the moves.
    pub(super) fn run(self, transaction: &mut Transaction<'_>) {
        for pool in 0..transaction.state().pools().len() as u32 {
            match self {
                Self::FewestNodes => fewest::repack(transaction, PoolId(pool)),
                Self::DrainLeastUsed => drain::repack(transaction, PoolId(pool)),
            }
        }
    }
}

/// The nodes of a pool that hold something and whose instances may all go to any other such node, ascending. Those with a
/// shared device are not among them.
fn free_nodes(state: &State, pool: PoolId) -> Vec<NodeId> {
    let cluster = state.cluster();
    let nodes = state.pool(pool).nodes().iter().copied();
    let plain = nodes.filter(|&id| cluster.node(id).schedulable() && cluster.node(id).shared() == 0);
    let held = plain.filter(|&id| cluster.node(id).busy() != 0);
    held.filter(|&id| cluster.instances_on(id).all(|instance| is_free(cluster, instance, id))).collect()
}

/// Whether an instance may go to any node of its pool that has the GPUs: its job may migrate and is bound to no domain or
/// rack, and it asks for no CPU or memory where these are limited.
fn is_free(cluster: &Cluster, instance: InstanceId, node: NodeId) -> bool {
    let job = cluster.job(cluster.instance(instance).job());
    let (request, node) = (cluster.request(job.request()), cluster.node(node));
    let unlimited = |asked: u32, all: u32| asked == 0 || all == UNLIMITED;
    job.migratable()
        && request.within.is_none()
        && unlimited(request.cpu_milli, node.cpu_milli())
        && unlimited(request.memory_mib, node.memory_mib())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClusterBuilder, JobSpec, NodeSpec, Seat, WHOLE_GPU};

    /// Nodes of 8 GPUs that hold jobs of these sizes; a size of 100 and more is pinned, 0 is half a GPU.
    fn state(nodes: &[&[u8]]) -> State {
        let mut builder = ClusterBuilder::new();
        for (number, sizes) in nodes.iter().enumerate() {
            let node = builder.add_node(&NodeSpec { name: &format!("n{number}"), gpus: 8, ..NodeSpec::default() });
            let node = node.unwrap();
            for (at, &size) in sizes.iter().enumerate() {
                let name = format!("j{number}-{at}");
                let (gpus, gpu_milli) = if size == 0 { (1, 500) } else { (size % 100, WHOLE_GPU) };
                let spec = JobSpec { name: &name, gpus, gpu_milli, pinned: size >= 100, ..JobSpec::default() };
                builder.add_running(&spec, &[Seat { node, gpus: None }]).unwrap();
            }
        }
        let mut state = State::new(builder.finish().unwrap());
        state.index_free_gpus();
        state
    }

    /// What the nodes hold afterwards, and how many GPUs moved.
    fn after(nodes: &[&[u8]], repack: Repack) -> (Vec<Vec<u8>>, u32) {
        let mut state = state(nodes);
        let mut transaction = state.begin();
        repack.run(&mut transaction);
        let moved = transaction.migrations().iter().map(|one| one.gpus.count_ones()).sum();
        transaction.commit();
        state.cluster().check_books().unwrap();
        let sizes = |node| {
            let composition = state.cluster().node(node).composition();
            (1..=8u8).rev().flat_map(|gpus| std::iter::repeat_n(gpus, composition.count(gpus).into())).collect()
        };
        (state.cluster().node_ids().map(sizes).collect(), moved)
    }

    #[test]
    fn everything_goes_onto_the_fewest_nodes_with_few_moves() {
        // Best-fit decreasing would need three nodes for these; two hold them.
        let (nodes, moved) = after(&[&[4, 3], &[3, 2, 2], &[2]], Repack::FewestNodes);
        assert_eq!(nodes.iter().filter(|node| !node.is_empty()).count(), 2);
        assert!(nodes.contains(&vec![4, 2, 2]) && nodes.contains(&vec![3, 3, 2]) && moved <= 7, "{nodes:?} {moved}");
        // A share never moves, and keeps its node out of it.
        assert_eq!(after(&[&[0], &[4], &[2]], Repack::FewestNodes), (vec![vec![1], vec![4, 2], vec![]], 2));
        // As few as it is: nothing moves.
        assert_eq!(after(&[&[5, 1], &[5, 1], &[]], Repack::FewestNodes).1, 0);
        // What is pinned keeps its node out of it.
        let (nodes, moved) = after(&[&[101], &[1], &[2], &[4]], Repack::FewestNodes);
        assert_eq!((&nodes[0][..], moved), (&[1][..], 3));
        assert!(nodes.contains(&vec![4, 2, 1]));
    }

    #[test]
    fn a_node_with_a_shared_device_is_left_alone() {
        let mut builder = ClusterBuilder::new();
        for number in 0..2 {
            let node = builder.add_node(&NodeSpec { name: &format!("n{number}"), gpus: 8, ..NodeSpec::default() });
            let spec = JobSpec { name: &format!("j{number}"), gpus: 1, gpu_milli: 500, ..JobSpec::default() };
            builder.add_running(&spec, &[Seat { node: node.unwrap(), gpus: None }]).unwrap();
        }
        let mut state = State::new(builder.finish().unwrap());
        state.index_free_gpus();
        for repack in [Repack::FewestNodes, Repack::DrainLeastUsed] {
            let mut transaction = state.begin();
            repack.run(&mut transaction);
            assert!(transaction.migrations().is_empty());
        }
    }

    #[test]
    fn the_least_used_nodes_are_emptied_while_their_jobs_find_room_elsewhere() {
        let (nodes, moved) = after(&[&[4, 2], &[1], &[5, 1], &[3, 1]], Repack::DrainLeastUsed);
        // The 1 goes to the fuller of two nodes of 6; then the 3 and the 1 find no room, and stay together.
        assert_eq!((nodes, moved), (vec![vec![4, 2, 1], vec![], vec![5, 1], vec![3, 1]], 1));
        let (nodes, moved) = after(&[&[4], &[2, 2], &[8]], Repack::DrainLeastUsed);
        assert_eq!((nodes, moved), (vec![vec![4, 2, 2], vec![], vec![8]], 4));
        assert_eq!(after(&[&[], &[101], &[7]], Repack::DrainLeastUsed).1, 7);
        assert_eq!(after(&[&[101], &[101]], Repack::DrainLeastUsed).1, 0);
    }
}
