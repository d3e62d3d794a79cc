//! From the GPUs of a whole job to instances: one rule for every trace that states totals alone.

use crate::cluster::{MAX_AMOUNT, MAX_GPUS};

use super::gather::LeftOut;

/// The GPUs of a node, of which larger jobs take whole ones.
const NODE: u64 = 8;

/// The most GPUs or nodes of one job that a trace may state.
pub(super) const MOST: u64 = 1 << 24;

/// The instances of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) instances: u32,
    /// GPUs an instance.
    pub(super) gpus: u8,
    /// True if they are what the trace's number of nodes says.
    pub(super) by_nodes: bool,
}

/// Splits a job of `gpus` GPUs, of which the trace may say on how many nodes it was to run.
///
/// 1. Where the nodes divide the GPUs and an instance is at most 16: an instance a node.
/// 2. Else up to 8 GPUs: one instance.
/// 3. Else a multiple of 8: instances of 8.
/// 4. Else nobody knows, and the job is left out.
///
/// A job without GPUs has an instance a node too, or one.
pub(super) fn split(gpus: u64, nodes: Option<u64>) -> Result<Split, LeftOut> {
    let nodes = nodes.filter(|&nodes| nodes > 0);
    if gpus > MOST || nodes.is_some_and(|nodes| nodes > MOST) {
        return Err(LeftOut::TooMuch);
    }
    let by_nodes = nodes.filter(|&nodes| gpus.is_multiple_of(nodes) && gpus / nodes <= MAX_GPUS as u64);
    let (instances, gpus) = match (by_nodes, gpus) {
        (Some(nodes), _) => (nodes, gpus / nodes),
        (None, 0..=NODE) => (1, gpus),
        (None, _) if gpus.is_multiple_of(NODE) => (gpus / NODE, NODE),
        _ => return Err(LeftOut::Indivisible),
    };
    Ok(Split { instances: instances as u32, gpus: gpus as u8, by_nodes: by_nodes.is_some() })
}

/// What each of `instances` gets of `total` milli-cores or MiB, rounded up so that together they have no less.
pub(super) fn each(total: u64, instances: u32) -> Result<u32, LeftOut> {
    let each = total.div_ceil(u64::from(instances.max(1)));
    u32::try_from(each).ok().filter(|&each| each <= MAX_AMOUNT).ok_or(LeftOut::TooMuch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_divide_come_first_then_eights() {
        let split = |gpus, nodes| split(gpus, nodes).map(|split| (split.instances, split.gpus, split.by_nodes));
        assert_eq!(split(5, None), Ok((1, 5, false)));
        assert_eq!(split(5, Some(0)), Ok((1, 5, false)));
        assert_eq!(split(24, None), Ok((3, 8, false)));
        assert_eq!(split(16, Some(4)), Ok((4, 4, true)));
        assert_eq!(split(12, Some(2)), Ok((2, 6, true)));
        assert_eq!(split(16, Some(1)), Ok((1, 16, true)));
        assert_eq!(split(24, Some(1)), Ok((3, 8, false)));
        assert_eq!(split(16, Some(3)), Ok((2, 8, false)));
        assert_eq!(split(0, Some(3)), Ok((3, 0, true)));
        assert_eq!(split(0, None), Ok((1, 0, false)));
        assert_eq!(split(12, None), Err(LeftOut::Indivisible));
        assert_eq!(split(12, Some(5)), Err(LeftOut::Indivisible));
        assert_eq!(split(u64::MAX, None), Err(LeftOut::TooMuch));
        assert_eq!(each(10_000, 3), Ok(3_334));
        assert_eq!(each(u64::MAX, 1), Err(LeftOut::TooMuch));
    }
}
