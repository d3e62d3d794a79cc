//! Domains and racks: what is counted of each, which are intact, and the gangs that lie within one.

use super::figures::{Fill, sizes};
use crate::anchor::State;
use crate::cluster::{Cluster, MAX_GPUS, NodeId, PerSize, PoolId, Within};
use crate::fragmentation::PhiStar;
use crate::workload::Demand;

/// What is counted of one domain or rack. Unschedulable nodes count, but for the instances that fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionFigures {
    /// Nodes.
    pub nodes: u64,
    /// Of these, unschedulable ones.
    pub unschedulable: u64,
    /// GPUs that work.
    pub gpus: u64,
    /// GPUs that do not.
    pub unavailable_gpus: u64,
    /// GPUs that instances hold.
    pub busy_gpus: u64,
    /// Nodes that hold no GPU instance.
    pub empty: u64,
    /// Nodes with some but not all GPUs busy.
    pub partial: u64,
    /// Nodes with no free GPU.
    pub full: u64,
    /// The least number of partial nodes over all packings of what runs here inside the region, pool by pool.
    pub phi_star: u64,
    /// For each size the most instances that fit on schedulable nodes now, GPUs alone; the sizes of the whole cluster.
    pub max_gang: Vec<(u8, u64)>,
}

impl RegionFigures {
    /// GPUs that work and that nobody holds.
    pub fn free_gpus(&self) -> u64 {
        self.gpus - self.busy_gpus
    }

    /// Whether all of it is there for one gang: every node schedulable, every GPU that works free, and one at least.
    pub fn intact(&self) -> bool {
        self.gpus > 0 && self.busy_gpus == 0 && self.unschedulable == 0
    }

    /// Avoidable partial nodes, inside the region.
    pub fn n_sif(&self) -> i64 {
        self.partial as i64 - self.phi_star as i64
    }
}

/// All domains, or all racks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    /// Each by its number.
    pub each: Vec<RegionFigures>,
    /// Those that are intact.
    pub intact: u64,
    /// For each size the most instances that lie within one; `None` where there is no region.
    pub max_gang: Option<Vec<(u8, u64)>>,
}

/// Counts the domains or racks. O(nodes), and a Φ* for each region and pool of its nodes.
pub(super) fn regions(state: &State, within: Within, largest: u8) -> Regions {
    let mut solvers: PerSize<Option<PhiStar>> = std::array::from_fn(|_| None);
    let regions = state.regions(within).iter();
    let each: Vec<RegionFigures> = regions.map(|nodes| region(state.cluster(), nodes, largest, &mut solvers)).collect();
    let most = |(at, size): (usize, u8)| (size, each.iter().map(|one| one.max_gang[at].1).max().unwrap_or(0));
    let max_gang = (!each.is_empty()).then(|| sizes(largest).enumerate().map(most).collect());
    Regions { intact: each.iter().filter(|one| one.intact()).count() as u64, max_gang, each }
}

fn region(cluster: &Cluster, nodes: &[NodeId], largest: u8, solvers: &mut PerSize<Option<PhiStar>>) -> RegionFigures {
    let mut figures = RegionFigures::default();
    // Regions have few pools, nearly always one.
    let mut demands: Vec<(PoolId, Demand)> = Vec::new();
    let mut by_free: PerSize<u64> = [0; MAX_GPUS + 1];
    for &id in nodes {
        let node = cluster.node(id);
        figures.nodes += 1;
        figures.gpus += u64::from(node.capacity());
        figures.unavailable_gpus += u64::from(node.devices() - node.capacity());
        figures.busy_gpus += u64::from(node.composition().busy());
        match Fill::of(node) {
            Fill::Full => figures.full += 1,
            Fill::Empty => figures.empty += 1,
            Fill::Partial => figures.partial += 1,
        }
        if node.schedulable() {
            by_free[usize::from(node.free_gpus())] += 1;
        } else {
            figures.unschedulable += 1;
        }
        if demands.iter().all(|(pool, _)| *pool != node.pool()) {
            demands.push((node.pool(), Demand::new()));
        }
        if let Some((_, demand)) = demands.iter_mut().find(|(pool, _)| *pool == node.pool()) {
            for (size, &n) in node.composition().counts().iter().enumerate() {
                demand.add(size as u8, u64::from(n));
            }
        }
    }
    for (pool, demand) in &demands {
        let capacity = cluster.pool(*pool).capacity;
        if demand.gpus() > 0 {
            let solver = solvers[usize::from(capacity)].get_or_insert_with(|| PhiStar::new(capacity));
            figures.phi_star += solver.solve(demand).partial;
        }
    }
    let fit = |size: u8| by_free.iter().zip(0u8..).map(|(n, free)| n * u64::from(free / size)).sum();
    figures.max_gang = sizes(largest).map(|size| (size, fit(size))).collect();
    figures
}
