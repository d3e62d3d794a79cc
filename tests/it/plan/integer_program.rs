//! Mid-size clusters against another integer program, by another solver: how many instances of each size every node keeps
//! and holds afterwards, without patterns.

use microlp::{ComparisonOp, OptimizationDirection, Problem};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slotwise::cluster::{Cluster, ClusterBuilder, JobId, JobSpec, NodeId, NodeSpec, Seat};
use slotwise::plan::{Goal, Mode, plan};

use super::{options, verifier};

/// The fewest moves by `microlp`, if there is a plan.
fn by_program(cluster: &Cluster, job: JobId) -> Option<u64> {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let sizes: Vec<u8> = (1..=8).collect();
    let asked = |size: u8| {
        if cluster.request_of(job).gpus == size { cluster.job(job).instances() } else { 0 }
    };
    let mut all = [0u32; 9];
    let mut holds = Vec::new();
    for node in cluster.nodes() {
        let mut row = Vec::new();
        for &size in &sizes {
            let had = u32::from(node.composition().count(size));
            all[usize::from(size)] += had;
            let most = i32::from(node.capacity() / size);
            let kept = problem.add_integer_var(1.0, (0, had as i32));
            let held = problem.add_integer_var(0.0, (0, most));
            problem.add_constraint([(kept, 1.0), (held, -1.0)], ComparisonOp::Le, 0.0);
            row.push((held, f64::from(size)));
            holds.push((size, held));
        }
        problem.add_constraint(&row, ComparisonOp::Le, f64::from(node.capacity()));
    }
    for &size in &sizes {
        let row: Vec<_> = holds.iter().filter(|&&(other, _)| other == size).map(|&(_, held)| (held, 1.0)).collect();
        problem.add_constraint(&row, ComparisonOp::Eq, f64::from(all[usize::from(size)] + asked(size)));
    }
    let solution = problem.solve().ok()?.into_solution().ok()?;
    Some(u64::from(all.iter().sum::<u32>()) - solution.objective().round() as u64)
}

#[test]
fn mid_size_clusters() {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let (mut feasible, mut most) = (0, 0);
    for round in 0..24 {
        let n = random.random_range(6..=10u32);
        let mut builder = ClusterBuilder::new();
        for at in 0..n {
            builder.add_node(&NodeSpec { name: &format!("n{at}"), gpus: 8, ..NodeSpec::default() }).unwrap();
        }
        let mut free = vec![8u8; n as usize];
        for at in 0..n * 4 {
            let (gpus, node) = ([1, 1, 2, 2, 3, 4, 5][random.random_range(0..7)], random.random_range(0..n));
            if free[node as usize] >= gpus {
                free[node as usize] -= gpus;
                let name = format!("run-{at}");
                let spec = JobSpec { name: &name, gpus, ..JobSpec::default() };
                builder.add_running(&spec, &[Seat { node: NodeId(node), gpus: None }]).unwrap();
            }
        }
        let mut cluster = builder.finish().unwrap();
        let gpus = random.random_range(5..=8);
        let free: u32 = free.into_iter().map(u32::from).sum();
        let instances = (free / u32::from(gpus)).saturating_sub(random.random_range(0..2)).max(1);
        let job = cluster.register(&JobSpec { name: "job", gpus, ..JobSpec::default() }, instances).unwrap();
        let options = options(&cluster, Mode::StopFirst);
        let plan = plan(&cluster, Goal::Job(job), &options);
        let truth = by_program(&cluster, job);
        assert!(plan.optimal, "round {round}: not proved");
        assert_eq!(plan.feasible, Some(truth.is_some()), "round {round}");
        if let Some(moves) = truth {
            assert_eq!(plan.steps.len() as u64, moves, "round {round}");
            verifier::check(&cluster, Goal::Job(job), Mode::StopFirst, &options.movable, &plan);
            (feasible, most) = (feasible + 1, most.max(moves));
        }
    }
    println!("{feasible} of 24 have a plan, of up to {most} moves");
    assert!(feasible > 8 && most > 3);
}
