//! Clusters of every kind at once, for property tests.

use crate::cluster::{
    Cluster, ClusterBuilder, GpuMask, JobSpec, JobTimes, NodeId, NodeSpec, Seat, WHOLE_GPU, Within, lowest_gpus,
};

use super::Dice;

/// A cluster of `n_nodes` nodes of 1 to 16 devices, some broken, of several models, with and without limits, racks and
/// domains, cordoned or not, on which some jobs of one or several instances run, CPU-only ones and shares among them.
pub fn arbitrary_cluster(seed: u64, n_nodes: u32) -> Cluster {
    let mut dice = Dice::new(seed, 4);
    let mut builder = ClusterBuilder::new();
    let mut free = Vec::new();
    for i in 0..n_nodes {
        let gpus = match dice.below(4) {
            0 | 1 => 8,
            2 => [1, 2, 4, 16][dice.below(4) as usize],
            _ => 1 + dice.below(16) as u8,
        };
        let all = ((1u32 << gpus) - 1) as GpuMask;
        let broken =
            if dice.chance(20) { dice.below(1 << 16) as GpuMask & dice.below(1 << 16) as GpuMask & all } else { 0 };
        let name = format!("node-{i}");
        let (rack, domain) = (format!("r{}", dice.below(4)), format!("d{}", dice.below(4)));
        let spec = NodeSpec {
            name: &name,
            gpus,
            model: [None, Some("A100"), Some("H100"), Some("H100")][dice.below(4) as usize],
            domain: dice.chance(70).then_some(&domain),
            rack: dice.chance(70).then_some(&rack),
            cpu_milli: dice.chance(50).then_some(8_000 * u32::from(gpus)),
            memory_mib: dice.chance(50).then_some(65_536 * u32::from(gpus)),
            unschedulable: dice.chance(10),
            unavailable: broken,
        };
        // The numbers are in range and the name is new.
        if builder.add_node(&spec).is_ok() {
            free.push(all & !broken);
        }
    }
    let mut seats = Vec::new();
    for job in 0..u64::from(n_nodes) * 2 {
        let gpus = [0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 8, 16][dice.below(14) as usize];
        seats.clear();
        for _ in 0..1 + dice.below(3) * dice.below(2) {
            let at = dice.below(free.len() as u64) as usize;
            let mut free_here = free[at];
            // Not always the lowest: skip some.
            for _ in 0..dice.below(3) {
                free_here &= free_here.wrapping_sub(1);
            }
            let Some(taken) = lowest_gpus(free_here, gpus) else { continue };
            free[at] &= !taken;
            seats.push(Seat { node: NodeId(at as u32), gpus: Some(taken) });
        }
        let name = format!("arbitrary-{job}");
        let gpu_milli = if gpus == 1 && dice.chance(40) { 50 + dice.below(450) as u16 } else { WHOLE_GPU };
        if gpu_milli < WHOLE_GPU && dice.chance(60) {
            // Two on one device, of which something is left.
            seats.extend(seats.first().copied());
        }
        let models: &[&str] = if dice.chance(20) { &["H100", "A100"] } else { &[] };
        let spec = JobSpec {
            name: &name,
            gpus,
            gpu_milli,
            cpu_milli: dice.below(3) as u32 * 500,
            memory_mib: dice.below(3) as u32 * 1024,
            models,
            within: [None, None, None, Some(Within::Rack), Some(Within::Domain)][dice.below(5) as usize],
            pinned: dice.chance(15),
            times: JobTimes {
                remaining_s: dice.chance(20).then_some(dice.below(10_000)),
                move_cost_s: dice.chance(20).then_some(dice.below(60)),
            },
        };
        if !seats.is_empty() && builder.add_running(&spec, &seats).is_err() {
            debug_assert!(false, "the seats were chosen among free devices");
        }
    }
    // Every seat names its devices, so that nothing is left to be seated.
    builder.finish().unwrap_or_default()
}
