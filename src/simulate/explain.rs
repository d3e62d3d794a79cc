//! Why one job waited: whom it waited behind, and what kept them.

use crate::anchor::State;
use crate::decide::{Offer, Why};

use super::engine::{Engine, SimOptions, Watch, commit_loop};
use super::outcome::JobOutcome;
use super::scenario::Scenario;
use super::scheduler::Scheduler;
use super::site::{Oracle, OracleError, Site};

/// Why a job does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It may start, and cannot.
    Blocked(Why),
    /// It may not overtake the head of the queue, at this position of the trace, which is blocked itself.
    Behind(usize, Why),
    /// It fits, and would take what the head of the queue is promised.
    Reserved(usize),
    /// It fits, and the policy holds it back.
    Held,
    /// It may not overtake the head of the queue, which the policy holds back.
    BehindHeld(usize),
}

/// A time in which a job waited for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// From this second on.
    pub from: u64,
    /// Up to, and without, this one.
    pub to: u64,
    /// Why.
    pub cause: Cause,
}

/// What there was when the scheduler first tried to start a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstTry {
    /// When.
    pub at: u64,
    /// GPUs that were free on schedulable nodes.
    pub free_gpus: u64,
    /// The same in thousandths, with the rests of devices that shares lay on.
    pub free_milli: u64,
    /// The nodes that it could have had; none under the oracle, which puts nothing on nodes.
    pub offers: Vec<Offer>,
}

/// Why a job waited under one scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Who scheduled.
    pub scheduler: Scheduler,
    /// What became of it.
    pub outcome: JobOutcome,
    /// When it waited and why, in order of time; equal causes that follow each other are one. A job that waits to the
    /// end has no cause after the last event.
    pub waits: Vec<Wait>,
    /// The first try, if there was one.
    pub first_try: Option<FirstTry>,
}

/// Plays a scenario as [`simulate`](super::simulate) does, and tells why the job at a position of the trace waited.
///
/// # Errors
/// As for [`simulate`](super::simulate).
pub fn explain(
    scenario: &Scenario,
    scheduler: Scheduler,
    options: &SimOptions,
    position: usize,
) -> Result<Explanation, OracleError> {
    match scheduler.place_options(options.seed) {
        Some(settings) => {
            let mut state = State::new(scenario.cluster().clone());
            let site = commit_loop(scenario, &mut state, settings);
            Ok(look(Engine::new(scenario, options, scheduler, site), scheduler, position))
        }
        None => {
            let site = Oracle::new(scenario)?;
            Ok(look(Engine::new(scenario, options, scheduler, site), scheduler, position))
        }
    }
}

fn look<S: Site>(mut engine: Engine<'_, S>, scheduler: Scheduler, position: usize) -> Explanation {
    engine.probe = Some(Probe::new(position));
    engine.play(&mut Watch(&mut |_| {}));
    let probe = engine.probe.take().unwrap_or_else(|| Probe::new(position));
    let outcome = engine.finish(scheduler).jobs[position];
    Explanation { scheduler, outcome, waits: probe.waits, first_try: probe.first_try }
}

/// What is kept of one job while a simulation runs.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) position: usize,
    waits: Vec<Wait>,
    pub(super) first_try: Option<FirstTry>,
    /// Whether the promise to the head alone kept it when backfill last came to it.
    pub(super) reserved: bool,
}

impl Probe {
    fn new(position: usize) -> Self {
        Self { position, waits: Vec::new(), first_try: None, reserved: false }
    }

    /// It waits from `from` to `to`.
    pub(super) fn waits(&mut self, from: u64, to: u64, cause: Cause) {
        match self.waits.last_mut() {
            Some(last) if last.to == from && last.cause == cause => last.to = to,
            _ => self.waits.push(Wait { from, to, cause }),
        }
    }
}
