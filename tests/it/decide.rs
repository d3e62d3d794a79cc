//! The commit loop on random clusters of mixed capacity with cordons, broken devices, CPU, memory, models and topology,
//! against exhaustive search, against naive scans, and against itself with other windows and threads.

use proptest::prelude::*;
use slotwise::anchor::{Shape, State};
use slotwise::cluster::{
    Cluster, ClusterBuilder, GpuMask, JobId, JobSpec, Node, NodeId, NodeSpec, Request, Seat, UNLIMITED, Within,
};
use slotwise::decide::{CommitLoop, Decision, PlaceOptions, Policy, Status, Why, why_blocked};
use slotwise::evaluate::abi::NodeEdit;
use slotwise::evaluate::{self, Backend, Batch, Census, Choice, EvalError, NodeQuery, Scores};
use slotwise::workload::QueueEntry;

const STATIC: [Policy; 4] = [Policy::BestFit, Policy::WorstFit, Policy::FirstFit, Policy::Random];

#[derive(Clone, Debug)]
struct NodePlan {
    gpus: u8,
    broken: bool,
    model: Option<u8>,
    rack: Option<u8>,
    domain: Option<u8>,
    cpu: Option<u32>,
    memory: Option<u32>,
    cordoned: bool,
}

#[derive(Clone, Debug)]
struct JobPlan {
    gpus: u8,
    instances: u32,
    cpu: u32,
    memory: u32,
    models: Vec<u8>,
    within: Option<Within>,
}

#[derive(Clone, Debug)]
enum Step {
    Submit(JobPlan),
    /// Removes the job of this number, modulo how many were submitted before.
    Remove(usize),
}

const MODELS: [&str; 3] = ["x", "y", "z"];

fn node_plan() -> impl Strategy<Value = NodePlan> {
    let place = (prop::option::of(0u8..2), prop::option::of(0u8..2), prop::option::of(0u8..2));
    let amounts = (prop::option::weighted(0.6, 0u32..12), prop::option::weighted(0.3, 0u32..12));
    let flags = (prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    (1u8..=8, place, amounts, flags).prop_map(|(gpus, (model, rack, domain), (cpu, memory), (broken, cordoned))| {
        NodePlan { gpus, broken, model, rack, domain, cpu, memory, cordoned }
    })
}

fn job_plan(most: u32) -> impl Strategy<Value = JobPlan> {
    let within = prop_oneof![4 => Just(None), 1 => Just(Some(Within::Rack)), 1 => Just(Some(Within::Domain))];
    let models = prop_oneof![4 => Just(vec![]), 1 => prop::collection::vec(0u8..3, 1..3)];
    let amounts = (prop_oneof![2 => Just(0u32), 2 => 1u32..5], prop_oneof![3 => Just(0u32), 1 => 1u32..5]);
    let gpus = prop_oneof![3 => 1u8..=2, 3 => 1u8..=8, 1 => Just(0u8)];
    (gpus, 1..=most, amounts, models, within).prop_map(|(gpus, instances, (cpu, memory), models, within)| JobPlan {
        gpus,
        instances,
        cpu,
        memory,
        models,
        within,
    })
}

fn steps(most_instances: u32, n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => job_plan(most_instances).prop_map(Step::Submit),
        1 => any::<usize>().prop_map(Step::Remove),
    ];
    prop::collection::vec(step, n)
}

fn add_node(builder: &mut ClusterBuilder, number: usize, plan: &NodePlan) {
    let name = |letter: char, of: Option<u8>| of.map(|of| format!("{letter}{of}"));
    let (rack, domain) = (name('r', plan.rack), name('d', plan.domain));
    let spec = NodeSpec {
        name: &format!("n{number}"),
        gpus: plan.gpus,
        model: plan.model.map(|model| MODELS[usize::from(model)]),
        rack: rack.as_deref(),
        domain: domain.as_deref(),
        cpu_milli: plan.cpu,
        memory_mib: plan.memory,
        unschedulable: plan.cordoned,
        unavailable: GpuMask::from(plan.broken),
    };
    builder.add_node(&spec).unwrap();
}

