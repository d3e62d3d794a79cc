//! What is said to be proved, in the corners where it is easily said too soon: moves that cost nothing, instances that
//! move twice, limits, cordoned nodes.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slotwise::cluster::{Cluster, JobId};
use slotwise::formats::{read_cluster_from, read_queue_from};
use slotwise::plan::{Cost, Effort, Goal, Mode, Plan, PlanOptions, plan};
use slotwise::workload::QueueEntry;

use super::{options, verifier};

/// A cluster, and the job that waits.
fn world(snapshot: &str, queue: &str) -> (Cluster, JobId) {
    let mut cluster = read_cluster_from("cluster", snapshot.as_bytes()).unwrap().cluster;
    let (queue, _) = read_queue_from("queue", queue.as_bytes(), &mut cluster).unwrap();
    let Some(&QueueEntry::Submit(job)) = queue.first() else { panic!("a queue of one job") };
    (cluster, job)
}

/// A plan whose steps are verified.
fn verified(cluster: &Cluster, goal: Goal, options: &PlanOptions) -> Plan {
    let found = plan(cluster, goal, options);
    if found.feasible == Some(true) {
        verifier::check(cluster, goal, options.mode, &options.movable, &found);
    }
    assert!(
        !found.optimal || found.feasible != Some(true) || found.lower_bound.is_some_and(|bound| found.cost <= bound)
    );
    assert!(found.feasible != Some(true) || !found.optimal || found.lower_bound == Some(found.cost));
    found
}

/// An instance that costs nothing must leave all the same.
#[test]
fn what_costs_nothing_moves_too() {
    let (cluster, job) = world(
        r#"{"nodes":[{"name":"n0","gpus":4,"model":"A","cpu_milli":3},{"name":"n1","gpus":3,"model":"B"},{"name":"n2","gpus":2,"model":"A"}],
            "running":[{"job":"x","gpus_per_instance":3,"models":["A","B"],"instances":[{"node":"n0"}],"move_cost_s":0},
                       {"job":"y","gpus_per_instance":2,"models":["A","B"],"instances":[{"node":"n1"}],"move_cost_s":5}]}"#,
        r#"{"job":"q","instances":2,"gpus_per_instance":2,"cpu_milli":3,"models":["A"]}"#,
    );
    let seconds = PlanOptions { cost: Cost::Seconds, ..options(&cluster, Mode::Hitless) };
    let found = verified(&cluster, Goal::Job(job), &seconds);
    assert_eq!((found.feasible, found.cost, found.steps.len()), (Some(true), 10, 3));
    let (cluster, job) = world(
        r#"{"nodes":[{"name":"n0","gpus":3,"model":"A","cpu_milli":4},{"name":"n1","gpus":2,"model":"B","cpu_milli":4},
                     {"name":"n2","gpus":2,"model":"A","cpu_milli":2}],
            "running":[{"job":"x","gpus_per_instance":0,"cpu_milli":4,"models":["A","B"],"instances":[{"node":"n0"}]},
                       {"job":"y","gpus_per_instance":1,"cpu_milli":2,"models":["A","B"],"instances":[{"node":"n1"}]}]}"#,
        r#"{"job":"q","instances":2,"gpus_per_instance":2,"cpu_milli":2,"models":["A"]}"#,
    );
    let gpus = PlanOptions { cost: Cost::Gpus, ..options(&cluster, Mode::Hitless) };
    let found = verified(&cluster, Goal::Job(job), &gpus);
    assert_eq!((found.feasible, found.cost, found.steps.len()), (Some(true), 2, 3));
}

