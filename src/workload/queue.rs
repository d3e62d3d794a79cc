//! The queue: what is decided, in which order.

use crate::cluster::JobId;

/// One line of a queue. Its jobs are registered in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEntry {
    /// Decide where this job goes.
    Submit(JobId),
    /// This job leaves, if it runs by then.
    Remove(JobId),
}

impl QueueEntry {
    /// The job that it is about.
    pub fn job(self) -> JobId {
        match self {
            QueueEntry::Submit(job) | QueueEntry::Remove(job) => job,
        }
    }
}

/// A queue in priority order.
pub type Queue = Vec<QueueEntry>;