fn cluster(nodes: &[NodePlan]) -> Cluster {
    let mut builder = ClusterBuilder::new();
    for (number, plan) in nodes.iter().enumerate() {
        add_node(&mut builder, number, plan);
    }
    builder.finish().unwrap()
}

fn register(cluster: &mut Cluster, name: &str, plan: &JobPlan) -> JobId {
    let models: Vec<&str> = plan.models.iter().map(|&model| MODELS[usize::from(model)]).collect();
    let &JobPlan { gpus, cpu: cpu_milli, memory: memory_mib, within, .. } = plan;
    let spec = JobSpec { name, gpus, cpu_milli, memory_mib, models: &models, within, ..JobSpec::default() };
    cluster.register(&spec, plan.instances).unwrap()
}

/// The cluster with the jobs of the steps registered, and the queue.
fn queue(nodes: &[NodePlan], steps: &[Step]) -> (Cluster, Vec<QueueEntry>) {
    let mut cluster = cluster(nodes);
    let mut jobs = Vec::new();
    let mut queue = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Submit(plan) => {
                jobs.push(register(&mut cluster, &format!("j{number}"), plan));
                queue.extend(jobs.last().map(|&job| QueueEntry::Submit(job)));
            }
            Step::Remove(n) if !jobs.is_empty() => queue.push(QueueEntry::Remove(jobs[n % jobs.len()])),
            Step::Remove(_) => {}
        }
    }
    (cluster, queue)
}

fn options(policy: Policy) -> PlaceOptions {
    PlaceOptions { policy, window: 1, threads: 1, seed: 7, ..PlaceOptions::default() }
}

/// The state after a queue of whatever history.
fn after(nodes: &[NodePlan], history: &[Step]) -> State {
    let (cluster, queue) = queue(nodes, history);
    let mut state = State::new(cluster);
    CommitLoop::new(&mut state, options(Policy::Random)).run(&queue, &mut |_| {});
    state
}

/// What a node can still give, by the plain definition.
#[derive(Clone, Copy, Debug)]
struct Left {
    gpus: u8,
    cpu: u32,
    memory: u32,
}

fn left(node: &Node) -> Left {
    Left { gpus: node.free().count_ones() as u8, cpu: node.cpu_free(), memory: node.memory_free() }
}

/// Whether an instance goes on this node, everything considered; takes its share.
fn take(left: &mut Left, request: &Request) -> bool {
    let amount = |free: u32, wanted: u32| free == UNLIMITED || free >= wanted;
    if left.gpus < request.gpus || !amount(left.cpu, request.cpu_milli) || !amount(left.memory, request.memory_mib) {
        return false;
    }
    left.gpus -= request.gpus;
    left.cpu -= if left.cpu == UNLIMITED { 0 } else { request.cpu_milli };
    left.memory -= if left.memory == UNLIMITED { 0 } else { request.memory_mib };
    true
}

/// Exhaustive search over which nodes the instances go to; they are alike, so in ascending order of nodes.
fn packs(nodes: &mut [Left], request: &Request, instances: u32) -> bool {
    if instances == 0 {
        return true;
    }
    for at in 0..nodes.len() {
        let before = nodes[at];
        if take(&mut nodes[at], request) {
            if packs(&mut nodes[at..], request, instances - 1) {
                nodes[at] = before;
                return true;
            }
            nodes[at] = before;
        }
    }
    false
}

fn allowed(cluster: &Cluster, node: NodeId, request: &Request) -> bool {
    let model = cluster.pool(cluster.node(node).pool()).model;
    let models = request.models.as_ref();
    cluster.node(node).schedulable() && models.is_none_or(|models| model.is_some_and(|m| models.contains(&m)))
}

/// The sets of nodes, one of which must take the whole gang.
fn scopes(cluster: &Cluster, request: &Request) -> Vec<Vec<NodeId>> {
    let region = |id: NodeId| match request.within {
        None => Some(0),
        Some(Within::Rack) => cluster.node(id).rack().map(|rack| rack.0),
        Some(Within::Domain) => cluster.node(id).domain().map(|domain| domain.0),
    };
    let most = cluster.node_ids().filter_map(region).max();
    let scope = |number| {
        let nodes = cluster.node_ids().filter(|&id| region(id) == Some(number));
        nodes.filter(|&id| allowed(cluster, id, request)).collect()
    };
    most.map_or(Vec::new(), |most| (0..=most).map(scope).collect())
}

