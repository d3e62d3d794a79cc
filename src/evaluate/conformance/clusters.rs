//! The clusters that backends are compared on, and what happens to them.

use super::super::backend::EvalError;
use super::super::synthetic::{self, Numbers};
use super::Extent;
use crate::cluster::{BuildError, Cluster, ClusterBuilder, Edit, JobSpec, NodeId, NodeSpec, Seat};
use crate::workload::synthetic::arbitrary_cluster;

/// A kind of cluster, of so many nodes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Nodes of 8 GPUs in large pools, domains and racks.
    Uniform(usize),
    /// Nodes of 1 to 16 devices of several models, in dozens of pools, neighbours in different ones.
    Mixed(usize),
    /// A pool for every node.
    Pools(usize),
}

impl Kind {
    /// Its name and its number of nodes.
    pub(super) fn name(self) -> String {
        match self {
            Self::Uniform(nodes) => format!("uniform {nodes}"),
            Self::Mixed(nodes) => format!("mixed {nodes}"),
            Self::Pools(nodes) => format!("pools {nodes}"),
        }
    }

    /// The cluster of a seed.
    pub(super) fn cluster(self, seed: u64) -> Result<Cluster, EvalError> {
        let made = match self {
            Self::Uniform(nodes) => synthetic::cluster(nodes, seed),
            Self::Mixed(nodes) => Ok(arbitrary_cluster(seed, nodes as u32)),
            Self::Pools(nodes) => pools(nodes, seed),
        };
        made.map_err(|error| EvalError::Device(error.to_string()))
    }
}

/// Those of an extent. The sizes are what breaks implementations: none, one, and around the widths of words, of groups
/// and of blocks.
pub(super) fn kinds(extent: Extent) -> Vec<Kind> {
    use Kind::{Mixed, Pools, Uniform};
    let quick = [Uniform(0), Uniform(1), Uniform(33), Mixed(65), Mixed(257), Pools(40)];
    let usual = [
        Uniform(0),
        Uniform(1),
        Mixed(1),
        Mixed(7),
        Uniform(31),
        Uniform(32),
        Uniform(33),
        Mixed(63),
        Mixed(64),
        Mixed(65),
        Uniform(255),
        Mixed(256),
        Mixed(257),
        Pools(300),
        Mixed(1023),
        Uniform(1025),
        Uniform(5001),
        Mixed(2500),
    ];
    match extent {
        Extent::Quick => quick.to_vec(),
        Extent::Usual => usual.to_vec(),
        Extent::Large => usual.into_iter().chain([Mixed(20_000), Uniform(125_000)]).collect(),
    }
}

/// A node a pool, half of them busy.
fn pools(nodes: usize, seed: u64) -> Result<Cluster, BuildError> {
    let mut numbers = Numbers::new(seed);
    let mut builder = ClusterBuilder::new();
    for number in 0..nodes {
        let (name, model) = (format!("n{number}"), format!("m{number}"));
        builder.add_node(&NodeSpec { name: &name, gpus: 8, model: Some(&model), ..NodeSpec::default() })?;
        if numbers.below(2) == 0 {
            let spec = JobSpec { name: &format!("j{number}"), gpus: 1 + numbers.below(8) as u8, ..JobSpec::default() };
            builder.add_running(&spec, &[Seat { node: NodeId(number as u32), gpus: None }])?;
        }
    }
    builder.finish()
}

/// Frees about one in `n` instances, at most so many.
pub(super) fn depart(cluster: &mut Cluster, n: u32, most: usize, seed: u64) -> Vec<Edit> {
    let mut numbers = Numbers::new(seed);
    let mut edits = Vec::new();
    for node in cluster.node_ids() {
        for instance in cluster.instances_on(node) {
            if numbers.below(n) == 0 && edits.len() < most {
                edits.push(Edit::Free { instance, node, gpus: cluster.instance(instance).gpus() });
            }
        }
    }
    edits.retain(|edit| cluster.apply(&[*edit]).is_ok());
    edits
}

/// Cordons about one in `n` schedulable nodes, and uncordons about one in `n` of the others.
pub(super) fn turn(cluster: &mut Cluster, n: u32, seed: u64) -> Vec<Edit> {
    let mut numbers = Numbers::new(seed);
    let nodes = cluster.node_ids().filter(|_| numbers.below(n) == 0);
    let one = |node| if cluster.node(node).schedulable() { Edit::Cordon(node) } else { Edit::Uncordon(node) };
    let mut edits: Vec<Edit> = nodes.map(one).collect();
    edits.retain(|edit| cluster.apply(&[*edit]).is_ok());
    edits
}

/// Takes every other of these edits back; an overcommitted node may refuse.
pub(super) fn come_back(cluster: &mut Cluster, departed: &[Edit]) -> Vec<Edit> {
    let mut edits: Vec<Edit> = departed.iter().step_by(2).map(|edit| edit.inverse()).collect();
    edits.retain(|edit| cluster.apply(&[*edit]).is_ok());
    edits
}
