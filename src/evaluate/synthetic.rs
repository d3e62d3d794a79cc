//! Clusters and batches out of a seed: for measurements, conformance and tests. Pure functions of their arguments.

use super::abi::{Candidate, Need, PackedState, Touch};
use super::backend::EvalError;
use super::batch::{Batch, BatchRows};
use crate::cluster::{BuildError, Cluster, ClusterBuilder, GpuMask, JobSpec, NodeId, NodeSpec, Seat, lowest_gpus};

/// A stream of numbers that depends on the seed alone (splitmix64).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `bound`, which is above 0; the bias of so small bounds does not matter here.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((self.next_word() >> 32) * u64::from(bound) >> 32) as u32
    }
}

/// Instance sizes about as often as they occur in training clusters: many of 1, many whole nodes.
const SIZES: [u8; 16] = [1, 1, 1, 1, 1, 1, 2, 2, 2, 4, 4, 3, 5, 8, 8, 8];

/// A cluster of `nodes` nodes of 8 GPUs, about three quarters full, with everything that tells nodes apart: three
/// models, domains of 18 and racks of 36 nodes, some without limits, broken devices or cordoned.
///
/// # Errors
/// Not for any number of nodes that memory can hold.
pub fn cluster(nodes: usize, seed: u64) -> Result<Cluster, BuildError> {
    let mut numbers = Numbers::new(seed);
    let mut builder = ClusterBuilder::new();
    let mut capacities = Vec::with_capacity(nodes);
    for number in 0..nodes {
        let one_in = |numbers: &mut Numbers, n: u32| numbers.below(n) == 0;
        let unavailable: GpuMask = if one_in(&mut numbers, 64) { 1 << numbers.below(8) } else { 0 };
        capacities.push(8 - unavailable.count_ones() as u8);
        builder.add_node(&NodeSpec {
            name: &format!("n{number}"),
            gpus: 8,
            model: [Some("A"), Some("B"), None][(number / 5000 % 3).min(2)],
            domain: Some(&format!("d{}", number / 18)),
            rack: Some(&format!("r{}", number / 36)),
            cpu_milli: if one_in(&mut numbers, 8) { None } else { Some(128_000) },
            memory_mib: if one_in(&mut numbers, 8) { None } else { Some(1 << 20) },
            unschedulable: one_in(&mut numbers, 64),
            unavailable,
        })?;
    }
    let mut jobs = 0;
    for (number, &capacity) in capacities.iter().enumerate() {
        let node = NodeId(number as u32);
        let most = numbers.below(9).max(numbers.below(9)).min(7 + numbers.below(2));
        let mut left = capacity.min(most as u8);
        while left > 0 {
            let gpus = SIZES[numbers.below(16) as usize].min(left);
            left -= gpus;
            let spec = JobSpec {
                name: &format!("j{jobs}"),
                gpus,
                cpu_milli: 8000 * u32::from(gpus) * numbers.below(2),
                memory_mib: 65_536 * u32::from(gpus) * numbers.below(2),
                pinned: numbers.below(16) == 0,
                ..JobSpec::default()
            };
            builder.add_running(&spec, &[Seat { node, gpus: None }])?;
            jobs += 1;
        }
    }
    builder.finish()
}

/// A batch of about `touches` touches on random nodes, `per_candidate` each and 8 candidates a job: instances that
/// arrive where devices are free, instances that leave where none are. Every `asking`th touch asks for CPU and memory;
/// 0 for none.
///
/// # Errors
/// If it has more touches than a batch can hold.
pub fn batch(
    cluster: &Cluster,
    touches: usize,
    per_candidate: usize,
    asking: u32,
    seed: u64,
) -> Result<Batch, EvalError> {
    let nodes = cluster.nodes().len();
    let per_candidate = per_candidate.clamp(1, nodes.max(1));
    let n = if nodes == 0 { 0 } else { touches / per_candidate };
    let mut numbers = Numbers::new(seed);
    let mut rows = BatchRows { nodes, needs: vec![Need::NONE], ..Default::default() };
    if asking > 0 {
        rows.needs.push(Need { cpu: 8000, memory: 65_536 });
    }
    rows.touches.reserve_exact(n * per_candidate);
    rows.offsets.push(0);
    let mut seen = vec![u32::MAX; nodes];
    for candidate in 0..n {
        for _ in 0..per_candidate {
            let mut node = numbers.below(nodes as u32);
            while seen[node as usize] == candidate as u32 {
                node = if node as usize + 1 == nodes { 0 } else { node + 1 };
            }
            seen[node as usize] = candidate as u32;
            let need = u32::from(asking > 0 && numbers.below(asking) == 0);
            rows.touches.push(Touch { need, ..touch(cluster, NodeId(node), &mut numbers) });
        }
        rows.offsets.push(rows.touches.len() as u32);
        let few = |numbers: &mut Numbers| numbers.below(3);
        rows.candidates.push(Candidate {
            job: (candidate / 8) as u32,
            moves: few(&mut numbers),
            moved_gpus: few(&mut numbers),
            racks: few(&mut numbers),
            domains: few(&mut numbers),
            delta_phi_star: numbers.below(3) as i32 - 1,
            unused: [0; 2],
        });
        rows.given.push(0);
    }
    rows.jobs.extend((0..n as u32).step_by(8));
    rows.jobs.push(n as u32);
    Batch::from_rows(rows)
}

fn touch(cluster: &Cluster, id: NodeId, numbers: &mut Numbers) -> Touch {
    let node = cluster.node(id);
    let (mut freed, mut taken, mut step): (GpuMask, GpuMask, u32) = (0, 0, 0);
    if node.free() == 0 {
        let gpu = numbers.below(u32::from(node.devices())) as u8;
        if let Some(instance) = cluster.owner(id, gpu) {
            freed = cluster.instance(instance).gpus();
            step = PackedState::step_of(freed.count_ones() as u8, node.capacity()).wrapping_neg();
        }
    } else {
        let gpus = 1 + numbers.below(u32::from(node.free_gpus())) as u8;
        taken = lowest_gpus(node.free(), gpus).unwrap_or(0);
        step = PackedState::step_of(gpus, node.capacity());
    }
    Touch { node: id.0, need: 0, freed, taken, step }
}
