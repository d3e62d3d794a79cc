//! The commit loop on random clusters against exhaustive search and against naive scans.

use proptest::prelude::*;
use slotwise::anchor::{Shape, State};
use slotwise::cluster::{
    Cluster, ClusterBuilder, GpuMask, JobId, JobSpec, MAX_GPUS, Node, NodeId, Request, Seat, UNLIMITED, WHOLE_GPU,
    Within, gpu_indices, lowest_gpus,
};
use slotwise::decide::{CommitLoop, Decision, Policy, Status, Why, why_blocked};
use slotwise::workload::QueueEntry;

use crate::decide_support::{add_node, after, job_plan, node_plan, options, queue, register, steps};

/// All policies that move nothing and place whatever fits.
fn static_policies() -> impl Iterator<Item = Policy> {
    Policy::ALL.into_iter().filter(|policy| !matches!(policy, Policy::Compass | Policy::CompassPaper))
}

/// What a node can still give, by the plain definition.
#[derive(Clone, Copy, Debug)]
struct Left {
    milli: [u16; MAX_GPUS],
    cpu: u32,
    memory: u32,
}

fn left(cluster: &Cluster, id: NodeId) -> Left {
    let node = cluster.node(id);
    Left { milli: cluster.gpu_milli_left(id), cpu: node.cpu_free(), memory: node.memory_free() }
}

impl Left {
    fn free(&self) -> GpuMask {
        (0..MAX_GPUS).filter(|&i| self.milli[i] == WHOLE_GPU).fold(0, |mask, i| mask | 1 << i)
    }

    /// The shared device of which the least is left that is enough.
    fn beside(&self, request: &Request) -> Option<(u16, usize)> {
        let able = (0..MAX_GPUS).map(|i| (self.milli[i], i)).filter(|&(left, _)| left < WHOLE_GPU);
        able.filter(|&(left, _)| request.is_share() && left >= request.gpu_milli).min()
    }

    fn has_amounts(&self, request: &Request) -> bool {
        let amount = |free: u32, wanted: u32| free == UNLIMITED || free >= wanted;
        amount(self.cpu, request.cpu_milli) && amount(self.memory, request.memory_mib)
    }

    fn give(&mut self, request: &Request, gpus: GpuMask) {
        gpu_indices(gpus).for_each(|gpu| self.milli[usize::from(gpu)] -= request.gpu_milli);
        self.cpu -= if self.cpu == UNLIMITED { 0 } else { request.cpu_milli };
        self.memory -= if self.memory == UNLIMITED { 0 } else { request.memory_mib };
    }
}

/// Whether an instance goes on this node, everything considered; takes its share.
fn take(left: &mut Left, request: &Request) -> bool {
    let gpus = left.beside(request).map(|(_, gpu)| 1 << gpu).or_else(|| lowest_gpus(left.free(), request.gpus));
    match gpus {
        Some(gpus) if left.has_amounts(request) => {
            left.give(request, gpus);
            true
        }
        _ => false,
    }
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
        let mut left: Vec<Left> = nodes.iter().map(|&id| left(cluster, id)).collect();
        packs(&mut left, request, instances)
    };
    scopes(cluster, request).into_iter().any(fits)
}

