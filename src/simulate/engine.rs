//! The event loop.

use crate::anchor::State;
use crate::cluster::JobId;
use crate::decide::CommitLoop;
use crate::workload::TraceJob;

use super::backfill::Reservation;
use super::discipline::{Discipline, Waiting};
use super::measures::{Interval, Totals};
use super::outcome::Outcome;
use super::running::{NEVER, Running};
use super::scenario::Scenario;
use super::scheduler::Scheduler;
use super::site::{Oracle, OracleError, Site};

/// The settings of a simulation that all schedulers share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimOptions {
    /// In which order jobs start.
    pub discipline: Discipline,
    /// How long a migration pauses a job, in seconds.
    pub move_cost_s: u64,
    /// The seed of the random policy.
    pub seed: u64,
}

/// Plays the trace of a scenario under a scheduler, and shows each interval to `watch`, in the order of time.
///
/// O(log jobs) an event beyond what the scheduler itself takes, but with backfill, which looks at the whole queue when
/// something has changed.
///
/// # Errors
/// If the scheduler is the oracle, and the cluster is not of one kind.
pub fn simulate(
    scenario: &Scenario,
    scheduler: Scheduler,
    options: &SimOptions,
    watch: &mut dyn FnMut(&Interval),
) -> Result<Outcome, OracleError> {
    match scheduler.place_options(options.seed) {
        Some(settings) => {
            let mut state = State::new(scenario.cluster().clone());
            let mut site = CommitLoop::new(&mut state, settings);
            if let Some(typical) = scenario.typical() {
                site = site.with_typical(typical.clone());
            }
            Ok(Engine::new(scenario, options, site).run(scheduler, watch))
        }
        None => {
            let site = Oracle::new(scenario)?;
            Ok(Engine::new(scenario, options, site).run(scheduler, watch))
        }
    }
}

/// A simulation under way.
struct Engine<'a, S> {
    scenario: &'a Scenario,
    discipline: Discipline,
    site: S,
    now: u64,
    /// Where the next arrival is looked for.
    arrived: usize,
    waiting: Waiting,
    running: Running<'a>,
    /// Jobs of the trace that have not finished.
    left: u64,
    /// Whether anything has started or left since the last pass began: if not, whoever could not start then still cannot.
    changed: bool,
    totals: Totals,
    events: u64,
}

impl<'a, S: Site> Engine<'a, S> {
    fn new(scenario: &'a Scenario, options: &SimOptions, site: S) -> Self {
        let accepted = (0..scenario.jobs().len()).find(|&position| !scenario.is_rejected(position));
        let now = accepted.map_or(0, |position| scenario.jobs()[position].submit_s);
        Self {
            scenario,
            discipline: options.discipline,
            site,
            now,
            arrived: 0,
            waiting: Waiting::new(options.discipline),
            running: Running::new(scenario, options.move_cost_s, now),
            left: scenario.jobs().len() as u64 - scenario.n_rejected(),
            changed: true,
            totals: Totals::new(),
            events: 0,
        }
    }

    fn run(mut self, scheduler: Scheduler, watch: &mut dyn FnMut(&Interval)) -> Outcome {
        let first_submit = self.now;
        let mut leaving = Vec::new();
        while self.left > 0
            && let Some(at) = self.next_instant()
        {
            self.wait_until(at, watch);
            self.depart(&mut leaving);
            let new = self.arrive();
            self.pass(new);
        }
        let span = (first_submit, self.now);
        Outcome::new(scheduler, self.scenario, span, self.totals, self.running.into_parts(), self.events)
    }

    /// When something happens next, if ever.
    fn next_instant(&mut self) -> Option<u64> {
        while self.arrived < self.scenario.jobs().len() && self.scenario.is_rejected(self.arrived) {
            self.arrived += 1;
        }
        let arrival = self.scenario.jobs().get(self.arrived).map(|job| job.submit_s);
        match (arrival, self.running.next_departure()) {
            (Some(arrival), Some(departure)) => Some(arrival.min(departure)),
            (arrival, departure) => arrival.or(departure),
        }
    }

