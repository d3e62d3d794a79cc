//! Small examples of what each policy chooses, and jobs beyond all bounds.

use slotwise::anchor::State;
use slotwise::cluster::{Cluster, ClusterBuilder, JobId, JobSpec, NodeSpec, Seat, Within};
use slotwise::decide::{Arithmetic, CommitLoop, PlaceOptions, Policy, Status, Why, audit};
use slotwise::fragmentation::fgd::Typical;
use slotwise::workload::QueueEntry;

use crate::decide_support::{JobPlan, NodePlan, cluster, options, plain_job, plain_nodes, register, run};

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

/// Domains of so many nodes of 4 GPUs, of which the first few are taken by jobs of their own.
fn domains(sizes_and_taken: &[(u32, u32)]) -> Cluster {
    let plans = (0u8..).zip(sizes_and_taken).flat_map(|(domain, &(nodes, taken))| {
        let plan = NodePlan { gpus: 4, domain: Some(domain), rack: Some(domain), ..plain_nodes(1).remove(0) };
        (0..nodes).map(move |at| (plan.clone(), at < taken))
    });
    let (mut nodes, taken): (Vec<NodePlan>, Vec<bool>) = plans.unzip();
    // Cordons make sure that the first jobs go to the nodes that are to be taken.
    nodes.iter_mut().zip(&taken).for_each(|(node, &taken)| node.cordoned = !taken);
    let mut cluster = cluster(&nodes);
    let jobs = 0..taken.iter().filter(|&&taken| taken).count();
    let jobs: Vec<QueueEntry> =
        jobs.map(|at| QueueEntry::Submit(register(&mut cluster, &format!("j{at}"), &plain_job(4, 1)))).collect();
    let (_, cluster) = run(&cluster, &jobs, options(Policy::FirstFit));
    let mut state = State::new(cluster);
    let mut transaction = state.begin();
    for id in transaction.cluster().node_ids().filter(|id| !taken[id.index()]).collect::<Vec<_>>() {
        transaction.uncordon(id).unwrap();
    }
    transaction.commit();
    state.into_cluster()
}

/// Where a gang of whole nodes within one domain goes.
fn domain_of_gang(cluster: &Cluster, instances: u32, policy: Policy) -> Option<u32> {
    let mut cluster = cluster.clone();
    let gang = JobPlan { within: Some(Within::Domain), ..plain_job(4, instances) };
    let gang = register(&mut cluster, "gang", &gang);
    let (decisions, _) = run(&cluster, &[QueueEntry::Submit(gang)], options(policy));
    let mut domains =
        decisions[0].placements.iter().map(|&(node, _)| cluster.node(node).domain().map(|domain| domain.0));
    let first = domains.next()?;
    assert!(domains.all(|domain| domain == first));
    first
}

#[test]
fn intact_domains_are_opened_last() {
    // NVL72: domains of 18 nodes, and two small ones, of which the last is intact.
    let cluster = domains(&[(18, 0), (18, 3), (18, 11), (4, 1), (4, 0)]);
    let packing =
        [Policy::Compass, Policy::BestFit, Policy::Fgd(Arithmetic::Exact), Policy::GpuPacking(Arithmetic::Peer)];
    for policy in packing {
        let goes_to = |instances| domain_of_gang(&cluster, instances, policy);
        // The tightest of those in use; not the small one that is intact, though it would be filled to the last GPU.
        assert_eq!([2, 3, 4, 7, 8, 15].map(goes_to), [3, 3, 2, 2, 1, 1].map(Some), "{policy}");
        // Where no other holds it, an intact one is opened, and nothing holds more.
        assert_eq!([16, 18, 19].map(goes_to), [Some(0), Some(0), None], "{policy}");
    }
    // Of intact ones alone the smallest that holds it.
    let cluster = domains(&[(18, 0), (4, 0), (8, 0), (4, 4)]);
    for policy in packing {
        let goes_to = |instances| domain_of_gang(&cluster, instances, policy);
        assert_eq!([4, 5, 9].map(goes_to), [1, 2, 0].map(Some), "{policy}");
    }
    // Worst-fit spreads, by its definition.
    assert_eq!(domain_of_gang(&cluster, 2, Policy::WorstFit), Some(0));
}

#[test]
fn a_stream_of_gangs_keeps_domains_intact() {
    // 16 domains of an NVL72 each. Gangs of 6 nodes fill one after the other.
    let mut cluster = domains(&[(18, 0); 16]);
    let gang = JobPlan { within: Some(Within::Domain), ..plain_job(4, 6) };
    let jobs: Vec<QueueEntry> =
        (0..21).map(|at| QueueEntry::Submit(register(&mut cluster, &format!("g{at}"), &gang))).collect();
    for policy in [Policy::Compass, Policy::BestFit] {
        let (decisions, after) = run(&cluster, &jobs, options(policy));
        assert!(decisions.iter().all(|decision| decision.status == Status::Placed));
        let audit = audit(&mut State::new(after), None);
        assert_eq!((audit.domains.intact, audit.racks.intact), (9, 9), "{policy}");
        let whole = audit.domains.max_gang.unwrap()[3];
        assert_eq!(whole, (4, 18), "{policy}");
    }
}
