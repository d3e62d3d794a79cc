//! Edits: the only way to change who holds what, and which nodes take more. A batch applies whole or not at all, and is
//! undone as data.

use super::ids::{InstanceId, NodeId};
use super::ledger::{Cluster, Instance, NOBODY, SHARED};
use super::node::GpuMask;
use super::shares;

/// One step of a batch. A move is a `Free` and, later in the batch, a `Take` of the same instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The instance, which holds nothing, takes these devices (none for a CPU-only instance) and its CPU and memory.
    Take {
        /// Who.
        instance: InstanceId,
        /// Where.
        node: NodeId,
        /// Which devices; as many as the job's request says.
        gpus: GpuMask,
    },
    /// The instance gives back all it holds, which is this.
    Free {
        /// Who.
        instance: InstanceId,
        /// Where.
        node: NodeId,
        /// Which devices.
        gpus: GpuMask,
    },
    /// The node, which was schedulable, takes no more instances. What it has runs on.
    Cordon(NodeId),
    /// The node, which was cordoned, takes instances again.
    Uncordon(NodeId),
}

impl Edit {
    /// The node that it changes.
    pub fn node(&self) -> NodeId {
        match *self {
            Edit::Take { node, .. } | Edit::Free { node, .. } | Edit::Cordon(node) | Edit::Uncordon(node) => node,
        }
    }

    /// The edit that takes this one back.
    pub fn inverse(self) -> Self {
        match self {
            Edit::Take { instance, node, gpus } => Edit::Free { instance, node, gpus },
            Edit::Free { instance, node, gpus } => Edit::Take { instance, node, gpus },
            Edit::Cordon(node) => Edit::Uncordon(node),
            Edit::Uncordon(node) => Edit::Cordon(node),
        }
    }
}

/// Why a batch of edits was refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// There is no such instance.
    #[error("there is no instance {0:?}")]
    UnknownInstance(InstanceId),
    /// There is no such node.
    #[error("there is no node {0:?}")]
    UnknownNode(NodeId),
    /// A `Take` by an instance that holds something already.
    #[error("instance {0:?} already runs")]
    AlreadyRuns(InstanceId),
    /// A `Free` that does not say what the instance holds.
    #[error("instance {0:?} does not hold what is freed")]
    NotHeld(InstanceId),
    /// Not as many devices as the request says.
    #[error("instance {0:?} takes a wrong number of devices")]
    WrongCount(InstanceId),
    /// A device is broken or past the node's last.
    #[error("node {0:?} has no such working device")]
    NoSuchGpu(NodeId),
    /// A device is held by somebody, or has too little left for a share.
    #[error("a device of node {0:?} is busy")]
    GpuBusy(NodeId),
    /// Not enough free milli-cores.
    #[error("node {0:?} has not enough free CPU")]
    NoCpu(NodeId),
    /// Not enough free MiB.
    #[error("node {0:?} has not enough free memory")]
    NoMemory(NodeId),
    /// A `Cordon` of a node that is cordoned, or the reverse.
    #[error("node {0:?} is so already")]
    SoAlready(NodeId),
}

impl Cluster {
    /// Applies a batch in its order: whole, or not at all.
    ///
    /// # Errors
    /// The first step that is not possible; the cluster is then as it was before.
    pub fn apply(&mut self, edits: &[Edit]) -> Result<(), EditError> {
        for (done, &edit) in edits.iter().enumerate() {
            if let Err(error) = self.check(edit) {
                self.undo(&edits[..done]);
                return Err(error);
            }
            self.step(edit);
        }
        Ok(())
    }

    /// Applies one edit: the same as a batch of one.
    ///
    /// # Errors
    /// If it is not possible; nothing has changed then.
    pub fn apply_one(&mut self, edit: Edit) -> Result<(), EditError> {
        self.check(edit)?;
        self.step(edit);
        Ok(())
    }

    /// Takes back a batch that was applied, and after which nothing else was applied. Cannot fail.
    pub fn undo(&mut self, edits: &[Edit]) {
        for edit in edits.iter().rev() {
            self.step(edit.inverse());
        }
    }

