//! Nodes that fail, drain and return: the indexes under it, schedules worked out by hand, and what holds for every trace.

use std::collections::BTreeSet;

use proptest::prelude::*;
use slotwise::anchor::{State, Transaction};
use slotwise::cluster::{Cluster, ClusterBuilder, Edit, EditError, JobId, JobSpec, NodeId, NodeSpec, Seat};
use slotwise::decide::{CommitLoop, PlaceOptions, Policy, Status};
use slotwise::fragmentation::PhiStar;
use slotwise::simulate::{Discipline, Interval, Outcome, Scenario, Scheduler, SimOptions, Summary, simulate};
use slotwise::workload::{Demand, NodeChange, NodeEvent, QueueEntry, TraceJob};

use crate::simulate::{all_schedulers, is_strict, job, scenario, scheduler};

fn event(at_s: u64, node: u32, change: NodeChange) -> NodeEvent {
    NodeEvent { at_s, node: NodeId(node), change }
}

/// All schedulers that put jobs on nodes.
fn placing() -> impl Iterator<Item = Scheduler> {
    all_schedulers().into_iter().filter(|who| *who != Scheduler::SifOpt)
}

fn play(scenario: &Scenario, who: Scheduler, move_cost_s: u64) -> (Outcome, Vec<Interval>) {
    let mut intervals = Vec::new();
    let options = SimOptions { move_cost_s, seed: 3, ..SimOptions::default() };
    let outcome = simulate(scenario, who, &options, &mut |interval| intervals.push(*interval)).unwrap();
    (outcome, intervals)
}

fn times(outcome: &Outcome) -> Vec<(Option<u64>, Option<u64>)> {
    outcome.jobs.iter().map(|job| (job.start(), job.finish())).collect()
}

#[test]
fn a_failing_node_sends_its_jobs_back_to_their_place_in_the_queue() {
    // j0 and j1 hold a node each. The job that is sent back came before those that wait.
    let jobs = [job(0, 100, 1, 8), job(0, 30, 1, 8), job(5, 10, 1, 8), job(6, 10, 1, 8)];
    let events = vec![event(20, 0, NodeChange::Fail), event(50, 0, NodeChange::Return)];
    let scenario = scenario(2, &jobs).with_events(events);
    for who in placing() {
        let (outcome, _) = play(&scenario, who, 8);
        // At 30 the node of j1 is free, and j0 is the head: it starts from its beginning. At 50 the other is back.
        let at = |start, finish| (Some(start), Some(finish));
        assert_eq!(times(&outcome), [at(30, 130), at(0, 30), at(50, 60), at(60, 70)], "{who}");
        let lost = outcome.lost[0];
        assert_eq!(
            (outcome.lost.len(), lost.position, lost.start, lost.end, lost.demand_milli),
            (1, Some(0), 0, 20, 8000)
        );
        assert_eq!(outcome.gpu_seconds_lost_by_failures(), 160);
        assert_eq!(outcome.totals.busy, 160 + 8 * (100 + 30 + 10 + 10));
        // Four arrivals, five starts, four departures, two changes.
        assert_eq!(outcome.events, 15);
        assert_eq!(Summary::of(&scenario, &outcome).wait.max, 54);
    }
}

#[test]
fn a_draining_node_finishes_what_it_has_and_takes_nothing() {
    let jobs = [job(0, 50, 1, 4), job(20, 10, 1, 4), job(20, 10, 1, 8)];
    let events = vec![event(10, 0, NodeChange::Drain), event(70, 0, NodeChange::Return)];
    let one = scenario(1, &jobs).with_events(events.clone());
    for who in placing().filter(|&who| is_strict(who)) {
        let (outcome, intervals) = play(&one, who, 8);
        let expected = [(0, 50), (70, 80), (80, 90)].map(|(start, finish)| (Some(start), Some(finish)));
        assert_eq!(times(&outcome), expected, "{who}");
        assert!(outcome.lost.is_empty());
        // Free GPUs that nobody can have are no fragmentation, and an empty node that takes nothing is not empty.
        assert_eq!(outcome.totals.fragmented_seconds, 0, "{who}");
        assert!(intervals.iter().all(|interval| interval.empty_nodes == 0), "{who}");
    }
    // With a second node the drained one is only passed over.
    let two = scenario(2, &jobs).with_events(events);
    for who in placing().filter(|&who| is_strict(who)) {
        let (outcome, _) = play(&two, who, 0);
        let expected = [(0, 50), (20, 30), (30, 40)].map(|(start, finish)| (Some(start), Some(finish)));
        assert_eq!(times(&outcome), expected, "{who}");
    }
}

