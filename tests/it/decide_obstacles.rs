//! Why a job does not fit, on random clusters: every claim against what best-fit, which places whatever fits, can do.

use proptest::prelude::*;
use slotwise::anchor::State;
use slotwise::cluster::{Cluster, JobId, NodeId, Within};
use slotwise::decide::{CommitLoop, Constraint, NodeClass, Obstacle, Policy, Status, obstacles};
use slotwise::workload::QueueEntry;

use crate::decide_support::{JobPlan, after, job_plan, node_plan, options, register, steps};

/// What becomes of a job on a copy of the cluster.
fn decided(cluster: &Cluster, plan: &JobPlan, open_only: Option<NodeId>, despite_cordons: bool) -> Status {
    let mut cluster = cluster.clone();
    let job = register(&mut cluster, "probe", plan);
    let mut state = State::new(cluster);
    let mut transaction = state.begin();
    for id in transaction.cluster().node_ids() {
        // Either may be so already.
        let _ = match open_only {
            Some(open) if open != id => transaction.cordon(id),
            _ if despite_cordons => transaction.uncordon(id),
            _ => Ok(()),
        };
    }
    transaction.commit();
    CommitLoop::new(&mut state, options(Policy::BestFit)).decide(QueueEntry::Submit(job), 0).status
}

fn places(cluster: &Cluster, plan: &JobPlan) -> bool {
    decided(cluster, plan, None, false) == Status::Placed
}

/// The constraints that a plan and a cluster have.
fn constraints(cluster: &Cluster, plan: &JobPlan) -> Vec<Constraint> {
    let cordoned = cluster.nodes().iter().any(|node| !node.schedulable());
    let all = [
        (plan.cpu > 0).then_some(Constraint::Cpu),
        (plan.memory > 0).then_some(Constraint::Memory),
        (!plan.models.is_empty()).then_some(Constraint::Model),
        plan.within.map(Constraint::Within),
        cordoned.then_some(Constraint::Cordon),
    ];
    all.into_iter().flatten().collect()
}

fn places_without(cluster: &Cluster, plan: &JobPlan, dropped: &[Constraint]) -> bool {
    let mut plan = plan.clone();
    for constraint in dropped {
        match constraint {
            Constraint::Cpu => plan.cpu = 0,
            Constraint::Memory => plan.memory = 0,
            Constraint::Model => plan.models.clear(),
            Constraint::Within(_) => plan.within = None,
            Constraint::Cordon => {}
        }
    }
    decided(cluster, &plan, None, dropped.contains(&Constraint::Cordon)) == Status::Placed
}

/// All subsets, the smallest first and among those in the order of their members.
fn subsets(of: &[Constraint]) -> Vec<Vec<Constraint>> {
    let subset = |bits: u32| (0..of.len()).filter(move |at| bits >> at & 1 == 1).map(|at| of[at]).collect();
    let mut all: Vec<Vec<Constraint>> = (0..1 << of.len()).map(subset).collect();
    all.sort_by_key(|set| (set.len(), set.clone()));
    all
}

