//! The policy `make-room`: plans under the commit loop.

use proptest::prelude::*;
use slotwise::anchor::State;
use slotwise::cluster::{ClusterBuilder, JobId, JobSpec, NodeSpec, Seat};
use slotwise::decide::{CommitLoop, Decision, PlaceOptions, Policy, Status, Why, Worth};
use slotwise::plan::{FewestMoves, Goal, Mode, plan};
use slotwise::workload::QueueEntry;

use super::options;
use crate::decide_support::{NodePlan, Step, node_plan, queue, steps};

/// Nodes of 8 GPUs that hold jobs of these sizes, and a job that waits.
fn state(nodes: &[&[u8]], gpus: u8, instances: u32) -> (State, JobId) {
    let mut builder = ClusterBuilder::new();
    for (number, sizes) in nodes.iter().enumerate() {
        let node = builder.add_node(&NodeSpec { name: &format!("n{number}"), gpus: 8, ..NodeSpec::default() }).unwrap();
        for (at, &gpus) in sizes.iter().enumerate() {
            let name = format!("j{number}-{at}");
            builder
                .add_running(&JobSpec { name: &name, gpus, ..JobSpec::default() }, &[Seat { node, gpus: None }])
                .unwrap();
        }
    }
    let mut cluster = builder.finish().unwrap();
    let job = cluster.register(&JobSpec { name: "waits", gpus, ..JobSpec::default() }, instances).unwrap();
    (State::new(cluster), job)
}

fn make_room(budget: Option<u32>) -> PlaceOptions {
    PlaceOptions {
        policy: Policy::MakeRoom,
        migration_budget: budget,
        window: 1,
        threads: 1,
        ..PlaceOptions::default()
    }
}

fn decide(state: &mut State, job: JobId, budget: Option<u32>, wait_s: Option<u64>) -> Decision {
    let mut commit_loop = CommitLoop::new(state, make_room(budget)).with_room_maker(Box::new(FewestMoves::default()));
    // Each job that moves costs 10 s.
    commit_loop.set_worth(wait_s.map(|wait_s| Worth { wait_s: Some(wait_s), pause_s: 4, price_s: 10 }));
    commit_loop.decide(QueueEntry::Submit(job), 0).clone()
}

#[test]
fn a_blocked_job_starts_by_the_fewest_moves() {
    let nodes: &[&[u8]] = &[&[4, 1], &[2, 2, 1], &[6], &[3, 1]];
    let (mut state, job) = state(nodes, 8, 1);
    let decision = decide(&mut state, job, None, None);
    assert_eq!(decision.status, Status::Placed);
    // Two instances leave n0 or n3, which have two; nobody else moves.
    assert_eq!(decision.migrations.len(), 2);
    assert_eq!(decision.placements[0].1, 0xff);
    state.cluster().check_books().unwrap();
}

#[test]
fn limits_are_kept_and_nothing_moves_then() {
    let nodes: &[&[u8]] = &[&[4, 1], &[2, 2, 1], &[6], &[3, 1]];
    for (budget, wait_s) in [(Some(1), None), (Some(0), None), (None, Some(20)), (None, Some(0))] {
        let (mut state, job) = state(nodes, 8, 1);
        let before = state.cluster().clone();
        let decision = decide(&mut state, job, budget, wait_s);
        assert_eq!(decision.status, Status::Blocked(Why::Fragmentation), "{budget:?} {wait_s:?}");
        assert!(decision.migrations.is_empty());
        assert!(state.cluster().nodes() == before.nodes());
    }
    // Enough for two is enough.
    let (mut state, job) = state(nodes, 8, 1);
    assert_eq!(decide(&mut state, job, Some(2), Some(21)).status, Status::Placed);
}

#[test]
fn a_job_that_no_packing_holds_stays_blocked() {
    // Three of 5 GPUs need three nodes, however they are packed.
    let (mut state, job) = state(&[&[5], &[5], &[5]], 8, 1);
    assert_eq!(decide(&mut state, job, None, None).status, Status::Blocked(Why::Fragmentation));
    let (mut state, job) = self::state(&[&[8], &[8]], 1, 1);
    assert_eq!(decide(&mut state, job, None, None).status, Status::Blocked(Why::Capacity));
}

#[test]
fn movers_may_go_to_nodes_of_another_kind() {
    let mut builder = ClusterBuilder::new();
    for (name, gpus) in [("small", 4), ("large", 5)] {
        builder.add_node(&NodeSpec { name, gpus, ..NodeSpec::default() }).unwrap();
    }
    let seat = Seat { node: builder.find_node("small").unwrap(), gpus: None };
    builder.add_running(&JobSpec { name: "one", gpus: 1, ..JobSpec::default() }, &[seat]).unwrap();
    let mut cluster = builder.finish().unwrap();
    let job = cluster.register(&JobSpec { name: "waits", gpus: 4, ..JobSpec::default() }, 2).unwrap();
    let mut state = State::new(cluster);
    let decision = decide(&mut state, job, None, None);
    assert_eq!((decision.status, decision.migrations.len()), (Status::Placed, 1));
}

proptest! {
    /// What the plan of a job says is what becomes of it, with as many moves; and without somebody who makes room the policy
    /// is best-fit.
    #[test]
    fn it_is_best_fit_and_plans(
        nodes in prop::collection::vec(node_plan(), 1..6),
        steps in steps(3, 1..24),
    ) {
        check(&nodes, &steps)?;
    }
}

fn check(nodes: &[NodePlan], steps: &[Step]) -> Result<(), TestCaseError> {
    let (cluster, queue) = queue(nodes, steps);
    let best_fit = PlaceOptions { policy: Policy::BestFit, ..make_room(None) };
    let mut states = [State::new(cluster.clone()), State::new(cluster.clone())];
    let [plain, without] = &mut states;
    let mut plain = CommitLoop::new(plain, best_fit);
    let mut without = CommitLoop::new(without, make_room(None));
    for (index, &entry) in queue.iter().enumerate() {
        prop_assert_eq!(plain.decide(entry, index), without.decide(entry, index));
    }
    let mut state = State::new(cluster);
    let mut commit_loop =
        CommitLoop::new(&mut state, make_room(None)).with_room_maker(Box::new(FewestMoves::default()));
    for (index, &entry) in queue.iter().enumerate() {
        let before = commit_loop.state().cluster().clone();
        let decision = commit_loop.decide(entry, index).clone();
        commit_loop.state().cluster().check_books().unwrap();
        let QueueEntry::Submit(job) = entry else { continue };
        let told = plan(&before, Goal::Job(job), &options(&before, Mode::StopFirst));
        let request = before.request_of(job);
        match decision.status {
            Status::Placed if decision.migrations.is_empty() => {}
            Status::Placed => {
                prop_assert_eq!(told.feasible, Some(true));
                prop_assert_eq!(told.cost, decision.migrations.len() as u64);
            }
            Status::Blocked(why) => {
                // Where CPU or memory keeps a job out, nobody asks for a plan.
                let gpus_alone = request.gpus > 0 && request.cpu_milli == 0 && request.memory_mib == 0;
                let gpus = gpus_alone && !request.is_share() && why != Why::Capacity;
                prop_assert!(!gpus || told.feasible != Some(true), "{:?} {:?}", why, told);
            }
            Status::Removed | Status::Absent => unreachable!("a submission"),
        }
    }
    Ok(())
}
