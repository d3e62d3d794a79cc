//! A queue that is decided: for the caller's eyes only, or for good.

use super::{Changed, Condition, Live};
use crate::anchor::State;
use crate::cluster::Cluster;
use crate::decide::{CommitLoop, Decision, Next, PlaceOptions, Status, decide_and_show};
use crate::formats::FormatError;
use crate::plan::FewestMoves;
use crate::report::decision_json;
use crate::serve::fault::ServeError;
use crate::workload::{Queue, QueueEntry, submitted_jobs};

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

/// Writes a decision on the cluster that it names.
pub type Show<'a> = dyn FnMut(&mut Vec<u8>, &Cluster, &Decision) -> Result<(), ServeError> + 'a;

impl Live {
    /// Decides the queue that `read` registers, in its order, and writes each decision by `show`. A call that only asks
    /// works on a copy of the state: O(cluster) beside the decisions.
    ///
    /// A call that was made before is answered in lines of JSON, as [`decision_json`] writes them, whatever `show` is: who
    /// asks again may do so by another protocol.
    ///
    /// # Errors
    /// If the version is another, there is no cluster, or the queue cannot be read. Nothing has changed then.
    pub fn place(
        &mut self,
        call: &PlaceCall,
        read: impl FnOnce(&mut Cluster) -> Result<Queue, FormatError>,
        show: &mut Show<'_>,
    ) -> Result<Changed, ServeError> {
        if call.commit
            && let Some(done) = self.repeated(&call.condition)
        {
            return if done.answer.is_some() { Ok(done) } else { Err(other_change()) };
        }
        self.check(call.condition.version)?;
        let state = self.state_mut()?;
        let mut copy = (!call.commit).then(|| state.clone());
        let state = copy.as_mut().unwrap_or(state);
        let mark = state.cluster().mark_jobs();
        let queue = state.enqueue(read).inspect_err(|_| state.forget_since(mark))?;
        if let Err(too_many) = check_cpu_only(state, &queue) {
            state.forget_since(mark);
            return Err(too_many);
        }
        let (mut answer, mut kept, mut effects) = (Vec::new(), Vec::new(), Vec::new());
        let keeps = call.commit && call.condition.id.is_some();
        let mut commit_loop = CommitLoop::new(state, call.options).with_room_maker(Box::new(FewestMoves::default()));
        let mut changed = false;
        let mut news = Vec::new();
        let shown = decide_and_show(&mut commit_loop, &call.options, &queue, &mut |cluster, decision| {
            let happened = matches!(decision.status, Status::Placed | Status::Removed);
            changed |= happened;
            if happened && call.commit {
                let runs = decision.status == Status::Placed;
                news.extend(cluster.whole_job(decision.job).map(|job| (cluster.job_name(job).to_owned(), runs)));
            }
            if keeps {
                effects.push((decision.delta_sif_nodes, decision.in_abs));
                decision_json(&mut kept, cluster, decision).map_err(|error| ServeError::Failed(error.to_string()))?;
            }
            show(&mut answer, cluster, decision).map(|()| Next::GoOn)
        });
        drop(commit_loop);
        if call.commit {
            release_names(state, &queue);
            // What is decided is done, even if it cannot be shown.
            self.resident.forget();
            self.gangs.learn_placed(news);
            if changed {
                self.advance();
            }
        }
        shown?;
        let version = self.version();
        if call.commit {
            let made = Changed { answer: Some(kept.into()), effects: effects.into(), ..Changed::new(version) };
            self.applied.keep(&call.condition, made);
            self.forget_ended();
        }
        Ok(Changed { answer: Some(answer.into()), ..Changed::new(version) })
    }
}

/// An id that was used for a change of another kind.
pub(super) fn other_change() -> ServeError {
    ServeError::Input("id: found one that another kind of call has used, expected a new one".to_owned())
}

/// The most instances without GPUs of one call: nothing but this bounds them where nodes set no limit of CPU.
const MOST_CPU_ONLY: u64 = 1 << 18;

fn check_cpu_only(state: &State, queue: &[QueueEntry]) -> Result<(), ServeError> {
    let cluster = state.cluster();
    let jobs = submitted_jobs(queue, cluster);
    let instances =
        jobs.filter(|&job| cluster.request_of(job).gpus == 0).map(|job| u64::from(cluster.job(job).instances()));
    let found: u64 = instances.sum();
    if found <= MOST_CPU_ONLY {
        return Ok(());
    }
    let text = format!("queue: found {found} instances without GPUs, expected at most {MOST_CPU_ONLY} in a call");
    Err(ServeError::Input(text))
}

/// The names of jobs that do not run are free: nothing waits here.
fn release_names(state: &mut State, queue: &[QueueEntry]) {
    state.enqueue(|cluster| {
        for entry in queue {
            for job in cluster.whole_job(entry.job()) {
                cluster.release_name(job);
            }
        }
    });
}
