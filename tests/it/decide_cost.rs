//! What a decision costs, to be measured by hand under callgrind:
//! `valgrind --tool=callgrind --toggle-collect='*decide_one*' target/release/deps/it-… --ignored decide_cost::best_fit`.

use slotwise::anchor::State;
use slotwise::cluster::{Cluster, ClusterBuilder, JobSpec, NodeSpec};
use slotwise::decide::{CommitLoop, PlaceOptions, Policy, Status};
use slotwise::workload::QueueEntry;

/// 100,000 GPUs and as many jobs, sized as in the first trace of COMPASS-ABS (table 1); from the 30,000th on, the oldest
/// leaves before each arrival.
fn scenario() -> (Cluster, Vec<QueueEntry>) {
    const JOBS: usize = 100_000;
    const ALIVE: usize = 30_000;
    let mut builder = ClusterBuilder::new();
    for number in 0..12_500 {
        builder.add_node(&NodeSpec { name: &format!("n{number}"), gpus: 8, ..NodeSpec::default() }).unwrap();
    }
    let mut cluster = builder.finish().unwrap();
    let mut word = 1u32;
    let (mut jobs, mut queue) = (Vec::new(), Vec::new());
    for number in 0..JOBS {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let gpus = match word >> 16 & 1023 {
            0..657 => 1,
            657..690 => 2,
            690..719 => 4,
            719 => 3,
            _ => 8,
        };
        let spec = JobSpec { name: &format!("j{number}"), gpus, ..JobSpec::default() };
        jobs.push(cluster.register(&spec, 1).unwrap());
        if number >= ALIVE {
            queue.push(QueueEntry::Remove(jobs[number - ALIVE]));
        }
        queue.push(QueueEntry::Submit(jobs[number]));
    }
    (cluster, queue)
}

fn run(policy: Policy) {
    let (cluster, queue) = scenario();
    let mut state = State::new(cluster);
    let (mut placed, mut blocked) = (0u32, 0u32);
    let options = PlaceOptions { policy, threads: 1, ..PlaceOptions::default() };
    let start = std::time::Instant::now();
    CommitLoop::new(&mut state, options).run(&queue, &mut |decision| match decision.status {
        Status::Placed => placed += 1,
        Status::Blocked(_) => blocked += 1,
        Status::Removed | Status::Absent => {}
    });
    let micros = start.elapsed().as_micros();
    println!("{policy}: {} decisions, {placed} instances placed, {blocked} blocked, {micros} µs", queue.len());
}

macro_rules! costs {
    ($($name:ident $policy:ident)*) => {$(
        #[test]
        #[ignore = "a measurement"]
        fn $name() {
            run(Policy::$policy);
        }
    )*};
}

costs! {
    compass Compass
    best_fit BestFit
    worst_fit WorstFit
    first_fit FirstFit
    random Random
}