/// Whatever counts, the same plans are possible.
#[test]
fn no_measure_says_what_another_refutes() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let (mut possible, mut impossible) = (0, 0);
    for _ in 0..400 {
        let nodes = random.random_range(2..5);
        let mut running = Vec::new();
        let mut listed = Vec::new();
        for node in 0..nodes {
            let (gpus, cpu) = (random.random_range(2..5), random.random_range(2..7));
            listed.push(format!(r#"{{"name":"n{node}","gpus":{gpus},"cpu_milli":{cpu}}}"#));
            let (mut gpus, mut cpu) = (gpus, cpu);
            for _ in 0..random.random_range(0..4) {
                let (asks, needs) = (random.random_range(0..3), random.random_range(0..4));
                if asks > gpus || needs > cpu || asks + needs == 0 {
                    continue;
                }
                (gpus, cpu) = (gpus - asks, cpu - needs);
                let seconds = random.random_range(0..3);
                running.push(format!(
                    r#"{{"job":"j{}","gpus_per_instance":{asks},"cpu_milli":{needs},"move_cost_s":{seconds},"instances":[{{"node":"n{node}"}}]}}"#,
                    running.len()
                ));
            }
        }
        let snapshot = format!(r#"{{"nodes":[{}],"running":[{}]}}"#, listed.join(","), running.join(","));
        let (instances, gpus, cpu) = (random.random_range(1..3), random.random_range(1..5), random.random_range(0..4));
        let queue = format!(r#"{{"job":"q","instances":{instances},"gpus_per_instance":{gpus},"cpu_milli":{cpu}}}"#);
        let (cluster, job) = world(&snapshot, &queue);
        for mode in [Mode::StopFirst, Mode::Hitless] {
            let costs = [Cost::Moves, Cost::Gpus, Cost::Jobs, Cost::Seconds];
            let plans =
                costs.map(|cost| verified(&cluster, Goal::Job(job), &PlanOptions { cost, ..options(&cluster, mode) }));
            let answers: Vec<Option<bool>> = plans.iter().map(|plan| plan.feasible).collect();
            let some = |answer| answers.contains(&Some(answer));
            assert!(!some(true) || !some(false), "{answers:?}: {snapshot} {queue}");
            possible += u32::from(some(true));
            impossible += u32::from(some(false));
            // No plan has less of what another has the least of.
            let [moves, gpus, jobs, seconds] = &plans;
            let moved =
                |plan: &Plan| plan.steps.iter().map(|step| u64::from(cluster.request_of(step.job).gpus)).sum::<u64>();
            for plan in plans.iter().filter(|plan| plan.feasible == Some(true)) {
                let least = [
                    (moves, plan.steps.len() as u64),
                    (gpus, moved(plan)),
                    (jobs, plan.jobs_disturbed()),
                    (seconds, plan.seconds(&cluster).unwrap()),
                ];
                for (best, has) in least {
                    assert!(best.feasible != Some(true) || best.lower_bound.is_none_or(|bound| bound <= has));
                    assert!(!best.optimal || best.feasible != Some(true) || best.cost <= has, "{snapshot} {queue}");
                }
                assert!(
                    !moves.jobs_optimal
                        || moves.steps.len() < plan.steps.len()
                        || moves.jobs_disturbed() <= plan.jobs_disturbed()
                );
            }
        }
    }
    assert!(possible > 200 && impossible > 100, "{possible} {impossible}");
}

/// One after another, an instance may move twice: then more moves are of fewer jobs.
#[test]
fn more_moves_may_disturb_fewer_jobs() {
    let nodes = r#"{"name":"n0a","gpus":4,"model":"Aa","cpu_milli":5},{"name":"n1a","gpus":3,"model":"Ba"},{"name":"n2a","gpus":2,"model":"Aa"},
        {"name":"n0b","gpus":4,"model":"Ab","cpu_milli":5},{"name":"n1b","gpus":3,"model":"Bb"},{"name":"n2b","gpus":2,"model":"Ab"},
        {"name":"n3","gpus":4,"model":"C","cpu_milli":10},{"name":"n4","gpus":5,"model":"D"}"#;
    let pair = |x: &str| {
        format!(
            r#"{{"job":"x{x}","gpus_per_instance":3,"models":["A{x}","B{x}"],"instances":[{{"node":"n0{x}"}}]}},
               {{"job":"y{x}","gpus_per_instance":2,"models":["A{x}","B{x}"],"instances":[{{"node":"n1{x}"}}]}}"#
        )
    };
    let small = |n: u32| {
        format!(
            r#"{{"job":"c{n}","gpus_per_instance":0,"cpu_milli":2,"models":["C","D"],"instances":[{{"node":"n3"}}]}}"#
        )
    };
    let small: Vec<String> = (0..5).map(small).collect();
    let running = [pair("a"), pair("b"), small.join(",")].join(",");
    let (cluster, job) = world(
        &format!(r#"{{"nodes":[{nodes}],"running":[{running}]}}"#),
        r#"{"job":"q","instances":4,"gpus_per_instance":2,"cpu_milli":5,"models":["Aa","Ab","C"]}"#,
    );
    let few = PlanOptions { max_jobs_disturbed: Some(4), ..options(&cluster, Mode::Hitless) };
    let found = verified(&cluster, Goal::Job(job), &few);
    assert_ne!(found.feasible, Some(false), "six moves of four jobs do");
    let free = verified(&cluster, Goal::Job(job), &options(&cluster, Mode::Hitless));
    assert!(free.steps.len() == 5 && free.jobs_disturbed() == 5 && !free.jobs_optimal);
}

/// What runs on a cordoned node stays there in these plans, and may do better elsewhere.
#[test]
fn few_partial_nodes_are_not_proved_where_something_could_leave_a_cordoned_node() {
    let snapshot = |pinned: &str| {
        format!(
            r#"{{"nodes":[{{"name":"n0","gpus":2}},{{"name":"n1","gpus":3}},{{"name":"n2","gpus":2,"schedulable":false}}],
                "running":[{{"job":"a","gpus_per_instance":1,"instances":[{{"node":"n0"}}]}},
                           {{"job":"b","gpus_per_instance":2,{pinned}"instances":[{{"node":"n2"}}]}}]}}"#
        )
    };
    for (pinned, proved) in [("", false), (r#""migratable":false,"#, true)] {
        let cluster = read_cluster_from("cluster", snapshot(pinned).as_bytes()).unwrap().cluster;
        let found = verified(&cluster, Goal::LeastPartial, &options(&cluster, Mode::StopFirst));
        assert_eq!((found.feasible, found.optimal, found.fewest_partial), (Some(true), proved, proved));
    }
}

/// With a limit there are as few partial nodes as is found within it: no limit makes that impossible, and none is proved.
#[test]
fn few_partial_nodes_within_a_limit_of_jobs() {
    let cluster = r#"{"nodes":[{"name":"n0","gpus":7},{"name":"n1","gpus":6},{"name":"n2","gpus":6},{"name":"n3","gpus":5},{"name":"n4","gpus":6}],
        "running":[{"job":"j0","gpus_per_instance":4,"instances":[{"node":"n0"}]},{"job":"j1","gpus_per_instance":1,"instances":[{"node":"n3"}]},
                   {"job":"j2","gpus_per_instance":1,"instances":[{"node":"n3"}]},{"job":"j3","gpus_per_instance":4,"instances":[{"node":"n2"}]},
                   {"job":"j4","gpus_per_instance":1,"instances":[{"node":"n4"},{"node":"n1"}]}]}"#;
    let cluster = read_cluster_from("cluster", cluster.as_bytes()).unwrap().cluster;
    let partial = |plan: &Plan| {
        let after = plan.after.as_ref().unwrap();
        after.nodes().iter().filter(|node| node.free_gpus() > 0 && node.free_gpus() < node.capacity()).count()
    };
    for mode in [Mode::StopFirst, Mode::Hitless] {
        let free = verified(&cluster, Goal::LeastPartial, &options(&cluster, mode));
        assert!(free.optimal && free.jobs_disturbed() > 1, "{free:?}");
        let mut last = 5;
        for most in 0..=free.jobs_disturbed() {
            for cost in [Cost::Moves, Cost::Gpus, Cost::Jobs] {
                let effort = Effort::new(4_000_000, None);
                let limited = PlanOptions { max_jobs_disturbed: Some(most), cost, effort, ..options(&cluster, mode) };
                let found = verified(&cluster, Goal::LeastPartial, &limited);
                assert_eq!(found.feasible, Some(true), "{most} {cost:?}");
                assert!(found.jobs_disturbed() <= most && partial(&found) >= partial(&free));
                assert!(!found.optimal || partial(&found) == partial(&free), "{most} {cost:?}");
                if cost == Cost::Moves {
                    assert!(partial(&found) <= last);
                    last = partial(&found);
                }
            }
        }
        assert_eq!(last, partial(&free));
    }
}
