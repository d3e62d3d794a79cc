//! The measure as the authors' simulator computes it: double precision, no fused multiplication, in its order of
//! operations, and scores cut to integers from 0 to 100. For comparison with that simulator, decision for decision; only
//! this module decides anything by floating point.

use super::exact::is_set;
use super::{Ask, Left, TypicalPod, choices};
use crate::cluster::GpuMask;

/// The classes of a node for a pod, as the simulator sums them: all but Q3 are fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Too few devices, too little CPU.
    Q1,
    /// Too few devices.
    Q2,
    /// It fits.
    Q3,
    /// Too little CPU.
    Q4,
    /// A CPU-only pod that fits.
    Xl,
    /// A CPU-only pod that does not.
    Xr,
    /// Not its model.
    Na,
}

const N_CLASSES: usize = 7;

/// The popularity of each typical pod: its share of all requests, divided by the share that the typical ones have.
pub fn popularity(pods: &[TypicalPod], total: u64) -> Vec<f64> {
    let covered: u64 = pods.iter().map(|pod| u64::from(pod.count)).sum();
    let share = covered as f64 / total as f64;
    pods.iter().map(|pod| f64::from(pod.count) / total as f64 / share).collect()
}

/// The fragment of a node in milli-GPU. `popularity` is what [`popularity`] says of `pods`, `allowed` as in
/// [`super::exact::fragment`].
pub fn fragment(pods: &[TypicalPod], popularity: &[f64], allowed: &[u32], left: &Left) -> f64 {
    let mut amounts = [0f64; N_CLASSES];
    let idle = left.idle();
    for (i, (pod, &p)) in pods.iter().zip(popularity).enumerate() {
        let class = class(pod, is_set(allowed, i), left);
        if class == Class::Q3 {
            let small: u32 = left.gpu_milli.iter().map(|&g| u32::from(g)).filter(|&g| g < pod.gpu_milli).sum();
            amounts[Class::Q2 as usize] += p * f64::from(small);
            amounts[Class::Q3 as usize] += p * f64::from(idle - small);
        } else {
            amounts[class as usize] += p * f64::from(idle);
        }
    }
    let [q1, q2, _, q4, xl, xr, na] = amounts;
    q1 + q2 + q4 + xl + xr + na
}

fn class(pod: &TypicalPod, allowed: bool, left: &Left) -> Class {
    let has_cpu = left.cpu_milli >= pod.cpu_milli;
    if pod.gpus == 0 {
        return if has_cpu { Class::Xl } else { Class::Xr };
    }
    if !allowed {
        return Class::Na;
    }
    let able = left.gpu_milli.iter().filter(|&&milli| u32::from(milli) >= pod.gpu_milli).count();
    match (able >= pod.gpus as usize, has_cpu) {
        (true, true) => Class::Q3,
        (true, false) => Class::Q4,
        (false, true) => Class::Q2,
        (false, false) => Class::Q1,
    }
}

/// The score of a placement that takes the fragment of its node from `before` to `after`: 0 to 100, higher is better, 50
/// changes nothing. One point is about 40 milli-GPU near 50.
pub fn score(before: f64, after: f64) -> i64 {
    let gain = before - after;
    (100.0 / (1.0 + (-gain / 1000.0).exp())) as i64
}

/// The best score of a node and the devices that have it, the first of equal ones; `None` if CPU or devices do not
/// suffice. Model and memory are for the caller to know.
pub fn best(
    pods: &[TypicalPod],
    popularity: &[f64],
    allowed: &[u32],
    left: &Left,
    ask: &Ask,
) -> Option<(i64, GpuMask)> {
    let before = fragment(pods, popularity, allowed, left);
    let mut best: Option<(i64, GpuMask)> = None;
    for gpus in choices(left, ask) {
        let score = score(before, fragment(pods, popularity, allowed, &left.without(ask, gpus)));
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, gpus));
        }
    }
    best
}
