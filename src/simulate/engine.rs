//! The event loop.

mod pass;

use std::collections::{BTreeMap, BTreeSet};

use crate::anchor::State;
use crate::cluster::{JobId, NodeId};
use crate::decide::{CommitLoop, PlaceOptions, Policy, Repack, Worth};
use crate::plan::FewestMoves;
use crate::workload::NodeChange;

use super::discipline::{Discipline, Waiting};
use super::explain::{Cause, Probe};
use super::measures::{Interval, Totals};
use super::observe::{Observer, Stand};
use super::outcome::Outcome;
use super::running::{NEVER, Running};
use super::scenario::Scenario;
use super::scheduler::Scheduler;
use super::site::{Oracle, OracleError, Site};
use super::turns::Turns;

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
    simulate_observed(scenario, scheduler, options, &mut Watch(watch))
}

/// As [`simulate`], for somebody who also wants to see who holds what.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_observed(
    scenario: &Scenario,
    scheduler: Scheduler,
    options: &SimOptions,
    observer: &mut dyn Observer,
) -> Result<Outcome, OracleError> {
    match scheduler.place_options(options.seed) {
        Some(settings) => {
            let mut state = State::new(scenario.cluster().clone());
            let site = commit_loop(scenario, &mut state, settings);
            Ok(Engine::new(scenario, options, scheduler, site).run(scheduler, observer))
        }
        None => {
            let site = Oracle::new(scenario)?;
            Ok(Engine::new(scenario, options, scheduler, site).run(scheduler, observer))
        }
    }
}

/// The commit loop on the state of a scenario, which may say what is typical for FGD.
pub(super) fn commit_loop<'s>(scenario: &Scenario, state: &'s mut State, settings: PlaceOptions) -> CommitLoop<'s> {
    let site = CommitLoop::new(state, settings).with_room_maker(Box::new(FewestMoves::default()));
    let site = match scenario.typical() {
        Some(typical) => site.with_typical(typical.clone()),
        None => site,
    };
    site.with_arrivals()
}

/// An observer that is shown the intervals alone.
pub(super) struct Watch<'a>(pub(super) &'a mut dyn FnMut(&Interval));

impl Observer for Watch<'_> {
    fn interval(&mut self, interval: &Interval, _: Stand<'_>) {
        (self.0)(interval);
    }
}

/// A simulation under way.
pub(super) struct Engine<'a, S> {
    scenario: &'a Scenario,
    discipline: Discipline,
    site: S,
    now: u64,
    /// Where the next arrival is looked for.
    arrived: usize,
    /// Events of nodes that have happened.
    happened: usize,
    waiting: Waiting,
    /// What the waiting jobs ask for, in thousandths of a GPU.
    waiting_milli: u64,
    running: Running<'a>,
    /// Jobs of the trace that have not finished.
    left: u64,
    /// Whether anything has started or left since the last pass began: if not, whoever could not start then still cannot.
    changed: bool,
    /// What disturbing jobs costs, where the scheduler makes room for the head of the queue.
    room: Option<Worth>,
    /// What happens at the start of a round, and how long a round is.
    rounds: Option<(Repack, u64)>,
    first_submit: u64,
    /// Who goes first, under a policy that reorders the queue.
    turns: Option<Turns>,
    /// For how long a policy may hold back a job that could start.
    patience_s: Option<u64>,
    /// The jobs that it holds back, by the end of its patience.
    held: BTreeSet<(u64, usize)>,
    /// Whether anything has started, left or moved since the last round: if not, another would do nothing.
    unpacked: bool,
    totals: Totals,
    events: u64,
    /// The job of which somebody wants to know why it waits.
    pub(super) probe: Option<Probe>,
}

