//! Sums over the nodes of a cluster.

use serde::Serialize;

use crate::anchor::State;
use crate::cluster::{MAX_GPUS, PoolId, Within};
use crate::decide::stranded_by_pool;
use crate::serve::live::Gangs;

/// The sizes of instances for which gangs are counted.
const SIZES: [u8; 5] = [1, 2, 4, 8, 16];

/// GPUs of one model: each is in one of four states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Product {
    /// The model; `None` for nodes that name none.
    pub product: Option<String>,
    /// Held by instances, whole or in shares.
    pub allocated: u64,
    /// Free, and of use.
    pub free: u64,
    /// Free on schedulable nodes, but of no use to anything that runs: see [`crate::decide::Stranded`].
    pub stranded: u64,
    /// Broken, or free on unschedulable nodes.
    pub unavailable: u64,
}

/// The largest gang that fits at once now on schedulable nodes, GPUs alone, in GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GangRoom {
    /// GPUs of each of its instances.
    pub gpus_per_instance: u8,
    /// Anywhere.
    pub cluster: u64,
    /// Within the one rack that has the most room.
    pub rack: u64,
    /// Within one NVLink domain.
    pub domain: u64,
}

/// Sums over the nodes of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// GPUs by model, in file order.
    pub products: Vec<Product>,
    /// Nodes that hold no GPU instance.
    pub empty: u64,
    /// Nodes with some but not all GPUs busy.
    pub partial: u64,
    /// Nodes with no free GPU; those without any working GPU are among them.
    pub full: u64,
    /// Nodes on which nothing may be placed, whatever they hold.
    pub unschedulable: u64,
    /// Schedulable nodes by their free GPUs: entry f has those with f, up to the largest node.
    pub free_nodes: Vec<u64>,
    /// Φ*, summed over the pools.
    pub phi_star: u64,
    /// N·SIF: avoidable partial nodes.
    pub n_sif: i64,
    /// Gangs of instances of 1, 2, 4, … GPUs, up to the largest node.
    pub gangs: Vec<GangRoom>,
    /// Racks of schedulable nodes that hold nothing.
    pub intact_racks: u64,
    /// NVLink domains of schedulable nodes that hold nothing.
    pub intact_domains: u64,
    /// Jobs that run.
    pub running_jobs: u64,
    /// Jobs that are known to wait: those of a Kubernetes cluster that is followed, or that edits told of.
    pub waiting_jobs: u64,
    /// The GPUs that they ask for.
    pub waiting_gpus: u64,
}

impl Totals {
    /// All nodes.
    pub fn nodes(&self) -> u64 {
        self.empty + self.partial + self.full
    }

    /// A sum over the products.
    pub fn gpus(&self, of: impl Fn(&Product) -> u64) -> u64 {
        self.products.iter().map(of).sum()
    }

    /// Counts. The state is only changed in that its pools remember their Φ*. O(nodes + jobs), and a Φ* for each pool that
    /// has changed.
    pub(super) fn of(state: &mut State, gangs: &Gangs) -> Self {
        let mut totals = Self { phi_star: state.phi_star(), n_sif: state.n_sif(), ..Self::default() };
        let (waiting_jobs, waiting_gpus) = gangs.waiting();
        (totals.waiting_jobs, totals.waiting_gpus) = (waiting_jobs as u64, waiting_gpus);
        let state = &*state;
        totals.count_nodes(state);
        totals.count_gpus(state);
        totals.count_gangs(state);
        let intact = |within| state.regions(within).iter().filter(|region| state.is_intact(region)).count() as u64;
        (totals.intact_racks, totals.intact_domains) = (intact(Within::Rack), intact(Within::Domain));
        totals.running_jobs = state.cluster().jobs().iter().filter(|job| job.runs()).count() as u64;
        totals
    }

    fn count_nodes(&mut self, state: &State) {
        let nodes = state.cluster().nodes();
        let largest = nodes.iter().map(|node| usize::from(node.capacity())).max().unwrap_or(0);
        self.free_nodes = vec![0; largest + 1];
        self.partial = state.n_partial();
        for node in nodes {
            self.full += u64::from(node.free_gpus() == 0);
            self.unschedulable += u64::from(!node.schedulable());
            if node.schedulable() {
                self.free_nodes[usize::from(node.free_gpus())] += 1;
            }
        }
        self.empty = nodes.len() as u64 - self.partial - self.full;
    }

