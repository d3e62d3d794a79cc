//! Jobs, queues and demand counts.

mod demand;
mod node_event;
mod queue;
pub mod synthetic;
mod trace;

pub use demand::Demand;
pub use node_event::{NodeChange, NodeEvent};
pub use queue::{Queue, QueueEntry};
pub use trace::{Outcome, TraceEvent, TraceJob, natural, replay, trace_to_queue};