fn placeable(cluster: &Cluster, request: &Request, instances: u32) -> bool {
    let fits = |nodes: Vec<NodeId>| {
        let mut left: Vec<Left> = nodes.iter().map(|&id| left(cluster.node(id))).collect();
        packs(&mut left, request, instances)
    };
    scopes(cluster, request).into_iter().any(fits)
}

/// The reason by its definition, for a job that may or may not be blocked.
fn reason(cluster: &Cluster, request: &Request, instances: u32) -> Why {
    let schedulable = || cluster.nodes().iter().filter(|node| node.schedulable());
    let free: u32 = schedulable().map(|node| node.free().count_ones()).sum();
    let mut gpus_alone: Vec<Left> =
        schedulable().map(|node| Left { cpu: UNLIMITED, memory: UNLIMITED, ..left(node) }).collect();
    let bare = Request { gpus: request.gpus, ..Request::default() };
    if request.gpus > 0 && free < instances * u32::from(request.gpus) {
        Why::Capacity
    } else if request.gpus > 0 && !packs(&mut gpus_alone, &bare, instances) {
        Why::Fragmentation
    } else if !placeable(cluster, request, instances) {
        Why::Constraint
    } else {
        Why::Space
    }
}

/// A placement obeys everything that the job asks, on the cluster as it was before it.
fn check_placement(before: &Cluster, decision: &Decision, lowest: bool) {
    let request = before.request_of(decision.job);
    let mut nodes: Vec<Left> = before.nodes().iter().map(left).collect();
    let mut busy: Vec<GpuMask> = before.nodes().iter().map(|node| node.devices_not_free()).collect();
    assert_eq!(decision.placements.len() as u32, before.job(decision.job).instances());
    for &(node, gpus) in &decision.placements {
        assert!(allowed(before, node, request) && take(&mut nodes[node.index()], request));
        assert_eq!(gpus.count_ones(), u32::from(request.gpus));
        assert_eq!(gpus & busy[node.index()], 0);
        // The lowest that were free: what lies below the highest taken is busy now.
        busy[node.index()] |= gpus;
        let up_to_top = (1u32 << (GpuMask::BITS - gpus.leading_zeros())) - 1;
        assert!(!lowest || u32::from(busy[node.index()]) & up_to_top == up_to_top);
    }
    let together = |region: fn(&Node) -> Option<u32>| {
        let first = region(before.node(decision.placements[0].0));
        first.is_some() && decision.placements.iter().all(|&(node, _)| region(before.node(node)) == first)
    };
    match request.within {
        None => {}
        Some(Within::Rack) => assert!(together(|node| node.rack().map(|rack| rack.0))),
        Some(Within::Domain) => assert!(together(|node| node.domain().map(|domain| domain.0))),
    }
}

trait NotFree {
    fn devices_not_free(&self) -> GpuMask;
}

impl NotFree for Node {
    fn devices_not_free(&self) -> GpuMask {
        !self.free() & (((1u32 << self.devices()) - 1) as GpuMask)
    }
}

