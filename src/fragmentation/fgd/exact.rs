//! The measure in integers: popularity times milli-GPU, so that no rounding ever decides.

use super::{Ask, Left, TypicalPod, choices};
use crate::cluster::GpuMask;

/// The fragment of a node: the sum over the typical pods of `count` times the milli-GPU that the pod could not use.
/// Divided by the sum of `count` it is the measure F of the paper. Bit `i % 32` of word `i / 32` of `allowed` says whether
/// the node's model is one that typical pod `i` allows.
pub fn fragment(pods: &[TypicalPod], allowed: &[u32], left: &Left) -> u64 {
    let idle = left.idle();
    let of =
        |(i, pod): (usize, &TypicalPod)| u64::from(pod.count) * u64::from(lost(pod, is_set(allowed, i), left, idle));
    pods.iter().enumerate().map(of).sum()
}

/// The milli-GPU of a node, of which `idle` are left, that one typical pod could not use.
fn lost(pod: &TypicalPod, allowed: bool, left: &Left, idle: u32) -> u32 {
    if pod.gpus == 0 || !allowed || left.cpu_milli < pod.cpu_milli {
        return idle;
    }
    let (mut able, mut small) = (0, 0);
    for milli in left.gpu_milli.map(u32::from) {
        if milli >= pod.gpu_milli {
            able += 1;
        } else {
            small += milli;
        }
    }
    if able >= pod.gpus { small } else { idle }
}

/// Bit `i` of a set that is kept in words.
pub(super) fn is_set(words: &[u32], i: usize) -> bool {
    words[i / 32] >> (i % 32) & 1 == 1
}

/// How well a node takes an instance: by how much the fragment of the node grows, the smaller the better, and on which
/// devices; of equal ones the first in the order of [`choices`]. `None` if CPU or devices do not suffice. That the model
/// is allowed, and memory suffices, is for the caller to know.
pub fn growth(pods: &[TypicalPod], allowed: &[u32], left: &Left, ask: &Ask) -> Option<(i64, GpuMask)> {
    let before = fragment(pods, allowed, left) as i64;
    let of = |gpus: GpuMask| (fragment(pods, allowed, &left.without(ask, gpus)) as i64 - before, gpus);
    // Devices ascend with their masks, and only a share has more choices than one.
    choices(left, ask).map(of).min()
}
