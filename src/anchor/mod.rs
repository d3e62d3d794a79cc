//! The Anchor-Based Space Σ (COMPASS-ABS §4): slots, membership, and the operators Place, Remove and Compact.

mod choose;
mod compact;
mod gang;
mod groups;
mod mover;
mod operators;
mod pair;
mod paper;
mod pool_state;
mod rules;
mod shape;
mod shared_devices;
mod state;
mod transaction;

pub use choose::takes;
pub use operators::{compact, place, place_groups, remove, remove_together};
pub use pool_state::PoolState;
pub use rules::{Rules, Trigger, Variant};
pub use shape::{Kind, Outside, Shape};
pub use state::State;
pub use transaction::{Checkpoint, Migration, Transaction};
