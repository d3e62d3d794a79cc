//! The largest node that slotwise knows, and small integer helpers around it.

/// The largest number of GPUs a node may have.
pub const MAX_GPUS: usize = 16;

/// One value per instance size: index `g` is the size in GPUs, 0 (CPU-only) to 16.
pub type PerSize<T> = [T; MAX_GPUS + 1];

/// The width of the slot that an anchor of `gpus` needs on a node of `capacity`: the next power of two, at most the
/// capacity (COMPASS-ABS eq. 3; the cap is ours, for capacities that are no power of two).
///
/// Only meaningful for `2 <= gpus <= capacity`; a 1-GPU instance owns no slot.
pub const fn slot_width(gpus: u8, capacity: u8) -> u8 {
    let width = (gpus as u32).next_power_of_two();
    if width > capacity as u32 { capacity } else { width as u8 }
}
