//! What is counted of the nodes of a pool, and of all pools together.

use super::stranded::Stranded;
use crate::anchor::{Kind, Outside, Shape, State};
use crate::cluster::{MAX_GPUS, Node, NodeId, PoolId};
use crate::workload::Demand;

/// The Workload Composition Condition of a pool, or of all pools together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WccFigures {
    /// Whether it holds; of all pools: whether it holds in each.
    pub holds: bool,
    /// 1-GPU instances beyond those that the slots need; of all pools: the least.
    pub slack: i64,
}

/// Nodes with equally many free GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodesByFree {
    /// How many they are.
    pub nodes: u64,
    /// How many of them are unschedulable.
    pub unschedulable: u64,
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
    /// The nodes by their free GPUs: entry f has those with f, up to the largest node.
    pub by_free: Vec<NodesByFree>,
    /// The free GPUs, each either usable or stranded by one cause.
    pub stranded: Stranded,
    /// For each size the most instances that fit on schedulable nodes now, GPUs alone; sizes ascending. The sizes are
    /// 1 to the largest node, and 1, 2, 4 and 8 in any case.
    pub max_gang: Vec<(u8, u64)>,
    /// The same once Compact has run to its end. Pins, CPU, memory and topology of what runs are respected.
    pub max_gang_compacted: Vec<(u8, u64)>,
    /// The same after the best repacking inside each pool, for each size separately; pins are ignored, and what runs on
    /// unschedulable nodes stays there.
    pub max_gang_ideal: Vec<(u8, u64)>,
}

impl Figures {
    /// All of them 0, for instances of up to so many GPUs.
    pub(super) fn zeros(largest: u8) -> Self {
        let zeros: Vec<(u8, u64)> = sizes(largest).map(|size| (size, 0)).collect();
        Self {
            by_free: vec![NodesByFree::default(); usize::from(largest) + 1],
            max_gang: zeros.clone(),
            max_gang_compacted: zeros.clone(),
            max_gang_ideal: zeros,
            ..Self::default()
        }
    }

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

    /// F*: the share of partial nodes that no packing of what runs avoids; 0 without nodes.
    pub fn f_star(&self) -> f64 {
        quotient(self.phi_star as f64, self.nodes)
    }

    /// SIF: the share of avoidable partial nodes; 0 without nodes.
    pub fn sif(&self) -> f64 {
        quotient(self.n_sif() as f64, self.nodes)
    }

    /// Adds what is counted of a pool.
    pub(super) fn add(&mut self, pool: &Figures) {
        self.nodes += pool.nodes;
        self.gpus += pool.gpus;
        self.busy_gpus += pool.busy_gpus;
        self.empty += pool.empty;
        self.partial += pool.partial;
        self.full += pool.full;
        self.phi_star += pool.phi_star;
        self.outside_abs.extend_from_slice(&pool.outside_abs);
        self.stranded.add(&pool.stranded);
        for (mine, theirs) in self.by_free.iter_mut().zip(&pool.by_free) {
            mine.nodes += theirs.nodes;
            mine.unschedulable += theirs.unschedulable;
        }
        add_sizes(&mut self.max_gang, &pool.max_gang);
        add_sizes(&mut self.max_gang_compacted, &pool.max_gang_compacted);
        add_sizes(&mut self.max_gang_ideal, &pool.max_gang_ideal);
    }

    fn count(&mut self, id: NodeId, node: &Node) {
        self.nodes += 1;
        self.gpus += u64::from(node.capacity());
        self.busy_gpus += u64::from(node.composition().busy());
        match Fill::of(node) {
            Fill::Full => self.full += 1,
            Fill::Empty => self.empty += 1,
            Fill::Partial => self.partial += 1,
        }
        let alike = &mut self.by_free[usize::from(node.free_gpus())];
        alike.nodes += 1;
        alike.unschedulable += u64::from(!node.schedulable());
        if let Kind::Outside(reason) = Shape::of(node.capacity(), node.composition()).kind {
            self.outside_abs.push((id, reason));
        }
    }
}

fn quotient(part: f64, nodes: u64) -> f64 {
    if nodes == 0 { 0.0 } else { part / nodes as f64 }
}

fn add_sizes(mine: &mut [(u8, u64)], theirs: &[(u8, u64)]) {
    for (size, n) in theirs {
        if let Some((_, sum)) = mine.iter_mut().find(|(mine, _)| mine == size) {
            *sum += n;
        }
    }
}

/// How much of a node is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// No GPU is held.
    Empty,
    /// Some are.
    Partial,
    /// None is free; a node without any that works is full.
    Full,
}

impl Fill {
    pub(super) fn of(node: &Node) -> Self {
        match (node.free_gpus(), node.composition().busy()) {
            (0, _) => Self::Full,
            (_, 0) => Self::Empty,
            _ => Self::Partial,
        }
    }
}

/// The figures of one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolFigures {
    /// Which.
    pub pool: PoolId,
    /// What is counted.
    pub figures: Figures,
}

/// The condition of two pools together. The other pools of a cluster say nothing of one for which it has no meaning.
pub(super) fn both(one: Option<WccFigures>, other: Option<WccFigures>) -> Option<WccFigures> {
    let (one, other) = (one?, other?);
    Some(WccFigures { holds: one.holds && other.holds, slack: one.slack.min(other.slack) })
}

/// The sizes for which instances are counted.
pub(super) fn sizes(largest: u8) -> impl Iterator<Item = u8> {
    (1..=MAX_GPUS as u8).filter(move |&size| size <= largest || [1, 2, 4, 8].contains(&size))
}

/// The figures of a pool, of which `compacted` is the compact copy. What is stranded is counted elsewhere.
pub(super) fn pool_figures(state: &mut State, compacted: &State, id: PoolId) -> Figures {
    let mut figures = Figures::zeros(state.pool(id).capacity());
    figures.phi_star = state.pool_mut(id).fragmentation_mut().phi_star();
    let pool = state.pool(id);
    let mut schedulable = Demand::new();
    for &node_id in pool.nodes() {
        let node = state.cluster().node(node_id);
        figures.count(node_id, node);
        if node.schedulable() {
            for (size, &n) in node.composition().counts().iter().enumerate() {
                schedulable.add(size as u8, u64::from(n));
            }
        }
    }
    figures.wcc = pool.fragmentation().wcc().map(|wcc| WccFigures { holds: wcc.holds, slack: wcc.slack });
    let nodes = u64::from(pool.n_schedulable());
    figures.max_gang.iter_mut().for_each(|(size, n)| *n = pool.max_instances(*size));
    figures.max_gang_compacted.iter_mut().for_each(|(size, n)| *n = compacted.pool(id).max_instances(*size));
    let solver = state.pool_mut(id).fragmentation_mut().solver();
    figures.max_gang_ideal.iter_mut().for_each(|(size, n)| *n = solver.max_more(&schedulable, *size, nodes));
    figures
}