#[test]
fn departures_come_before_changes_and_changes_before_arrivals() {
    // j0 ends at 10, when its node fails: it has ended. j1 comes at 10, when the other node returns: it may have it.
    let jobs = [job(0, 10, 1, 8), job(10, 5, 1, 8), job(10, 5, 1, 8)];
    let events = vec![
        event(0, 1, NodeChange::Drain),
        event(10, 0, NodeChange::Fail),
        event(10, 1, NodeChange::Return),
        event(12, 0, NodeChange::Return),
    ];
    let scenario = scenario(2, &jobs).with_events(events);
    for who in placing() {
        let (outcome, _) = play(&scenario, who, 8);
        assert!(outcome.lost.is_empty(), "{who}");
        let expected = [(0, 10), (10, 15), (12, 17)].map(|(start, finish)| (Some(start), Some(finish)));
        assert_eq!(times(&outcome), expected, "{who}");
    }
}

#[test]
fn all_changes_of_an_instant_are_one_event() {
    // A gang on two nodes that fail together is killed once; a node that fails and returns at once is there again; what
    // happens before the first submission has happened by then.
    let jobs = [job(5, 10, 2, 8), job(6, 10, 1, 1)];
    let events = vec![
        event(0, 2, NodeChange::Drain),
        event(8, 0, NodeChange::Fail),
        event(8, 1, NodeChange::Fail),
        event(8, 1, NodeChange::Return),
        event(8, 0, NodeChange::Return),
        event(9, 2, NodeChange::Return),
    ];
    let scenario = scenario(3, &jobs).with_events(events);
    for who in placing() {
        let (outcome, _) = play(&scenario, who, 8);
        let expected = [(8, 18), (9, 19)].map(|(start, finish)| (Some(start), Some(finish)));
        assert_eq!((times(&outcome), outcome.lost.len()), (expected.to_vec(), 1), "{who}");
    }
}

#[test]
fn what_ran_at_first_does_not_come_back_and_cpu_only_instances_fail_too() {
    let mut builder = ClusterBuilder::new();
    for name in ["n0", "n1"] {
        builder.add_node(&NodeSpec { name, gpus: 8, cpu_milli: Some(100), ..NodeSpec::default() }).unwrap();
    }
    let node = builder.find_node("n0").unwrap();
    builder.add_running(&JobSpec { name: "r", gpus: 8, ..JobSpec::default() }, &[Seat { node, gpus: None }]).unwrap();
    let cpu_only = TraceJob { name: "cpu".to_owned(), cpu_milli: 60, ..job(1, 10, 2, 0) };
    let scenario = Scenario::new(builder.finish().unwrap(), vec![cpu_only])
        .unwrap()
        .with_events(vec![event(5, 0, NodeChange::Fail), event(7, 0, NodeChange::Return)]);
    for who in placing() {
        let (outcome, intervals) = play(&scenario, who, 8);
        assert_eq!(times(&outcome), [(Some(7), Some(17))], "{who}");
        let lost: Vec<_> = outcome.lost.iter().map(|run| (run.position, run.demand_milli)).collect();
        assert_eq!(lost, [(None, 8000), (Some(0), 0)], "{who}");
        assert_eq!(intervals.last().unwrap().busy_gpus, 0);
    }
}

#[test]
fn who_shares_a_device_of_a_failing_node_is_killed_too() {
    let half = |submit, duration| TraceJob { gpu_milli: 500, ..job(submit, duration, 1, 1) };
    let jobs = [half(0, 20), half(0, 20), job(0, 20, 1, 8)];
    let scenario = scenario(2, &jobs).with_events(vec![event(5, 0, NodeChange::Fail), event(9, 0, NodeChange::Return)]);
    for who in placing() {
        let (outcome, _) = play(&scenario, who, 0);
        let on_the_node = outcome.lost.len();
        assert!(on_the_node == 1 || on_the_node == 2, "{who}: {:?}", outcome.lost);
        // Half a GPU for five seconds is 2.5 GPU-seconds, and both are 5; or the whole node was lost.
        let whole = outcome.lost.iter().any(|run| run.position == Some(2));
        assert_eq!(outcome.gpu_seconds_lost_by_failures(), if whole { 40 } else { [3, 5][on_the_node - 1] }, "{who}");
        for became in &outcome.jobs {
            let (start, finish) = (became.start().unwrap(), became.finish().unwrap());
            assert!(finish == start + 20 && (start == 0 || start == 9), "{who}: {start}");
        }
    }
}

