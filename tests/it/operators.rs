//! The operators on random clusters of mixed capacity with pins, cordons, broken devices, CPU, memory, models and
//! topology: what must hold whatever the rules are.

use proptest::prelude::*;
use slotwise::anchor::{self, Rules, Shape, State, Trigger, Variant};
use slotwise::cluster::{
    Cluster, ClusterBuilder, JobId, JobSpec, NodeId, NodeSpec, Request, Seat, UNLIMITED, WHOLE_GPU, Within,
};

#[derive(Clone, Debug)]
struct NodePlan {
    gpus: u8,
    unavailable: u16,
    model: Option<u8>,
    rack: Option<u8>,
    cpu: Option<u32>,
    cordoned: bool,
}

#[derive(Clone, Debug)]
struct JobPlan {
    gpus: u8,
    milli: u16,
    instances: u32,
    cpu: u32,
    model: Option<u8>,
    within: Option<Within>,
    pinned: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Submit(JobPlan),
    /// Removes the running job of this number, modulo how many run.
    Remove(usize),
}

fn node_plan() -> impl Strategy<Value = NodePlan> {
    let cpu = prop::option::weighted(0.4, 1u32..20);
    (1u8..=8, any::<u16>(), prop::option::of(0u8..2), prop::option::of(0u8..2), cpu, prop::bool::weighted(0.1))
        .prop_map(|(gpus, broken, model, rack, cpu, cordoned)| NodePlan {
            // Powers of two are what the method is about; one node in four is something else.
            gpus: if gpus % 4 == 3 { gpus } else { 1 << (gpus % 4) },
            unavailable: if broken % 8 == 0 { 1 } else { 0 },
            model,
            rack,
            cpu,
            cordoned,
        })
}

fn job_plan() -> impl Strategy<Value = JobPlan> {
    let within = prop_oneof![8 => Just(None), 1 => Just(Some(Within::Rack)), 1 => Just(Some(Within::Domain))];
    let model = prop::option::weighted(0.2, 0u8..2);
    let whole = prop_oneof![4 => Just(1u8), 4 => 2u8..=8, 1 => Just(0u8)].prop_map(|gpus| (gpus, WHOLE_GPU));
    let gpus = prop_oneof![6 => whole, 1 => (100u16..WHOLE_GPU).prop_map(|milli| (1, milli))];
    (gpus, 1u32..4, prop_oneof![3 => Just(0u32), 1 => 1u32..8], model, within, prop::bool::weighted(0.2)).prop_map(
        |((gpus, milli), instances, cpu, model, within, pinned)| JobPlan {
            gpus,
            milli,
            instances,
            cpu,
            model,
            within,
            pinned,
        },
    )
}

fn build(nodes: &[NodePlan]) -> State {
    let mut builder = ClusterBuilder::new();
    for (i, plan) in nodes.iter().enumerate() {
        let rack = plan.rack.map(|rack| format!("rack{rack}"));
        builder
            .add_node(&NodeSpec {
                name: &format!("n{i}"),
                gpus: plan.gpus,
                model: plan.model.map(|model| ["x", "y"][usize::from(model)]),
                rack: rack.as_deref(),
                domain: rack.as_deref().map(|_| "d"),
                cpu_milli: plan.cpu,
                unschedulable: plan.cordoned,
                unavailable: plan.unavailable,
                ..NodeSpec::default()
            })
            .unwrap();
    }
    State::new(builder.finish().unwrap())
}

fn submit(state: &mut State, name: &str, plan: &JobPlan) -> JobId {
    let models = plan.model.map(|model| ["x", "y"][usize::from(model)]);
    let mut cluster = state.clone().into_cluster();
    let spec = JobSpec {
        name,
        gpus: plan.gpus,
        gpu_milli: plan.milli,
        cpu_milli: plan.cpu,
        models: models.as_slice(),
        within: plan.within,
        pinned: plan.pinned,
        ..JobSpec::default()
    };
    let job = cluster.register(&spec, plan.instances).unwrap();
    *state = State::new(cluster);
    job
}

/// Where every instance is: what a blocked job must not change.
fn seats(cluster: &Cluster) -> Vec<(JobId, Option<NodeId>, u16)> {
    let jobs = cluster.job_ids().flat_map(|job| cluster.instances_of(job));
    jobs.map(|i| cluster.instance(i)).filter(|i| i.node().is_some()).map(|i| (i.job(), i.node(), i.gpus())).collect()
}

