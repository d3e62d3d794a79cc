//! The exact measure for many nodes and requests: what [`exact::growth`](super::exact::growth) says, from sums by class.
//!
//! A typical pod that fits leaves of use what lies on devices that have enough for it, and any other nothing. So with `able`
//! devices that have at least `q` left and `big` milli-GPU on them, the fragment of a node is
//!
//! > idle × all counts − Σ over classes (q, devices) of weight × (big, if able ≥ devices),
//!
//! where the weight of a class is the count of its pods that the node's model and free CPU allow. Weights are tabulated by
//! free CPU; a share that goes on a device changes `able` and `big` by what that device alone had and has.

use super::{Ask, Left, MAX_TYPICAL, Typical, choices};
use crate::cluster::{GpuMask, PoolId};

/// The typical pods, arranged for speed.
#[derive(Clone, Debug, Default)]
pub struct Gauge {
    /// Thousandths of each device, and devices; distinct.
    classes: Vec<Class>,
    pools: Vec<Weights>,
    total: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class {
    gpu_milli: u32,
    gpus: u32,
}

/// The weights of the classes on the nodes of a pool, by free CPU.
#[derive(Clone, Debug, Default)]
struct Weights {
    /// The milli-cores that some pod asks for, ascending, distinct.
    cpu_milli: Vec<u32>,
    /// For a node of whose CPU `n` of these are at most: a weight for each class, from `n` times their number on.
    rows: Vec<u64>,
}

/// Of each class: devices that have enough left, and what is left on these.
struct Sums {
    able: [u32; MAX_TYPICAL],
    big: [u32; MAX_TYPICAL],
}

impl Gauge {
    /// Arranges the typical pods.
    pub fn new(typical: &Typical, n_pools: usize) -> Self {
        let of_gpus = |pod: &&super::TypicalPod| pod.gpus > 0;
        let mut classes: Vec<Class> = Vec::new();
        for pod in typical.pods().iter().filter(of_gpus) {
            let class = Class { gpu_milli: pod.gpu_milli, gpus: pod.gpus };
            if !classes.contains(&class) {
                classes.push(class);
            }
        }
        let mut cpu_milli: Vec<u32> = typical.pods().iter().filter(of_gpus).map(|pod| pod.cpu_milli).collect();
        cpu_milli.sort_unstable();
        cpu_milli.dedup();
        let weights = |pool: PoolId| {
            let mut rows = vec![0; classes.len()];
            for &cpu_milli in &cpu_milli {
                rows.extend_from_within(rows.len() - classes.len()..);
                let row = rows.len() - classes.len();
                for (i, pod) in typical.pods().iter().enumerate().filter(|(_, pod)| pod.gpus > 0) {
                    let class =
                        classes.iter().position(|class| *class == Class { gpu_milli: pod.gpu_milli, gpus: pod.gpus });
                    if pod.cpu_milli == cpu_milli
                        && typical.allows(pool, i)
                        && let Some(class) = class
                    {
                        rows[row + class] += u64::from(pod.count);
                    }
                }
            }
            Weights { cpu_milli: cpu_milli.clone(), rows }
        };
        let pools = (0..n_pools as u32).map(|pool| weights(PoolId(pool))).collect();
        let total = typical.pods().iter().map(|pod| u64::from(pod.count)).sum();
        Self { classes, pools, total }
    }

    /// As [`exact::growth`](super::exact::growth), for a node of a pool.
    pub fn growth(&self, pool: PoolId, left: &Left, ask: &Ask) -> Option<(i64, GpuMask)> {
        let mut choices = choices(left, ask);
        let first = choices.next()?;
        let mut sums = Sums { able: [0; MAX_TYPICAL], big: [0; MAX_TYPICAL] };
        self.sum(left, &mut sums);
        let before = self.of_use(self.weights(pool, left.cpu_milli), &sums, 0, 0);
        let after = left.without(ask, first);
        let weights = self.weights(pool, after.cpu_milli);
        let asked = u64::from(ask.gpus) * u64::from(ask.gpu_milli) * self.total;
        let growth = |of_use: u64| before as i64 - of_use as i64 - asked as i64;
        if !ask.is_share() {
            if ask.gpus > 0 {
                self.sum(&after, &mut sums);
            }
            return Some((growth(self.of_use(weights, &sums, 0, 0)), first));
        }
        let mut best: Option<(i64, GpuMask)> = None;
        let mut known: Option<u32> = None;
        for gpu in std::iter::once(first).chain(choices) {
            let has = u32::from(left.gpu_milli[gpu.trailing_zeros() as usize]);
            // A device that has as much left as the one before it is no better, and comes after it.
            if known.replace(has) == Some(has) {
                continue;
            }
            let growth = growth(self.of_use(weights, &sums, has, has - u32::from(ask.gpu_milli)));
            if best.is_none_or(|(least, _)| growth < least) {
                best = Some((growth, gpu));
            }
        }
        best
    }

    fn weights(&self, pool: PoolId, cpu_milli: u32) -> &[u64] {
        let Weights { cpu_milli: steps, rows } = &self.pools[pool.index()];
        let at = steps.partition_point(|&step| step <= cpu_milli) * self.classes.len();
        &rows[at..at + self.classes.len()]
    }

    fn sum(&self, left: &Left, sums: &mut Sums) {
        for (i, class) in self.classes.iter().enumerate() {
            let (mut able, mut big) = (0, 0);
            for milli in left.gpu_milli.map(u32::from) {
                let enough = u32::from(milli >= class.gpu_milli);
                able += enough;
                big += enough * milli;
            }
            (sums.able[i], sums.big[i]) = (able, big);
        }
    }

    /// Weight times milli-GPU of use, over all classes, once a device of which `had` was left has `has` left.
    fn of_use(&self, weights: &[u64], sums: &Sums, had: u32, has: u32) -> u64 {
        let of = |(i, (class, &weight)): (usize, (&Class, &u64))| {
            let (before, after) = (u32::from(had >= class.gpu_milli), u32::from(has >= class.gpu_milli));
            let able = sums.able[i] - before + after;
            let big = sums.big[i] - before * had + after * has;
            weight * u64::from(if able >= class.gpus { big } else { 0 })
        };
        self.classes.iter().zip(weights).enumerate().map(of).sum()
    }
}
