//! The queue: what is decided, in which order.

use crate::cluster::{Cluster, GroupedJob, JobId};

/// One line of a queue. Its jobs are registered in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEntry {
    /// Decide where this job goes. It is no group of another.
    Submit(JobId),
    /// Decide where this job of several groups goes, all of them together.
    SubmitGroups(GroupedJob),
    /// This job leaves, if it runs by then. It is no group of another.
    Remove(JobId),
    /// This job of several groups leaves, if it runs by then.
    RemoveGroups(GroupedJob),
}

impl QueueEntry {
    /// Whether it submits a job, of however many groups.
    pub fn is_submitted(self) -> bool {
        matches!(self, QueueEntry::Submit(_) | QueueEntry::SubmitGroups(_))
    }

    /// The job that it is about; the first group of one of several.
    pub fn job(self) -> JobId {
        match self {
            QueueEntry::Submit(job) | QueueEntry::Remove(job) => job,
            QueueEntry::SubmitGroups(job) | QueueEntry::RemoveGroups(job) => job.first(),
        }
    }
}

/// A queue in priority order.
pub type Queue = Vec<QueueEntry>;

/// The jobs that a queue submits, of those of several groups all groups.
pub fn submitted_jobs<'q>(queue: &'q [QueueEntry], cluster: &'q Cluster) -> impl Iterator<Item = JobId> + 'q {
    queue.iter().filter(|entry| entry.is_submitted()).flat_map(|entry| cluster.whole_job(entry.job()))
}