/// Where a policy puts a gang, by a plain scan of all nodes for each instance.
fn naive(cluster: &Cluster, job: JobId, policy: Policy) -> Option<Vec<NodeId>> {
    let (request, instances) = (cluster.request_of(job), cluster.job(job).instances());
    let key = |free: u64, number: usize| match policy {
        Policy::BestFit => (free as i64, number),
        Policy::WorstFit => (-(free as i64), number),
        _ => (0, number),
    };
    let regions: Vec<Vec<NodeId>> = scopes(cluster, request);
    let free_of = |number: usize| -> u64 {
        let in_region = |id: &NodeId| match request.within {
            None => true,
            Some(Within::Rack) => cluster.node(*id).rack().is_some_and(|rack| rack.index() == number),
            Some(Within::Domain) => cluster.node(*id).domain().is_some_and(|domain| domain.index() == number),
        };
        let nodes = cluster.node_ids().filter(in_region).map(|id| cluster.node(id));
        nodes.filter(|node| node.schedulable()).map(|node| u64::from(node.free_gpus())).sum()
    };
    let able = regions.iter().enumerate().filter(|(_, nodes)| {
        let mut left: Vec<Left> = nodes.iter().map(|&id| left(cluster.node(id))).collect();
        packs(&mut left, request, instances)
    });
    let (_, nodes) = able.min_by_key(|&(number, _)| key(free_of(number), number))?;
    let mut lefts: Vec<(NodeId, Left)> = nodes.iter().map(|&id| (id, left(cluster.node(id)))).collect();
    let mut chosen = Vec::new();
    for _ in 0..instances {
        let fitting = lefts.iter_mut().filter(|(_, left)| take(&mut left.clone(), request));
        let (id, left) = fitting.min_by_key(|(id, left)| key(u64::from(left.gpus), id.index()))?;
        take(left, request);
        chosen.push(*id);
    }
    Some(chosen)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Every placement is found, none is invented, and a blocked job is told the true reason.
    #[test]
    fn placement_is_complete(
        nodes in prop::collection::vec(node_plan(), 1..5),
        history in steps(3, 0..12),
        plan in job_plan(5),
    ) {
        let mut state = after(&nodes, &history);
        let job = {
            let mut cluster = state.into_cluster();
            let job = register(&mut cluster, "gang", &plan);
            state = State::new(cluster);
            job
        };
        let before = state.cluster().clone();
        let (request, instances) = (before.request_of(job), plan.instances);
        let possible = placeable(&before, request, instances);
        let why = reason(&before, request, instances);
        prop_assert_eq!(why_blocked(&state, job), why);
        prop_assert_eq!(possible, why == Why::Space);
        for policy in STATIC {
            let mut state = state.clone();
            let decision = CommitLoop::new(&mut state, options(policy)).decide(QueueEntry::Submit(job), 3).clone();
            state.cluster().check_books().unwrap();
            if possible {
                prop_assert_eq!(decision.status, Status::Placed, "{}", policy);
                check_placement(&before, &decision, true);
            } else {
                prop_assert_eq!(decision.status, Status::Blocked(why), "{}", policy);
                prop_assert!(decision.placements.is_empty() && decision.delta_sif_nodes.is_none());
                prop_assert_eq!(state.cluster().nodes(), before.nodes());
            }
            prop_assert!(decision.migrations.is_empty());
        }
        // COMPASS may refuse more, may move others, and may move the gang's own instances on before it is done, which
        // frees lower devices again; but what it says must be true.
        for policy in [Policy::Compass, Policy::CompassPaper] {
            let mut state = state.clone();
            let decision = CommitLoop::new(&mut state, options(policy)).decide(QueueEntry::Submit(job), 3).clone();
            state.cluster().check_books().unwrap();
            match decision.status {
                Status::Placed if decision.migrations.is_empty() => check_placement(&before, &decision, false),
                Status::Placed => prop_assert_eq!(decision.placements.len() as u32, instances),
                status => prop_assert_eq!(status, Status::Blocked(why), "{}", policy),
            }
        }
    }

    /// The order of the nodes in the file decides nothing but ties.
    #[test]
    fn the_order_of_nodes_does_not_decide(
        nodes in prop::collection::vec(node_plan(), 2..6),
        history in steps(3, 0..12),
        plan in job_plan(5),
        order in any::<prop::sample::Index>(),
        reverse in any::<bool>(),
    ) {
        let mut straight = after(&nodes, &history).into_cluster();
        let mut numbers: Vec<usize> = (0..nodes.len()).collect();
        numbers.rotate_left(order.index(nodes.len()));
        if reverse {
            numbers.reverse();
        }
        let mut builder = ClusterBuilder::new();
        for &number in &numbers {
            add_node(&mut builder, number, &nodes[number]);
        }
        for job in straight.job_ids().filter(|&job| straight.job(job).runs()) {
            let seats: Vec<Seat> = straight
                .instances_of(job)
                .map(|instance| straight.instance(instance))
                .map(|held| Seat {
                    node: builder.find_node(straight.node_name(held.node().unwrap())).unwrap(),
                    gpus: Some(held.gpus()),
                })
                .collect();
            let request = straight.request_of(job);
            let &Request { gpus, cpu_milli, memory_mib, .. } = request;
            let spec = JobSpec { name: straight.job_name(job), gpus, cpu_milli, memory_mib, ..JobSpec::default() };
            builder.add_running(&spec, &seats).unwrap();
        }
        let mut permuted = builder.finish().unwrap();
        let jobs = [register(&mut straight, "gang", &plan), register(&mut permuted, "gang", &plan)];
        let (straight, permuted) = (State::new(straight), State::new(permuted));
        for policy in STATIC {
            let decide = |state: &State, job: JobId| {
                let mut state = state.clone();
                CommitLoop::new(&mut state, options(policy)).decide(QueueEntry::Submit(job), 0).status
            };
            prop_assert_eq!(decide(&straight, jobs[0]), decide(&permuted, jobs[1]), "{}", policy);
        }
    }

    /// The indexes give what a plain scan gives, job after job.
    #[test]
    fn choices_are_those_of_a_naive_scan(
        nodes in prop::collection::vec(node_plan(), 1..9),
        steps in steps(4, 1..25),
        at in 0usize..3,
    ) {
        let policy = [Policy::BestFit, Policy::WorstFit, Policy::FirstFit][at];
        let (cluster, queue) = queue(&nodes, &steps);
        let mut state = State::new(cluster);
        let mut total = state.n_sif();
        let mut commit_loop = CommitLoop::new(&mut state, options(policy));
        for (index, &entry) in queue.iter().enumerate() {
            let before = commit_loop.state().cluster().clone();
            let expected = naive(&before, entry.job(), policy);
            let decision = commit_loop.decide(entry, index).clone();
            let cluster = commit_loop.state().cluster();
            cluster.check_books().unwrap();
            let chosen: Vec<NodeId> = decision.placements.iter().map(|&(node, _)| node).collect();
            match entry {
                QueueEntry::Submit(_) => {
                    prop_assert_eq!(expected.is_some(), decision.status == Status::Placed);
                    prop_assert_eq!(chosen, expected.unwrap_or_default());
                }
                QueueEntry::Remove(job) => {
                    let expected = if before.job(job).runs() { Status::Removed } else { Status::Absent };
                    prop_assert_eq!(decision.status, expected);
                    prop_assert!(!cluster.job(job).runs());
                }
            }
            // What an event is said to change is what a recount finds.
            let n_sif = State::new(cluster.clone()).n_sif();
            prop_assert_eq!(n_sif - total, decision.delta_sif_nodes.unwrap_or(0));
            total = n_sif;
            let mut changed = cluster.node_ids().filter(|&id| cluster.node(id) != before.node(id));
            let in_space = |id: NodeId| {
                let node = cluster.node(id);
                Shape::of(node.capacity(), node.composition()).in_space()
            };
            if decision.in_abs == Some(true) {
                prop_assert!(changed.all(in_space));
            }
        }
    }
}

