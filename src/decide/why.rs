//! Why a job is blocked.

use super::need::Need;
use crate::anchor::State;
use crate::cluster::{JobId, Within};

/// Why a job is blocked; the first that is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Fewer GPUs are left on schedulable nodes than the job asks for, in thousandths, the rests of shared ones included.
    Capacity,
    /// Enough are free, but GPUs alone, on whatever schedulable nodes, they cannot be packed.
    Fragmentation,
    /// GPUs alone would do; CPU, memory, model or topology forbids it.
    Constraint,
    /// It fits, but not inside the policy's own space, or only with moves that the budget or the trigger forbids.
    Space,
}

impl Why {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Why::Capacity => "capacity",
            Why::Fragmentation => "fragmentation",
            Why::Constraint => "constraint",
            Why::Space => "space",
        }
    }
}

/// Why a job, which some policy just refused to place on this state, is blocked.
///
/// Exact: the instances of a job are alike, so they fit if and only if what the nodes can take one by one adds up to
/// enough. O(pools) unless CPU, memory, model or topology could be the reason, then O(nodes).
pub fn why_blocked(state: &State, job: JobId) -> Why {
    let need = Need::new(state.cluster(), state.cluster().request_of(job));
    why(state, &need, state.cluster().job(job).instances())
}

/// [`why_blocked`] with the need at hand.
pub(super) fn why(state: &State, need: &Need, instances: u32) -> Why {
    let by_gpus = why_by_gpus(state, need, instances);
    by_gpus.unwrap_or_else(|| if fits(state, need, instances) { Why::Space } else { Why::Constraint })
}

/// The same of a job that may go to one region alone, if one is given.
pub(super) fn why_in(state: &State, need: &Need, instances: u32, region: Option<(Within, usize)>) -> Why {
    let Some((within, number)) = region else { return why(state, need, instances) };
    let nodes = state.regions(within)[number].iter().copied();
    let fit = need.fit_on(state.cluster(), nodes, u64::from(instances));
    why_by_gpus(state, need, instances).unwrap_or(if fit { Why::Space } else { Why::Constraint })
}

/// The reason that GPUs alone give, on whatever schedulable nodes.
pub(super) fn why_by_gpus(state: &State, need: &Need, instances: u32) -> Option<Why> {
    if need.gpus == 0 {
        return None;
    }
    if lacks_capacity(state, need, instances) {
        return Some(Why::Capacity);
    }
    let fit = need.gpus_fit_anywhere(state, u64::from(instances));
    (!fit).then_some(Why::Fragmentation)
}

/// Whether less of GPUs is left on the schedulable nodes than the instances ask for. O(1).
pub(super) fn lacks_capacity(state: &State, need: &Need, instances: u32) -> bool {
    state.free_gpu_milli() < u64::from(instances) * u64::from(need.gpus) * u64::from(need.gpu_milli)
}

/// Whether the nodes, as they are, can take all the instances with everything that the request asks.
pub(super) fn fits(state: &State, need: &Need, instances: u32) -> bool {
    let (cluster, instances) = (state.cluster(), u64::from(instances));
    match need.within {
        Some(within) => {
            state.regions(within).iter().any(|nodes| need.fit_on(cluster, nodes.iter().copied(), instances))
        }
        None if need.limited || need.gpus == 0 => need.fit_on(cluster, cluster.node_ids(), instances),
        None => need.gpus_fit(state, instances),
    }
}