    /// Whether one edit is possible now.
    #[inline(always)]
    fn check(&self, edit: Edit) -> Result<(), EditError> {
        let (instance, node_id, gpus) = match edit {
            Edit::Take { instance, node, gpus } | Edit::Free { instance, node, gpus } => (instance, node, gpus),
            Edit::Cordon(id) | Edit::Uncordon(id) => {
                let node = self.nodes.get(id.index()).ok_or(EditError::UnknownNode(id))?;
                let changes = node.schedulable == matches!(edit, Edit::Cordon(_));
                return if changes { Ok(()) } else { Err(EditError::SoAlready(id)) };
            }
        };
        let holder = self.instances.get(instance.index()).ok_or(EditError::UnknownInstance(instance))?;
        let node = self.nodes.get(node_id.index()).ok_or(EditError::UnknownNode(node_id))?;
        if let Edit::Free { .. } = edit {
            let held = holder.node == node_id.0 && holder.gpus == gpus;
            return if held { Ok(()) } else { Err(EditError::NotHeld(instance)) };
        }
        let request = self.request_of(holder.job);
        if holder.node != NOBODY {
            Err(EditError::AlreadyRuns(instance))
        } else if gpus.count_ones() != u32::from(request.gpus) {
            Err(EditError::WrongCount(instance))
        } else if gpus & !node.usable != 0 {
            Err(EditError::NoSuchGpu(node_id))
        } else if gpus & node.busy != 0 && !(request.is_share() && self.has_left(node_id, gpus, request.gpu_milli)) {
            Err(EditError::GpuBusy(node_id))
        } else if request.cpu_milli > 0 && node.cpu_free() < request.cpu_milli {
            Err(EditError::NoCpu(node_id))
        } else if request.memory_mib > 0 && node.memory_free() < request.memory_mib {
            Err(EditError::NoMemory(node_id))
        } else {
            Ok(())
        }
    }

    /// The one function that changes who holds what and which nodes take more. In line, because every decision takes
    /// several steps, and a call costs a tenth of one.
    #[inline(always)]
    pub(super) fn step(&mut self, edit: Edit) {
        let (instance, node_id, gpus, takes) = match edit {
            Edit::Take { instance, node, gpus } => (instance, node, gpus, true),
            Edit::Free { instance, node, gpus } => (instance, node, gpus, false),
            Edit::Cordon(node) | Edit::Uncordon(node) => {
                self.nodes[node.index()].schedulable = matches!(edit, Edit::Uncordon(_));
                return;
            }
        };
        let holder = &mut self.instances[instance.index()];
        let job = &mut self.jobs[holder.job.index()];
        let request = &self.requests[job.request().index()];
        let node = &mut self.nodes[node_id.index()];
        let (cpu, memory) = (u64::from(request.cpu_milli), u64::from(request.memory_mib));
        if takes {
            debug_assert!(holder.node == NOBODY && (node.busy & !node.shared) & gpus == 0);
            *holder = Instance { node: node_id.0, gpus, ..*holder };
            job.running += 1;
            node.cpu_used += cpu;
            node.memory_used += memory;
        } else {
            debug_assert!(holder.node == node_id.0 && holder.gpus == gpus);
            *holder = Instance { node: NOBODY, gpus: 0, ..*holder };
            job.running -= 1;
            node.cpu_used -= cpu;
            node.memory_used -= memory;
        }
        if request.is_share() && !shares::step(&mut self.shares, node, node_id, gpus, request.gpu_milli, takes) {
            // Others share the device before and after.
            return;
        }
        let anchors = if request.gpus >= 2 { gpus } else { 0 };
        let owner = if takes {
            node.busy |= gpus;
            node.anchors |= anchors;
            node.composition = node.composition.with(request.gpus).unwrap_or(node.composition);
            if request.is_share() { SHARED } else { instance.0 }
        } else {
            node.busy &= !gpus;
            node.anchors &= !anchors;
            node.composition = node.composition.without(request.gpus).unwrap_or(node.composition);
            NOBODY
        };
        let at = node.owners_at as usize;
        let mut left = gpus;
        while left != 0 {
            self.owners[at + left.trailing_zeros() as usize] = owner;
            left &= left - 1;
        }
        debug_assert_eq!(u32::from(node.composition.busy()), node.busy.count_ones());
    }
}