    fn count_gpus(&mut self, state: &State) {
        let cluster = state.cluster();
        let stranded = stranded_by_pool(state, None);
        let mut product_of = Vec::with_capacity(stranded.len());
        for (id, stranded) in (0..).map(PoolId).zip(&stranded) {
            let name = cluster.pool(id).model.map(|model| cluster.model_name(model));
            let at = self.products.iter().position(|product| product.product.as_deref() == name);
            let at = at.unwrap_or_else(|| {
                self.products.push(Product { product: name.map(str::to_owned), ..Product::default() });
                self.products.len() - 1
            });
            product_of.push(at);
            let product = &mut self.products[at];
            product.free += stranded.usable.gpus;
            product.stranded += stranded.gpus() - stranded.cordon.gpus;
            product.unavailable += stranded.cordon.gpus;
        }
        for node in cluster.nodes() {
            let product = &mut self.products[product_of[node.pool().index()]];
            product.allocated += u64::from(node.composition().busy());
            product.unavailable += u64::from(node.devices() - node.capacity());
        }
    }

    fn count_gangs(&mut self, state: &State) {
        let cluster = state.cluster();
        let largest = self.free_nodes.len() - 1;
        let mut racks = vec![[0; SIZES.len()]; cluster.n_racks()];
        let mut domains = vec![[0; SIZES.len()]; cluster.n_domains()];
        let mut all = [0; SIZES.len()];
        // How many GPUs whole instances of each size take of so many free ones.
        let fit: [[u64; SIZES.len()]; MAX_GPUS + 1] =
            std::array::from_fn(|free| SIZES.map(|size| (free - free % usize::from(size)) as u64));
        for node in cluster.nodes().iter().filter(|node| node.schedulable()) {
            let fit = &fit[usize::from(node.free_gpus())];
            add(&mut all, fit);
            if let Some(rack) = node.rack() {
                add(&mut racks[rack.index()], fit);
            }
            if let Some(domain) = node.domain() {
                add(&mut domains[domain.index()], fit);
            }
        }
        let most = |regions: &[[u64; SIZES.len()]], at: usize| regions.iter().map(|sums| sums[at]).max().unwrap_or(0);
        let sizes = SIZES.iter().enumerate().filter(|&(_, &size)| usize::from(size) <= largest);
        let gang = |(at, &gpus_per_instance)| GangRoom {
            gpus_per_instance,
            cluster: all[at],
            rack: most(&racks, at),
            domain: most(&domains, at),
        };
        self.gangs = sizes.map(gang).collect();
    }
}

fn add(sums: &mut [u64; SIZES.len()], more: &[u64; SIZES.len()]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::read_cluster_from;

    #[test]
    fn every_gpu_is_in_one_state_and_gangs_are_whole_instances() {
        let snapshot = r#"{"nodes":[
            {"name":"a","gpus":8,"model":"H100","rack":"r","domain":"d"},
            {"name":"b","gpus":8,"model":"H100","rack":"r","unavailable":[7]},
            {"name":"c","gpus":8,"model":"H100","schedulable":false},
            {"name":"d","gpus":4,"rack":"s"}],
          "running":[{"job":"x","gpus_per_instance":2,"models":["H100"],"instances":[{"node":"a"},{"node":"b"},{"node":"c"}]}]}"#;
        let mut state = State::new(read_cluster_from("test", snapshot.as_bytes()).unwrap().cluster);
        let totals = Totals::of(&mut state, &Gangs::default());
        // Only instances of 2 run, on H100 alone: one of the 5 free on b, and all of d, are of no use.
        let product = |product: Option<&str>, [allocated, free, stranded, unavailable]: [u64; 4]| Product {
            product: product.map(str::to_owned),
            allocated,
            free,
            stranded,
            unavailable,
        };
        assert_eq!(totals.products, [product(Some("H100"), [6, 10, 1, 7]), product(None, [0, 0, 4, 0])]);
        assert_eq!((totals.empty, totals.partial, totals.full, totals.unschedulable), (1, 3, 0, 1));
        assert_eq!(totals.free_nodes, [0, 0, 0, 0, 1, 1, 1, 0, 0]);
        assert_eq!(totals.phi_star + totals.n_sif as u64, 3);
        let gang = |gpus_per_instance, cluster, rack, domain| GangRoom { gpus_per_instance, cluster, rack, domain };
        assert_eq!(totals.gangs, [gang(1, 15, 11, 6), gang(2, 14, 10, 6), gang(4, 12, 8, 4), gang(8, 0, 0, 0)]);
        assert_eq!((totals.intact_racks, totals.intact_domains, totals.running_jobs), (1, 0, 1));
    }
}
