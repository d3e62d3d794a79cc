//! What came out of a simulation.

use super::measures::Totals;
use super::running::{LostRun, NEVER, Pauses, Times};
use super::scenario::Scenario;
use super::scheduler::Scheduler;
use crate::workload::TraceJob;

/// What became of one job of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobOutcome {
    start: u64,
    finish: u64,
    /// Events that moved it since it started.
    pub pauses: u32,
}

impl JobOutcome {
    /// When it started, the last time if a failing node ended it; `None` if it never did, or waits again.
    pub fn start(&self) -> Option<u64> {
        (self.start != NEVER).then_some(self.start)
    }

    /// When it finished; `None` if it never did, since it never started or stays forever.
    pub fn finish(&self) -> Option<u64> {
        (self.finish != NEVER).then_some(self.finish)
    }
}

/// A simulated run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Who scheduled.
    pub scheduler: Scheduler,
    /// The jobs, in the order of the trace. One that never started was rejected or still waits when nothing happens any
    /// more.
    pub jobs: Vec<JobOutcome>,
    /// The first submission; 0 of an empty trace.
    pub first_submit: u64,
    /// The last finish of a job of the trace, or the last instant at which anything happened.
    pub end: u64,
    /// Sums over time.
    pub totals: Totals,
    /// Migrations.
    pub pauses: Pauses,
    /// Runs that failing nodes ended, in the order of time.
    pub lost: Vec<LostRun>,
    /// Arrivals, starts, departures, and changes of nodes.
    pub events: u64,
}

impl Outcome {
    /// GPU-seconds that failing nodes made worthless: what the runs that they ended had been given, shares of a GPU as such,
    /// and the sum rounded up.
    pub fn gpu_seconds_lost_by_failures(&self) -> u128 {
        let milli = |run: &LostRun| u128::from(run.end - run.start) * u128::from(run.demand_milli);
        self.lost.iter().map(milli).sum::<u128>().div_ceil(u128::from(TraceJob::WHOLE))
    }

    pub(super) fn new(
        scheduler: Scheduler,
        scenario: &Scenario,
        (first_submit, end): (u64, u64),
        totals: Totals,
        (times, pauses, lost): (Vec<Times>, Pauses, Vec<LostRun>),
        events: u64,
    ) -> Self {
        let outcome = |position| {
            let Times { start, finish, pauses } = times[scenario.job_id(position).index()];
            JobOutcome { start, finish, pauses }
        };
        let jobs = (0..scenario.jobs().len()).map(outcome).collect();
        Self { scheduler, jobs, first_submit, end, totals, pauses, lost, events }
    }
}
