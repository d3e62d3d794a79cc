//! What the scheduler that was dumped calls what runs.

use crate::cluster::{Cluster, InstanceId, JobId};

use super::assembly::Origin;

/// What commands for that scheduler must name, of each running job.
///
/// A job of the cluster need not be one there: pods are put together to gangs, and a job whose instances are unlike is taken
/// as groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handles {
    /// Kubernetes: the pod of each instance as `NAMESPACE/NAME`, by the number of the job. Jobs that stand for pods without
    /// GPUs have none.
    Pods(Vec<Vec<Option<String>>>),
    /// Slurm: the job itself, by the number of the job. Several may be one there.
    Jobs(Vec<String>),
}

impl Handles {
    /// Those of pods, which `names` has in the order in which they were numbered.
    pub(in crate::formats) fn of_pods(origins: Vec<Origin>, mut names: Vec<String>) -> Self {
        let mut pod = |pod: Option<u32>| names.get_mut(pod? as usize).map(std::mem::take);
        Self::Pods(origins.into_iter().map(|origin| origin.pods.into_iter().map(&mut pod).collect()).collect())
    }

    /// Those of Slurm's jobs.
    pub(in crate::formats) fn of_jobs(origins: Vec<Origin>) -> Self {
        Self::Jobs(origins.into_iter().map(|origin| origin.name).collect())
    }

    /// The pod that an instance is, as `NAMESPACE/NAME`.
    pub fn pod(&self, cluster: &Cluster, instance: InstanceId) -> Option<&str> {
        let Self::Pods(pods) = self else { return None };
        let of_job = pods.get(cluster.instance(instance).job().index())?;
        of_job.get(cluster.position(instance) as usize)?.as_deref()
    }

    /// Slurm's number of the job that a job is, or is a part of.
    pub fn job(&self, job: JobId) -> Option<&str> {
        let Self::Jobs(jobs) = self else { return None };
        jobs.get(job.index()).map(String::as_str)
    }
}
