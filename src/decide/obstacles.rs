//! Why a job that waits does not fit: what each node lacks, what of the request stands in the way, and where it fits
//! nearly. The job alone, on the cluster as it is, and whatever a policy may think of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::need::Need;
use super::why::{Why, why};
use crate::anchor::State;
use crate::cluster::{Cluster, JobId, Node, NodeId, Request, WHOLE_GPU, Within};

/// Names that are kept of each class.
const FIRST: usize = 5;

/// What keeps an instance off a node; the first that is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Obstacle {
    /// Nothing is placed there.
    Unschedulable,
    /// Its model is none that the job allows.
    WrongModel,
    /// Not even all its working GPUs would do.
    TooSmall,
    /// It lies in no domain or rack, and the job must lie within one.
    Topology,
    /// Too few GPUs are free, or too little of each device.
    GpuBusy,
    /// Too little CPU is left.
    NoCpu,
    /// Too little memory is left.
    NoMemory,
}

impl Obstacle {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unschedulable => "unschedulable",
            Self::WrongModel => "wrong-model",
            Self::TooSmall => "too-small",
            Self::Topology => "topology",
            Self::GpuBusy => "gpu-busy",
            Self::NoCpu => "no-cpu",
            Self::NoMemory => "no-memory",
        }
    }
}

/// Nodes that are alike to the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeClass {
    /// What keeps an instance off each of them; `None` if one fits.
    pub obstacle: Option<Obstacle>,
    /// Where the GPUs are the obstacle or none is: the thousandths that an instance could have of each node. For whole
    /// GPUs of all that are free, for a share of the device with the most left.
    pub has_milli: Option<u32>,
    /// How many they are.
    pub nodes: u64,
    /// Instances that fit on them, all together; `u32::MAX` a node where nothing limits them.
    pub room: u64,
    /// The first few of them.
    pub first: Vec<NodeId>,
}

/// Something of a request, or of the nodes, that may be in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Constraint {
    /// The CPU that is asked.
    Cpu,
    /// The memory that is asked.
    Memory,
    /// The models that are allowed.
    Model,
    /// That all instances must lie within one domain or rack.
    Within(Within),
    /// That some nodes are unschedulable.
    Cordon,
}

impl Constraint {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Model => "model",
            Self::Within(Within::Domain) => "domain",
            Self::Within(Within::Rack) => "rack",
            Self::Cordon => "cordon",
        }
    }
}

/// A domain or rack, and how much of a job that must lie within one fits there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionFit {
    /// Its number.
    pub region: u32,
    /// Its nodes.
    pub nodes: u64,
    /// Instances that fit, at most those of the job.
    pub fit: u64,
    /// Free GPUs on its schedulable nodes.
    pub free_gpus: u64,
}

/// The placement that lacks the fewest instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The domain or rack that it lies within, if the job must lie within one.
    pub region: Option<u32>,
    /// Instances that fit, at most those of the job.
    pub fit: u64,
    /// Where, and how many on each node; nodes with the fewest free GPUs first.
    pub place: Vec<(NodeId, u64)>,
}

/// Why a job that waits does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacles {
    /// The reason in a word; `None` if it fits. Never [`Why::Space`].
    pub why: Option<Why>,
    /// All nodes, each in one class, by obstacle; those that fit come first.
    pub classes: Vec<NodeClass>,
    /// The fewest constraints without which it would fit, nothing moved; the first such set in the order of the
    /// constraints. Empty if it fits, `None` if it would not even without all of them.
    pub binding: Option<Vec<Constraint>>,
    /// For a job that must lie within a domain or rack: each, those where the most fits first, then those with the
    /// fewest free GPUs.
    pub regions: Vec<RegionFit>,
    /// Where it fits nearly, or fits.
    pub nearest: Nearest,
}

/// Looks at a job that does not run. O(nodes), some ten times.
pub fn obstacles(state: &State, job: JobId) -> Obstacles {
    let cluster = state.cluster();
    let (request, instances) = (cluster.request_of(job), cluster.job(job).instances());
    let need = Need::new(cluster, request);
    let regions = request.within.map_or(Vec::new(), |within| region_fits(state, &need, within, instances));
    Obstacles {
        why: Some(why(state, &need, instances)).filter(|&why| why != Why::Space),
        classes: classes(cluster, request, &need),
        binding: binding(state, request, instances),
        nearest: nearest(state, &need, instances, regions.first().map(|best| best.region)),
        regions,
    }
}

/// The decisive obstacle of each node, as classes.
fn classes(cluster: &Cluster, request: &Request, need: &Need) -> Vec<NodeClass> {
    let mut classes: BTreeMap<(Option<Obstacle>, Option<Reverse<u32>>), NodeClass> = BTreeMap::new();
    for id in cluster.node_ids() {
        let (room, node) = (need.room(cluster, id), cluster.node(id));
        let has_region = request.within.is_none_or(|within| node.region(within).is_some());
        let obstacle = if room > 0 && has_region { None } else { Some(obstacle(cluster, request, id, has_region)) };
        let tells = matches!(obstacle, None | Some(Obstacle::GpuBusy)) && request.gpus > 0;
        let has_milli = tells.then(|| has_milli(cluster, request, id));
        let class = classes.entry((obstacle, has_milli.map(Reverse))).or_insert_with(|| NodeClass {
            obstacle,
            has_milli,
            nodes: 0,
            room: 0,
            first: Vec::new(),
        });
        class.nodes += 1;
        class.room += if obstacle.is_none() { room } else { 0 };
        if class.first.len() < FIRST {
            class.first.push(id);
        }
    }
    classes.into_values().collect()
}

