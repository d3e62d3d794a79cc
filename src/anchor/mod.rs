//! The Anchor-Based Space Σ (COMPASS-ABS §4): slots, membership, and the operators Place, Remove and Compact.

mod shape;

pub use shape::{Kind, Outside, Shape};
