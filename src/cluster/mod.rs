//! What is: nodes, the GPUs they hold, and who holds them. Plain integers; no I/O, no clock, no threads.

mod capacity;

pub use capacity::{MAX_GPUS, PerSize, slot_width};
