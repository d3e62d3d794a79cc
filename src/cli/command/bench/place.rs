//! Decisions a second, end to end: of every policy, and of one that has nodes ranked by a backend.

use std::time::Instant;

use super::super::Failure;
use super::{BenchRow, Measured, SEED, Size, row};
use crate::anchor::State;
use crate::decide::{CommitLoop, PlaceOptions, Policy};
use crate::workload::QueueEntry;
use crate::workload::synthetic::{ClusterOptions, StreamOptions, synthetic_cluster, synthetic_queue};

/// A cluster and a stream of jobs for it.
type Input = (State, Vec<QueueEntry>);

/// Every policy, with the indexes of the cluster alone.
pub(super) fn measure(size: &Size, threads: usize, rows: &mut Vec<BenchRow>) -> Result<(), Failure> {
    for &gpus in size.gpus {
        let (start, queue) = input(size, gpus, 0)?;
        // With nobody to make room, make-room is best-fit.
        for policy in Policy::ALL.into_iter().filter(|policy| !policy.makes_room()) {
            let options = PlaceOptions { policy, threads, ..PlaceOptions::default() };
            let speed = fastest(size.passes.min(3), &start, &queue, |state| Ok(CommitLoop::new(state, options)))?;
            rows.push(BenchRow { gpus: Some(gpus), ..row("place", policy.name(), 1, speed, "decisions/s") });
        }
    }
    Ok(())
}

/// Best fit of jobs that ask for CPU, so that every window has nodes ranked by the backend.
pub(super) fn measure_backends(size: &Size, backends: &[Measured], rows: &mut Vec<BenchRow>) -> Result<(), Failure> {
    for &gpus in size.gpus {
        let (start, queue) = input(size, gpus, 1000)?;
        for measured in backends {
            let options =
                PlaceOptions { policy: Policy::BestFit, threads: measured.threads, ..PlaceOptions::default() };
            // A loop owns its backend, so each gets one of its own.
            let speed = fastest(1, &start, &queue, |state| {
                Ok(CommitLoop::with_backend(state, options, measured.source.open()?))
            })?;
            rows.push(BenchRow { gpus: Some(gpus), ..measured.row("place", "best-fit, CPU", speed, "decisions/s") });
        }
    }
    Ok(())
}

fn input(size: &Size, gpus: u64, cpu_milli_per_gpu: u32) -> Result<Input, Failure> {
    let bad = |error: crate::cluster::BuildError| Failure::Failed(error.into());
    let made = ClusterOptions { gpus, seed: SEED, ..ClusterOptions::default() };
    let mut cluster = synthetic_cluster(&made).map_err(bad)?;
    let free = cluster.nodes().iter().map(|node| u64::from(node.free_gpus())).sum();
    let stream =
        StreamOptions { jobs: size.jobs, seed: SEED, gpus: free, cpu_milli_per_gpu, ..StreamOptions::default() };
    let queue = synthetic_queue(&mut cluster, &stream).map_err(bad)?;
    Ok((State::new(cluster), queue))
}

/// Decisions a second in the fastest of some passes.
fn fastest(
    passes: usize,
    start: &State,
    queue: &[QueueEntry],
    open: impl for<'s> Fn(&'s mut State) -> Result<CommitLoop<'s>, Failure>,
) -> Result<f64, Failure> {
    let mut best = f64::INFINITY;
    for _ in 0..passes.max(1) {
        let mut state = start.clone();
        let mut commit_loop = open(&mut state)?;
        let clock = Instant::now();
        commit_loop.run(queue, &mut |decision| {
            std::hint::black_box(decision);
        });
        best = best.min(clock.elapsed().as_secs_f64());
        if let Some(fault) = commit_loop.backend_fault() {
            return Err(fault.clone().into());
        }
    }
    Ok(queue.len() as f64 / best.max(1e-9))
}