#[test]
fn a_node_that_never_returns_leaves_jobs_waiting_and_the_oracle_refuses() {
    let jobs = [job(0, 10, 2, 8), job(1, 5, 1, 8)];
    let with = |events| scenario(2, &jobs).with_events(events);
    for who in placing().filter(|&who| is_strict(who)) {
        let (outcome, _) = play(&with(vec![event(3, 1, NodeChange::Fail)]), who, 8);
        assert_eq!(times(&outcome), [(None, None), (None, None)], "{who}");
        let summary = Summary::of(&with(vec![event(3, 1, NodeChange::Fail)]), &outcome);
        assert_eq!((summary.waiting, summary.rejected, outcome.end), (2, 0, 3));
    }
    let error =
        simulate(&with(vec![event(3, 1, NodeChange::Fail)]), Scheduler::SifOpt, &SimOptions::default(), &mut |_| {});
    assert!(error.unwrap_err().to_string().contains("events of nodes"));
    // A cordoned node that returns counts for what is possible at all.
    let mut builder = ClusterBuilder::new();
    builder.add_node(&NodeSpec { name: "n", gpus: 8, unschedulable: true, ..NodeSpec::default() }).unwrap();
    let late = Scenario::new(builder.finish().unwrap(), vec![TraceJob { name: "a".to_owned(), ..job(0, 4, 1, 8) }]);
    let late = late.unwrap();
    assert_eq!(late.n_rejected(), 1);
    let late = late.with_events(vec![event(9, 0, NodeChange::Return)]);
    assert_eq!(late.n_rejected(), 0);
    assert_eq!(times(&play(&late, scheduler("compass"), 8).0), [(Some(9), Some(13))]);
}

#[test]
fn a_cordon_is_an_edit_like_any_other() {
    let mut builder = ClusterBuilder::new();
    let node = builder.add_node(&NodeSpec { name: "n", gpus: 4, ..NodeSpec::default() }).unwrap();
    let mut cluster = builder.finish().unwrap();
    assert_eq!(cluster.apply(&[Edit::Uncordon(node)]), Err(EditError::SoAlready(node)));
    assert_eq!(cluster.apply(&[Edit::Cordon(NodeId(1))]), Err(EditError::UnknownNode(NodeId(1))));
    // Whole or not at all.
    assert_eq!(cluster.apply(&[Edit::Cordon(node), Edit::Cordon(node)]), Err(EditError::SoAlready(node)));
    assert!(cluster.node(node).schedulable());
    cluster.apply(&[Edit::Cordon(node)]).unwrap();
    assert!(!cluster.node(node).schedulable());
    cluster.undo(&[Edit::Cordon(node)]);
    assert!(cluster.node(node).schedulable());
    cluster.check_books().unwrap();
}

/// Everything that a state tells of its pools.
fn indexes(state: &mut State) -> Vec<String> {
    let phi_star = state.phi_star();
    let pools = state.pools().iter().map(|pool| {
        let members = |set: &slotwise::cluster::NodeSet| set.iter().collect::<Vec<_>>();
        let capacity = pool.capacity();
        let by_room: Vec<_> = (0..=capacity).map(|room| members(pool.slotted_with_room(room))).collect();
        let by_ones: Vec<_> = (1..=capacity).map(|ones| members(pool.pools_with(ones))).collect();
        let by_free: Vec<_> =
            (0..=capacity).map(|free| (pool.n_with_free(free), pool.with_free(free).map(members))).collect();
        let counts =
            (pool.n_schedulable(), pool.n_partial(), pool.n_outside(), pool.n_with_room(), pool.n_partial_pools());
        let sets = (members(pool.empty()), members(pool.outside()), members(pool.open_vacancy()));
        let filled = (pool.pool_sizes(), pool.slotted_rooms());
        format!("{counts:?} {sets:?} {filled:?} {by_room:?} {by_ones:?} {by_free:?}")
    });
    pools.chain([format!("{phi_star} {}", state.free_gpus())]).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Submit {
        gpus: u8,
        instances: u32,
    },
    End(usize),
    /// Nodes to close and to open, and whether the jobs of the first end.
    Change(Vec<u8>, Vec<u8>, bool),
}

fn steps(sizes: &'static [u8]) -> impl Strategy<Value = Vec<Step>> {
    let nodes = || prop::collection::vec(0u8..6, 0..3);
    let one = prop_oneof![
        4 => (prop::sample::select(sizes), 1u32..3).prop_map(|(gpus, instances)| Step::Submit { gpus, instances }),
        2 => any::<usize>().prop_map(Step::End),
        2 => (nodes(), nodes(), any::<bool>()).prop_map(|(closed, opened, fails)| Step::Change(closed, opened, fails)),
    ];
    prop::collection::vec(one, 1..40)
}

