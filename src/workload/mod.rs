//! Jobs, queues and demand counts.

mod demand;
mod inflate;
mod queue;
pub mod synthetic;
mod trace;

pub use demand::Demand;
pub use inflate::{Inflation, inflate};
pub use queue::{Queue, QueueEntry};
pub use trace::{Outcome, TraceEvent, TraceJob, natural, replay, trace_to_queue};
