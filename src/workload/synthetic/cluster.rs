//! A cluster of 8-GPU nodes.

use crate::cluster::{BuildError, Cluster, ClusterBuilder, GpuMask, JobSpec, NodeId, NodeSpec, Seat};

use super::{Dice, Mix};

/// Instances in a row that may not fit before the filling ends.
const MOST_MISSES: u32 = 100;

/// What a cluster is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterOptions {
    /// All its GPUs. The last node is smaller if they are no multiple of 8.
    pub gpus: u64,
    /// The same seed makes the same cluster.
    pub seed: u64,
    /// The instances that run already.
    pub mix: Mix,
    /// The share of GPUs that they hold.
    pub preload_percent: u32,
    /// Whether each node holds instances of one size, as a careful scheduler leaves it; else they lie at random.
    pub tidy: bool,
    /// Nodes in an NVLink domain.
    pub nodes_per_domain: u32,
    /// Nodes in a rack.
    pub nodes_per_rack: u32,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            gpus: 1000,
            seed: 1,
            mix: Mix::Gfs,
            preload_percent: 50,
            tidy: true,
            nodes_per_domain: 4,
            nodes_per_rack: 16,
        }
    }
}

/// Makes the cluster: nodes `n0`, `n1`, … of model H100 with 16 cores and 128 GiB for each GPU, and running jobs `run-0`,
/// `run-1`, … of one instance each.
///
/// # Errors
/// If it is too large to be numbered.
pub fn synthetic_cluster(options: &ClusterOptions) -> Result<Cluster, BuildError> {
    let mut builder = ClusterBuilder::new();
    let n_nodes = options.gpus.div_ceil(8);
    for i in 0..n_nodes {
        let gpus = (options.gpus - i * 8).min(8) as u8;
        let (name, rack) = (format!("n{i}"), format!("r{}", i / u64::from(options.nodes_per_rack.max(1))));
        let domain = format!("d{}", i / u64::from(options.nodes_per_domain.max(1)));
        builder.add_node(&NodeSpec {
            name: &name,
            gpus,
            model: Some("H100"),
            domain: Some(&domain),
            rack: Some(&rack),
            cpu_milli: Some(16_000 * u32::from(gpus)),
            memory_mib: Some(131_072 * u32::from(gpus)),
            ..NodeSpec::default()
        })?;
    }
    let mut dice = Dice::new(options.seed, 1);
    let mut filling = Filling { nodes: options.gpus / 8, ..Filling::default() };
    let wanted = options.gpus / 100 * u64::from(options.preload_percent.min(100))
        + options.gpus % 100 * u64::from(options.preload_percent.min(100)) / 100;
    let (mut held, mut jobs) = (0, 0u64);
    if !options.tidy {
        filling.busy = vec![0; filling.nodes as usize];
    }
    let weights = options.mix.weights();
    // In a cluster that is to be all but full, what does not fit is passed over, and in the end there is a limit.
    let mut misses = 0;
    while held < wanted && misses < MOST_MISSES {
        let gpus = dice.weighted(&weights).unwrap_or(1);
        let seat = if options.tidy { filling.tidy(gpus) } else { filling.random(gpus, &mut dice) };
        let Some((node, mask)) = seat else {
            misses += 1;
            continue;
        };
        misses = 0;
        let name = format!("run-{jobs}");
        let spec = JobSpec { name: &name, gpus, ..JobSpec::default() };
        builder.add_running(&spec, &[Seat { node: NodeId(node as u32), gpus: Some(mask) }])?;
        held += u64::from(gpus);
        jobs += 1;
    }
    builder.finish()
}

#[derive(Default)]
struct Filling {
    /// Nodes of 8 GPUs.
    nodes: u64,
    next: u64,
    /// For each size, the node in work and what it holds.
    open: [(u64, GpuMask); 9],
    /// All nodes, at random.
    busy: Vec<GpuMask>,
}

impl Filling {
    /// The next place on the node that holds this size, or on a new one.
    fn tidy(&mut self, gpus: u8) -> Option<(u64, GpuMask)> {
        let width = gpus.next_power_of_two();
        let (node, busy) = &mut self.open[usize::from(gpus)];
        let slot = (0..8 / width).map(|i| i * width).find(|&at| *busy != 0 && *busy >> at & 1 == 0);
        let at = match slot {
            Some(at) => at,
            None if self.next < self.nodes => {
                (*node, *busy) = (self.next, 0);
                self.next += 1;
                0
            }
            None => return None,
        };
        let mask = mask(gpus) << at;
        *busy |= mask;
        Some((*node, mask))
    }

    /// The lowest free devices of the first node that has enough, from a random one on.
    fn random(&mut self, gpus: u8, dice: &mut Dice) -> Option<(u64, GpuMask)> {
        let start = dice.below(self.nodes);
        for node in (start..self.nodes).chain(0..start).take(1024) {
            let busy = &mut self.busy[node as usize];
            if let Some(taken) = crate::cluster::lowest_gpus(!*busy & 0xff, gpus) {
                *busy |= taken;
                return Some((node, taken));
            }
        }
        None
    }
}

fn mask(gpus: u8) -> GpuMask {
    ((1u32 << gpus) - 1) as GpuMask
}
