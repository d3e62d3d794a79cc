//! Edits: the only way to change who holds what. A batch applies whole or not at all, and is undone as data.

use super::ids::{InstanceId, NodeId};
use super::node::GpuMask;

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
}

impl Edit {
    /// The node that it changes.
    pub fn node(&self) -> NodeId {
        match *self {
            Edit::Take { node, .. } | Edit::Free { node, .. } => node,
        }
    }

    /// The edit that takes this one back.
    pub fn inverse(self) -> Self {
        match self {
            Edit::Take { instance, node, gpus } => Edit::Free { instance, node, gpus },
            Edit::Free { instance, node, gpus } => Edit::Take { instance, node, gpus },
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
    /// A device is held by somebody.
    #[error("a device of node {0:?} is busy")]
    GpuBusy(NodeId),
    /// Not enough free milli-cores.
    #[error("node {0:?} has not enough free CPU")]
    NoCpu(NodeId),
    /// Not enough free MiB.
    #[error("node {0:?} has not enough free memory")]
    NoMemory(NodeId),
}
