//! Jobs, queues and demand counts.

mod demand;

pub use demand::Demand;
