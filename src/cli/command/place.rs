//! `place`: decides where the jobs of a queue go.

use std::time::Instant;

use super::super::args::{Format, PlaceArgs};
use super::super::input;
use super::super::run::{Next, run as decide};
use super::{Failure, Options, Output, Talk, open_backend};
use crate::anchor::State;
use crate::decide::{CommitLoop, PlaceOptions, Policy};
use crate::formats::{FormatError, write_cluster};
use crate::fragmentation::fgd::Typical;
use crate::report::{PlaceSummary, Tally, Totals, decision_json};

/// Written at a time.
const CHUNK: usize = 64 << 10;

/// Decisions between two moves of the progress bar.
const STEP: u64 = 1024;

pub(super) fn run(args: &PlaceArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let snapshot = input::cluster(&args.cluster.cluster, talk)?;
    let (mut cluster, as_of) = (snapshot.cluster, snapshot.as_of);
    let mut queue = input::queue(&args.queue, &mut cluster, args.trace, talk)?;
    queue.truncate(args.first.unwrap_or(usize::MAX));
    let typical = match &args.typical.typical {
        None => None,
        Some(_) if !matches!(args.policy, Policy::Fgd(_)) => {
            let text = format_args!("found --typical for the policy {}, expected it for fgd alone", args.policy);
            return Err(Failure::input(text));
        }
        Some(origin) => {
            let jobs = input::jobs(origin, cluster.gpus(), args.trace.processors, talk)?;
            let typical = Typical::of_trace(&mut cluster, &jobs);
            Some(typical.map_err(|error| Failure::from(FormatError::new(origin, error)))?)
        }
    };
    let backend = open_backend(&args.evaluate, options, talk)?;
    let settings = PlaceOptions {
        policy: args.policy,
        trigger: args.compact,
        migration_budget: args.migration_budget,
        seed: args.seed,
        window: args.window as usize,
        threads: options.threads,
    };
    let seed = (args.policy == Policy::Random).then_some(args.seed);
    if let Some(seed) = seed {
        talk.note(format_args!("seed {seed}"));
    }
    // Both files are begun before the work, so that a bad path costs no time, and get their names after it.
    let after = args.snapshot_out.as_deref().map(|path| Output::open(Some(path))).transpose()?;
    let mut output = Output::open(options.out.as_deref())?;

    let mut state = State::new(cluster);
    let table = options.format == Format::Table;
    let before = if table { Totals::of(&mut state) } else { Totals::default() };
    let mut tally = Tally::default();
    let mut bytes = Vec::with_capacity(CHUNK * 2);
    let mut seen = 0u64;
    let bar = talk.progress(queue.len() as u64, "deciding");
    let start = Instant::now();
    let mut commit_loop = CommitLoop::with_backend(&mut state, settings, backend);
    if let Some(typical) = typical {
        commit_loop = commit_loop.with_typical(typical);
    }
    decide(&mut commit_loop, &settings, &queue, &mut |cluster, decision| {
        seen += 1;
        if seen.is_multiple_of(STEP) {
            bar.inc(STEP);
        }
        if table {
            tally.add(cluster, decision);
            return Ok(Next::GoOn);
        }
        decision_json(&mut bytes, cluster, decision)?;
        if bytes.len() >= CHUNK {
            output.write(&bytes)?;
            bytes.clear();
        }
        // With nobody to read the lines, the snapshot may still be wanted.
        Ok::<_, Failure>(if output.is_closed() && after.is_none() { Next::Stop } else { Next::GoOn })
    })?;
    let time = start.elapsed();
    if let Some(fault) = commit_loop.backend_fault() {
        talk.warn(format_args!("{fault}: the indexes of the cluster answered instead, with the same results"));
    }
    drop(commit_loop);
    bar.finish_and_clear();
    if table {
        let after = Totals::of(&mut state);
        let summary = PlaceSummary { policy: args.policy.name(), seed, tally: &tally, before, after, time };
        bytes.extend(summary.table().bytes());
    }
    output.write(&bytes)?;
    if let Some(mut after) = after {
        after.pass(|out| write_cluster(state.cluster(), as_of.as_deref(), out))?;
        output.finish()?;
        after.finish()
    } else {
        output.finish()
    }
}
