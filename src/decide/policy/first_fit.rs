//! First-fit: the node of the lowest number that fits, however many GPUs are free there.
//!
//! The classic of bin packing (Johnson, *Near-optimal bin packing algorithms*, 1973). Of domains or racks it takes the
//! first that holds the whole gang.

use std::ops::RangeInclusive;

use super::Key;
use crate::cluster::MAX_GPUS;

pub(super) fn key(_free: u64, number: u32) -> Key {
    (0, number)
}

pub(super) fn levels(step: u8, gpus: u8) -> Option<RangeInclusive<u8>> {
    (step == 0).then_some(gpus..=MAX_GPUS as u8)
}