impl<'a, S: Site> Engine<'a, S> {
    pub(super) fn new(scenario: &'a Scenario, options: &SimOptions, scheduler: Scheduler, site: S) -> Self {
        let accepted = (0..scenario.jobs().len()).find(|&position| !scenario.is_rejected(position));
        let now = accepted.map_or(0, |position| scenario.jobs()[position].submit_s);
        Self {
            scenario,
            discipline: options.discipline,
            site,
            now,
            arrived: 0,
            happened: 0,
            waiting: Waiting::new(options.discipline),
            waiting_milli: 0,
            running: Running::new(scenario, options.move_cost_s, now),
            left: scenario.jobs().len() as u64 - scenario.n_rejected(),
            changed: true,
            room: scheduler.price_s().map(|price_s| Worth { wait_s: None, pause_s: options.move_cost_s, price_s }),
            rounds: scheduler.rounds(),
            turns: scheduler.policy().and_then(Policy::reordering).map(Turns::new),
            patience_s: scheduler.policy().and_then(Policy::patience_s),
            held: BTreeSet::new(),
            first_submit: now,
            unpacked: true,
            totals: Totals::new(),
            events: 0,
            probe: None,
        }
    }

    fn run(mut self, scheduler: Scheduler, observer: &mut dyn Observer) -> Outcome {
        self.play(observer);
        self.finish(scheduler)
    }

    /// Plays the trace to its end.
    pub(super) fn play(&mut self, observer: &mut dyn Observer) {
        let mut leaving = Vec::new();
        while self.left > 0
            && let Some(at) = self.next_instant()
        {
            self.wait_until(at, observer);
            self.depart(&mut leaving, observer);
            self.change_nodes();
            self.start_round();
            self.lose_patience();
            let new = self.arrive();
            self.pass(new);
        }
        if let Some(cluster) = self.site.cluster() {
            observer.end(cluster);
        }
    }

    /// What came out.
    pub(super) fn finish(self, scheduler: Scheduler) -> Outcome {
        let span = (self.first_submit, self.now);
        Outcome::new(scheduler, self.scenario, span, self.totals, self.running.into_parts(), self.events)
    }

    /// When something happens next, if ever.
    fn next_instant(&mut self) -> Option<u64> {
        while self.arrived < self.scenario.jobs().len() && self.scenario.is_rejected(self.arrived) {
            self.arrived += 1;
        }
        let arrival = self.scenario.jobs().get(self.arrived).map(|job| job.submit_s);
        let change = self.scenario.events().get(self.happened).map(|event| event.at_s.max(self.now));
        let patience = self.held.first().map(|&(until, _)| until);
        [arrival, self.running.next_departure(), change, self.next_round(), patience].into_iter().flatten().min()
    }

    /// When the next round starts, if it may do anything.
    fn next_round(&self) -> Option<u64> {
        let (_, round_s) = self.rounds.filter(|_| self.unpacked && self.running.len() > 0)?;
        let rounds = (self.now - self.first_submit) / round_s + 1;
        self.first_submit.checked_add(rounds.checked_mul(round_s)?).filter(|at| *at < NEVER)
    }

    /// Repacks if a round starts now.
    fn start_round(&mut self) {
        let Some((repack, round_s)) = self.rounds else { return };
        if !self.unpacked || self.now == self.first_submit || !(self.now - self.first_submit).is_multiple_of(round_s) {
            return;
        }
        let moved = self.site.repack(repack);
        self.running.pause(moved, self.now);
        self.unpacked = !moved.is_empty();
        self.changed |= self.unpacked;
    }

    /// Lets time pass.
    fn wait_until(&mut self, at: u64, observer: &mut dyn Observer) {
        debug_assert!(at >= self.now, "time runs back");
        if at <= self.now {
            return;
        }
        self.note_wait(at);
        let view = self.site.view();
        let head = self.waiting.head().map(|head| self.scenario.jobs()[head].demand_milli());
        let interval = Interval {
            from: self.now,
            to: at,
            running: self.running.len(),
            waiting: self.waiting.len() as u64,
            running_milli: self.running.demand_milli(),
            waiting_milli: self.waiting_milli,
            busy_gpus: view.busy_gpus,
            n_sif: view.n_sif,
            empty_nodes: view.empty_nodes,
            wcc: view.wcc,
            fragmented: head.is_some_and(|milli| (1..=self.site.free_milli()).contains(&milli)),
            lacking: head.is_some_and(|milli| milli > self.site.free_milli()),
        };
        self.totals.add(&interval);
        let changes = &self.scenario.events()[self.happened..];
        let fails = changes.iter().take_while(|event| event.at_s <= at).any(|event| event.change == NodeChange::Fail);
        let jobs_leave = fails || self.running.next_departure() == Some(at);
        observer.interval(&interval, Stand { cluster: self.site.cluster(), jobs_leave });
        self.now = at;
    }

