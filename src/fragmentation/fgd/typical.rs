//! The typical pods: the most popular requests that together cover most of what is asked for.

use std::collections::BTreeMap;

use super::exact::is_set;
use crate::cluster::{Cluster, ModelId, PoolId, Request, RequestId, TooManyNames};
use crate::workload::TraceJob;

/// The share of all requests that the typical ones cover at least, in per cent, as in the paper's evaluation.
pub const COVERAGE_PERCENT: u64 = 95;

/// The most typical pods that are kept, however little they cover: each is looked at for every node. It also keeps every sum
/// of the measure far below 2^63: a count is below 2^32, the milli-GPU of a node below 2^14.
pub const MAX_TYPICAL: usize = 256;

/// The parts that a mix of tables has in all: its counts are shares of so many, rounded down.
pub const MIX_PARTS: u64 = 1 << 20;

/// One typical pod, in plain integers: what a kernel reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct TypicalPod {
    /// Milli-cores.
    pub cpu_milli: u32,
    /// Thousandths of each of its devices, 1..=1000; 0 if it asks for none.
    pub gpu_milli: u32,
    /// Devices.
    pub gpus: u32,
    /// How many of the requests it was drawn from are like it; 2^32 − 1 if more.
    pub count: u32,
}

/// The typical pods of a list of requests, and which of them the models of a cluster's pools allow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typical {
    pods: Vec<TypicalPod>,
    /// For each pool, a bit for each pod: whether its model is allowed.
    allowed: Vec<Vec<u32>>,
    total: u64,
}

/// What makes two requests the same pod: milli-cores, milli-GPU, devices, and the names of the models in words.
type Kind = (u32, u32, u32, String);

/// The same with a flag for each pool of a cluster, whether it is allowed, in place of the models.
type PooledKind = (u32, u32, u32, Vec<bool>);

/// Which of some pods something holds for: bit `i % 32` of word `i / 32` for pod `i`.
fn words<P>(pods: &[P], holds: impl Fn(&P) -> bool) -> Vec<u32> {
    let word = |group: &[P]| group.iter().enumerate().fold(0, |word, (i, pod)| word | u32::from(holds(pod)) << i);
    pods.chunks(32).map(word).collect()
}

