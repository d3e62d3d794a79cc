//! Jobs, queues and demand counts.

mod demand;
mod inflate;
mod node_event;
mod queue;
pub mod synthetic;
mod trace;

pub use demand::Demand;
pub use inflate::{Inflation, inflate};
pub use node_event::{NodeChange, NodeEvent};
pub use queue::{Queue, QueueEntry, submitted_jobs};
pub use trace::{Outcome, TraceEvent, TraceJob, natural, replay, trace_to_queue};