    /// Keeps why the job that is asked about waits until `at`.
    fn note_wait(&mut self, at: u64) {
        let (Some(probe), Some(head)) = (&mut self.probe, self.waiting.head()) else { return };
        let position = probe.position;
        if !self.waiting.has(position, &self.scenario.jobs()[position]) {
            return;
        }
        let why = |position| self.site.why(self.scenario.job_id(position));
        let is_held = |position| self.held.iter().any(|&(_, held)| held == position);
        // Whom it waits behind; nobody if it may start itself.
        let first = match &self.turns {
            Some(turns) => turns.first_before(position, self.waiting.positions()),
            None => Some(head).filter(|&head| head != position),
        };
        let cause = match first {
            _ if is_held(position) => Cause::Held,
            Some(first) if self.discipline == Discipline::Easy && probe.reserved => Cause::Reserved(first),
            Some(first) if self.discipline != Discipline::Easy && is_held(first) => Cause::BehindHeld(first),
            Some(first) if self.discipline != Discipline::Easy => Cause::Behind(first, why(first)),
            _ => Cause::Blocked(why(position)),
        };
        probe.waits(self.now, at, cause);
    }

    /// All departures of this instant, one event.
    fn depart(&mut self, leaving: &mut Vec<JobId>, observer: &mut dyn Observer) {
        self.running.leave(self.now, leaving);
        if leaving.is_empty() {
            return;
        }
        if let Some(cluster) = self.site.cluster() {
            observer.leaving(leaving, cluster);
        }
        let moved = self.site.end(leaving);
        self.running.pause(moved, self.now);
        self.left -= leaving.iter().filter(|&&job| self.scenario.position(job).is_some()).count() as u64;
        self.events += leaving.len() as u64;
        (self.changed, self.unpacked) = (true, true);
    }

    /// All changes of nodes of this instant, one event; those before the first submission happen at it. Jobs that it ends
    /// wait again, each at the place that its submission gives it.
    fn change_nodes(&mut self) {
        let events = &self.scenario.events()[self.happened..];
        let n = events.partition_point(|event| event.at_s <= self.now);
        if n == 0 {
            return;
        }
        self.happened += n;
        self.events += n as u64;
        let mut open = BTreeMap::new();
        let mut ended = Vec::new();
        for event in &events[..n] {
            open.insert(event.node, event.change == NodeChange::Return);
            if event.change == NodeChange::Fail {
                ended.extend(self.site.jobs_on(event.node));
            }
        }
        ended.sort_unstable();
        ended.dedup();
        let those = |wanted: bool| open.iter().filter(|(_, open)| **open == wanted).map(|(&node, _)| node).collect();
        let (closed, opened): (Vec<NodeId>, Vec<NodeId>) = (those(false), those(true));
        for &job in &ended {
            self.running.kill(job, self.now);
            if let Some(position) = self.scenario.position(job) {
                let job = &self.scenario.jobs()[position];
                self.waiting.push(position, job);
                self.waiting_milli += job.demand_milli();
            }
        }
        let moved = self.site.change_nodes(&closed, &opened, &ended);
        self.running.pause(moved, self.now);
        ended.iter().filter(|&&job| self.scenario.position(job).is_some()).for_each(|&job| self.site.arrive(job));
        (self.changed, self.unpacked) = (true, true);
    }

    /// All arrivals of this instant; returns where they begin.
    fn arrive(&mut self) -> usize {
        let new = self.arrived;
        while let Some(job) = self.scenario.jobs().get(self.arrived)
            && job.submit_s <= self.now
        {
            if !self.scenario.is_rejected(self.arrived) {
                self.waiting.push(self.arrived, job);
                self.waiting_milli += job.demand_milli();
                self.site.arrive(self.scenario.job_id(self.arrived));
                self.events += 1;
            }
            self.arrived += 1;
        }
        new
    }
}
