//! Who looks on while a simulation goes by.

use crate::cluster::{Cluster, JobId};

use super::measures::Interval;

/// How things stood in an interval, and how it ended.
#[derive(Clone, Copy, Debug)]
pub struct Stand<'a> {
    /// Who held what. `None` under the oracle, which assigns nothing to a node.
    pub cluster: Option<&'a Cluster>,
    /// Whether jobs leave at the end of the interval, or nodes fail that may end some. Where none does, no fewer GPUs are busy afterwards.
    pub jobs_leave: bool,
}

/// Sees a simulation go by, in the order of time. Nothing that it does changes the run.
pub trait Observer {
    /// Nothing happened in this interval, and now something is about to.
    fn interval(&mut self, interval: &Interval, stand: Stand<'_>);

    /// These jobs are about to leave `cluster`, by job, at their end: not those that a failing node ends. Never called under the oracle.
    fn leaving(&mut self, jobs: &[JobId], cluster: &Cluster) {
        let _ = (jobs, cluster);
    }

    /// Nothing happens any more, and `cluster` stays like this. Never called under the oracle.
    fn end(&mut self, cluster: &Cluster) {
        let _ = cluster;
    }
}