fn cluster(steps: &[Step], capacities: &[u8]) -> (Cluster, Vec<Option<JobId>>) {
    let mut builder = ClusterBuilder::new();
    for (number, &gpus) in capacities.iter().enumerate() {
        builder.add_node(&NodeSpec { name: &format!("n{number}"), gpus, ..NodeSpec::default() }).unwrap();
    }
    let mut cluster = builder.finish().unwrap();
    let jobs = steps.iter().enumerate().map(|(number, step)| match *step {
        Step::Submit { gpus, instances } => {
            let spec = JobSpec { name: &format!("j{number}"), gpus, ..JobSpec::default() };
            Some(cluster.register(&spec, instances).unwrap())
        }
        _ => None,
    });
    let jobs = jobs.collect();
    (cluster, jobs)
}

/// Runs the steps; after each the indexes are those of a state that is made anew. Returns the state before each look.
fn run_steps(steps: &[Step], capacities: &[u8], policy: Policy, each: &mut dyn FnMut(&State)) {
    let (cluster, jobs) = cluster(steps, capacities);
    let mut state = State::new(cluster);
    for (number, step) in steps.iter().enumerate() {
        let options = PlaceOptions { policy, seed: 1, ..PlaceOptions::default() };
        let before = state.cluster().clone();
        let mut commit_loop = CommitLoop::new(&mut state, options);
        match step {
            Step::Submit { .. } => {
                let placed = commit_loop.decide(QueueEntry::Submit(jobs[number].unwrap()), number);
                let open = placed.placements.iter().all(|&(node, _)| before.node(node).schedulable());
                assert!(open && (placed.status != Status::Placed || !placed.placements.is_empty()));
            }
            Step::End(which) => {
                let running: Vec<JobId> = before.job_ids().filter(|&job| before.job(job).runs()).collect();
                if let Some(&job) = running.get(which % running.len().max(1)) {
                    commit_loop.remove_together(&[job]);
                }
            }
            Step::Change(closed, opened, fails) => {
                let nodes = |numbers: &[u8]| -> Vec<NodeId> {
                    let n = capacities.len() as u32;
                    numbers.iter().map(|&node| NodeId(u32::from(node) % n)).collect()
                };
                let (closed, opened) = (nodes(closed), nodes(opened));
                let ended: BTreeSet<JobId> = match fails {
                    true => closed.iter().flat_map(|&node| before.jobs_on(node)).collect(),
                    false => BTreeSet::new(),
                };
                let ended: Vec<JobId> = ended.into_iter().collect();
                let moved = commit_loop.change_nodes(&closed, &opened, &ended).migrations.clone();
                let cluster = commit_loop.state().cluster();
                assert!(moved.iter().all(|one| cluster.node(one.to).schedulable()));
                assert!(ended.iter().all(|&job| !cluster.job(job).runs()));
                let opens = |node: &NodeId| cluster.node(*node).schedulable();
                assert!(opened.iter().all(opens) && !closed.iter().any(|node| opens(node) && !opened.contains(node)));
                assert!(!fails || closed.iter().all(|&node| opened.contains(&node) || cluster.node(node).busy() == 0));
            }
        }
        drop(commit_loop);
        state.cluster().check_books().unwrap();
        let mut fresh = State::new(state.cluster().clone());
        // Only policies that choose by free GPUs keep that index.
        if state.pools()[0].with_free(0).is_some() {
            fresh.index_free_gpus();
        }
        assert_eq!(indexes(&mut state), indexes(&mut fresh), "{step:?}");
        each(&state);
    }
}

fn trace() -> impl Strategy<Value = Vec<TraceJob>> {
    let sizes: &'static [u8] = &[1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8];
    let one = (0u64..120, 0u64..50, 1u32..4, prop::sample::select(sizes))
        .prop_map(|(submit, duration, instances, gpus)| job(submit, duration, instances, gpus));
    prop::collection::vec(one, 1..50)
}

