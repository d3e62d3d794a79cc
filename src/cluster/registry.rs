//! Jobs that come and go without a trace: what a standing process needs, whose cluster outlives its callers.

use super::ids::{JobId, RequestId};
use super::ledger::Cluster;

/// How many jobs, and what goes with them, a cluster knew at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobMark {
    jobs: usize,
    instances: usize,
    requests: usize,
    models: usize,
}

impl JobMark {
    /// Whether the request was there by then.
    pub fn knows(self, request: RequestId) -> bool {
        request.index() < self.requests
    }
}

impl Cluster {
    /// The jobs that are known now, to forget those that come after.
    pub fn mark_jobs(&self) -> JobMark {
        JobMark {
            jobs: self.jobs.len(),
            instances: self.instances.len(),
            requests: self.requests.len(),
            models: self.models.len(),
        }
    }

    /// The jobs that were registered after the mark.
    pub fn jobs_since(&self, mark: JobMark) -> impl Iterator<Item = JobId> + use<> {
        (mark.jobs as u32..self.jobs.len() as u32).map(JobId)
    }

    /// Forgets the jobs, requests and models that were registered after the mark, as if they had never been: nothing grows
    /// with what is only asked. None of those jobs may run. O(what is forgotten).
    pub fn forget_since(&mut self, mark: JobMark) {
        debug_assert!(self.jobs[mark.jobs..].iter().all(|job| !job.runs()), "a running job is forgotten");
        for job in mark.jobs..self.jobs.len() {
            self.job_times.remove(&JobId(job as u32));
        }
        self.jobs.truncate(mark.jobs);
        self.grouped.truncate(mark.jobs);
        self.job_names.truncate(mark.jobs);
        self.instances.truncate(mark.instances);
        for request in self.requests.drain(mark.requests..) {
            self.request_numbers.remove(&request);
        }
        self.models.truncate(mark.models);
    }

    /// Lets a job that has ended give its name back, so that another may have it; with the first of several groups goes the
    /// name of all. Its number stays. False, with nothing done, if it runs.
    pub fn release_name(&mut self, job: JobId) -> bool {
        let ended = !self.job(job).runs();
        if ended {
            self.job_names.forget(job.0);
            self.grouped.forget_name(job);
        }
        ended
    }

    /// Takes [`Cluster::release_name`] back, unless another job has the name by now.
    pub fn restore_name(&mut self, job: JobId) {
        self.job_names.remember(job.0);
        self.grouped.remember_name(job);
    }

    /// How many jobs and instances are known, whether they run or not: what memory goes with.
    pub fn n_known(&self) -> (usize, usize) {
        (self.jobs.len(), self.instances.len())
    }
}

#[cfg(test)]
mod tests {
    use crate::cluster::{ClusterBuilder, Edit, JobSpec, NodeId, NodeSpec};

    #[test]
    fn the_name_of_several_groups_goes_with_the_first() {
        let mut builder = ClusterBuilder::new();
        builder.add_node(&NodeSpec { name: "n", gpus: 8, ..NodeSpec::default() }).unwrap();
        let mut cluster = builder.finish().unwrap();
        let groups = [(JobSpec { gpus: 1, ..JobSpec::default() }, 1), (JobSpec { gpus: 2, ..JobSpec::default() }, 1)];
        let mark = cluster.mark_jobs();
        let first = cluster.register_groups("g", &groups).unwrap();
        assert!(cluster.register_groups("g", &groups).is_err());
        first.jobs().for_each(|job| assert!(cluster.release_name(job)));
        let again = cluster.register_groups("g", &groups).unwrap();
        assert_eq!(cluster.find_grouped_job("g"), Some(again));
        cluster.forget_since(mark);
        assert_eq!((cluster.find_grouped_job("g"), cluster.mark_jobs()), (None, mark));
        assert!(cluster.register_groups("g", &groups).is_ok());
    }

    #[test]
    fn what_is_only_asked_leaves_no_trace() {
        let mut builder = ClusterBuilder::new();
        builder.add_node(&NodeSpec { name: "n", gpus: 8, ..NodeSpec::default() }).unwrap();
        let mut cluster = builder.finish().unwrap();
        let spec = |name: &'static str, gpus| JobSpec { name, gpus, models: &["H100"], ..JobSpec::default() };
        let kept = cluster.register(&spec("kept", 2), 1).unwrap();
        assert!(cluster.number_instances(kept));
        let instance = cluster.instances_of(kept).next().unwrap();
        cluster.apply_one(Edit::Take { instance, node: NodeId(0), gpus: 3 }).unwrap();
        let mark = cluster.mark_jobs();
        for _ in 0..3 {
            let asked = JobSpec { models: &["B200"], cpu_milli: 7, ..spec("asked", 4) };
            let asked = cluster.register(&asked, 2).unwrap();
            assert!(cluster.number_instances(asked));
            assert!(!mark.knows(cluster.job(asked).request()) && mark.knows(cluster.job(kept).request()));
            cluster.forget_since(mark);
            assert_eq!((cluster.mark_jobs(), cluster.find_job("asked")), (mark, None));
        }
        assert_eq!(cluster.find_job("kept"), Some(kept));
        assert!(!cluster.release_name(kept));
        cluster.apply_one(Edit::Free { instance, node: NodeId(0), gpus: 3 }).unwrap();
        assert!(cluster.release_name(kept));
        let again = cluster.register(&spec("kept", 8), 1).unwrap();
        assert_eq!((again.0, cluster.find_job("kept")), (kept.0 + 1, Some(again)));
        cluster.check_books().unwrap();
    }
}
