//! Which devices jobs held when they left.

use std::ops::RangeInclusive;

use crate::cluster::{Cluster, JobId, gpu_indices};

use super::scenario::Scenario;

/// The devices that each job of a trace held last: when it left, or at the end of the run. Devices are numbered from 0
/// node by node, in the order of the cluster, broken ones included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocations {
    /// The number of the first device of each node.
    first: Vec<u64>,
    /// Ascending ranges by position in the trace; none of a job that has not left.
    held: Vec<Box<[RangeInclusive<u64>]>>,
    /// The number in the cluster of the first job of the trace.
    first_job: JobId,
}

impl Allocations {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut next = 0;
        let mut count = |devices: u8| {
            let first = next;
            next += u64::from(devices);
            first
        };
        let first = scenario.cluster().nodes().iter().map(|node| count(node.devices())).collect();
        Self { first, held: vec![Box::default(); scenario.jobs().len()], first_job: scenario.job_id(0) }
    }

    /// Notes what these jobs of the cluster hold.
    pub(super) fn note(&mut self, jobs: impl IntoIterator<Item = JobId>, cluster: &Cluster) {
        let mut devices: Vec<u64> = Vec::new();
        for job in jobs {
            // What ran at first is no part of the trace.
            let Some(position) = job.0.checked_sub(self.first_job.0) else { continue };
            devices.clear();
            for instance in cluster.instances_of(job).map(|instance| cluster.instance(instance)) {
                if let Some(node) = instance.node() {
                    let first = self.first[node.index()];
                    devices.extend(gpu_indices(instance.gpus()).map(|gpu| first + u64::from(gpu)));
                }
            }
            devices.sort_unstable();
            // Several shares of one job may lie on one device.
            devices.dedup();
            let ranges = devices.chunk_by(|one, next| one + 1 == *next).map(|run| run[0]..=run[run.len() - 1]);
            self.held[position as usize] = ranges.collect();
        }
    }

    /// What the job at a position of the trace held; nothing if it never ran, or asks for no GPU.
    pub fn held(&self, position: usize) -> &[RangeInclusive<u64>] {
        &self.held[position]
    }
}