impl Typical {
    /// The most popular of these requests, each of which stands for as many pods as it says: the shortest list of them
    /// that covers [`COVERAGE_PERCENT`], of at most [`MAX_TYPICAL`]. Memory and topology do not tell pods apart. Ties go to the larger milli-cores,
    /// then milli-GPU, then devices, then models by name.
    pub fn new<'r>(cluster: &Cluster, requests: impl IntoIterator<Item = (&'r Request, u64)>) -> Self {
        let mut counts: BTreeMap<Kind, (u64, Option<&[ModelId]>)> = BTreeMap::new();
        let mut total = 0u64;
        for (request, n) in requests {
            let gpu_milli = if request.gpus == 0 { 0 } else { u32::from(request.gpu_milli) };
            let models = request.models.as_deref();
            let mut names: Vec<&str> = models.unwrap_or(&[]).iter().map(|&model| cluster.model_name(model)).collect();
            names.sort_unstable();
            let kind = (request.cpu_milli, gpu_milli, u32::from(request.gpus), names.join("|"));
            counts.entry(kind).or_insert((0, models)).0 += n;
            total += n;
        }
        // Stable, and reversed as a whole: the largest count first, then the largest kind.
        let mut kinds: Vec<_> = counts.into_iter().collect();
        kinds.sort_by_key(|&(_, (n, _))| n);
        kinds.reverse();
        let mut covered = 0u64;
        let (mut pods, mut models) = (Vec::new(), Vec::new());
        for ((cpu_milli, gpu_milli, gpus, _), (n, allowed)) in kinds {
            if u128::from(covered) * 100 >= u128::from(total) * u128::from(COVERAGE_PERCENT)
                || pods.len() == MAX_TYPICAL
            {
                break;
            }
            covered += n;
            pods.push(TypicalPod { cpu_milli, gpu_milli, gpus, count: u32::try_from(n).unwrap_or(u32::MAX) });
            models.push(allowed);
        }
        let allows = |pool: PoolId, models: Option<&[ModelId]>| match (models, cluster.pool(pool).model) {
            (None, _) => true,
            (Some(models), model) => model.is_some_and(|model| models.contains(&model)),
        };
        let of_pool = |pool: u32| words(&models, |&models| allows(PoolId(pool), models));
        let allowed = (0..cluster.pools().len() as u32).map(of_pool).collect();
        Self { pods, allowed, total }
    }

    /// Those of the jobs of a trace, each of whose instances is a pod.
    ///
    /// # Errors
    /// If there are too many names of models.
    pub fn of_trace(cluster: &mut Cluster, jobs: &[TraceJob]) -> Result<Self, TooManyNames> {
        let mut pods: Vec<(RequestId, u64)> = Vec::with_capacity(jobs.len());
        for job in jobs {
            pods.push((job.request(cluster)?, u64::from(job.instances)));
        }
        Ok(Self::new(cluster, pods.into_iter().map(|(request, n)| (cluster.request(request), n))))
    }

    /// A mix of tables for one cluster. Each part counts by its weight, out of the sum of the weights, whatever number of
    /// requests it was drawn from; within a part, pods count as they do there. Counts are then parts of [`MIX_PARTS`]; pods
    /// that agree in what they ask for, and in the pools that they allow, become one. Of the same order as in
    /// [`Typical::new`], but that pools decide in place of the models' names; at most [`MAX_TYPICAL`] stay.
    ///
    /// A part without pods or weight is none, and what has one part alone is that part; what has none is the first.
    #[must_use]
    pub fn mix(parts: &[(&Self, u64)]) -> Self {
        let covered = |part: &Self| part.pods.iter().map(|pod| u128::from(pod.count)).sum::<u128>();
        let weighed = parts.iter().map(|&(part, weight)| (part, u128::from(weight), covered(part)));
        let first = parts.first().map(|&(part, _)| part);
        let parts: Vec<_> = weighed.filter(|&(_, weight, covered)| weight > 0 && covered > 0).collect();
        if parts.len() < 2 {
            return parts.first().map(|&(part, ..)| part).or(first).cloned().unwrap_or_default();
        }
        let weights: u128 = parts.iter().map(|&(_, weight, _)| weight).sum();
        let mut counts: BTreeMap<PooledKind, u32> = BTreeMap::new();
        for &(part, weight, covered) in &parts {
            for (i, pod) in part.pods.iter().enumerate() {
                let pools = part.allowed.iter().map(|words| is_set(words, i)).collect();
                let share = u128::from(MIX_PARTS) * weight * u128::from(pod.count) / (weights * covered);
                // All of them together are no more than `MIX_PARTS`.
                *counts.entry((pod.cpu_milli, pod.gpu_milli, pod.gpus, pools)).or_default() += share as u32;
            }
        }
        let mut kinds: Vec<(PooledKind, u32)> = counts.into_iter().filter(|&(_, count)| count > 0).collect();
        kinds.sort_by_key(|&(_, count)| count);
        kinds.reverse();
        kinds.truncate(MAX_TYPICAL);
        let pod = |&((cpu_milli, gpu_milli, gpus, _), count): &_| TypicalPod { cpu_milli, gpu_milli, gpus, count };
        let pods: Vec<TypicalPod> = kinds.iter().map(pod).collect();
        let n_pools = parts.first().map_or(0, |(part, ..)| part.allowed.len());
        let allowed = (0..n_pools).map(|pool| words(&kinds, |((.., pools), _)| pools[pool])).collect();
        let total = pods.iter().map(|pod| u64::from(pod.count)).sum();
        Self { pods, allowed, total }
    }

    /// These pods, and for each pool the bits of those that its model allows.
    #[cfg(test)]
    pub(super) fn with(pods: Vec<TypicalPod>, allowed: Vec<Vec<u32>>) -> Self {
        let total = pods.iter().map(|pod| u64::from(pod.count)).sum();
        Self { pods, allowed, total }
    }

    /// The typical pods, the most popular first.
    pub fn pods(&self) -> &[TypicalPod] {
        &self.pods
    }

    /// Which of them the model of a pool allows: bit `i % 32` of word `i / 32` for pod `i`.
    pub fn allowed(&self, pool: PoolId) -> &[u32] {
        &self.allowed[pool.index()]
    }

    /// Whether the model of a pool is one that a typical pod allows.
    pub fn allows(&self, pool: PoolId, pod: usize) -> bool {
        is_set(self.allowed(pool), pod)
    }

    /// All pods that the typical ones were drawn from.
    pub fn total(&self) -> u64 {
        self.total
    }
}
