//! What a dump of another scheduler says, before it is a cluster and a queue.
//!
//! Dumps are lenient where our own format is strict: they are read off a live system, in pages, by programs of many
//! versions. What does not fit together is made to fit here, in one place, and the user is told.

mod assembly;
mod handles;
mod limit;
mod tally;
mod waiting;

pub(super) use assembly::{Assembled, DumpJob, DumpNode, DumpSeat, Held, assemble};
pub use handles::Handles;
pub(super) use limit::DumpLimit;
pub(super) use tally::Tally;
pub use waiting::{WaitingGroup, WaitingJob};

use crate::cluster::Cluster;
use crate::workload::Queue;

use super::error::{FormatError, Note};
use super::snapshot::Snapshot;

/// What a dump says: a cluster and the jobs that run there, and the jobs that wait.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// The cluster, and what its reader had to assume.
    pub snapshot: Snapshot,
    /// The jobs that wait for a place, the first in priority first.
    pub waiting: Vec<WaitingJob>,
    /// What the user should know about those.
    pub waiting_notes: Vec<Note>,
    /// What their owners call the jobs that wait, each with its name here; several may be called the same.
    pub own_names: Vec<(String, String)>,
}

impl Import {
    /// The jobs that wait, as a queue; they are registered in `cluster`, which need not be the one of this dump. A job that
    /// is there already is left out, and counted in a note.
    ///
    /// # Errors
    /// If there are more jobs than a cluster can count.
    pub fn queue(&self, input: &str, cluster: &mut Cluster) -> Result<(Queue, Vec<Note>), FormatError> {
        let mut tally = Tally::new(input);
        let queue = waiting::register(&self.waiting, cluster, &mut tally);
        let queue = queue.map_err(|error| FormatError::new(input, error))?;
        Ok((queue, self.waiting_notes.iter().cloned().chain(tally.notes()).collect()))
    }
}

/// What a dump of several files is called in notes.
pub(super) fn name_of(paths: &[&str]) -> String {
    match paths {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}
