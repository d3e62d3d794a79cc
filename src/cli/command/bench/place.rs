//! Decisions a second of every policy.

use std::time::Instant;

use super::super::Failure;
use super::{BenchRow, SEED, Size, row};
use crate::anchor::State;
use crate::decide::{CommitLoop, PlaceOptions, Policy};
use crate::workload::synthetic::{ClusterOptions, StreamOptions, synthetic_cluster, synthetic_queue};

pub(super) fn measure(size: &Size, threads: usize, rows: &mut Vec<BenchRow>) -> Result<(), Failure> {
    for &gpus in size.gpus {
        let bad = |error: crate::cluster::BuildError| Failure::Failed(error.into());
        let mut cluster =
            synthetic_cluster(&ClusterOptions { gpus, seed: SEED, ..ClusterOptions::default() }).map_err(bad)?;
        let free = cluster.nodes().iter().map(|node| u64::from(node.free_gpus())).sum();
        let stream = StreamOptions { jobs: size.jobs, seed: SEED, gpus: free, ..StreamOptions::default() };
        let queue = synthetic_queue(&mut cluster, &stream).map_err(bad)?;
        let start = State::new(cluster);
        for policy in Policy::ALL {
            let options = PlaceOptions { policy, threads, ..PlaceOptions::default() };
            let mut best = f64::INFINITY;
            for _ in 0..size.passes.min(3) {
                let mut state = start.clone();
                let mut commit_loop = CommitLoop::new(&mut state, options);
                let clock = Instant::now();
                commit_loop.run(&queue, &mut |decision| {
                    std::hint::black_box(decision);
                });
                best = best.min(clock.elapsed().as_secs_f64());
            }
            let speed = queue.len() as f64 / best.max(1e-9);

            rows.push(BenchRow {
                gpus: Some(gpus),
                variant: Some(policy.name().to_owned()),
                ..row("place", 1, speed, "decisions/s")
            });
        }
    }
    Ok(())
}
