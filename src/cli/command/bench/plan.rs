//! The time for a plan: whole nodes for a gang on a scattered cluster.

use std::time::Instant;

use super::super::Failure;
use super::{BenchRow, SEED, Size, row};
use crate::cluster::JobSpec;
use crate::evaluate::Cpu;
use crate::plan::{Effort, Goal, Mode, PlanOptions, choose, plan};
use crate::workload::synthetic::{ClusterOptions, synthetic_cluster};

/// The gang asks for one node of so many.
const NODES_EACH: u64 = 196;

/// Each size of cluster, at 95 % load.
pub(super) fn measure(size: &Size, rows: &mut Vec<BenchRow>) -> Result<(), Failure> {
    let bad = |error: crate::cluster::BuildError| Failure::Failed(error.into());
    for &gpus in size.gpus {
        let made = ClusterOptions { gpus, seed: SEED, preload_percent: 95, tidy: false, ..ClusterOptions::default() };
        let mut cluster = synthetic_cluster(&made).map_err(bad)?;
        let instances = (gpus / 8 / NODES_EACH).max(1) as u32;
        let job = cluster.register(&JobSpec { name: "gang", gpus: 8, ..JobSpec::default() }, instances).map_err(bad)?;
        // Alone, and chosen by its score among plans that are as good.
        for choosing in [false, true] {
            let effort = Effort::new(1_000_000, None);
            let options = PlanOptions { ways: choosing, ..PlanOptions::new(&cluster, Mode::Hitless, effort) };
            let mut best = f64::INFINITY;
            let mut proved = true;
            for _ in 0..size.passes.max(1) {
                let start = Instant::now();
                let mut found = plan(&cluster, Goal::Job(job), &options);
                if choosing {
                    choose(&cluster, Goal::Job(job), Mode::Hitless, &mut found, &mut Cpu::new(1)?)?;
                }
                best = best.min(start.elapsed().as_secs_f64());
                proved &= found.optimal;
            }
            let variant = match (proved, choosing) {
                (true, false) => "proved",
                (true, true) => "proved, chosen",
                (false, _) => "not proved",
            };
            rows.push(BenchRow { gpus: Some(gpus), ..row("plan", variant, 1, best * 1e3, "ms") });
        }
    }
    Ok(())
}
