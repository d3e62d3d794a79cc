//! Keeps what a report wants to show of a run.

use crate::cluster::{Cluster, JobId};

use super::allocations::Allocations;
use super::curve::Curve;
use super::load_curve::LoadCurve;
use super::measures::Interval;
use super::observe::{Observer, Stand};
use super::occupancy::Occupancy;
use super::scenario::Scenario;

/// What is to be kept of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Every interval: memory grows with the run.
    pub intervals: bool,
    /// The overview.
    pub overview: bool,
    /// The devices that each job held.
    pub allocations: bool,
}

/// A run at a glance: of a size that depends on the cluster alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// Over time.
    pub curve: Curve,
    /// By the load that had arrived.
    pub load: LoadCurve,
    /// Each node when the most GPUs were busy; none under the oracle.
    pub busiest: Option<Occupancy>,
    /// Each node when the trace asks for the most GPUs: the same second under every scheduler. None under the oracle.
    pub peak_demand: Option<Occupancy>,
    /// N·SIF at its largest, and each node then. Of more than a thousand nodes, a moment that falls short of the largest by
    /// less than a thousandth of them may stand for it, so that a rise costs a thousand looks at most. None under the
    /// oracle, and none if nothing was ever avoidable.
    pub most_fragmented: Option<(u64, Occupancy)>,
    /// Each node when nothing happened any more; none under the oracle, and none if all nodes are empty then.
    pub end: Option<Occupancy>,
}

/// What was kept of a run.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// All intervals, if they were to be kept.
    pub intervals: Vec<Interval>,
    /// The overview, if it was to be kept.
    pub overview: Option<Overview>,
    /// The devices of each job, if they were to be kept. The oracle gives nobody any.
    pub allocations: Option<Allocations>,
    keep_intervals: bool,
    /// When the trace asks for the most; `None` once that has been seen.
    peak: Option<u64>,
    most_busy: u64,
    now: u64,
}

impl Recorder {
    /// For a run of this scenario.
    pub fn new(scenario: &Scenario, keep: Keep) -> Self {
        let overview = Overview {
            curve: Curve::default(),
            load: LoadCurve::new(scenario.cluster().gpus()),
            busiest: None,
            peak_demand: None,
            most_fragmented: None,
            end: None,
        };
        Self {
            intervals: Vec::new(),
            overview: keep.overview.then_some(overview),
            allocations: keep.allocations.then(|| Allocations::new(scenario)),
            keep_intervals: keep.intervals,
            peak: if keep.overview { peak_demand(scenario) } else { None },
            most_busy: 0,
            now: 0,
        }
    }
}

/// The first second in which the jobs would ask for the most GPUs, shares as such, if each ran at once when it is submitted. Jobs of no
/// duration count for nothing.
fn peak_demand(scenario: &Scenario) -> Option<u64> {
    let jobs = scenario.jobs().iter().enumerate().filter(|&(position, _)| !scenario.is_rejected(position));
    // At one instant those that leave come first.
    let mut changes: Vec<(u64, bool, u64)> = Vec::new();
    for (_, job) in jobs.filter(|(_, job)| job.duration_s > 0) {
        changes.push((job.submit_s, true, job.demand_milli()));
        if job.leaves() {
            changes.push((job.submit_s.saturating_add(job.duration_s), false, job.demand_milli()));
        }
    }
    changes.sort_unstable();
    let (mut demand, mut peak) = (0u64, None);
    for (at, arrives, milli) in changes {
        demand = if arrives { demand.saturating_add(milli) } else { demand.saturating_sub(milli) };
        if peak.is_none_or(|(most, _)| demand > most) {
            peak = Some((demand, at));
        }
    }
    peak.map(|(_, at)| at)
}

impl Observer for Recorder {
    fn interval(&mut self, interval: &Interval, stand: Stand<'_>) {
        self.now = interval.to;
        if self.keep_intervals {
            self.intervals.push(*interval);
        }
        let Some(overview) = &mut self.overview else { return };
        overview.curve.add(interval);
        overview.load.add(interval);
        let Some(cluster) = stand.cluster else { return };
        // While jobs only come, the next interval is as busy: it is enough to look before some leave.
        if stand.jobs_leave && interval.busy_gpus > self.most_busy {
            self.most_busy = interval.busy_gpus;
            overview.busiest = Some(Occupancy::of(cluster, interval.from));
        }
        let most = overview.most_fragmented.as_ref().map_or(0, |&(n_sif, _)| n_sif);
        if interval.n_sif > most + cluster.nodes().len() as u64 / 1000 {
            overview.most_fragmented = Some((interval.n_sif, Occupancy::of(cluster, interval.from)));
        }
        if self.peak.is_some_and(|peak| peak < interval.to) {
            self.peak = None;
            overview.peak_demand = Some(Occupancy::of(cluster, interval.from));
        }
    }

    fn leaving(&mut self, jobs: &[JobId], cluster: &Cluster) {
        if let Some(allocations) = &mut self.allocations {
            allocations.note(jobs.iter().copied(), cluster);
        }
    }

    fn end(&mut self, cluster: &Cluster) {
        if let Some(allocations) = &mut self.allocations {
            allocations.note(cluster.job_ids().filter(|&job| cluster.job(job).runs()), cluster);
        }
        let Some(overview) = &mut self.overview else { return };
        let end = Occupancy::of(cluster, self.now);
        let busy: u64 = end.busy.iter().map(|&busy| u64::from(busy)).sum();
        if busy > self.most_busy {
            overview.busiest = Some(end.clone());
        }
        if self.peak.take().is_some() {
            overview.peak_demand = Some(end.clone());
        }
        overview.end = (busy > 0).then_some(end);
    }
}
