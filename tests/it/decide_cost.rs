//! What a decision costs, to be measured by hand under callgrind:
//! `valgrind --tool=callgrind --toggle-collect='*decide_one*' target/release/deps/it-… --ignored decide_cost::best_fit`.

use slotwise::anchor::State;
use slotwise::cluster::{Cluster, ClusterBuilder, JobSpec, NodeSpec};
use slotwise::decide::{CommitLoop, PlaceOptions, Policy, Status};
use slotwise::workload::QueueEntry;

/// 100,000 GPUs and as many jobs, sized as in the first trace of COMPASS-ABS (table 1); from the 30,000th on, the oldest
/// leaves before each arrival.
fn scenario(limited: bool) -> (Cluster, Vec<QueueEntry>) {
    const JOBS: usize = 100_000;
    const ALIVE: usize = 30_000;
    let mut builder = ClusterBuilder::new();
    let cpu_milli = limited.then_some(64_000);
    for number in 0..12_500 {
        builder.add_node(&NodeSpec { name: &format!("n{number}"), gpus: 8, cpu_milli, ..NodeSpec::default() }).unwrap();
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
        // Half of the small jobs ask more cores than their share, so that some nodes have GPUs and no cores left.
        let cores = if word >> 30 & 1 == 1 && gpus < 8 { 11 } else { 7 };
        let cpu_milli = if limited { u32::from(gpus) * cores * 1000 } else { 0 };
        let spec = JobSpec { name: &format!("j{number}"), gpus, cpu_milli, ..JobSpec::default() };
        jobs.push(cluster.register(&spec, 1).unwrap());
        if number >= ALIVE {
            queue.push(QueueEntry::Remove(jobs[number - ALIVE]));
        }
        queue.push(QueueEntry::Submit(jobs[number]));
    }
    (cluster, queue)
}

fn run(policy: Policy, limited: bool, window: usize) {
    let (cluster, queue) = scenario(limited);
    let mut state = State::new(cluster);
    let (mut placed, mut blocked) = (0u32, 0u32);
    let options = PlaceOptions { policy, window, threads: 1, ..PlaceOptions::default() };
    let start = std::time::Instant::now();
    CommitLoop::new(&mut state, options).run(&queue, &mut |decision| match decision.status {
        Status::Placed => placed += 1,
        Status::Blocked(_) => blocked += 1,
        Status::Removed | Status::Absent => {}
    });
    let micros = start.elapsed().as_micros();
    println!(
        "{policy}, window {window}: {} decisions, {placed} instances placed, {blocked} blocked, {micros} µs",
        queue.len()
    );
}

macro_rules! costs {
    ($($name:ident $policy:ident $limited:literal $window:literal)*) => {$(
        #[test]
        #[ignore = "a measurement"]
        fn $name() {
            run(Policy::$policy, $limited, $window);
        }
    )*};
}

costs! {
    compass Compass false 256
    best_fit BestFit false 256
    worst_fit WorstFit false 256
    first_fit FirstFit false 256
    random Random false 256
    limited_best_fit_one_by_one BestFit true 1
    limited_best_fit_in_windows BestFit true 256
}