fn events(nodes: u32) -> impl Strategy<Value = Vec<NodeEvent>> {
    let change = prop::sample::select(&NodeChange::ALL[..]);
    prop::collection::vec((0u64..150, 0..nodes, change).prop_map(|(at, node, change)| event(at, node, change)), 0..12)
        .prop_map(move |mut events| {
            // In the end all of them are there, or jobs would wait for ever.
            events.extend((0..nodes).map(|node| event(200, node, NodeChange::Return)));
            events
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_indexes_follow_every_change(steps in steps(&[1, 1, 1, 2, 3, 4, 5, 6, 7, 8]), policy in prop::sample::select(&Policy::ALL[..])) {
        run_steps(&steps, &[8, 8, 4, 8, 8, 6], policy, &mut |_| {});
    }

    #[test]
    fn compass_keeps_the_invariant_on_what_is_schedulable(steps in steps(&[1, 1, 2, 4, 8])) {
        run_steps(&steps, &[8; 6], Policy::Compass, &mut |state| assert!(state.pools()[0].is_compact()));
    }

    #[test]
    fn a_change_that_is_taken_back_leaves_nothing(steps in steps(&[1, 1, 2, 3, 4, 7, 8]), node in 0u32..6) {
        let mut last = None;
        run_steps(&steps, &[8; 6], Policy::BestFit, &mut |state| last = Some(state.clone()));
        let mut state = last.unwrap();
        let before = indexes(&mut state);
        {
            let node = NodeId(node);
            let mut transaction: Transaction<'_> = state.begin();
            let done = transaction.cordon(node).or_else(|_| transaction.uncordon(node));
            prop_assert_eq!(done, Ok(()));
        }
        prop_assert_eq!(indexes(&mut state), before);
    }

    #[test]
    fn work_is_conserved_and_nothing_is_booked_twice(
        (nodes, events) in (1u32..6).prop_flat_map(|nodes| (Just(nodes), events(nodes))),
        jobs in trace(),
        move_cost_s in 0u64..4,
    ) {
        let scenario = scenario(nodes.into(), &jobs).with_events(events);
        for who in placing() {
            let (outcome, intervals) = play(&scenario, who, move_cost_s);
            prop_assert_eq!(&play(&scenario, who, move_cost_s).0, &outcome);
            let mut runs: Vec<(usize, u64, u64)> =
                outcome.lost.iter().map(|run| (run.position.unwrap(), run.start, run.end)).collect();
            for (position, (job, became)) in scenario.jobs().iter().zip(&outcome.jobs).enumerate() {
                // Every job ends: in the end all nodes are there. What it had after its last start is all of it.
                let (start, finish) = match (became.start(), became.finish()) {
                    (Some(start), Some(finish)) => (start, finish),
                    _ => { prop_assert!(scenario.is_rejected(position)); continue }
                };
                prop_assert_eq!(finish, start + job.duration_s + move_cost_s * u64::from(became.pauses));
                runs.push((position, start, finish));
            }
            for (at, &(position, start, end)) in runs.iter().enumerate() {
                prop_assert!(scenario.jobs()[position].submit_s <= start && start <= end);
                // A job never runs twice at a time.
                let again = runs[at + 1..].iter().find(|other| other.0 == position && other.1 < end && start < other.2);
                prop_assert_eq!(again, None);
            }
            let work = |&(position, start, end): &(usize, u64, u64)| {
                u128::from(end - start) * u128::from(scenario.jobs()[position].gpus())
            };
            prop_assert_eq!(outcome.totals.busy, runs.iter().map(work).sum::<u128>());
            let mut solver = PhiStar::new(8);
            for interval in &intervals {
                let running = runs.iter().filter(|run| run.1 <= interval.from && interval.from < run.2);
                let demand: Demand = running
                    .map(|run| &scenario.jobs()[run.0])
                    .map(|job| (job.gpus_per_instance, u64::from(job.instances)))
                    .collect();
                prop_assert_eq!(demand.gpus(), interval.busy_gpus);
                // What runs fits on the nodes that have not failed.
                let failed = (0..nodes).filter(|&node| {
                    let of_node = scenario.events().iter().filter(|event| event.node.0 == node);
                    let past: Vec<NodeChange> =
                        of_node.take_while(|event| event.at_s <= interval.from).map(|event| event.change).collect();
                    let since_return = past.rsplit(|change| *change == NodeChange::Return).next().unwrap_or_default();
                    since_return.contains(&NodeChange::Fail)
                });
                prop_assert!(solver.fewest_nodes(&demand) + failed.count() as u64 <= u64::from(nodes));
            }
        }
    }

    #[test]
    fn without_events_nothing_is_different(jobs in trace(), discipline in prop::sample::select(&Discipline::ALL[..])) {
        let options = SimOptions { discipline, move_cost_s: 3, seed: 2 };
        let plain = scenario(3, &jobs);
        let after_all = plain.clone().with_events(vec![event(1_000_000, 0, NodeChange::Fail)]);
        for who in placing() {
            let one = simulate(&plain, who, &options, &mut |_| {}).unwrap();
            let other = simulate(&after_all, who, &options, &mut |_| {}).unwrap();
            prop_assert_eq!(one, other);
        }
    }
}
