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
    /// Each node after the last job of the trace was submitted; none under the oracle.
    pub last_submission: Option<Occupancy>,
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
    last_submit: Option<u64>,
    most_busy: u64,
    now: u64,
}

impl Recorder {
    /// For a run of this scenario.
    pub fn new(scenario: &Scenario, keep: Keep) -> Self {
        let jobs = scenario.jobs();
        let accepted = (0..jobs.len()).rev().find(|&position| !scenario.is_rejected(position));
        let overview = Overview {
            curve: Curve::default(),
            load: LoadCurve::new(scenario.cluster().gpus()),
            busiest: None,
            last_submission: None,
            end: None,
        };
        Self {
            intervals: Vec::new(),
            overview: keep.overview.then_some(overview),
            allocations: keep.allocations.then(|| Allocations::new(scenario)),
            keep_intervals: keep.intervals,
            last_submit: accepted.map(|position| jobs[position].submit_s),
            most_busy: 0,
            now: 0,
        }
    }
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
        if self.last_submit.is_some_and(|last| interval.from >= last) {
            self.last_submit = None;
            overview.last_submission = Some(Occupancy::of(cluster, interval.from));
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
        overview.end = (busy > 0).then_some(end);
    }
}
