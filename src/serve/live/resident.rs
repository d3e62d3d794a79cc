//! The nodes on the device: loaded once, then kept current by the nodes that changed.

use crate::cluster::{Cluster, NodeId};
use crate::evaluate::abi::NodeEdit;
use crate::evaluate::{Backend, EvalError, NodeRows};

/// A backend, and in what it differs from the state.
pub(super) struct Resident {
    backend: Box<dyn Backend>,
    /// Whether it holds this cluster.
    is_loaded: bool,
    /// The nodes that have changed since.
    touched: Vec<NodeId>,
    edits: Vec<NodeEdit>,
}

impl Resident {
    pub(super) fn new(backend: Box<dyn Backend>) -> Self {
        Self { backend, is_loaded: false, touched: Vec::new(), edits: Vec::new() }
    }

    pub(super) fn name(&self) -> &'static str {
        self.backend.name()
    }

    /// What is resident is about another cluster now.
    pub(super) fn forget(&mut self) {
        self.is_loaded = false;
        self.touched.clear();
    }

    /// These nodes of the cluster have changed.
    pub(super) fn touch(&mut self, cluster: &Cluster, nodes: &[NodeId]) {
        if self.is_loaded && self.touched.len() + nodes.len() <= cluster.nodes().len() {
            self.touched.extend_from_slice(nodes);
        } else {
            // So many are sooner loaded anew.
            self.forget();
        }
    }

    /// The backend, with the nodes as they are.
    pub(super) fn current(&mut self, cluster: &Cluster) -> Result<&mut dyn Backend, EvalError> {
        if !self.is_loaded {
            self.backend.load(&NodeRows::of(cluster)?)?;
            self.is_loaded = true;
        } else if !self.touched.is_empty() {
            self.touched.sort_unstable();
            self.touched.dedup();
            self.edits.clear();
            self.edits.extend(self.touched.iter().map(|&node| NodeEdit::of(cluster, node)));
            self.backend.apply(&self.edits)?;
        }
        self.touched.clear();
        Ok(&mut *self.backend)
    }
}
