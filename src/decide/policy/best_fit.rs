//! Best-fit: the node with the fewest free GPUs that still fits, ties to the lowest number.
//!
//! The baseline of COMPASS-ABS (arXiv 2606.09200, §5), where it is called after the scheduler of its first trace; what
//! Kubernetes knows as `MostAllocated`. Of domains or racks it takes the one with the fewest free GPUs that holds the
//! whole gang. A CPU-only instance goes where the fewest GPUs are free, so that it takes CPU and memory from few.

use std::ops::RangeInclusive;

use super::Key;
use crate::cluster::MAX_GPUS;

pub(super) fn key(free: u64, number: u32) -> Key {
    (free, number)
}

pub(super) fn levels(step: u8, gpus: u8) -> Option<RangeInclusive<u8>> {
    let level = gpus + step;
    (usize::from(level) <= MAX_GPUS).then_some(level..=level)
}