/// The reason by its definition, for a job that may or may not be blocked.
fn reason(cluster: &Cluster, request: &Request, instances: u32) -> Why {
    let schedulable = || cluster.node_ids().filter(|&id| cluster.node(id).schedulable());
    let free: u32 = schedulable().flat_map(|id| cluster.gpu_milli_left(id)).map(u32::from).sum();
    let mut gpus_alone: Vec<Left> =
        schedulable().map(|id| Left { cpu: UNLIMITED, memory: UNLIMITED, ..left(cluster, id) }).collect();
    let bare = Request { gpus: request.gpus, gpu_milli: request.gpu_milli, ..Request::default() };
    if request.gpus > 0 && free < instances * u32::from(request.gpus) * u32::from(request.gpu_milli) {
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
    let mut nodes: Vec<Left> = before.node_ids().map(|id| left(before, id)).collect();
    let mut busy: Vec<GpuMask> = before.nodes().iter().map(|node| node.devices_not_free()).collect();
    assert_eq!(decision.placements.len() as u32, before.job(decision.job).instances());
    for &(node, gpus) in &decision.placements {
        let left = &mut nodes[node.index()];
        assert!(allowed(before, node, request) && left.has_amounts(request));
        assert_eq!(gpus.count_ones(), u32::from(request.gpus));
        assert!(gpu_indices(gpus).all(|gpu| left.milli[usize::from(gpu)] >= request.gpu_milli));
        left.give(request, gpus);
        if request.is_share() {
            continue;
        }
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
fn naive(cluster: &Cluster, job: JobId, policy: Policy) -> Option<Vec<(NodeId, GpuMask)>> {
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
        let mut left: Vec<Left> = nodes.iter().map(|&id| left(cluster, id)).collect();
        packs(&mut left, request, instances)
    });
    let is_used = |number: usize| -> bool {
        let unused = |id: NodeId| cluster.node(id).schedulable() && cluster.node(id).busy() == 0;
        let mut here = cluster.node_ids().filter(|&id| match request.within {
            None => true,
            Some(Within::Rack) => cluster.node(id).rack().is_some_and(|rack| rack.index() == number),
            Some(Within::Domain) => cluster.node(id).domain().is_some_and(|domain| domain.index() == number),
        });
        policy != Policy::BestFit || here.any(|id| !unused(id))
    };
    // Best-fit opens an intact region last.
    let (_, nodes) = able.min_by_key(|&(number, _)| (!is_used(number), key(free_of(number), number)))?;
    let mut lefts: Vec<(NodeId, Left)> = nodes.iter().map(|&id| (id, left(cluster, id))).collect();
    let mut chosen = Vec::new();
    for _ in 0..instances {
        // A share goes beside others wherever it can, whatever the policy.
        let able = || lefts.iter().filter(|(_, left)| left.has_amounts(request));
        let beside = able().filter_map(|&(id, left)| left.beside(request).map(|(rest, gpu)| (rest, id, gpu))).min();
        let (id, gpus) = match beside {
            Some((_, id, gpu)) => (id, 1 << gpu),
            None => {
                let open =
                    able().filter_map(|&(id, left)| Some((id, left.free(), lowest_gpus(left.free(), request.gpus)?)));
                let best = open.min_by_key(|&(id, free, _)| key(u64::from(free.count_ones()), id.index()))?;
                (best.0, best.2)
            }
        };
        let (_, left) = lefts.iter_mut().find(|(other, _)| *other == id)?;
        left.give(request, gpus);
        chosen.push((id, gpus));
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
        for policy in static_policies() {
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
            let &Request { gpus, gpu_milli, cpu_milli, memory_mib, .. } = request;
            let spec = JobSpec { name: straight.job_name(job), gpus, gpu_milli, cpu_milli, memory_mib, ..JobSpec::default() };
            builder.add_running(&spec, &seats).unwrap();
        }
        let mut permuted = builder.finish().unwrap();
        let jobs = [register(&mut straight, "gang", &plan), register(&mut permuted, "gang", &plan)];
        let (straight, permuted) = (State::new(straight), State::new(permuted));
        for policy in static_policies() {
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
            match entry {
                QueueEntry::Submit(_) => {
                    prop_assert_eq!(expected.is_some(), decision.status == Status::Placed);
                    prop_assert_eq!(&decision.placements, &expected.unwrap_or_default());
                }
                QueueEntry::Remove(job) => {
                    let expected = if before.job(job).runs() { Status::Removed } else { Status::Absent };
                    prop_assert_eq!(decision.status, expected);
                    prop_assert!(!cluster.job(job).runs());
                }
                QueueEntry::SubmitGroups(_) | QueueEntry::RemoveGroups(_) => prop_assert!(false, "not made here"),
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
