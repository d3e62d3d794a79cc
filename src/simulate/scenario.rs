//! What is simulated: a cluster, and the jobs that come to it.

use crate::cluster::{BuildError, Cluster, ClusterBuilder, JobId, JobSpec, MAX_GPUS, NodeSpec, PerSize};
use crate::workload::TraceJob;

/// A cluster and a trace, whose jobs are registered in it. Whatever runs on the cluster at first is not part of the
/// trace: it leaves after its `remaining_s`, counted from the first submission, or never.
#[derive(Clone, Debug)]
pub struct Scenario {
    cluster: Cluster,
    jobs: Vec<TraceJob>,
    /// The number of `jobs[0]` in the cluster; the others follow.
    first: u32,
    /// Jobs that not even the empty cluster could take, by position.
    rejected: Vec<bool>,
}

impl Scenario {
    /// Registers the jobs, which are sorted by submission, ties staying in order. A job that would not fit on the empty
    /// cluster is rejected: under strict FIFO everything would wait behind it forever.
    ///
    /// # Errors
    /// If a job's name is taken, or a number is out of range.
    pub fn new(mut cluster: Cluster, mut jobs: Vec<TraceJob>) -> Result<Self, BuildError> {
        jobs.sort_by_key(|job| job.submit_s);
        let first = cluster.jobs().len() as u32;
        let mut most: PerSize<u64> = [0; MAX_GPUS + 1];
        for node in cluster.nodes().iter().filter(|node| node.schedulable()) {
            for (most, gpus) in most.iter_mut().zip(0u8..).skip(1) {
                *most += u64::from(node.capacity() / gpus);
            }
        }
        // CPU-only instances are bounded by nothing that a trace states.
        most[0] = u64::MAX;
        let mut rejected = Vec::with_capacity(jobs.len());
        for job in &jobs {
            let spec = JobSpec { name: &job.name, gpus: job.gpus_per_instance, ..JobSpec::default() };
            cluster.register(&spec, job.instances)?;
            rejected.push(most[usize::from(job.gpus_per_instance)] < u64::from(job.instances));
        }
        Ok(Self { cluster, jobs, first, rejected })
    }

    /// The jobs on a new cluster of nodes `n0`, `n1`, … of one kind.
    ///
    /// # Errors
    /// As [`Scenario::new`], or if the cluster cannot be built.
    pub fn homogeneous(nodes: u64, gpus_per_node: u8, jobs: Vec<TraceJob>) -> Result<Self, BuildError> {
        let mut builder = ClusterBuilder::new();
        for i in 0..nodes {
            builder.add_node(&NodeSpec { name: &format!("n{i}"), gpus: gpus_per_node, ..NodeSpec::default() })?;
        }
        Self::new(builder.finish()?, jobs)
    }

    /// The cluster before the first submission.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The jobs, by submission.
    pub fn jobs(&self) -> &[TraceJob] {
        &self.jobs
    }

    /// Whether the job at a position is left out because not even the empty cluster could take it.
    pub fn is_rejected(&self, position: usize) -> bool {
        self.rejected[position]
    }

    /// The number of jobs that are left out.
    pub fn n_rejected(&self) -> u64 {
        self.rejected.iter().filter(|&&rejected| rejected).count() as u64
    }

    /// The number in the cluster of the job at a position.
    pub fn job_id(&self, position: usize) -> JobId {
        JobId(self.first + position as u32)
    }

    /// The position in the trace of a job of the cluster; `None` for one that ran there at first.
    pub fn position(&self, job: JobId) -> Option<usize> {
        job.0.checked_sub(self.first).map(|position| position as usize)
    }

    /// All GPUs of a job.
    pub(super) fn gpus(&self, job: JobId) -> u64 {
        u64::from(self.cluster.request_of(job).gpus) * u64::from(self.cluster.job(job).instances())
    }
}
