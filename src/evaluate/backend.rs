//! Where batches are evaluated. Every backend gives the same bits; which one answers is a matter of speed.

use super::abi::NodeEdit;
use super::batch::{Batch, Scores};
use super::census::Census;
use super::measure::Speed;
use super::node_rows::NodeRows;
use super::query::NodeQuery;

/// A place where the nodes of one cluster are resident and batches are evaluated on them.
pub trait Backend: Send {
    /// Its name, as in `--backend`.
    fn name(&self) -> &'static str;

    /// Makes the rows of a cluster's nodes resident, in place of what was.
    ///
    /// # Errors
    /// If the device cannot hold them, or fails.
    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError>;

    /// Replaces the rows of nodes that the host has edited. The model and the topology of a cluster do not change.
    ///
    /// # Errors
    /// If a node is not there (nothing has changed then), or the device fails.
    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError>;

    /// Scores a batch, and finds the best candidate of each of its jobs. All of `out` is written.
    ///
    /// # Errors
    /// If the batch is about another cluster, or the device fails.
    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError>;

    /// The best nodes for each class of demand: `query.k()` numbers a class, padded with `NONE`.
    ///
    /// # Errors
    /// If the query is about another cluster, or the device fails.
    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError>;

    /// Puts a question for nodes on its way, so that the host can do something else meanwhile: `rank_nodes` with the
    /// same query, called next, only waits for the answer. Whatever comes in between may drop it, and edits do;
    /// `rank_nodes` then asks anew. So this never shows in an answer.
    ///
    /// False if nothing is on its way, as with a backend that works only while it is called.
    ///
    /// # Errors
    /// As `rank_nodes`.
    fn begin_ranking(&mut self, query: &NodeQuery) -> Result<bool, EvalError> {
        let _ = query;
        Ok(false)
    }

    /// Counts the nodes.
    ///
    /// # Errors
    /// If the device fails.
    fn census(&mut self, out: &mut Census) -> Result<(), EvalError>;

    /// How fast a batch is scored when it is resident, beside what the memory it then lies in allows: the best of
    /// some passes of `score_candidates` alone, in turn with as many of a plain read or copy of the touches.
    ///
    /// # Errors
    /// As `evaluate`.
    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError>;
}

/// Why something was not evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// There is no such device here.
    #[error("backend {backend} is not available: {why}")]
    Absent {
        /// Which.
        backend: &'static str,
        /// In words.
        why: String,
    },
    /// There is such a device here, and it cannot be used: its driver is too old, say.
    #[error("backend {backend} cannot be used: {why}")]
    Unusable {
        /// Which.
        backend: &'static str,
        /// In words.
        why: String,
    },
    /// The device failed.
    #[error("device error: {0}")]
    Device(String),
    /// The device has too little memory for this; it goes on working.
    #[error("backend {0} is out of memory")]
    OutOfMemory(&'static str),
    /// The worker threads could not be started.
    #[error("cannot start {0} threads: {1}")]
    Threads(usize, String),
    /// More than 32-bit rows can hold.
    #[error("{found} {what}, expected at most {most}")]
    TooLarge {
        /// Of what there are too many.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// An array that the device cannot hold.
    #[error("{what} need {bytes} bytes, the device has at most {most} for them")]
    DoesNotFit {
        /// Of what.
        what: &'static str,
        /// The bytes of it.
        bytes: u64,
        /// The bytes that there may be.
        most: u64,
    },
    /// A batch or query for another cluster than the one that is loaded.
    #[error("the batch is about {found} {what}, loaded are {loaded}")]
    OtherCluster {
        /// What was counted.
        what: &'static str,
        /// What the batch counts.
        found: usize,
        /// What the loaded cluster counts.
        loaded: usize,
    },
    /// An edit of a node that is not there.
    #[error("an edit of node {0}, loaded are {1} nodes")]
    UnknownNode(u32, usize),
    /// Rows that contradict each other.
    #[error("{0} of a batch are not as they must be")]
    Malformed(&'static str),
}

impl EvalError {
    pub(super) fn check_size(what: &'static str, found: usize, most: usize) -> Result<(), Self> {
        if found <= most { Ok(()) } else { Err(Self::TooLarge { what, found, most }) }
    }

    pub(super) fn check_batch(batch: &Batch, nodes: usize) -> Result<(), Self> {
        Self::check_loaded("nodes", batch.nodes(), nodes)
    }

    pub(super) fn check_query(query: &NodeQuery, pools: usize) -> Result<(), Self> {
        Self::check_loaded("pools", query.pools(), pools)
    }

    pub(super) fn check_edits(edits: &[NodeEdit], nodes: usize) -> Result<(), Self> {
        match edits.iter().find(|edit| edit.node as usize >= nodes) {
            None => Ok(()),
            Some(edit) => Err(Self::UnknownNode(edit.node, nodes)),
        }
    }

    fn check_loaded(what: &'static str, found: usize, loaded: usize) -> Result<(), Self> {
        if found == loaded { Ok(()) } else { Err(Self::OtherCluster { what, found, loaded }) }
    }
}

/// A backend or adapter, and whether it can be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The backend, as in `--backend`.
    pub backend: &'static str,
    /// What the device is called.
    pub name: String,
    /// Whether it can be used.
    pub usable: bool,
    /// Whether it computes on the processor, and so slower than `cpu` does.
    pub software: bool,
    /// Why it cannot be used; `None` if it can.
    pub why: Option<String>,
}
