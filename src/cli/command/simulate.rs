//! `simulate`: plays a trace against a cluster under several schedulers, and compares them.

mod files;

use indicatif::ProgressBar;
use rayon::prelude::*;

use super::super::args::{Format, ReplayArgs, SimulateArgs};
use super::super::{help, input};
use super::{Failure, Options, Output, Talk};
use crate::cluster::{BuildError, Cluster, JobId};
use crate::formats::{FormatError, Note, TraceOptions};
use crate::report::{Run, Setting, explanation_json, explanation_table, simulation_json, simulation_table};
use crate::simulate::{
    DAY_S, Interval, Observer, OracleError, Recorder, Scenario, Scheduler, Share, SimOptions, Stand, Summary, explain,
    nodes_for, simulate_observed,
};
use crate::workload::TraceJob;
use files::Files;

/// GPUs of a node where no cluster is given.
pub(super) const NODE: u8 = 8;

/// The most nodes that a trace may ask for, as --nodes has it: beyond it memory may not do.
pub(super) const MOST_NODES: u64 = help::MOST / NODE as u64;

/// The GPUs that a synthetic trace loads where the trace sizes the cluster.
const NOMINAL_GPUS: u64 = 1000;

/// Intervals between two moves of the progress bar.
const STEP: u64 = 1024;

/// A run, and what was kept of it.
type Played = (Run, Recorder);

pub(super) fn run(args: &SimulateArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let schedulers = schedulers(&args.replay)?;
    let (mut scenario, eta, notes) = scenario(args, talk)?;
    if let Some(origin) = &args.typical.typical {
        let gpus = scenario.cluster().gpus();
        let jobs = input::jobs(origin, gpus, args.replay.processors, talk)?;
        scenario.set_typical(jobs).map_err(|error| Failure::from(FormatError::new(origin, error)))?;
    }
    if let Some(path) = &args.replay.events {
        let events = input::node_events(path, scenario.cluster(), talk)?;
        scenario = scenario.with_events(events);
    }
    let cluster = scenario.cluster();
    let setting = Setting {
        trace: &args.replay.trace,
        window: window(args),
        eta,
        nodes: cluster.nodes().len() as u64,
        gpus: cluster.gpus(),
        discipline: args.replay.discipline,
        move_cost_s: args.move_cost,
        seed: args.seed,
        node_events: args.replay.events.as_deref(),
    };
    if scenario.n_rejected() > 0 {
        let are = if scenario.n_rejected() == 1 { "job is" } else { "jobs are" };
        talk.note(format_args!("{} {are} larger than the cluster and left out", scenario.n_rejected()));
    }
    if let Some(job) = &args.explain {
        return tell_why(job, &scenario, &schedulers, args, options);
    }
    // All files are begun before the work, so that a bad path costs no time, and get their names after it.
    let files = Files::begin(args, &schedulers)?;
    let mut output = Output::open(options.out.as_deref())?;

    let settings = SimOptions { discipline: args.replay.discipline, move_cost_s: args.move_cost, seed: args.seed };
    let steps = scenario.jobs().len() as u64 * 2;
    let bar = talk.progress(steps * schedulers.len() as u64, "simulating");
    let play = |&scheduler: &Scheduler| {
        let recorder = Recorder::new(&scenario, files.keep());
        play(&scenario, scheduler, &settings, recorder, &bar)
    };
    let threads = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build();
    let threads = threads.map_err(|error| Failure::failed(format_args!("cannot start threads: {error}")))?;
    let played: Vec<Result<Played, OracleError>> = threads.install(|| schedulers.par_iter().map(play).collect());
    bar.finish_and_clear();
    let played: Vec<Played> = played.into_iter().collect::<Result<_, _>>().map_err(Failure::input)?;
    let (runs, recorders): (Vec<Run>, Vec<Recorder>) = played.into_iter().unzip();

    let mut bytes = Vec::new();
    match options.format {
        Format::Table => bytes.extend(simulation_table(&setting, &runs)?.bytes()),
        Format::Json => runs.iter().try_for_each(|run| simulation_json(&mut bytes, &setting, run))?,
    }
    output.write(&bytes)?;
    let finished = files.write(&setting, &scenario, &notes, &runs, &recorders)?;
    output.finish()?;
    finished.into_iter().try_for_each(Output::finish)
}

/// Why a job waited, under each scheduler.
fn tell_why(
    name: &str,
    scenario: &Scenario,
    schedulers: &[Scheduler],
    args: &SimulateArgs,
    options: &Options,
) -> Result<(), Failure> {
    let job = scenario.cluster().find_job(name);
    let position = job.and_then(|job| scenario.position(job)).ok_or_else(|| {
        Failure::input(format_args!(
            "--explain: found {name:?}, expected the name of a job of the trace, in its window"
        ))
    })?;
    let settings = SimOptions { discipline: args.replay.discipline, move_cost_s: args.move_cost, seed: args.seed };
    let mut bytes = Vec::new();
    for (number, &scheduler) in schedulers.iter().enumerate() {
        let explanation = explain(scenario, scheduler, &settings, position).map_err(Failure::input)?;
        match options.format {
            Format::Json => explanation_json(&mut bytes, scenario, position, &explanation)?,
            Format::Table => {
                bytes.extend(if number > 0 { "\n\n" } else { "" }.bytes());
                bytes.extend(explanation_table(scenario, position, &explanation).bytes());
            }
        }
    }
    super::write_all(options, &bytes)
}

