//! How many instances may be away at a time.

use super::JobId;

/// A limit on how many instances of some jobs may be stopped at a time, as a PodDisruptionBudget of Kubernetes is one.
///
/// It is no part of a cluster, which it does not change: whoever moves something keeps to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisruptionBudget {
    /// What it is called.
    pub name: String,
    /// So many instances at a time.
    pub allowed: u64,
    /// The jobs that it is for, with all their instances, each once and by their numbers.
    pub jobs: Vec<JobId>,
}

impl DisruptionBudget {
    /// Whether it is for a job.
    pub fn covers(&self, job: JobId) -> bool {
        self.jobs.binary_search(&job).is_ok()
    }
}
