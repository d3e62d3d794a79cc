//! Random clusters and queues for the tests of the commit loop: mixed capacity, cordons, broken devices, CPU, memory,
//! models and topology.

use proptest::prelude::*;
use slotwise::anchor::State;
use slotwise::cluster::{Cluster, ClusterBuilder, GpuMask, GroupedJob, JobId, JobSpec, NodeSpec, WHOLE_GPU, Within};
use slotwise::decide::{CommitLoop, Decision, PlaceOptions, Policy};
use slotwise::workload::QueueEntry;

#[derive(Clone, Debug)]
pub(crate) struct NodePlan {
    pub(crate) gpus: u8,
    pub(crate) broken: bool,
    pub(crate) model: Option<u8>,
    pub(crate) rack: Option<u8>,
    pub(crate) domain: Option<u8>,
    pub(crate) cpu: Option<u32>,
    pub(crate) memory: Option<u32>,
    pub(crate) cordoned: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct JobPlan {
    pub(crate) gpus: u8,
    pub(crate) milli: u16,
    pub(crate) instances: u32,
    pub(crate) cpu: u32,
    pub(crate) memory: u32,
    pub(crate) models: Vec<u8>,
    pub(crate) within: Option<Within>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Submit(JobPlan),
    /// Removes the job of this number, modulo how many were submitted before.
    Remove(usize),
}

pub(crate) const MODELS: [&str; 3] = ["x", "y", "z"];

pub(crate) fn node_plan() -> impl Strategy<Value = NodePlan> {
    let place = (prop::option::of(0u8..2), prop::option::of(0u8..2), prop::option::of(0u8..2));
    let amounts = (prop::option::weighted(0.6, 0u32..12), prop::option::weighted(0.3, 0u32..12));
    let flags = (prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    (1u8..=8, place, amounts, flags).prop_map(|(gpus, (model, rack, domain), (cpu, memory), (broken, cordoned))| {
        NodePlan { gpus, broken, model, rack, domain, cpu, memory, cordoned }
    })
}

pub(crate) fn job_plan(most: u32) -> impl Strategy<Value = JobPlan> {
    let within = prop_oneof![4 => Just(None), 1 => Just(Some(Within::Rack)), 1 => Just(Some(Within::Domain))];
    let models = prop_oneof![4 => Just(vec![]), 1 => prop::collection::vec(0u8..3, 1..3)];
    let amounts = (prop_oneof![2 => Just(0u32), 2 => 1u32..5], prop_oneof![3 => Just(0u32), 1 => 1u32..5]);
    let whole = prop_oneof![3 => 1u8..=2, 3 => 1u8..=8, 1 => Just(0u8)].prop_map(|gpus| (gpus, WHOLE_GPU));
    let share = prop_oneof![1 => 1u16..WHOLE_GPU, 1 => (1u16..5).prop_map(|fifths| fifths * 200)];
    let gpus = prop_oneof![7 => whole, 3 => share.prop_map(|milli| (1, milli))];
    let plan = (gpus, 1..=most, amounts, models, within);
    plan.prop_map(|((gpus, milli), instances, (cpu, memory), models, within)| JobPlan {
        gpus,
        milli,
        instances,
        cpu,
        memory,
        models,
        within,
    })
}

pub(crate) fn steps(most_instances: u32, n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => job_plan(most_instances).prop_map(Step::Submit),
        1 => any::<usize>().prop_map(Step::Remove),
    ];
    prop::collection::vec(step, n)
}

pub(crate) fn add_node(builder: &mut ClusterBuilder, number: usize, plan: &NodePlan) {
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

pub(crate) fn cluster(nodes: &[NodePlan]) -> Cluster {
    let mut builder = ClusterBuilder::new();
    for (number, plan) in nodes.iter().enumerate() {
        add_node(&mut builder, number, plan);
    }
    builder.finish().unwrap()
}

pub(crate) fn register(cluster: &mut Cluster, name: &str, plan: &JobPlan) -> JobId {
    let models: Vec<&str> = plan.models.iter().map(|&model| MODELS[usize::from(model)]).collect();
    let &JobPlan { gpus, milli: gpu_milli, cpu: cpu_milli, memory: memory_mib, within, .. } = plan;
    let spec = JobSpec { name, gpus, gpu_milli, cpu_milli, memory_mib, models: &models, within, ..JobSpec::default() };
    cluster.register(&spec, plan.instances).unwrap()
}

pub(crate) fn register_groups(
    cluster: &mut Cluster,
    name: &str,
    plans: &[JobPlan],
    within: Option<Within>,
) -> GroupedJob {
    let models: Vec<Vec<&str>> =
        plans.iter().map(|plan| plan.models.iter().map(|&model| MODELS[usize::from(model)]).collect()).collect();
    let spec = |(plan, models): (&JobPlan, &'_ Vec<&'static str>)| {
        let &JobPlan { gpus, milli: gpu_milli, cpu: cpu_milli, memory: memory_mib, instances, .. } = plan;
        (gpus, gpu_milli, cpu_milli, memory_mib, instances, models.clone())
    };
    let parts: Vec<_> = plans.iter().zip(&models).map(spec).collect();
    let specs: Vec<(JobSpec<'_>, u32)> = parts
        .iter()
        .map(|(gpus, gpu_milli, cpu_milli, memory_mib, instances, models)| {
            let spec = JobSpec {
                gpus: *gpus,
                gpu_milli: *gpu_milli,
                cpu_milli: *cpu_milli,
                memory_mib: *memory_mib,
                models,
                within,
                ..JobSpec::default()
            };
            (spec, *instances)
        })
        .collect();
    cluster.register_groups(name, &specs).unwrap()
}

/// The cluster with the jobs of the steps registered, and the queue.
pub(crate) fn queue(nodes: &[NodePlan], steps: &[Step]) -> (Cluster, Vec<QueueEntry>) {
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

pub(crate) fn options(policy: Policy) -> PlaceOptions {
    PlaceOptions { policy, window: 1, threads: 1, seed: 7, ..PlaceOptions::default() }
}

/// The state after a queue of whatever history.
pub(crate) fn after(nodes: &[NodePlan], history: &[Step]) -> State {
    let (cluster, queue) = queue(nodes, history);
    let mut state = State::new(cluster);
    CommitLoop::new(&mut state, options(Policy::Random)).run(&queue, &mut |_| {});
    state
}

/// Runs a queue whole and returns all decisions and what the nodes hold in the end.
pub(crate) fn run(cluster: &Cluster, queue: &[QueueEntry], options: PlaceOptions) -> (Vec<Decision>, Cluster) {
    let mut state = State::new(cluster.clone());
    let mut decisions = Vec::new();
    CommitLoop::new(&mut state, options).run(queue, &mut |decision| decisions.push(decision.clone()));
    (decisions, state.into_cluster())
}

pub(crate) fn plain_nodes(n: usize) -> Vec<NodePlan> {
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

pub(crate) fn plain_job(gpus: u8, instances: u32) -> JobPlan {
    JobPlan { gpus, milli: WHOLE_GPU, instances, cpu: 0, memory: 0, models: vec![], within: None }
}
