//! `simulate`: plays a trace against a cluster under several schedulers, and compares them.

use indicatif::ProgressBar;
use rayon::prelude::*;

use super::super::args::{Format, SimulateArgs};
use super::super::{help, input};
use super::{Failure, Options, Output, Talk};
use crate::cluster::BuildError;
use crate::formats::{FormatError, TraceOptions};
use crate::report::{Run, SERIES_HEADER, Setting, append_series_row, simulation_json, simulation_table};
use crate::simulate::{Interval, OracleError, Scenario, Scheduler, Share, SimOptions, Summary, nodes_for, simulate};
use crate::workload::TraceJob;

/// GPUs of a node where no cluster is given.
const NODE: u8 = 8;

/// The most nodes that a trace may ask for, as --nodes has it: beyond it memory may not do.
const MOST_NODES: u64 = help::MOST / NODE as u64;

/// The GPUs that a synthetic trace loads where the trace sizes the cluster.
const NOMINAL_GPUS: u64 = 1000;

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Intervals between two moves of the progress bar.
const STEP: u64 = 1024;

/// A run, and how things stood over time, if that is wanted.
type Played = Result<(Run, Vec<Interval>), OracleError>;

pub(super) fn run(args: &SimulateArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let defaults = (args.compact, args.migration_budget);
    let schedulers: Vec<Scheduler> = args
        .policy
        .iter()
        .map(|word| Scheduler::parse(word, defaults).map_err(|error| Failure::input(format_args!("--policy: {error}"))))
        .collect::<Result<_, _>>()?;
    let (mut scenario, eta) = scenario(args, talk)?;
    if let Some(origin) = &args.typical.typical {
        let gpus = scenario.cluster().gpus();
        let jobs = input::jobs(origin, gpus, args.processors, talk)?;
        scenario.set_typical(jobs).map_err(|error| Failure::from(FormatError::new(origin, error)))?;
    }
    let cluster = scenario.cluster();
    let setting = Setting {
        trace: &args.trace,
        window: window(args),
        eta,
        nodes: cluster.nodes().len() as u64,
        gpus: cluster.gpus(),
        discipline: args.discipline,
        move_cost_s: args.move_cost,
        seed: args.seed,
    };
    if scenario.n_rejected() > 0 {
        talk.note(format_args!("{} jobs are larger than the cluster and are left out", scenario.n_rejected()));
    }
    // Both files are begun before the work, so that a bad path costs no time, and get their names after it.
    let series = args.series.as_deref().map(|path| Output::open(Some(path))).transpose()?;
    let mut output = Output::open(options.out.as_deref())?;

    let settings = SimOptions { discipline: args.discipline, move_cost_s: args.move_cost, seed: args.seed };
    let steps = scenario.jobs().len() as u64 * 2;
    let bar = talk.progress(steps * schedulers.len() as u64, "simulating");
    let play = |&scheduler: &Scheduler| play(&scenario, scheduler, &settings, series.is_some(), &bar);
    let threads = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build();
    let threads = threads.map_err(|error| Failure::failed(format_args!("cannot start threads: {error}")))?;
    let played: Vec<Played> = threads.install(|| schedulers.par_iter().map(play).collect());
    bar.finish_and_clear();
    let played: Vec<(Run, Vec<Interval>)> = played.into_iter().collect::<Result<_, _>>().map_err(Failure::input)?;
    let (runs, intervals): (Vec<Run>, Vec<Vec<Interval>>) = played.into_iter().unzip();

    let mut bytes = Vec::new();
    match options.format {
        Format::Table => bytes.extend(simulation_table(&setting, &runs).bytes()),
        Format::Json => runs.iter().try_for_each(|run| simulation_json(&mut bytes, &setting, run))?,
    }
    output.write(&bytes)?;
    if let Some(mut series) = series {
        write_series(&mut series, &runs, &intervals)?;
        output.finish()?;
        return series.finish();
    }
    output.finish()
}

/// The cluster and the jobs; and the share that sized the cluster, if one did.
fn scenario(args: &SimulateArgs, talk: &Talk) -> Result<(Scenario, Option<Share>), Failure> {
    let bad = |error: BuildError| Failure::from(FormatError::new(&args.trace, error));
    let snapshot = args.cluster.as_deref().map(|origin| input::cluster(origin, talk)).transpose()?;
    let gpus = match (&snapshot, args.nodes) {
        (Some(snapshot), _) => snapshot.cluster.gpus(),
        (None, nodes) => nodes.map_or(NOMINAL_GPUS, |nodes| nodes * u64::from(NODE)),
    };
    let options =
        TraceOptions { gpus, load_percent: args.load, mix: args.mix, gpus_per_proc: args.processors.gpus_per_proc };
    let jobs = input::trace(&args.trace, &options, talk)?;
    let jobs = in_window(jobs, window(args));
    if jobs.is_empty() {
        talk.note("no job is submitted in the window");
    }
    match (snapshot, args.nodes) {
        (Some(snapshot), _) => Ok((Scenario::new(snapshot.cluster, jobs).map_err(bad)?, None)),
        (None, Some(nodes)) => Ok((Scenario::homogeneous(nodes, NODE, jobs).map_err(bad)?, None)),
        (None, None) => {
            let eta = args.eta.unwrap_or_default();
            let nodes = nodes_for(&jobs, eta, args.until, NODE);
            if nodes > MOST_NODES {
                let text = format!("found jobs that need {nodes} nodes, expected at most {MOST_NODES}, or --nodes");
                return Err(FormatError::new(&args.trace, text).into());
            }
            Ok((Scenario::homogeneous(nodes, NODE, jobs).map_err(bad)?, Some(eta)))
        }
    }
}

/// The seconds of the trace that are played.
fn window(args: &SimulateArgs) -> Option<(u64, u64)> {
    let day = |day: u32| (u64::from(day) * DAY, (u64::from(day) + 1) * DAY);
    args.window.or(args.day.map(day))
}

fn in_window(mut jobs: Vec<TraceJob>, window: Option<(u64, u64)>) -> Vec<TraceJob> {
    if let Some((from, to)) = window {
        jobs.retain(|job| (from..to).contains(&job.submit_s));
    }
    jobs
}

/// One run.
fn play(
    scenario: &Scenario,
    scheduler: Scheduler,
    settings: &SimOptions,
    keep_series: bool,
    bar: &ProgressBar,
) -> Played {
    let (mut seen, mut intervals) = (0u64, Vec::new());
    let outcome = simulate(scenario, scheduler, settings, &mut |interval| {
        seen += 1;
        if seen.is_multiple_of(STEP) {
            bar.inc(STEP);
        }
        if keep_series {
            intervals.push(*interval);
        }
    })?;
    // Instants without a change of time have no interval.
    bar.inc((scenario.jobs().len() as u64 * 2).saturating_sub(seen / STEP * STEP));
    let summary = Summary::of(scenario, &outcome);
    Ok((Run { outcome, summary }, intervals))
}

fn write_series(output: &mut Output, runs: &[Run], intervals: &[Vec<Interval>]) -> Result<(), Failure> {
    output.write(SERIES_HEADER.as_bytes())?;
    let mut rows = Vec::new();
    for (run, intervals) in runs.iter().zip(intervals) {
        let name = run.outcome.scheduler.to_string();
        for interval in intervals {
            rows.clear();
            append_series_row(&mut rows, &name, interval);
            output.write(&rows)?;
        }
    }
    Ok(())
}