/// Runs a queue whole and returns all decisions and what the nodes hold in the end.
fn run(cluster: &Cluster, queue: &[QueueEntry], options: PlaceOptions) -> (Vec<Decision>, Cluster) {
    let mut state = State::new(cluster.clone());
    let mut decisions = Vec::new();
    CommitLoop::new(&mut state, options).run(queue, &mut |decision| decisions.push(decision.clone()));
    (decisions, state.into_cluster())
}

fn one_by_one(cluster: &Cluster, queue: &[QueueEntry], options: PlaceOptions) -> (Vec<Decision>, Cluster) {
    let mut state = State::new(cluster.clone());
    let mut decisions = Vec::new();
    for (index, &entry) in queue.iter().enumerate() {
        // A loop of its own for each entry: nothing can be left over from the one before.
        decisions.push(CommitLoop::new(&mut state, options).decide(entry, index).clone());
    }
    (decisions, state.into_cluster())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Windows and threads never show. Some clusters have more nodes than a window ranks.
    #[test]
    fn windows_and_threads_do_not_show(
        nodes in prop_oneof![
            prop::collection::vec(node_plan(), 1..30),
            prop::collection::vec(node_plan(), 70..140),
        ],
        steps in prop_oneof![steps(5, 1..60), steps(60, 1..60)],
        window in 1usize..80,
        threads in 1usize..4,
        at in 0usize..6,
    ) {
        let (cluster, queue) = queue(&nodes, &steps);
        let options = options(Policy::ALL[at]);
        let (expected, books) = one_by_one(&cluster, &queue, options);
        let (decisions, found) = run(&cluster, &queue, PlaceOptions { window, threads, ..options });
        prop_assert_eq!(&decisions, &expected);
        prop_assert_eq!(found.nodes(), books.nodes());
        found.check_books().unwrap();
        // A backend that ranks in place of the indexes does not show either.
        let mut state = State::new(cluster);
        let backend = evaluate::open(Choice::Cpu, threads).unwrap();
        let mut commit_loop = CommitLoop::with_backend(&mut state, PlaceOptions { window, threads, ..options }, backend);
        let mut decisions = Vec::new();
        commit_loop.run(&queue, &mut |decision| decisions.push(decision.clone()));
        prop_assert_eq!(commit_loop.backend_fault(), None);
        prop_assert_eq!(decisions, expected);
        prop_assert_eq!(state.cluster().nodes(), books.nodes());
    }
}

