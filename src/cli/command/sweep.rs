//! `sweep`: plays every cell of a grid, and `merge`: puts the rows of several sweeps of one grid together.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;

use super::super::args::{Days, Format, MergeArgs, SweepArgs};
use super::super::input;
use super::simulate::{Inputs, MOST_NODES, NODE, inputs, once, schedulers};
use super::{Failure, Options, Output, Talk};
use crate::formats::{FormatError, Journal, SweepRows};
use crate::report::{append_line, days_not_compared, sweep_row, sweep_table};
use crate::simulate::{DAY_S, Grid, OracleError, Scheduler, Size, Sweep, SweepError, SweepOptions};
use crate::workload::TraceJob;

/// The most ranges of missing cells that are named.
const MOST_NAMED: usize = 20;

pub(super) fn run(args: &SweepArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    if options.out.is_some() && options.format == Format::Table {
        return Err(Failure::input("found --format table with --out, expected json: merge makes a table of its rows"));
    }
    if args.resume && options.out.is_none() {
        return Err(Failure::input("found --resume without --out, expected the file to go on with"));
    }
    let sweep = sweep(args, talk)?;
    let wanted: Vec<u64> = (0..sweep.grid().n_cells()).filter(|&cell| args.shard.has(cell)).collect();
    let (mut rows, mut journal) = match options.out.as_deref() {
        Some(path) if !is_device(path) => {
            let (rows, journal) = begin(path, args.resume, &sweep)?;
            (rows, Some(journal))
        }
        _ => (SweepRows::default(), None),
    };
    let cells: Vec<u64> = wanted.iter().copied().filter(|&cell| !rows.has(cell)).collect();
    if args.resume {
        talk.note(format_args!("{} of {} cells are there already", wanted.len() - cells.len(), wanted.len()));
    }
    let bar = talk.progress(cells.len() as u64, "sweeping");
    let threads = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build();
    let threads = threads.map_err(|error| Failure::failed(format_args!("cannot start threads: {error}")))?;
    let sink = Mutex::new((&mut rows, journal.as_mut()));
    let each = |played| -> Result<(), Cut> {
        let row =
            sweep_row(&sweep, &args.replay.trace, args.replay.events.as_deref(), args.replay.discipline.name(), played);
        let mut line = Vec::new();
        append_line(&mut line, &row)?;
        let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(journal) = &mut sink.1 {
            journal.append(&line)?;
        }
        sink.0.add(row).map_err(Cut::Row)?;
        bar.inc(1);
        Ok(())
    };
    threads.install(|| sweep.play(&cells, &each)).map_err(|cut| cut.failure(args, options))?;
    bar.finish_and_clear();
    write_rows(&rows, options)?;
    match journal {
        Some(journal) => journal.remove().context("cannot remove the journal").map_err(Failure::Failed),
        None => Ok(()),
    }
}

/// The most cells of a sweep: their rows take some gigabytes.
const MOST_CELLS: u64 = 4_000_000;

/// The sweep that the arguments describe.
fn sweep(args: &SweepArgs, talk: &Talk) -> Result<Sweep, Failure> {
    let schedulers = schedulers(&args.replay)?;
    let one_size = if let &[nodes] = &args.nodes[..] { Some(nodes) } else { None };
    let Inputs { cluster, jobs, .. } = inputs(&args.replay, one_size, talk)?;
    let sizes = match (&cluster, &args.nodes[..], &args.eta[..]) {
        (Some(_), ..) => vec![Size::Given],
        (None, [], []) => vec![Size::Eta(crate::simulate::Share::default())],
        (None, [], etas) => once(etas, "--eta")?.map(Size::Eta).collect(),
        (None, nodes, _) => once(nodes, "--nodes")?.map(Size::Nodes).collect(),
    };
    let grid = Grid {
        days: days(args.days.as_ref(), &jobs),
        sizes,
        move_costs_s: args.move_cost.0.clone(),
        seeds: args.seed.0.clone(),
        schedulers,
    };
    if grid.n_cells() > MOST_CELLS {
        let n = grid.n_cells();
        return Err(Failure::input(format_args!("found a grid of {n} cells, expected at most {MOST_CELLS}")));
    }
    let options = SweepOptions {
        discipline: args.replay.discipline,
        until: args.replay.until,
        gpus_per_node: NODE,
        most_nodes: MOST_NODES,
    };
    let sweep = Sweep::new(jobs, cluster, grid, options);
    match args.replay.events.as_deref() {
        Some(path) => with_events(sweep, path, args, talk),
        None => Ok(sweep),
    }
}

/// The sweep with the events of a file.
fn with_events(sweep: Sweep, path: &str, args: &SweepArgs, talk: &Talk) -> Result<Sweep, Failure> {
    if sweep.grid().schedulers.contains(&Scheduler::SifOpt) {
        // It would show only when its first cell is played, after hours of others.
        return Err(Failure::input(OracleError::Events));
    }
    let smallest = sweep.smallest_cluster().map_err(|error| FormatError::new(&args.replay.trace, error))?;
    let events = input::node_events(path, &smallest, talk).inspect_err(|_| {
        if args.replay.cluster.is_none() {
            let nodes = smallest.nodes().len();
            talk.note(format_args!("events are of nodes that every cell has; the smallest cluster has {nodes}"));
        }
    })?;
    Ok(sweep.with_events(events))
}

