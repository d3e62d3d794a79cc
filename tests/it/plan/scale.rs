//! Large clusters: a plan, its proof, and the time it takes.

use std::time::Instant;

use slotwise::cluster::JobSpec;
use slotwise::plan::{Goal, Mode, plan};
use slotwise::workload::synthetic::{ClusterOptions, Mix, synthetic_cluster};

use super::{options, verifier};

#[test]
fn a_gang_of_64_nodes_on_a_scattered_cluster_at_95_percent() {
    for gpus in [10_000, 100_000] {
        for mix in [Mix::Gfs, Mix::Hard] {
            let options_of =
                ClusterOptions { gpus, preload_percent: 95, tidy: false, mix, ..ClusterOptions::default() };
            let mut cluster = synthetic_cluster(&options_of).unwrap();
            let job = cluster.register(&JobSpec { name: "gang", gpus: 8, ..JobSpec::default() }, 64).unwrap();
            for mode in Mode::ALL {
                let options = options(&cluster, mode);
                let start = Instant::now();
                let plan = plan(&cluster, Goal::Job(job), &options);
                let time = start.elapsed();
                println!(
                    "{gpus} GPUs, {mix:?}, {}: feasible {:?}, {} moves, {} GPUs, bound {:?}, proved {} {} {}, {time:?}",
                    mode.name(),
                    plan.feasible,
                    plan.steps.len(),
                    plan.moved_gpus(),
                    plan.lower_bound,
                    plan.optimal,
                    plan.second_optimal,
                    plan.jobs_optimal,
                );
                assert!(plan.optimal && plan.feasible == Some(gpus > 10_000));
                if plan.feasible == Some(true) {
                    verifier::check(&cluster, Goal::Job(job), mode, &options.movable, &plan);
                }
            }
        }
    }
}
