//! The time for a plan: whole nodes for a gang on a scattered cluster.

use std::time::Instant;

use super::super::Failure;
use super::{BenchRow, SEED, Size, row};
use crate::cluster::JobSpec;
use crate::plan::{Effort, Goal, Mode, PlanOptions, plan};
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
        let options = PlanOptions::new(&cluster, Mode::Hitless, Effort::new(1_000_000, None));
        let mut best = f64::INFINITY;
        let mut proved = true;
        for _ in 0..size.passes.max(1) {
            let start = Instant::now();
            proved &= plan(&cluster, Goal::Job(job), &options).optimal;
            best = best.min(start.elapsed().as_secs_f64());
        }
        let variant = if proved { "proved" } else { "not proved" };
        rows.push(BenchRow { gpus: Some(gpus), ..row("plan", variant, 1, best * 1e3, "ms") });
    }
    Ok(())
}
