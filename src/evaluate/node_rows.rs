//! The nodes as the kernels see them: one array a row type.

use super::abi::{NodeAmounts, NodeAttributes, NodeBits, NodeEdit, NodeGpuMilli};
use super::backend::EvalError;
use crate::cluster::Cluster;

/// The most nodes a backend loads: 16 GPUs times as many still count in 32 bits, so no sum of a score can overflow.
pub const MAX_NODES: usize = (1 << 28) - 1;

/// The resident rows of all nodes, on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRows {
    /// The hot rows.
    pub bits: Vec<NodeBits>,
    /// Free CPU and memory.
    pub amounts: Vec<NodeAmounts>,
    /// The cold rows.
    pub attributes: Vec<NodeAttributes>,
    /// What is left of the devices.
    pub gpu_milli: Vec<NodeGpuMilli>,
    /// The number of pools.
    pub pools: usize,
}

impl NodeRows {
    /// The rows of a cluster.
    ///
    /// # Errors
    /// If it has more than `MAX_NODES`.
    pub fn of(cluster: &Cluster) -> Result<Self, EvalError> {
        let mut state = Self::default();
        state.load(cluster)?;
        Ok(state)
    }

    /// Replaces all rows by those of a cluster.
    ///
    /// # Errors
    /// If it has more than `MAX_NODES`.
    pub fn load(&mut self, cluster: &Cluster) -> Result<(), EvalError> {
        let nodes = cluster.nodes();
        EvalError::check_size("nodes", nodes.len(), MAX_NODES)?;
        self.bits.clear();
        self.bits.extend(nodes.iter().map(NodeBits::of));
        self.amounts.clear();
        self.amounts.extend(nodes.iter().map(NodeAmounts::of));
        self.attributes.clear();
        self.attributes.extend(nodes.iter().map(NodeAttributes::of));
        self.gpu_milli.clear();
        self.gpu_milli.extend(cluster.node_ids().map(|node| NodeGpuMilli::of(cluster, node)));
        self.pools = cluster.pools().len();
        Ok(())
    }

    /// The rows of a node, as they replace what another copy has of it.
    pub fn edit(&self, node: u32) -> NodeEdit {
        let at = node as usize;
        NodeEdit {
            node,
            unused: [0; 3],
            bits: self.bits[at],
            amounts: self.amounts[at],
            attributes: self.attributes[at],
            gpu_milli: self.gpu_milli[at],
        }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.bits.len()
    }

    /// True if there is no node.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }
}
