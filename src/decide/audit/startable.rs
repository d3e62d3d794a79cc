//! How many jobs of each usual size could start at once.

use super::figures::{Figures, PoolFigures};
use crate::cluster::Cluster;

/// Jobs of so many GPUs: one instance, or instances as large as a node allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartableJobs {
    /// GPUs of a job, a power of two.
    pub gpus: u64,
    /// Instances of a job.
    pub instances: u64,
    /// GPUs of an instance.
    pub gpus_per_instance: u8,
    /// Jobs that fit at once now, GPUs alone.
    pub now: u64,
    /// The same once Compact has run to its end.
    pub compacted: u64,
    /// The same after the best repacking inside each pool.
    pub ideal: u64,
}

/// The jobs of 1, 2, 4, … GPUs, up to the largest of which one would fit ideally packed, and up to a node in any case.
/// An instance has at most the largest power of two of GPUs that a node of the pool with the most GPUs holds.
pub(super) fn startable(cluster: &Cluster, total: &Figures, pools: &[PoolFigures]) -> Vec<StartableJobs> {
    let usual = pools.iter().rev().max_by_key(|pool| pool.figures.gpus);
    let capacity = usual.map_or(0, |pool| cluster.pool(pool.pool).capacity);
    let Some(widest) = capacity.checked_ilog2().map(|log| 1u8 << log) else { return Vec::new() };
    let of = |list: &[(u8, u64)], size: u8| list.iter().find(|(other, _)| *other == size).map_or(0, |&(_, n)| n);
    let jobs = (0..u64::BITS).map(|log| 1u64 << log).map(|gpus| {
        let gpus_per_instance = u8::try_from(gpus).unwrap_or(u8::MAX).min(widest);
        let instances = gpus / u64::from(gpus_per_instance);
        let fit = |list: &[(u8, u64)]| of(list, gpus_per_instance) / instances;
        let (now, compacted) = (fit(&total.max_gang), fit(&total.max_gang_compacted));
        StartableJobs { gpus, instances, gpus_per_instance, now, compacted, ideal: fit(&total.max_gang_ideal) }
    });
    jobs.take_while(|jobs| jobs.gpus <= u64::from(widest) || jobs.now.max(jobs.compacted).max(jobs.ideal) > 0).collect()
}