    /// Lets time pass.
    fn wait_until(&mut self, at: u64, watch: &mut dyn FnMut(&Interval)) {
        debug_assert!(at >= self.now, "time runs back");
        if at <= self.now {
            return;
        }
        let view = self.site.view();
        let head = self.waiting.head().map(|head| self.scenario.jobs()[head].gpus());
        let interval = Interval {
            from: self.now,
            to: at,
            running: self.running.len(),
            waiting: self.waiting.len() as u64,
            busy_gpus: view.busy_gpus,
            n_sif: view.n_sif,
            empty_nodes: view.empty_nodes,
            wcc: view.wcc,
            fragmented: head.is_some_and(|gpus| (1..=self.site.free_gpus()).contains(&gpus)),
        };
        self.totals.add(&interval);
        watch(&interval);
        self.now = at;
    }

    /// All departures of this instant, one event.
    fn depart(&mut self, leaving: &mut Vec<JobId>) {
        self.running.leave(self.now, leaving);
        if leaving.is_empty() {
            return;
        }
        let moved = self.site.end(leaving);
        self.running.pause(moved, self.now);
        self.left -= leaving.iter().filter(|&&job| self.scenario.position(job).is_some()).count() as u64;
        self.events += leaving.len() as u64;
        self.changed = true;
    }

    /// All arrivals of this instant; returns where they begin.
    fn arrive(&mut self) -> usize {
        let new = self.arrived;
        while let Some(job) = self.scenario.jobs().get(self.arrived)
            && job.submit_s <= self.now
        {
            if !self.scenario.is_rejected(self.arrived) {
                self.waiting.push(self.arrived, job);
                self.events += 1;
            }
            self.arrived += 1;
        }
        new
    }

    /// One scheduling pass. Jobs from position `new` on have just arrived.
    fn pass(&mut self, new: usize) {
        let all = std::mem::take(&mut self.changed);
        // Who was refused is refused again while nothing changes; the time alone only makes backfilling harder.
        while let Some(head) = self.waiting.head()
            && (all || self.changed || head >= new)
        {
            if !self.start(head) {
                break;
            }
        }
        if self.discipline == Discipline::Easy
            && let Some(head) = self.waiting.head()
        {
            // First in, first out: those that have just arrived are the last.
            self.backfill(head, if all { head } else { head.max(new.saturating_sub(1)) });
        }
    }

    /// Starts jobs behind position `last` that do not keep the head from what it is promised.
    fn backfill(&mut self, head: usize, mut last: usize) {
        let jobs = self.scenario.jobs();
        let mut free = self.site.free_gpus();
        let mut promise = Reservation::new(self.now, free, jobs[head].gpus(), self.running.by_finish());
        while let Some(position) = self.waiting.after(last, &jobs[last]) {
            last = position;
            let (gpus, finish) = (jobs[position].gpus(), self.finish_of(&jobs[position]));
            if gpus <= free && promise.allows(gpus, finish) && self.start(position) {
                promise.take(gpus, finish);
                free = self.site.free_gpus();
            }
        }
    }

    /// When a job would finish that starts now; `NEVER` for one that stays.
    fn finish_of(&self, job: &TraceJob) -> u64 {
        if job.leaves() { self.now.saturating_add(job.duration_s).min(NEVER - 1) } else { NEVER }
    }

    /// Starts a waiting job, if the scheduler can.
    fn start(&mut self, position: usize) -> bool {
        let (job, id) = (&self.scenario.jobs()[position], self.scenario.job_id(position));
        let finish = self.finish_of(job);
        let Some(moved) = self.site.start(id, position) else { return false };
        self.running.enter(id, self.now, finish);
        self.running.pause(moved, self.now);
        self.waiting.remove(position, job);
        self.events += 1;
        self.changed = true;
        true
    }
}
