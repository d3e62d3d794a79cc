//! Small examples of what each policy chooses, and jobs beyond all bounds.

use slotwise::anchor::State;
use slotwise::cluster::{ClusterBuilder, JobId, JobSpec, NodeSpec, Seat};
use slotwise::decide::{Arithmetic, CommitLoop, PlaceOptions, Policy, Status, Why};
use slotwise::fragmentation::fgd::Typical;
use slotwise::workload::QueueEntry;

use crate::decide_support::{JobPlan, cluster, options, plain_job, plain_nodes, register, run};

#[test]
fn an_instance_larger_than_any_node_and_a_gang_beyond_counting_are_blocked() {
    let mut cluster = cluster(&plain_nodes(3));
    let large = register(&mut cluster, "large", &plain_job(9, 1));
    let many = register(&mut cluster, "many", &plain_job(8, u32::MAX));
    let gone = register(&mut cluster, "gone", &plain_job(1, 1));
    let queue = [QueueEntry::Submit(large), QueueEntry::Submit(many), QueueEntry::Remove(gone)];
    for policy in Policy::ALL {
        let (decisions, _) = run(&cluster, &queue, options(policy));
        let status: Vec<Status> = decisions.iter().map(|decision| decision.status).collect();
        let expected = [Status::Blocked(Why::Fragmentation), Status::Blocked(Why::Capacity), Status::Absent];
        assert_eq!(status, expected, "{policy}");
    }
}

#[test]
fn cpu_only_gangs_beyond_the_cores_are_blocked_before_they_are_numbered() {
    let mut nodes = plain_nodes(2);
    nodes.iter_mut().for_each(|node| node.cpu = Some(1000));
    let mut cluster = cluster(&nodes);
    let job = register(&mut cluster, "many", &JobPlan { cpu: 1, ..plain_job(0, u32::MAX) });
    // Nothing limits these, but they would not fit into memory.
    let bare = register(&mut cluster, "bare", &plain_job(0, u32::MAX - 1));
    for policy in Policy::ALL {
        let (decisions, _) = run(&cluster, &[QueueEntry::Submit(job), QueueEntry::Submit(bare)], options(policy));
        let blocked = decisions.iter().all(|decision| decision.status == Status::Blocked(Why::Constraint));
        assert!(blocked, "{policy}");
    }
}

#[test]
fn random_choices_are_fair_and_keyed_by_seed_and_index() {
    let mut nodes = plain_nodes(5);
    nodes[1].cordoned = true;
    nodes[3].gpus = 1;
    let mut cluster = cluster(&nodes);
    let job = register(&mut cluster, "job", &plain_job(2, 1));
    let state = State::new(cluster);
    let mut counts = [0; 5];
    for seed in 0..600 {
        let options = PlaceOptions { seed, ..options(Policy::Random) };
        let choose = |index| {
            let mut state = state.clone();
            CommitLoop::new(&mut state, options).decide(QueueEntry::Submit(job), index).placements[0].0
        };
        assert_eq!(choose(4), choose(4));
        counts[choose(4).index()] += 1;
    }
    assert_eq!((counts[1], counts[3]), (0, 0));
    assert!([counts[0], counts[2], counts[4]].iter().all(|count| (150..250).contains(count)), "{counts:?}");
}

#[test]
fn a_nearly_full_cluster_is_still_searched_fairly() {
    // One node in 2,000 fits: drawing blindly misses it, counting does not.
    let n = 2000;
    let mut cluster = cluster(&plain_nodes(n));
    let filler = register(&mut cluster, "filler", &plain_job(8, n as u32 - 1));
    let job = register(&mut cluster, "job", &plain_job(3, 2));
    let mut state = State::new(cluster);
    let mut commit_loop = CommitLoop::new(&mut state, options(Policy::Random));
    assert_eq!(commit_loop.decide(QueueEntry::Submit(filler), 0).status, Status::Placed);
    let decision = commit_loop.decide(QueueEntry::Submit(job), 1);
    assert_eq!(decision.status, Status::Placed);
    assert_eq!(decision.placements[0].0, decision.placements[1].0);
}