fn check_requests(cluster: &Cluster) -> Result<(), TestCaseError> {
    for node in cluster.nodes() {
        prop_assert!(!node.overcommitted());
    }
    for job in cluster.job_ids().filter(|&job| cluster.job(job).runs()) {
        let request = cluster.request_of(job);
        let nodes: Vec<NodeId> = cluster.instances_of(job).map(|i| cluster.instance(i).node().unwrap()).collect();
        for &node in &nodes {
            prop_assert!(cluster.pool_admits(cluster.node(node).pool(), request));
        }
        let together = |of: &dyn Fn(NodeId) -> Option<u32>| {
            let first = of(nodes[0]);
            first.is_some() && nodes.iter().all(|&node| of(node) == first)
        };
        let together = match request.within {
            None => true,
            Some(Within::Rack) => together(&|node| cluster.node(node).rack().map(|rack| rack.0)),
            Some(Within::Domain) => together(&|node| cluster.node(node).domain().map(|domain| domain.0)),
        };
        prop_assert!(together);
    }
    Ok(())
}

/// Whether some placement without moves leaves every touched node inside Σ: by trying all.
fn placeable_inside(cluster: &Cluster, job: JobId) -> bool {
    let request = cluster.request_of(job).clone();
    let regions: Vec<Option<u32>> = match request.within {
        None => vec![None],
        Some(Within::Rack) => (0..cluster.n_racks() as u32).map(Some).collect(),
        Some(Within::Domain) => (0..cluster.n_domains() as u32).map(Some).collect(),
    };
    regions.into_iter().any(|region| {
        let nodes = cluster.node_ids().filter(|&node| {
            let held = cluster.node(node);
            region.is_none_or(|region| match request.within {
                Some(Within::Rack) => held.rack().is_some_and(|rack| rack.0 == region),
                _ => held.domain().is_some_and(|domain| domain.0 == region),
            })
        });
        let counts: Vec<Vec<u32>> = nodes.map(|node| counts_inside(cluster, node, &request)).collect();
        let mut sums = std::collections::BTreeSet::from([0u32]);
        for counts in counts {
            sums = sums.iter().flat_map(|sum| counts.iter().map(move |n| sum + n)).collect();
        }
        sums.contains(&cluster.job(job).instances())
    })
}

/// The numbers of instances that a node can take at once and be inside Σ (or take none).
fn counts_inside(cluster: &Cluster, id: NodeId, request: &Request) -> Vec<u32> {
    let mut counts = vec![0];
    if !cluster.admits(id, request) {
        return counts;
    }
    let node = cluster.node(id);
    let mut composition = node.composition();
    // Shares go beside others first, then many on a device.
    let (beside, a_device) = match request.is_share() {
        true => (cluster.room_on_shared(id, request.gpu_milli), u32::from(WHOLE_GPU / request.gpu_milli)),
        false => (0, 1),
    };
    for n in 1..=8u32 {
        if node.cpu_free() != UNLIMITED && node.cpu_free() < n * request.cpu_milli {
            break;
        }
        if request.gpus > 0 && n > beside && (n - beside - 1).is_multiple_of(a_device) {
            match composition.with(request.gpus) {
                Some(next) if next.busy() <= node.capacity() => composition = next,
                _ => break,
            }
        }
        if request.gpus == 0 || n <= beside || Shape::of(node.capacity(), composition).in_space() {
            counts.push(n);
        }
    }
    counts
}

