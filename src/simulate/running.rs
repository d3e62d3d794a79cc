//! What runs, and until when.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::anchor::Migration;
use crate::cluster::{Cluster, JobId, NodeId, Request, WHOLE_GPU};

use super::backfill::Place;
use super::scenario::Scenario;

/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// Migrations and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Events that moved an instance to another node.
    pub events: u64,
    /// Instances that events moved to another node (net).
    pub instances: u64,
    /// GPUs of those instances.
    pub gpus: u64,
    /// Pauses of running jobs: one a job and event, however many of its instances moved.
    pub pauses: u64,
    /// Time that paused jobs held their GPUs for nothing, summed over GPUs.
    pub gpu_seconds_lost: u128,
}

/// A run of a job that a failing node ended before its time. The job waits again if it is one of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostRun {
    /// The job's position in the trace; `None` for one that ran on the cluster at first, which does not come back.
    pub position: Option<usize>,
    /// When the run began.
    pub start: u64,
    /// When it was ended.
    pub end: u64,
    /// All that the job asks for, in thousandths of a GPU.
    pub demand_milli: u64,
}

/// The times of one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) start: u64,
    /// As far as is known by now; `NEVER` for a job that has not started.
    pub(super) finish: u64,
    pub(super) pauses: u32,
}

/// The running jobs by their finish, and the times of all jobs.
#[derive(Debug)]
pub(super) struct Running<'a> {
    scenario: &'a Scenario,
    move_cost_s: u64,
    /// The running jobs that finish at all, soonest first, at one instant by job. A set, because migrations move
    /// finishes and backfill reads it in order.
    departures: BTreeSet<(u64, JobId)>,
    times: Vec<Times>,
    n: u64,
    demand_milli: u64,
    pauses: Pauses,
    lost: Vec<LostRun>,
}

impl<'a> Running<'a> {
    /// What the cluster of the scenario runs at `start`.
    pub(super) fn new(scenario: &'a Scenario, move_cost_s: u64, start: u64) -> Self {
        let cluster = scenario.cluster();
        let waiting = Times { start: NEVER, finish: NEVER, pauses: 0 };
        let mut running = Self {
            scenario,
            move_cost_s,
            departures: BTreeSet::new(),
            times: vec![waiting; cluster.jobs().len()],
            n: 0,
            demand_milli: 0,
            pauses: Pauses::default(),
            lost: Vec::new(),
        };
        for job in cluster.job_ids().filter(|&job| cluster.job(job).runs()) {
            let remaining = cluster.job_times(job).remaining_s.unwrap_or(NEVER);
            running.enter(job, start, start.saturating_add(remaining));
        }
        running
    }

    /// A job starts now.
    pub(super) fn enter(&mut self, job: JobId, now: u64, finish: u64) {
        self.times[job.index()] = Times { start: now, finish, pauses: 0 };
        if finish != NEVER {
            self.departures.insert((finish, job));
        }
        self.n += 1;
        self.demand_milli += self.scenario.demand_milli(job);
    }

    /// The instant of the next departure.
    pub(super) fn next_departure(&self) -> Option<u64> {
        self.departures.first().map(|&(finish, _)| finish)
    }

    /// Takes all jobs that finish now, by job.
    pub(super) fn leave(&mut self, now: u64, jobs: &mut Vec<JobId>) {
        jobs.clear();
        while let Some(&(finish, job)) = self.departures.first()
            && finish <= now
        {
            self.departures.pop_first();
            self.n -= 1;
            self.demand_milli -= self.scenario.demand_milli(job);
            jobs.push(job);
        }
    }

    /// A running job is ended before its time, as if it had never started.
    pub(super) fn kill(&mut self, job: JobId, now: u64) {
        let times = &mut self.times[job.index()];
        let (start, finish) = (times.start, times.finish);
        *times = Times { start: NEVER, finish: NEVER, pauses: 0 };
        self.departures.remove(&(finish, job));
        let demand_milli = self.scenario.demand_milli(job);
        self.n -= 1;
        self.demand_milli -= demand_milli;
        self.lost.push(LostRun { position: self.scenario.position(job), start, end: now, demand_milli });
    }

    /// An event moved these instances, sorted by job: each of their jobs pauses once. A job that finishes now does not; the
    /// job that the event starts is never among them.
    pub(super) fn pause(&mut self, moved: &[Migration], now: u64) {
        if moved.is_empty() {
            return;
        }
        self.pauses.events += 1;
        self.pauses.instances += moved.len() as u64;
        self.pauses.gpus += moved.iter().map(|one| u64::from(one.gpus.count_ones())).sum::<u64>();
        for of_one_job in moved.chunk_by(|one, other| one.job == other.job) {
            let job = of_one_job[0].job;
            let times = &mut self.times[job.index()];
            if times.finish == now {
                continue;
            }
            let cost = match self.scenario.position(job) {
                Some(_) => self.move_cost_s,
                None => self.scenario.cluster().job_times(job).move_cost_s.unwrap_or(self.move_cost_s),
            };
            times.pauses += 1;
            self.pauses.pauses += 1;
            self.pauses.gpu_seconds_lost += u128::from(cost) * u128::from(self.scenario.gpus(job));
            if cost > 0 && times.finish != NEVER {
                self.departures.remove(&(times.finish, job));
                // The last instant is kept free: it means never.
                times.finish = times.finish.saturating_add(cost).min(NEVER - 1);
                self.departures.insert((times.finish, job));
            }
        }
    }

    /// Running jobs that finish at all, soonest first, with the places that come free with each. `cluster` is where they
    /// run: it tells which shares lie on one device, and on which nodes nobody can have what comes free. Where nothing is
    /// assigned to a node there are neither.
    pub(super) fn by_finish<'s>(
        &'s self,
        place: Place,
        cluster: Option<&'s Cluster>,
    ) -> impl Iterator<Item = (u64, u64)> + 's {
        // What is left by then of the devices that shares lie on.
        let mut left: FxHashMap<(NodeId, u8), u16> = FxHashMap::default();
        self.departures.iter().map(move |&(finish, job)| {
            let Some(cluster) = cluster else { return (finish, self.scenario.gpus(job) * place.on(WHOLE_GPU)) };
            let &Request { gpus, gpu_milli, .. } = cluster.request_of(job);
            let mut places = 0;
            for instance in cluster.instances_of(job).map(|instance| cluster.instance(instance)) {
                let Some(node) = instance.node().filter(|&node| cluster.node(node).schedulable()) else { continue };
                if gpu_milli == WHOLE_GPU {
                    places += u64::from(gpus) * place.on(WHOLE_GPU);
                    continue;
                }
                let gpu = instance.gpus().trailing_zeros() as u8;
                let left = left.entry((node, gpu)).or_insert_with(|| cluster.gpu_milli_left(node)[usize::from(gpu)]);
                places += place.on(*left + gpu_milli) - place.on(*left);
                *left += gpu_milli;
            }
            (finish, places)
        })
    }

    /// What the running jobs ask for, in thousandths of a GPU.
    pub(super) fn demand_milli(&self) -> u64 {
        self.demand_milli
    }

    /// Running jobs that finish at all, soonest first.
    pub(super) fn departures(&self) -> impl Iterator<Item = (u64, JobId)> + '_ {
        self.departures.iter().copied()
    }

    /// The number of running jobs.
    pub(super) fn len(&self) -> u64 {
        self.n
    }

    /// The times of all jobs of the cluster, what migrations cost, and the runs that nodes ended.
    pub(super) fn into_parts(self) -> (Vec<Times>, Pauses, Vec<LostRun>) {
        (self.times, self.pauses, self.lost)
    }
}
