//! Jobs, queues and demand counts.

mod demand;
mod queue;

pub use demand::Demand;
pub use queue::{Queue, QueueEntry};
