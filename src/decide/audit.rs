//! The audit of a cluster: how fragmented it is, how much of that is avoidable, and what that costs.

use super::findings::findings;
use crate::anchor::{Kind, Outside, PoolState, Shape, State};
use crate::cluster::{Cluster, MAX_GPUS, Node, NodeId, PoolId};
use crate::workload::Demand;

/// The Workload Composition Condition of a pool, or of all pools together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WccFigures {
    /// Whether it holds; of all pools: whether it holds in each.
    pub holds: bool,
    /// 1-GPU instances beyond those that the slots need; of all pools: the least.
    pub slack: i64,
}

/// What is counted, of a pool or of the whole cluster. Unschedulable nodes count, but for the instances that fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Nodes.
    pub nodes: u64,
    /// GPUs that work.
    pub gpus: u64,
    /// GPUs that instances hold.
    pub busy_gpus: u64,
    /// Nodes that hold no GPU instance.
    pub empty: u64,
    /// Nodes with some but not all GPUs busy.
    pub partial: u64,
    /// Nodes with no free GPU; those without any working GPU are among them.
    pub full: u64,
    /// Φ*, the least number of partial nodes over all packings of what runs; of all pools: the sum.
    pub phi_star: u64,
    /// `None` at a capacity that is no power of two; of all pools: where any is.
    pub wcc: Option<WccFigures>,
    /// The nodes outside Σ, ascending.
    pub outside_abs: Vec<(NodeId, Outside)>,
    /// For each size the most instances that fit on schedulable nodes now, GPUs alone; sizes ascending. The sizes are
    /// 1 to the largest node, and 1, 2, 4 and 8 in any case.
    pub max_gang: Vec<(u8, u64)>,
    /// The same after the best repacking inside each pool, for each size separately; pins are ignored, and what runs on
    /// unschedulable nodes stays there.
    pub max_gang_ideal: Vec<(u8, u64)>,
}

impl Figures {
    /// GPUs that work and that nobody holds.
    pub fn free_gpus(&self) -> u64 {
        self.gpus - self.busy_gpus
    }

    /// N·SIF: avoidable partial nodes.
    pub fn n_sif(&self) -> i64 {
        self.partial as i64 - self.phi_star as i64
    }

    /// F: the share of partial nodes; 0 without nodes.
    pub fn f(&self) -> f64 {
        quotient(self.partial as f64, self.nodes)
    }

    /// SIF: the share of avoidable partial nodes; 0 without nodes.
    pub fn sif(&self) -> f64 {
        quotient(self.n_sif() as f64, self.nodes)
    }

    fn add(&mut self, pool: &Figures) {
        self.nodes += pool.nodes;
        self.gpus += pool.gpus;
        self.busy_gpus += pool.busy_gpus;
        self.empty += pool.empty;
        self.partial += pool.partial;
        self.full += pool.full;
        self.phi_star += pool.phi_star;
        self.outside_abs.extend_from_slice(&pool.outside_abs);
        for (mine, theirs) in [(&mut self.max_gang, &pool.max_gang), (&mut self.max_gang_ideal, &pool.max_gang_ideal)] {
            for (size, n) in theirs {
                if let Some((_, sum)) = mine.iter_mut().find(|(mine, _)| mine == size) {
                    *sum += n;
                }
            }
        }
    }
}

fn quotient(part: f64, nodes: u64) -> f64 {
    if nodes == 0 { 0.0 } else { part / nodes as f64 }
}

/// The figures of one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolFigures {
    /// Which.
    pub pool: PoolId,
    /// What is counted.
    pub figures: Figures,
}

/// What an audit says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// All pools together.
    pub total: Figures,
    /// Each pool, in file order.
    pub pools: Vec<PoolFigures>,
    /// Sentences, the most important first.
    pub findings: Vec<String>,
}

/// Audits a cluster. It is only changed in that its pools remember their Φ*.
pub fn audit(state: &mut State) -> Audit {
    let pools: Vec<PoolFigures> = (0..state.pools().len() as u32)
        .map(PoolId)
        .map(|pool| PoolFigures { pool, figures: pool_figures(state, pool) })
        .collect();
    let largest = state.pools().iter().map(PoolState::capacity).max().unwrap_or(0);
    let zeros: Vec<(u8, u64)> = sizes(largest).map(|size| (size, 0)).collect();
    let mut total = Figures { max_gang: zeros.clone(), max_gang_ideal: zeros, ..Figures::default() };
    for pool in &pools {
        total.add(&pool.figures);
    }
    total.outside_abs.sort_unstable();
    total.wcc = pools.iter().map(|pool| pool.figures.wcc).reduce(both).flatten();
    let findings = findings(state.cluster(), &total);
    Audit { total, pools, findings }
}