/// A backend that answers a few questions rightly and then fails.
struct Failing {
    inside: Box<dyn Backend>,
    answers: u32,
}

impl Backend for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn load(&mut self, cluster: &Cluster) -> Result<(), EvalError> {
        self.inside.load(cluster)
    }

    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        self.inside.apply(edits)
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        self.inside.evaluate(batch, out)
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        self.answers = self.answers.checked_sub(1).ok_or_else(|| EvalError::Device("unplugged".to_owned()))?;
        self.inside.rank_nodes(query, out)
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        self.inside.census(out)
    }
}

#[test]
fn a_backend_that_fails_changes_nothing() {
    let mut nodes = plain_nodes(100);
    nodes.iter_mut().enumerate().for_each(|(number, node)| node.cpu = Some(number as u32 % 7));
    let job = |number: u32| JobPlan { cpu: number % 3 + 1, ..plain_job(1 + (number % 3) as u8, 2) };
    let steps: Vec<Step> = (0..40).map(|number| Step::Submit(job(number))).collect();
    let (cluster, queue) = queue(&nodes, &steps);
    let options = PlaceOptions { window: 10, ..options(Policy::BestFit) };
    let (expected, _) = run(&cluster, &queue, options);
    for answers in 0..6 {
        let mut state = State::new(cluster.clone());
        let inside = evaluate::open(Choice::Cpu, 1).unwrap();
        let mut commit_loop = CommitLoop::with_backend(&mut state, options, Box::new(Failing { inside, answers }));
        let mut decisions = Vec::new();
        commit_loop.run(&queue, &mut |decision| decisions.push(decision.clone()));
        assert_eq!(decisions, expected);
        assert_eq!(commit_loop.backend_fault().is_some(), answers < 4);
    }
}

fn plain_nodes(n: usize) -> Vec<NodePlan> {
    let plan = NodePlan {
        gpus: 8,
        broken: false,
        model: None,
        rack: None,
        domain: None,
        cpu: None,
        memory: None,
        cordoned: false,
    };
    vec![plan; n]
}

fn plain_job(gpus: u8, instances: u32) -> JobPlan {
    JobPlan { gpus, instances, cpu: 0, memory: 0, models: vec![], within: None }
}

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
    for policy in Policy::ALL {
        let (decisions, _) = run(&cluster, &[QueueEntry::Submit(job)], options(policy));
        assert_eq!(decisions[0].status, Status::Blocked(Why::Constraint), "{policy}");
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
