//! Free GPUs that nothing can use, and what keeps them from use.
//!
//! Every free GPU is counted once, under the first of these that is true; what is left is usable:
//!
//! 1. *cordon*: its node is unschedulable;
//! 2. *model*: no request allows the node's model;
//! 3. *cpu*, 4. *memory*: what is free of it on the node is too little for that many GPUs, even at the least amount a GPU
//!    that any request asks that allows the model;
//! 5. *shape*: no mix of the instance sizes asked fills the GPUs that 1 to 4 leave.
//!
//! The requests are those of the jobs that wait, or where nobody says which wait, those of what runs; without any only
//! cordons strand. A lower bound: the cheapest request may be of a size that does not fit, and real jobs ask more.

use crate::cluster::{Cluster, JobId, MAX_GPUS, Node, NodeId, PoolId, Request, RequestId, UNLIMITED};

/// Free GPUs under one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// How many.
    pub gpus: u64,
    /// On how many nodes.
    pub nodes: u64,
}

impl Part {
    fn count(&mut self, gpus: u64) {
        self.gpus += gpus;
        self.nodes += u64::from(gpus > 0);
    }

    fn add(&mut self, other: Self) {
        self.gpus += other.gpus;
        self.nodes += other.nodes;
    }
}

/// The free GPUs of some nodes, each under one cause or usable; the order of the causes is that of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stranded {
    /// On unschedulable nodes.
    pub cordon: Part,
    /// On nodes whose model no request allows.
    pub model: Part,
    /// More than the free CPU of the node is enough for.
    pub cpu: Part,
    /// More than the free memory of the node is enough for.
    pub memory: Part,
    /// What no mix of the instance sizes fills.
    pub shape: Part,
    /// The others.
    pub usable: Part,
}

impl Stranded {
    /// All free GPUs but the usable ones.
    pub fn gpus(&self) -> u64 {
        [self.cordon, self.model, self.cpu, self.memory, self.shape].iter().map(|part| part.gpus).sum()
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.cordon.add(other.cordon);
        self.model.add(other.model);
        self.cpu.add(other.cpu);
        self.memory.add(other.memory);
        self.shape.add(other.shape);
        self.usable.add(other.usable);
    }

    /// Counts the free GPUs of a node. O(1).
    fn count(&mut self, node: &Node, asked: &Asked) {
        let free = u64::from(node.free_gpus());
        if !node.schedulable() {
            return self.cordon.count(free);
        }
        if !asked.allowed {
            return self.model.count(free);
        }
        let by_cpu = free.min(gpus_for(node.cpu_free(), asked.least_cpu));
        let by_memory = by_cpu.min(gpus_for(node.memory_free(), asked.least_memory));
        let usable = asked.most_below(by_memory);
        self.cpu.count(free - by_cpu);
        self.memory.count(by_cpu - by_memory);
        self.shape.count(by_memory - usable);
        self.usable.count(usable);
    }
}

/// Counts the free GPUs of a pool. O(its nodes + requests).
pub(super) fn stranded(cluster: &Cluster, nodes: &[NodeId], pool: PoolId, asked: &[RequestId]) -> Stranded {
    let asked = Asked::of(cluster, pool, asked);
    let mut all = Stranded::default();
    nodes.iter().for_each(|&node| all.count(cluster.node(node), &asked));
    all
}

/// What the requests for a pool have in common.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Whether any allows the model.
    allowed: bool,
    /// The least amounts a GPU, as amount and GPUs; `None` of no request.
    least_cpu: Option<(u32, u8)>,
    least_memory: Option<(u32, u8)>,
    /// Bit g: some mix of sizes is g GPUs.
    sums: u32,
}

impl Asked {
    fn of(cluster: &Cluster, pool: PoolId, asked: &[RequestId]) -> Self {
        if asked.is_empty() {
            return Self { allowed: true, least_cpu: None, least_memory: None, sums: u32::MAX };
        }
        let allow: Vec<&Request> = asked
            .iter()
            .map(|&request| cluster.request(request))
            .filter(|request| cluster.pool_admits(pool, request))
            .collect();
        let mut sums = 1u32;
        for request in &allow {
            for sum in 0..=MAX_GPUS as u32 - u32::from(request.gpus) {
                sums |= (sums >> sum & 1) << (sum + u32::from(request.gpus));
            }
        }
        Self {
            allowed: !allow.is_empty(),
            least_cpu: least_ratio(allow.iter().map(|request| (request.cpu_milli, request.gpus))),
            least_memory: least_ratio(allow.iter().map(|request| (request.memory_mib, request.gpus))),
            sums,
        }
    }

    /// The most GPUs of at most so many that some mix of sizes fills.
    fn most_below(&self, gpus: u64) -> u64 {
        (0..=gpus).rev().find(|&gpus| self.sums >> gpus & 1 == 1).unwrap_or(0)
    }
}

/// The requests for GPUs of the jobs that wait, or of those that run if it is not known who waits; each once, ascending.
pub(super) fn asked(cluster: &Cluster, waiting: Option<&[JobId]>) -> Vec<RequestId> {
    let mut is_asked = vec![false; cluster.requests().len()];
    match waiting {
        Some(jobs) => jobs.iter().for_each(|&job| is_asked[cluster.job(job).request().index()] = true),
        None => {
            let running = cluster.jobs().iter().filter(|job| job.runs());
            running.for_each(|job| is_asked[job.request().index()] = true);
        }
    }
    let requests = (0..is_asked.len() as u32).map(RequestId);
    requests.filter(|&id| is_asked[id.index()] && cluster.request(id).gpus > 0).collect()
}

/// The least amount a GPU, as amount and GPUs; `None` of nothing.
fn least_ratio(requests: impl Iterator<Item = (u32, u8)>) -> Option<(u32, u8)> {
    requests.min_by(|a, b| (u64::from(a.0) * u64::from(b.1)).cmp(&(u64::from(b.0) * u64::from(a.1))))
}

/// How many GPUs an amount is enough for. An unlimited amount is enough for any number.
fn gpus_for(amount: u32, least: Option<(u32, u8)>) -> u64 {
    match least {
        Some((each, gpus)) if each > 0 && amount != UNLIMITED => u64::from(amount) * u64::from(gpus) / u64::from(each),
        _ => u64::MAX,
    }
}