/// The condition of two pools together. The other pools of a cluster say nothing of one for which it has no meaning.
fn both(one: Option<WccFigures>, other: Option<WccFigures>) -> Option<WccFigures> {
    let (one, other) = (one?, other?);
    Some(WccFigures { holds: one.holds && other.holds, slack: one.slack.min(other.slack) })
}

/// The sizes for which instances are counted.
fn sizes(largest: u8) -> impl Iterator<Item = u8> {
    (1..=MAX_GPUS as u8).filter(move |&size| size <= largest || [1, 2, 4, 8].contains(&size))
}

fn pool_figures(state: &mut State, id: PoolId) -> Figures {
    let mut figures = Figures { phi_star: state.pool_mut(id).fragmentation_mut().phi_star(), ..Figures::default() };
    let pool = state.pool(id);
    let mut schedulable = Demand::new();
    for &node_id in pool.nodes() {
        let node = state.cluster().node(node_id);
        count(&mut figures, node_id, node);
        if node.schedulable() {
            for (size, &n) in node.composition().counts().iter().enumerate() {
                schedulable.add(size as u8, u64::from(n));
            }
        }
    }
    figures.wcc = pool.fragmentation().wcc().map(|wcc| WccFigures { holds: wcc.holds, slack: wcc.slack });
    let sizes: Vec<u8> = sizes(pool.capacity()).collect();
    figures.max_gang = sizes.iter().map(|&size| (size, pool.max_instances(size))).collect();
    let nodes = u64::from(pool.n_schedulable());
    let solver = state.pool_mut(id).fragmentation_mut().solver();
    figures.max_gang_ideal = sizes.iter().map(|&size| (size, solver.max_more(&schedulable, size, nodes))).collect();
    figures
}

fn count(figures: &mut Figures, id: NodeId, node: &Node) {
    figures.nodes += 1;
    figures.gpus += u64::from(node.capacity());
    figures.busy_gpus += u64::from(node.composition().busy());
    match (node.free_gpus(), node.composition().busy()) {
        (0, _) => figures.full += 1,
        (_, 0) => figures.empty += 1,
        _ => figures.partial += 1,
    }
    if let Kind::Outside(reason) = Shape::of(node.capacity(), node.composition()).kind {
        figures.outside_abs.push((id, reason));
    }
}

/// Free GPUs that CPU or memory keeps from use, and the number of nodes that they are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stranded {
    pub(super) gpus: u64,
    pub(super) nodes: u64,
}

/// Free GPUs on schedulable nodes that would stay free even if all that came asked the least CPU and memory a GPU that
/// any running job asks. A lower bound: real jobs ask more. O(nodes + jobs).
pub(super) fn stranded(cluster: &Cluster) -> Stranded {
    let running = || cluster.job_ids().filter(|&job| cluster.job(job).runs());
    let requests = || running().map(|job| cluster.request_of(job)).filter(|request| request.gpus > 0);
    let least_cpu = least_ratio(requests().map(|request| (request.cpu_milli, request.gpus)));
    let least_memory = least_ratio(requests().map(|request| (request.memory_mib, request.gpus)));
    let mut all = Stranded::default();
    for node in cluster.nodes().iter().filter(|node| node.schedulable()) {
        let free = u64::from(node.free_gpus());
        let usable = free.min(gpus_for(node.cpu_free(), least_cpu)).min(gpus_for(node.memory_free(), least_memory));
        all.gpus += free - usable;
        all.nodes += u64::from(usable < free);
    }
    all
}

/// The least amount a GPU, as amount and GPUs; `None` of nothing.
fn least_ratio(requests: impl Iterator<Item = (u32, u8)>) -> Option<(u32, u8)> {
    requests.min_by(|a, b| (u64::from(a.0) * u64::from(b.1)).cmp(&(u64::from(b.0) * u64::from(a.1))))
}

/// How many GPUs an amount is enough for. An unlimited amount is enough for any number.
fn gpus_for(amount: u32, least: Option<(u32, u8)>) -> u64 {
    match least {
        Some((each, gpus)) if each > 0 && amount != crate::cluster::UNLIMITED => {
            u64::from(amount) * u64::from(gpus) / u64::from(each)
        }
        _ => u64::MAX,
    }
}