/// What keeps an instance off a node on which none fits.
fn obstacle(cluster: &Cluster, request: &Request, id: NodeId, has_region: bool) -> Obstacle {
    let node = cluster.node(id);
    if !node.schedulable() {
        Obstacle::Unschedulable
    } else if !cluster.pool_admits(node.pool(), request) {
        Obstacle::WrongModel
    } else if node.capacity() < request.gpus {
        Obstacle::TooSmall
    } else if !has_region {
        Obstacle::Topology
    } else if has_milli(cluster, request, id) < u32::from(request.gpus) * u32::from(request.gpu_milli) {
        Obstacle::GpuBusy
    } else if !node.has_cpu_and_memory(request.cpu_milli, 0) {
        Obstacle::NoCpu
    } else {
        Obstacle::NoMemory
    }
}

/// The thousandths that an instance could have of a node.
fn has_milli(cluster: &Cluster, request: &Request, id: NodeId) -> u32 {
    let node: &Node = cluster.node(id);
    if request.is_share() && node.free_gpus() == 0 {
        return cluster.shared_left(id).map(|(_, left)| u32::from(left)).max().unwrap_or(0);
    }
    let gpus = if request.is_share() { 1 } else { node.free_gpus() };
    u32::from(gpus) * u32::from(WHOLE_GPU)
}

/// How much of a job fits in each region.
fn region_fits(state: &State, need: &Need, within: Within, instances: u32) -> Vec<RegionFit> {
    let cluster = state.cluster();
    let one = |(region, nodes): (u32, &Vec<NodeId>)| {
        let room: u64 = nodes.iter().map(|&id| need.room(cluster, id)).sum();
        let open = nodes.iter().map(|&id| cluster.node(id)).filter(|node| node.schedulable());
        RegionFit {
            region,
            nodes: nodes.len() as u64,
            fit: room.min(u64::from(instances)),
            free_gpus: open.map(|node| u64::from(node.free_gpus())).sum(),
        }
    };
    let mut fits: Vec<RegionFit> = (0u32..).zip(state.regions(within)).map(one).collect();
    fits.sort_by_key(|one| (Reverse(one.fit), one.free_gpus, one.region));
    fits
}

/// As many instances as fit, in one region if there must be one.
fn nearest(state: &State, need: &Need, instances: u32, region: Option<u32>) -> Nearest {
    let cluster = state.cluster();
    let mut nodes: Vec<NodeId> = match (need.within, region) {
        (None, _) => cluster.node_ids().collect(),
        (Some(within), Some(region)) => state.regions(within)[region as usize].clone(),
        (Some(_), None) => Vec::new(),
    };
    nodes.retain(|&id| need.room(cluster, id) > 0);
    nodes.sort_by_key(|&id| (cluster.node(id).free_gpus(), id));
    let mut left = u64::from(instances);
    let mut place = Vec::new();
    for id in nodes {
        let here = need.room(cluster, id).min(left);
        if here == 0 {
            break;
        }
        place.push((id, here));
        left -= here;
    }
    Nearest { region, fit: u64::from(instances) - left, place }
}

/// The smallest set of constraints without which a job fits as the cluster is.
fn binding(state: &State, request: &Request, instances: u32) -> Option<Vec<Constraint>> {
    let all = [
        (request.cpu_milli > 0).then_some(Constraint::Cpu),
        (request.memory_mib > 0).then_some(Constraint::Memory),
        request.models.as_ref().map(|_| Constraint::Model),
        request.within.map(Constraint::Within),
        state.cluster().nodes().iter().any(|node| !node.schedulable()).then_some(Constraint::Cordon),
    ];
    let all: Vec<Constraint> = all.into_iter().flatten().collect();
    let mut sets: Vec<u32> = (0..1 << all.len()).collect();
    // Of equally many the first in the order of the constraints: low bits first.
    sets.sort_by_key(|set| (set.count_ones(), Reverse(set.reverse_bits())));
    let chosen = |set: u32| (0..).zip(&all).filter(move |(at, _)| set >> at & 1 == 1).map(|(_, &one)| one);
    let set = sets.into_iter().find(|&set| fits_without(state, request, instances, chosen(set)))?;
    Some(chosen(set).collect())
}

fn fits_without(state: &State, request: &Request, instances: u32, dropped: impl Iterator<Item = Constraint>) -> bool {
    let mut request = request.clone();
    let mut cordons = true;
    for constraint in dropped {
        match constraint {
            Constraint::Cpu => request.cpu_milli = 0,
            Constraint::Memory => request.memory_mib = 0,
            Constraint::Model => request.models = None,
            Constraint::Within(_) => request.within = None,
            Constraint::Cordon => cordons = false,
        }
    }
    let cluster = state.cluster();
    let need = if cordons { Need::new(cluster, &request) } else { Need::new(cluster, &request).despite_cordons() };
    match request.within {
        None => need.fit_on(cluster, cluster.node_ids(), instances.into()),
        Some(within) => {
            let mut regions = state.regions(within).iter();
            regions.any(|nodes| need.fit_on(cluster, nodes.iter().copied(), instances.into()))
        }
    }
}
