//! Worst-fit: the node with the most free GPUs, ties to the lowest number.
//!
//! The spreading baseline of COMPASS-ABS (arXiv 2606.09200, §5); what Kubernetes knows as `LeastAllocated`. Of domains or
//! racks it takes the one with the most free GPUs. A CPU-only instance goes where the most GPUs are free; since it takes
//! none, a gang of them stays on one node as long as its CPU and memory last.

use std::ops::RangeInclusive;

use super::Key;
use crate::cluster::MAX_GPUS;

pub(super) fn key(free: u64, number: u32) -> Key {
    (u64::MAX - free, number)
}

pub(super) fn levels(step: u8, gpus: u8) -> Option<RangeInclusive<u8>> {
    let level = (MAX_GPUS as u8).checked_sub(step)?;
    (level >= gpus).then_some(level..=level)
}
