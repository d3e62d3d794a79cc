//! The typical pods: the most popular requests that together cover most of what is asked for.

use std::collections::BTreeMap;

use super::exact::is_set;
use crate::cluster::{Cluster, ModelId, PoolId, Request, RequestId, TooManyNames};
use crate::workload::TraceJob;

/// The share of all requests that the typical ones cover at least, in per cent, as in the paper's evaluation.
pub const COVERAGE_PERCENT: u64 = 95;

/// The most typical pods that are kept, so that no sum of the measure can overflow: a count is below 2^32, the idle
/// GPUs of a node below 2^14, and 2^16 products of them below 2^62.
pub const MAX_TYPICAL: usize = 1 << 16;

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

impl Typical {
    /// The most popular of these requests, each of which stands for as many pods as it says: the shortest list of them
    /// that covers [`COVERAGE_PERCENT`]. Memory and topology do not tell pods apart. Ties go to the larger milli-cores,
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
        let words = |pool: PoolId| {
            let bits = |group: &[Option<&[ModelId]>]| {
                group.iter().enumerate().fold(0, |word, (i, models)| word | u32::from(allows(pool, *models)) << i)
            };
            models.chunks(32).map(bits).collect()
        };
        let allowed = (0..cluster.pools().len() as u32).map(|pool| words(PoolId(pool))).collect();
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