/// Those that `--policy` names; what it does not say itself, other options do.
///
/// # Errors
/// If a word names none, or two are the same.
pub(super) fn schedulers(args: &ReplayArgs) -> Result<Vec<Scheduler>, Failure> {
    let (defaults, round_s) = ((args.compact, args.migration_budget), args.round);
    let one = |word: &String| match Scheduler::parse(word, defaults) {
        Ok(Scheduler::Rounds { repack, .. }) if !word.contains(':') => Ok(Scheduler::Rounds { repack, round_s }),
        scheduler => scheduler.map_err(|error| Failure::input(format_args!("--policy: {error}"))),
    };
    let schedulers: Vec<Scheduler> = args.policy.iter().map(one).collect::<Result<_, _>>()?;
    Ok(once(&schedulers, "--policy")?.collect())
}

/// The items of a list, none of them twice.
///
/// # Errors
/// If one of them is.
pub(super) fn once<'a, T: Copy + PartialEq + std::fmt::Display>(
    items: &'a [T],
    option: &str,
) -> Result<impl Iterator<Item = T> + use<'a, T>, Failure> {
    match items.iter().enumerate().find(|&(at, item)| items[..at].contains(item)) {
        Some((_, item)) => Err(Failure::input(format_args!("{option}: found {item} twice, expected it once"))),
        None => Ok(items.iter().copied()),
    }
}

/// What a trace is played on, and the trace.
pub(super) struct Inputs {
    /// The cluster, if one was given.
    pub(super) cluster: Option<Cluster>,
    /// The jobs.
    pub(super) jobs: Vec<TraceJob>,
    /// What there was to note about both.
    notes: Vec<Note>,
}

/// Reads the cluster, if one was given, and the trace; one that is made loads that cluster, else `nodes` nodes, else the
/// usual number of GPUs.
pub(super) fn inputs(args: &ReplayArgs, nodes: Option<u64>, talk: &Talk) -> Result<Inputs, Failure> {
    let snapshot = args.cluster.as_deref().map(|origin| input::cluster(origin, None, talk)).transpose()?;
    let (cluster, mut notes) = snapshot.map_or((None, Vec::new()), |read| (Some(read.cluster), read.notes));
    let gpus = match &cluster {
        Some(cluster) => cluster.gpus(),
        None => nodes.map_or(NOMINAL_GPUS, |nodes| nodes * u64::from(NODE)),
    };
    let options =
        TraceOptions { gpus, load_percent: args.load, mix: args.mix, gpus_per_proc: args.processors.gpus_per_proc };
    let (jobs, of_trace) = input::trace(&args.trace, &options, talk)?;
    notes.extend(of_trace);
    Ok(Inputs { cluster, jobs, notes })
}

/// The cluster and the jobs; the share that sized the cluster, if one did; and what there was to note about both.
fn scenario(args: &SimulateArgs, talk: &Talk) -> Result<(Scenario, Option<Share>, Vec<Note>), Failure> {
    let bad = |error: BuildError| Failure::from(FormatError::new(&args.replay.trace, error));
    let Inputs { cluster, jobs, notes } = inputs(&args.replay, args.nodes, talk)?;
    let jobs = in_window(jobs, window(args));
    if jobs.is_empty() {
        talk.note("no job is submitted in the window");
    }
    match (cluster, args.nodes) {
        (Some(cluster), _) => Ok((Scenario::new(cluster, jobs).map_err(bad)?, None, notes)),
        (None, Some(nodes)) => Ok((Scenario::homogeneous(nodes, NODE, jobs).map_err(bad)?, None, notes)),
        (None, None) => {
            let eta = args.eta.unwrap_or_default();
            let nodes = nodes_for(&jobs, eta, args.replay.until, NODE);
            if nodes > MOST_NODES {
                let text = format!("found jobs that need {nodes} nodes, expected at most {MOST_NODES}, or --nodes");
                return Err(FormatError::new(&args.replay.trace, text).into());
            }
            Ok((Scenario::homogeneous(nodes, NODE, jobs).map_err(bad)?, Some(eta), notes))
        }
    }
}

/// The seconds of the trace that are played.
fn window(args: &SimulateArgs) -> Option<(u64, u64)> {
    let day = |day: u32| (u64::from(day) * DAY_S, (u64::from(day) + 1) * DAY_S);
    args.window.or(args.day.map(day))
}

fn in_window(mut jobs: Vec<TraceJob>, window: Option<(u64, u64)>) -> Vec<TraceJob> {
    if let Some((from, to)) = window {
        jobs.retain(|job| (from..to).contains(&job.submit_s));
    }
    jobs
}

/// Moves the progress bar while a recorder looks on.
struct Watched<'a> {
    recorder: Recorder,
    bar: &'a ProgressBar,
    seen: u64,
}

impl Observer for Watched<'_> {
    fn interval(&mut self, interval: &Interval, stand: Stand<'_>) {
        self.seen += 1;
        if self.seen.is_multiple_of(STEP) {
            self.bar.inc(STEP);
        }
        self.recorder.interval(interval, stand);
    }

    fn leaving(&mut self, jobs: &[JobId], cluster: &Cluster) {
        self.recorder.leaving(jobs, cluster);
    }

    fn end(&mut self, cluster: &Cluster) {
        self.recorder.end(cluster);
    }
}

/// One run.
fn play(
    scenario: &Scenario,
    scheduler: Scheduler,
    settings: &SimOptions,
    recorder: Recorder,
    bar: &ProgressBar,
) -> Result<Played, OracleError> {
    let mut watched = Watched { recorder, bar, seen: 0 };
    let outcome = simulate_observed(scenario, scheduler, settings, &mut watched)?;
    // Instants without a change of time have no interval.
    bar.inc((scenario.jobs().len() as u64 * 2).saturating_sub(watched.seen / STEP * STEP));
    let summary = Summary::of(scenario, &outcome);
    Ok((Run { outcome, summary }, watched.recorder))
}
