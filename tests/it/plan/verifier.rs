//! An independent check of a plan: its steps, one by one, on plain books that know nothing of the planner.

use std::collections::HashMap;

use slotwise::cluster::{Cluster, GpuMask, InstanceId, JobId, NodeId, Within};
use slotwise::plan::{Goal, Mode, Plan};

/// What a node has and who holds its devices.
struct Books<'a> {
    cluster: &'a Cluster,
    held: HashMap<InstanceId, (NodeId, GpuMask)>,
    busy: Vec<GpuMask>,
    cpu: Vec<u64>,
    memory: Vec<u64>,
}

impl<'a> Books<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        let n = cluster.nodes().len();
        let mut books = Self { cluster, held: HashMap::new(), busy: vec![0; n], cpu: vec![0; n], memory: vec![0; n] };
        for job in cluster.job_ids() {
            for instance in cluster.instances_of(job) {
                let seat = cluster.instance(instance);
                if let Some(node) = seat.node() {
                    books.hold(job, node, seat.gpus(), false);
                    books.held.insert(instance, (node, seat.gpus()));
                }
            }
        }
        books
    }

    fn hold(&mut self, job: JobId, node: NodeId, gpus: GpuMask, check: bool) {
        let (request, at, has) = (self.cluster.request_of(job), node.index(), self.cluster.node(node));
        let name = self.cluster.job_name(job);
        assert_eq!(self.busy[at] & gpus, 0, "{name}: a device is held twice");
        assert_eq!(gpus & !has.usable(), 0, "{name}: no such device");
        self.busy[at] |= gpus;
        self.cpu[at] += u64::from(request.cpu_milli);
        self.memory[at] += u64::from(request.memory_mib);
        if !check {
            return;
        }
        assert_eq!(gpus.count_ones(), u32::from(request.gpus), "{name}: a wrong number of devices");
        assert!(self.cluster.admits(node, request), "{name}: {} may not host it", self.cluster.node_name(node));
        for (asks, used, limit) in [
            (request.cpu_milli, self.cpu[at], has.cpu_milli()),
            (request.memory_mib, self.memory[at], has.memory_mib()),
        ] {
            assert!(asks == 0 || limit == u32::MAX || used <= u64::from(limit), "{name}: too much CPU or memory");
        }
    }

    fn free(&mut self, instance: InstanceId) -> NodeId {
        let (node, gpus) = self.held.remove(&instance).expect("it runs");
        let request = self.cluster.request_of(self.cluster.instance(instance).job());
        self.busy[node.index()] &= !gpus;
        self.cpu[node.index()] -= u64::from(request.cpu_milli);
        self.memory[node.index()] -= u64::from(request.memory_mib);
        node
    }
}

fn region(cluster: &Cluster, node: NodeId, within: Within) -> Option<u32> {
    match within {
        Within::Domain => cluster.node(node).domain().map(|domain| domain.0),
        Within::Rack => cluster.node(node).rack().map(|rack| rack.0),
    }
}

/// Panics unless the steps of a feasible plan can be carried out in their mode and serve their goal.
pub(crate) fn check(cluster: &Cluster, goal: Goal, mode: Mode, movable: &[bool], plan: &Plan) {
    let mut books = Books::new(cluster);
    if mode == Mode::StopFirst {
        for step in &plan.steps {
            assert_eq!(books.free(step.instance), step.from);
        }
    }
    for step in &plan.steps {
        assert_eq!(cluster.instance(step.instance).job(), step.job);
        assert!(movable[step.job.index()], "{} was moved", cluster.job_name(step.job));
        assert_ne!(step.from, step.to);
        if mode == Mode::Hitless {
            assert_eq!(books.free(step.instance), step.from);
        }
        books.hold(step.job, step.to, step.gpus, true);
        books.held.insert(step.instance, (step.to, step.gpus));
    }
    // A gang that was in one region is in one region.
    for job in cluster.job_ids().filter(|&job| cluster.job(job).runs()) {
        let Some(within) = cluster.request_of(job).within else { continue };
        let one = |nodes: Vec<NodeId>| {
            let first = region(cluster, nodes[0], within);
            first.is_some() && nodes.iter().all(|&node| region(cluster, node, within) == first)
        };
        let instances = || cluster.whole_job(job).flat_map(|group| cluster.instances_of(group));
        let before = instances().filter_map(|instance| cluster.instance(instance).node()).collect();
        let after = instances().map(|instance| books.held[&instance].0).collect();
        assert!(!one(before) || one(after), "{} was torn apart", cluster.job_name(job));
    }
    match goal {
        Goal::Job(job) => {
            assert_eq!(plan.place.len(), cluster.job(job).instances() as usize);
            for &(node, gpus) in &plan.place {
                books.hold(job, node, gpus, true);
            }
            if let Some(within) = cluster.request_of(job).within {
                let first = region(cluster, plan.place[0].0, within);
                assert!(first.is_some());
                assert!(plan.place.iter().all(|&(node, _)| region(cluster, node, within) == first));
            }
        }
        Goal::LeastPartial => assert!(plan.place.is_empty()),
        Goal::FreeNodes(_) | Goal::FreeRegion(_) => {
            let mut nodes: Vec<NodeId> = plan.place.iter().map(|&(node, _)| node).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let whole = |within| {
                let regions = cluster
                    .node_ids()
                    .filter(|&node| region(cluster, node, within) == region(cluster, nodes[0], within));
                regions.count()
            };
            let count = match goal {
                Goal::FreeNodes(count) => count as usize,
                Goal::FreeRegion(within) => whole(within),
                Goal::Job(_) | Goal::LeastPartial => 0,
            };
            assert_eq!(nodes.len(), count);
            for node in nodes {
                assert!(cluster.node(node).schedulable() && books.busy[node.index()] == 0);
            }
        }
    }
}