fn days(wanted: Option<&Days>, jobs: &[TraceJob]) -> Vec<Option<u32>> {
    match wanted {
        None => vec![None],
        Some(Days::These(days)) => days.iter().copied().map(Some).collect(),
        Some(Days::All) => {
            let day = |job: &TraceJob| u32::try_from(job.submit_s / DAY_S).unwrap_or(u32::MAX);
            let mut days: Vec<Option<u32>> = jobs.iter().map(|job| Some(day(job))).collect();
            days.sort_unstable();
            days.dedup();
            days
        }
    }
}

/// Opens the journal of a file, with the rows that it and the file have.
fn begin(path: &Path, resume: bool, sweep: &Sweep) -> Result<(SweepRows, Journal), Failure> {
    let partial = Journal::path_for(path);
    let name = partial.display().to_string();
    let there = partial.exists();
    if there && !resume {
        let text =
            format!("found {name} of a sweep that was cut short, expected --resume to go on with it, or no such file");
        return Err(Failure::input(text));
    }
    if path.is_dir() {
        return Err(Failure::failed(format_args!("cannot write {}: found a directory", path.display())));
    }
    let (journal, lines) =
        Journal::open(&partial).with_context(|| format!("cannot write {name}")).map_err(Failure::Failed)?;
    let mut rows = SweepRows::default();
    let mut read = || -> Result<(), Failure> {
        if resume && path.exists() {
            rows.read(&path.display().to_string())?;
            of_sweep(&rows, &path.display().to_string(), sweep)?;
        }
        rows.read_from(&name, &lines[..])?;
        of_sweep(&rows, &name, sweep)
    };
    match read() {
        Ok(()) => Ok((rows, journal)),
        Err(error) => {
            if !there {
                // It was made a moment ago, and is empty.
                let _ = journal.remove();
            }
            Err(error)
        }
    }
}

/// An error unless the rows, the last of them from `name`, are rows of this sweep.
fn of_sweep(rows: &SweepRows, name: &str, sweep: &Sweep) -> Result<(), Failure> {
    let (grid, cells) = (sweep.fingerprint().to_string(), sweep.grid().n_cells());
    match rows.sweep() {
        Some(found) if found != (&grid, cells) => {
            let text = format!(
                "found rows of the sweep {} of {} cells, expected {grid} of {cells} cells: the trace, the events, the \
                 options or the version differ",
                found.0, found.1
            );
            Err(FormatError::new(name, text).into())
        }
        _ => Ok(()),
    }
}

fn write_rows(rows: &SweepRows, options: &Options) -> Result<(), Failure> {
    let mut output = Output::open(options.out.as_deref())?;
    match options.format {
        Format::Table => output.write(sweep_table(rows).as_bytes())?,
        Format::Json => {
            let mut bytes = Vec::new();
            rows.rows().try_for_each(|row| append_line(&mut bytes, row))?;
            output.write(&bytes)?;
        }
    }
    output.finish()
}

pub(super) fn merge(args: &MergeArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let mut rows = SweepRows::default();
    for file in &args.files {
        rows.read(file)?;
    }
    let missing = rows.missing();
    if !missing.is_empty() {
        let n: u64 = missing.iter().map(|(from, to)| to - from + 1).sum();
        let range = |&(from, to): &(u64, u64)| if from == to { from.to_string() } else { format!("{from}-{to}") };
        let mut named: Vec<String> = missing.iter().take(MOST_NAMED).map(range).collect();
        if missing.len() > MOST_NAMED {
            named.push("…".to_owned());
        }
        let text = format!("{n} of {} cells are missing: {}", rows.sweep().map_or(0, |(_, n)| n), named.join(", "));
        if !args.partial {
            return Err(Failure::failed(format_args!("{text} (--partial merges the others)")));
        }
        talk.note(text);
        let n = days_not_compared(&rows);
        if n > 0 {
            talk.note(format_args!(
                "days of which some policies have rows and others have none: {n}; a table leaves them out, and whoever \
                 compares the rows should"
            ));
        }
    }
    if rows.sweep().is_none() {
        talk.note("there is no row");
    }
    write_rows(&rows, options)
}

fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Why a sweep stopped before its end.
#[derive(Debug, thiserror::Error)]
enum Cut {
    #[error(transparent)]
    Cell(#[from] SweepError),
    #[error("cannot write the journal: {0}")]
    Journal(#[from] std::io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Row(String),
}

impl Cut {
    fn failure(self, args: &SweepArgs, options: &Options) -> Failure {
        match self {
            Cut::Cell(SweepError::Oracle(error)) => Failure::input(error),
            Cut::Cell(error) => FormatError::new(&args.replay.trace, error).into(),
            Cut::Journal(_) => {
                let kept = options.out.as_deref().map(Journal::path_for).unwrap_or_default();
                Failure::failed(format_args!("{self}; {} keeps the rows before", kept.display()))
            }
            Cut::Json(_) | Cut::Row(_) => Failure::failed(self),
        }
    }
}