#[test]
fn the_three_orders_on_one_example() {
    let mut nodes = plain_nodes(4);
    [8, 4, 6, 4].into_iter().zip(&mut nodes).for_each(|(gpus, node)| node.gpus = gpus);
    let mut cluster = cluster(&nodes);
    let job = register(&mut cluster, "job", &plain_job(2, 4));
    let order = |policy| {
        let (decisions, _) = run(&cluster, &[QueueEntry::Submit(job)], options(policy));
        decisions[0].placements.iter().map(|(node, _)| node.0).collect::<Vec<_>>()
    };
    assert_eq!(order(Policy::BestFit), [1, 1, 3, 3]);
    assert_eq!(order(Policy::WorstFit), [0, 0, 2, 0]);
    assert_eq!(order(Policy::FirstFit), [0, 0, 0, 0]);
}

/// Two nodes with 3 and 4 free GPUs, and one that takes nothing and may run jobs of 3; a job of 1 GPU, and jobs of 3 and of 4.
fn threes_and_fours(running: usize) -> (State, [JobId; 3]) {
    let mut builder = ClusterBuilder::new();
    for (name, gpus) in [("n0", 8), ("n1", 8), ("closed", 16)] {
        let unschedulable = gpus == 16;
        builder.add_node(&NodeSpec { name, gpus, unschedulable, ..NodeSpec::default() }).unwrap();
    }
    let seat = |name| Seat { node: builder.find_node(name).unwrap(), gpus: None };
    let [n0, n1, closed] = ["n0", "n1", "closed"].map(seat);
    let job = |name, gpus| JobSpec { name, gpus, ..JobSpec::default() };
    builder.add_running(&job("five", 5), &[n0]).unwrap();
    builder.add_running(&job("four", 4), &[n1]).unwrap();
    builder.add_running(&job("three", 3), &vec![closed; running]).unwrap();
    let mut cluster = builder.finish().unwrap();
    let jobs = [("1", 1, 1), ("3s", 3, 20), ("4s", 4, 20)];
    let jobs = jobs.map(|(name, gpus, instances)| cluster.register(&job(name, gpus), instances).unwrap());
    (State::new(cluster), jobs)
}

#[test]
fn a_job_keeps_out_of_the_way_of_what_waits_or_runs_and_not_of_what_is_typical_alone() {
    // With its like alone in mind both nodes are as good, and the first takes it. Jobs of 3 in mind, the node with 3 does not.
    let place = |policy, running, arrive: &[usize], leave: &[usize]| {
        let (mut state, jobs) = threes_and_fours(running);
        let ones = Typical::new(state.cluster(), [(state.cluster().request_of(jobs[0]), 1)]);
        let mut commit_loop =
            CommitLoop::new(&mut state, PlaceOptions { policy, ..options(policy) }).with_typical(ones).with_arrivals();
        arrive.iter().for_each(|&at| commit_loop.arrive(jobs[at]));
        leave.iter().for_each(|&at| assert_eq!(commit_loop.remove_together(&[jobs[at]]).status, Status::Absent));
        commit_loop.decide(QueueEntry::Submit(jobs[0]), 0).placements[0].0.0
    };
    let (fgd, mcg, ca_fgd) = (Policy::Fgd(Arithmetic::Exact), Policy::Mcg, Policy::CaFgd);
    assert_eq!([place(mcg, 1, &[], &[]), place(mcg, 1, &[1], &[]), place(mcg, 1, &[2], &[])], [0, 1, 0]);
    assert_eq!([place(mcg, 1, &[1], &[1]), place(mcg, 1, &[1, 2], &[1])], [0, 0]);
    assert_eq!([place(fgd, 1, &[1], &[]), place(fgd, 3, &[], &[])], [0, 0]);
    // What runs counts for the other: beside the jobs of 4 and 5 one of 3, or three of them.
    assert_eq!([place(ca_fgd, 1, &[1], &[]), place(ca_fgd, 3, &[2], &[])], [0, 1]);
}