fn rules() -> impl Strategy<Value = Rules> {
    let trigger = prop_oneof![Just(Trigger::EveryEvent), Just(Trigger::WhenBlocked), Just(Trigger::Never)];
    let variant = prop_oneof![3 => Just(Variant::Invariant), 1 => Just(Variant::Paper)];
    (trigger, variant, prop::option::weighted(0.3, 0u32..4)).prop_map(|(trigger, variant, migration_budget)| Rules {
        variant,
        trigger,
        migration_budget,
        region: None,
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        prop_oneof![3 => job_plan().prop_map(Step::Submit), 1 => any::<usize>().prop_map(Step::Remove)],
        1..40,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn events_keep_every_promise(
        nodes in prop::collection::vec(node_plan(), 1..7), steps in steps(), rules in rules(),
    ) {
        let mut state = build(&nodes);
        for (number, step) in steps.iter().enumerate() {
            let before = state.cluster().clone();
            let outside_before = state.n_outside();
            let migrations = match step {
                Step::Submit(plan) => {
                    let job = submit(&mut state, &format!("j{number}"), plan);
                    let mut transaction = state.begin();
                    let placed = anchor::place(&mut transaction, job, &rules);
                    let migrations = transaction.migrations();
                    if !placed {
                        drop(transaction);
                        prop_assert_eq!(seats(state.cluster()), seats(&before));
                        prop_assert!(!placeable_inside(state.cluster(), job), "a placement was missed: {:?}", plan);
                        continue;
                    }
                    transaction.commit();
                    prop_assert!(state.n_outside() <= outside_before);
                    let cluster = state.cluster();
                    prop_assert_eq!(cluster.job(job).instances(), plan.instances);
                    for instance in cluster.instances_of(job) {
                        let node = cluster.node(cluster.instance(instance).node().unwrap());
                        prop_assert!(node.schedulable());
                        // A share beside others leaves a node outside Σ as it was.
                        let was = before.node(cluster.instance(instance).node().unwrap()).composition();
                        let stays = plan.gpus == 0 || (plan.milli < WHOLE_GPU && was == node.composition());
                        prop_assert!(stays || Shape::of(node.capacity(), node.composition()).in_space());
                    }
                    migrations
                }
                Step::Remove(which) => {
                    let running: Vec<JobId> = before.job_ids().filter(|&job| before.job(job).runs()).collect();
                    let first = which % running.len().max(1);
                    // Mostly one, sometimes a few that leave together.
                    let leaving: Vec<JobId> = running.into_iter().skip(first).take(1 + which / 7 % 3).collect();
                    if leaving.is_empty() {
                        continue;
                    }
                    let mut transaction = state.begin();
                    anchor::remove_together(&mut transaction, &leaving, &rules);
                    let migrations = transaction.migrations();
                    transaction.commit();
                    prop_assert!(leaving.iter().all(|&job| !state.cluster().job(job).runs()));
                    migrations
                }
            };
            let cluster = state.cluster();
            if let Err(error) = cluster.check_books() {
                prop_assert!(false, "{}", error);
            }
            check_requests(cluster)?;
            prop_assert!(rules.migration_budget.is_none_or(|budget| migrations.len() <= budget as usize));
            let mut sorted = migrations.clone();
            sorted.sort();
            prop_assert_eq!(&sorted, &migrations);
            for migration in &migrations {
                let instance = migration.instance;
                prop_assert!(cluster.job(migration.job).migratable());
                prop_assert!(cluster.node(migration.to).schedulable());
                prop_assert_eq!(cluster.node(migration.to).pool(), cluster.node(migration.from).pool());
                prop_assert_eq!(before.instance(instance).node(), Some(migration.from));
                prop_assert_eq!(cluster.instance(instance).node(), Some(migration.to));
                prop_assert!(migration.from != migration.to);
            }
            // What is not named as migrated is where it was.
            for job in cluster.job_ids().filter(|&job| cluster.job(job).runs() && job.index() < before.jobs().len()) {
                for instance in cluster.instances_of(job) {
                    let moved = migrations.iter().any(|migration| migration.instance == instance);
                    if before.job(job).runs() && !moved {
                        prop_assert_eq!(before.instance(instance), cluster.instance(instance));
                    }
                }
            }
        }
    }

    #[test]
    fn undone_is_as_it_was(nodes in prop::collection::vec(node_plan(), 1..7), steps in steps(), rules in rules()) {
        let mut state = build(&nodes);
        for (number, step) in steps.iter().enumerate() {
            let Step::Submit(plan) = step else { continue };
            let job = submit(&mut state, &format!("j{number}"), plan);
            let before = state.cluster().clone();
            {
                let mut transaction = state.begin();
                anchor::place(&mut transaction, job, &rules);
            }
            prop_assert_eq!(state.cluster().nodes(), before.nodes());
            prop_assert_eq!(seats(state.cluster()), seats(&before));
            let mut transaction = state.begin();
            if anchor::place(&mut transaction, job, &rules) {
                transaction.commit();
            }
        }
    }
}

/// A cluster that starts with jobs placed by somebody else is never made worse.
#[test]
fn a_pinned_cluster_outside_the_space_is_left_alone() {
    let mut builder = ClusterBuilder::new();
    builder.add_node(&NodeSpec { name: "a", gpus: 8, ..NodeSpec::default() }).unwrap();
    builder.add_node(&NodeSpec { name: "b", gpus: 8, ..NodeSpec::default() }).unwrap();
    let pinned = |name| JobSpec { name, gpus: 5, pinned: true, ..JobSpec::default() };
    let seat = |node, gpus| [Seat { node: NodeId(node), gpus: Some(gpus) }];
    builder.add_running(&pinned("five"), &seat(0, 0b1_1111)).unwrap();
    builder.add_running(&JobSpec { gpus: 3, ..pinned("three") }, &seat(0, 0b1110_0000)).unwrap();
    let mut state = State::new(builder.finish().unwrap());
    assert_eq!(state.n_outside(), 1);
    let job = state.add_job("new", Request { gpus: 4, ..Request::default() }, 2, true).unwrap().unwrap();
    let mut transaction = state.begin();
    assert!(anchor::place(&mut transaction, job, &Rules::default()));
    assert!(transaction.migrations().is_empty());
    transaction.commit();
    assert_eq!(state.n_outside(), 1);
}
