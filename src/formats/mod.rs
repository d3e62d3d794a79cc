//! What comes in and what goes out again: one file per format. Each reader returns the data and notes for the user.
//!
//! Every fault of an input is a [`FormatError`], one line that says where it is, what was found and what was expected.

mod alibaba;
mod candidates;
mod error;
mod job;
mod json;
mod lines;
mod origin;
mod output;
mod philly;
mod queue;
mod snapshot;
mod snapshot_out;
mod source;
mod table;
mod trace;

pub use alibaba::{read_alibaba_2026, read_alibaba_2026_from};
pub use candidates::{CandidateSpec, MoveSpec, SeatSpec, read_candidates, read_candidates_from};
pub use error::{FormatError, Note};
pub use origin::{TraceOptions, cluster_source, queue_source, trace_source};
pub use output::{AtomicFile, write_file};
pub use philly::{read_philly, read_philly_from};
pub use queue::{read_queue, read_queue_from, write_queue};
pub use snapshot::{Snapshot, read_cluster, read_cluster_from};
pub use snapshot_out::write_cluster;
pub use source::Source;
pub use trace::{read_trace, read_trace_from, write_trace};
