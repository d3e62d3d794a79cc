//! `place`: decides where the jobs of a queue go.

use std::time::Instant;

use super::super::args::{Format, PlaceArgs};
use super::super::input;
use super::{Failure, Options, Output, Talk, open_backend};
use crate::anchor::{State, Trigger};
use crate::cluster::JobId;
use crate::decide::{CommitLoop, Next, PlaceOptions, Policy, Status, decide_and_show, offers};
use crate::formats::{FormatError, Snapshot, write_snapshot};
use crate::fragmentation::fgd::Typical;
use crate::plan::FewestMoves;
use crate::report::{
    OffersOut, PlaceSummary, Tally, Totals, asked, asks, decision_json, explained_decision_json, gpus, refusal_text,
};
use crate::workload::QueueEntry;

/// Written at a time.
const CHUNK: usize = 64 << 10;

/// Decisions between two moves of the progress bar.
const STEP: u64 = 1024;

/// Decides the queue one by one, which changes no decision, and tells of the jobs that are asked about which nodes they
/// could have had: of one by its name, or else of all that are blocked.
fn explain(
    wanted: Option<&str>,
    commit_loop: &mut CommitLoop<'_>,
    queue: &[QueueEntry],
    options: &Options,
    mut output: Output,
) -> Result<(), Failure> {
    let job = wanted.map(|name| {
        let cluster = commit_loop.state().cluster();
        if cluster.find_grouped_job(name).is_some() {
            let text = format_args!("--explain: found {name:?}, a job of several groups, expected a job of one");
            return Err(Failure::input(text));
        }
        let job = cluster.find_job(name);
        let queued = job.filter(|&job| queue.contains(&QueueEntry::Submit(job)));
        queued.ok_or_else(|| {
            Failure::input(format_args!("--explain: found {name:?}, expected the name of a job of the queue"))
        })
    });
    let job = job.transpose()?;
    let look = |commit_loop: &CommitLoop<'_>, job: JobId| {
        let state = commit_loop.state();
        (state.free_gpus(), state.free_gpu_milli(), offers(state, commit_loop.policy(), job))
    };
    let mut bytes = Vec::new();
    for (index, &entry) in queue.iter().enumerate() {
        let submitted = matches!(entry, QueueEntry::Submit(_));
        // A job that is placed changes the nodes; one that is blocked does not.
        let before = (submitted && job == Some(entry.job())).then(|| look(commit_loop, entry.job()));
        let decision = commit_loop.decide(entry, index).clone();
        let blocked = submitted && matches!(decision.status, Status::Blocked(_));
        let seen = before.or_else(|| (job.is_none() && blocked).then(|| look(commit_loop, entry.job())));
        let cluster = commit_loop.state().cluster();
        let told =
            seen.as_ref().map(|(free, milli, offers)| OffersOut::new(cluster, entry.job(), *free, *milli, offers));
        match (options.format, told) {
            (Format::Json, told) => explained_decision_json(&mut bytes, cluster, &decision, told.as_ref())?,
            (Format::Table, None) => {
                if let (Some(proven), Status::Blocked(why)) = (decision.proven, decision.status) {
                    let gap = if bytes.is_empty() { "" } else { "\n" };
                    let (name, asks) = (cluster.whole_job_name(decision.job), asks(cluster, decision.job));
                    let why = refusal_text(why.name(), Some(proven));
                    bytes.extend(format!("{gap}{name}, {asks} GPUs: blocked by {why}\n").bytes());
                }
            }
            (Format::Table, Some(told)) => {
                let name = cluster.job_name(entry.job());
                let (instances, request) = (cluster.job(entry.job()).instances(), cluster.request_of(entry.job()));
                let became = match decision.status {
                    Status::Blocked(why) => format!("blocked by {}", why.name()),
                    _ => "placed".to_owned(),
                };
                let gap = if bytes.is_empty() { "" } else { "\n" };
                let size = gpus(&asked(request.gpus, request.gpu_milli));
                let head = format!("{gap}{name}, {instances} × {size}: {became}; ");
                bytes.extend(head.bytes().chain(told.table().bytes()));
            }
        }
        if bytes.len() >= CHUNK {
            output.write(&bytes)?;
            bytes.clear();
        }
    }
    output.write(&bytes)?;
    output.finish()
}

pub(super) fn run(args: &PlaceArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let snapshot = input::cluster(&args.cluster.cluster, args.cluster.keys(), talk)?;
    let Snapshot { mut cluster, as_of, index_source, .. } = snapshot;
    let mut queue = input::queue(&args.queue, args.cluster.keys(), &mut cluster, args.trace, talk)?;
    queue.truncate(args.first.unwrap_or(usize::MAX));
    let typical = match &args.typical.typical {
        None => None,
        Some(_) if !args.policy.asks_what_is_typical() => {
            let text =
                format_args!("found --typical for the policy {}, expected it for fgd, ca-fgd or mcg", args.policy);
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
    if args.policy.makes_room() {
        if args.compact != Trigger::default() {
            talk.warn(format_args!("{} moves only what a blocked job needs: --compact does nothing", args.policy));
        }
    } else if !args.policy.compacts() && (args.compact != Trigger::default() || args.migration_budget.is_some()) {
        talk.warn(format_args!("{} moves nothing: --compact and --migration-budget do nothing", args.policy));
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
    commit_loop = commit_loop.with_room_maker(Box::new(FewestMoves::default()));
    if let Some(typical) = typical {
        commit_loop = commit_loop.with_typical(typical);
    }
    if let Some(wanted) = &args.explain {
        return explain(wanted.as_deref(), &mut commit_loop, &queue, options, output);
    }
    decide_and_show(&mut commit_loop, &settings, &queue, &mut |cluster, decision| {
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
        let snapshot = Snapshot { cluster: state.into_cluster(), as_of, index_source, ..Snapshot::default() };
        after.pass(|out| write_snapshot(&snapshot, out))?;
        output.finish()?;
        after.finish()
    } else {
        output.finish()
    }
}
