//! A queue that is decided: for the caller's eyes only, or for good.

use super::{Changed, Condition, Live};
use crate::cluster::Cluster;
use crate::decide::{CommitLoop, Decision, Next, PlaceOptions, Status, decide_and_show};
use crate::formats::FormatError;
use crate::plan::FewestMoves;
use crate::serve::fault::ServeError;
use crate::workload::{Queue, QueueEntry};

/// Appends a decision to the answer, in the form of whoever asked.
pub type Show<'s> = &'s mut dyn FnMut(&mut Vec<u8>, &Cluster, &Decision) -> Result<(), ServeError>;

/// How a queue is decided.
#[derive(Clone, Debug, Default)]
pub struct PlaceCall {
    /// For which version; and the caller's name for it, if it is to be kept.
    pub condition: Condition,
    /// Who decides, and how.
    pub options: PlaceOptions,
    /// Whether what is decided is done. Otherwise nothing has changed afterwards.
    pub commit: bool,
}

impl Live {
    /// Decides the queue that `read` registers, in its order, and writes each decision by `show`. A call that only asks
    /// works on a copy of the state: O(cluster) beside the decisions.
    ///
    /// # Errors
    /// If the version is another, there is no cluster, or the queue cannot be read. Nothing has changed then.
    pub fn place(
        &mut self,
        call: &PlaceCall,
        read: impl FnOnce(&mut Cluster) -> Result<Queue, FormatError>,
        show: Show<'_>,
    ) -> Result<Changed, ServeError> {
        if call.commit
            && let Some(done) = self.repeated(&call.condition)
        {
            return Ok(done);
        }
        self.check(call.condition.version)?;
        let state = self.state_mut()?;
        let mut copy = (!call.commit).then(|| state.clone());
        let state = copy.as_mut().unwrap_or(state);
        let mark = state.cluster().mark_jobs();
        let queue = state.enqueue(read).inspect_err(|_| state.forget_since(mark))?;
        let mut answer = Vec::new();
        let mut commit_loop = CommitLoop::new(state, call.options).with_room_maker(Box::new(FewestMoves::default()));
        let mut changed = false;
        let shown = decide_and_show(&mut commit_loop, &call.options, &queue, &mut |cluster, decision| {
            changed |= matches!(decision.status, Status::Placed | Status::Removed);
            show(&mut answer, cluster, decision).map(|()| Next::GoOn)
        });
        drop(commit_loop);
        if call.commit {
            release_names(state, &queue);
            // What is decided is done, even if it cannot be shown.
            self.resident.forget();
            if changed {
                self.advance();
            }
        }
        shown?;
        let (version, answer) = (self.version(), answer.into());
        if call.commit {
            self.applied.keep(&call.condition, version, Some(std::sync::Arc::clone(&answer)));
            self.forget_ended();
        }
        Ok(Changed { version, repeated: false, answer: Some(answer) })
    }
}

/// The names of jobs that do not run are free: nothing waits here.
fn release_names(state: &mut crate::anchor::State, queue: &[QueueEntry]) {
    state.enqueue(|cluster| {
        for entry in queue {
            for job in cluster.whole_job(entry.job()) {
                cluster.release_name(job);
            }
        }
    });
}
