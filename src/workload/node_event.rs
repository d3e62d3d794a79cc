//! What happens to nodes while a trace is played.

use crate::cluster::NodeId;

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeChange {
    /// It stops: whatever has an instance on it ends, and nothing new starts there.
    Fail,
    /// Nothing new starts there; what runs there runs on.
    Drain,
    /// It takes instances again.
    Return,
}

impl NodeChange {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fail, Self::Drain, Self::Return];

    /// The word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Drain => "drain",
            Self::Return => "return",
        }
    }

    /// The change of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|change| change.name() == name)
    }
}

/// A change of a node at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// When, in seconds from the start of the trace.
    pub at_s: u64,
    /// Which node.
    pub node: NodeId,
    /// What happens.
    pub change: NodeChange,
}
