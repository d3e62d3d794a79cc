//! `stress`: a long stream of jobs, and every invariant checked on the way.

mod invariants;

use std::time::{Duration, Instant};

use super::super::args::{Format, StressArgs};
use super::{Failure, Options, Talk, open_backend, write_all};
use crate::anchor::State;
use crate::decide::{CommitLoop, PlaceOptions};
use crate::report::{Latency, StressReport, Tally, Totals};
use crate::workload::synthetic::{ClusterOptions, StreamOptions, synthetic_cluster, synthetic_queue};
use invariants::Invariants;

/// How often everything is recounted on the way.
const RECOUNTS: usize = 20;

/// Decisions between two moves of the progress bar.
const STEP: u64 = 1024;

pub(super) fn run(args: &StressArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let backend = open_backend(&args.evaluate, options, talk)?;
    let backend_name = backend.name();
    let (seed, mix) = (args.seed.seed, args.seed.mix);
    talk.note(format_args!("seed {seed}"));
    let bad = |error: crate::cluster::BuildError| Failure::Input(error.into());
    let made = ClusterOptions { gpus: args.gpus, seed, mix, preload_percent: 0, ..ClusterOptions::default() };
    let mut cluster = synthetic_cluster(&made).map_err(bad)?;
    let stream = StreamOptions {
        jobs: args.jobs,
        seed,
        mix,
        gpus: args.gpus,
        load_percent: args.load,
        ..StreamOptions::default()
    };
    let queue = synthetic_queue(&mut cluster, &stream).map_err(bad)?;
    let mut state = State::new(cluster);
    let before = Totals::of(&mut state);
    let settings = PlaceOptions { policy: args.policy, seed, threads: options.threads, ..PlaceOptions::default() };
    let mut invariants = Invariants::new(args.policy, before);
    let mut tally = Tally::default();
    let mut latencies = Vec::with_capacity(queue.len());
    let mut time = Duration::ZERO;
    let bar = talk.progress(queue.len() as u64, "deciding");
    let between = queue.len().div_ceil(RECOUNTS).max(1);
    let mut commit_loop = CommitLoop::with_backend(&mut state, settings, backend)
        .with_room_maker(Box::new(crate::plan::FewestMoves::default()));
    for (index, &entry) in queue.iter().enumerate() {
        let start = Instant::now();
        let decision = commit_loop.decide(entry, index);
        let took = start.elapsed();
        time += took;
        latencies.push(u32::try_from(took.as_nanos()).unwrap_or(u32::MAX));
        let decision = decision.clone();
        invariants.after(commit_loop.state(), &decision);
        tally.add(commit_loop.state().cluster(), &decision);
        if (index + 1) % between == 0 {
            invariants.recount(commit_loop.state());
        }
        if (index as u64).is_multiple_of(STEP) {
            bar.set_position(index as u64);
        }
    }
    drop(commit_loop);
    bar.finish_and_clear();
    let after = Totals::of(&mut state);
    invariants.end(&state, after);
    let report = StressReport {
        policy: args.policy.name(),
        backend: backend_name,
        mix: mix.name(),
        seed,
        tally: &tally,
        before,
        after,
        n_sif_max: invariants.n_sif_max(),
        n_sif_mean: invariants.n_sif_mean(),
        busy_gpus_max: invariants.busy_gpus_max(),
        time,
        latency: Latency::of(&mut latencies),
        peak_memory_bytes: peak_memory_bytes(),
        recounts: invariants.recounts(),
        violations: invariants.violations(),
    };
    let mut bytes = Vec::new();
    match options.format {
        Format::Json => report.append_json(&mut bytes)?,
        Format::Table => bytes.extend(report.table().bytes()),
    }
    write_all(options, &bytes)?;
    match invariants.violations() {
        [] => Ok(()),
        [first, ..] => Err(Failure::failed(format_args!("an invariant does not hold: {first}"))),
    }
}

/// The most memory that this process held, where the system tells.
fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
