//! What comes in and what goes out again: one file per format. Each reader returns the data and notes for the user.
//!
//! Every fault of an input is a [`FormatError`], one line that says where it is, what was found and what was expected.

mod error;
mod job;
mod json;
mod snapshot;
mod snapshot_out;
mod source;

pub use error::{FormatError, Note};
pub use snapshot::{Snapshot, read_cluster, read_cluster_from};
pub use snapshot_out::write_cluster;
pub use source::Source;