/// Whether a node has the obstacle and none before it: each is taken away in turn, the last in the order first.
fn check_node(cluster: &Cluster, plan: &JobPlan, id: NodeId, class: &NodeClass) {
    let one = JobPlan { instances: 1, within: None, ..plan.clone() };
    let node = cluster.node(id);
    let on = |plan: &JobPlan, open: bool| decided(cluster, plan, Some(id), open) == Status::Placed;
    let (no_memory, bare) = (JobPlan { memory: 0, ..one.clone() }, JobPlan { memory: 0, cpu: 0, ..one.clone() });
    let any_model = JobPlan { models: vec![], ..bare.clone() };
    let has_region = match plan.within {
        None => true,
        Some(Within::Rack) => node.rack().is_some(),
        Some(Within::Domain) => node.domain().is_some(),
    };
    let as_if_open = node.schedulable();
    match class.obstacle {
        None => assert!(has_region && on(&one, false)),
        Some(Obstacle::NoMemory) => assert!(has_region && !on(&one, false) && on(&no_memory, false)),
        Some(Obstacle::NoCpu) => assert!(has_region && !on(&no_memory, false) && on(&bare, false)),
        Some(Obstacle::GpuBusy) => {
            assert!(has_region && !on(&bare, false) && as_if_open && node.capacity() >= plan.gpus);
        }
        Some(Obstacle::Topology) => assert!(!has_region && as_if_open && node.capacity() >= plan.gpus),
        Some(Obstacle::TooSmall) => assert!(!on(&bare, false) && as_if_open && node.capacity() < plan.gpus),
        Some(Obstacle::WrongModel) => {
            // With the GPUs for it, an instance that takes any model goes there.
            let fits_else = on(&any_model, false) || node.free_gpus() < plan.gpus || plan.gpus == 0;
            assert!(!on(&bare, false) && as_if_open && fits_else);
        }
        Some(Obstacle::Unschedulable) => assert!(!as_if_open),
    }
    if matches!(class.obstacle, None | Some(Obstacle::GpuBusy)) && plan.gpus > 0 {
        let left = cluster.gpu_milli_left(id).map(u32::from);
        let whole = left.iter().filter(|&&left| left == 1000).sum::<u32>();
        let expected = if plan.milli < 1000 { left.into_iter().max().unwrap_or(0) } else { whole };
        assert_eq!(class.has_milli, Some(expected));
    } else {
        assert_eq!(class.has_milli, None);
    }
}

fn check(cluster: &Cluster, plan: &JobPlan) {
    let mut with_job = cluster.clone();
    let job: JobId = register(&mut with_job, "waits", plan);
    let state = State::new(with_job);
    let told = obstacles(&state, job);
    let expected = match decided(cluster, plan, None, false) {
        Status::Blocked(why) => Some(why),
        _ => None,
    };
    assert_eq!(told.why, expected);
    // Every node is in one class.
    assert_eq!(told.classes.iter().map(|class| class.nodes).sum::<u64>(), cluster.nodes().len() as u64);
    let mut seen = Vec::new();
    for class in &told.classes {
        assert_eq!(class.first.len() as u64, class.nodes.min(5));
        assert_eq!(class.obstacle.is_none(), class.room > 0);
        class.first.iter().for_each(|&id| check_node(cluster, plan, id, class));
        seen.extend_from_slice(&class.first);
    }
    let n = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), n);
    // The nearest placement is one, and no other has more.
    let all = u64::from(plan.instances);
    let nearest = &told.nearest;
    let so_many = |n: u64| JobPlan { instances: n as u32, ..plan.clone() };
    assert_eq!(nearest.place.iter().map(|&(_, n)| n).sum::<u64>(), nearest.fit);
    assert_eq!(nearest.fit == all, told.why.is_none());
    assert!(nearest.fit == 0 || places(cluster, &so_many(nearest.fit)));
    assert!(nearest.fit == all || !places(cluster, &so_many(nearest.fit + 1)));
    for &(id, n) in &nearest.place {
        let here = JobPlan { instances: n as u32, within: None, ..plan.clone() };
        assert_eq!(decided(cluster, &here, Some(id), false), Status::Placed);
        if let (Some(within), Some(region)) = (plan.within, nearest.region) {
            assert!(state.is_in(id, (within, region as usize)));
        }
    }
    assert_eq!(told.regions.len(), plan.within.map_or(0, |within| state.regions(within).len()));
    assert!(told.regions.iter().all(|one| one.fit <= nearest.fit));
    // The smallest set of constraints, and the first of them.
    let sets = subsets(&constraints(cluster, plan));
    let first = sets.into_iter().find(|set| places_without(cluster, plan, set));
    assert_eq!(told.binding, first);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn every_claim_holds(
        nodes in prop::collection::vec(node_plan(), 1..7),
        history in steps(3, 0..14),
        plan in job_plan(5),
    ) {
        check(after(&nodes, &history).cluster(), &plan);
    }
}
