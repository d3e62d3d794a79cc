//! Runs the commit loop and shows each decision together with the cluster that it names.

use super::commit_loop::{CommitLoop, PlaceOptions};
use super::decision::Decision;
use super::policy::Policy;
use crate::cluster::Cluster;
use crate::workload::QueueEntry;

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// With the next decision.
    GoOn,
    /// Nobody is interested any more.
    Stop,
}

/// Decides the queue in order and shows each decision to `each`, until that fails or says stop.
///
/// # Errors
/// What `each` returns.
pub fn decide_and_show<E>(
    commit_loop: &mut CommitLoop<'_>,
    options: &PlaceOptions,
    queue: &[QueueEntry],
    each: &mut dyn FnMut(&Cluster, &Decision) -> Result<Next, E>,
) -> Result<(), E> {
    let mut index = 0;
    let mut decisions: Vec<Decision> = Vec::new();
    for entries in queue.chunks(options.window.max(1)) {
        decisions.clear();
        // The loop lends a decision only while it holds the cluster, so a window of them is kept. Only the random policy
        // asks for the place in the queue, and it has no use for a window.
        if options.policy == Policy::Random {
            let one = |(at, &entry)| commit_loop.decide(entry, index + at).clone();
            decisions.extend(entries.iter().enumerate().map(one));
        } else {
            commit_loop.run(entries, &mut |decision| decisions.push(decision.clone()));
        }
        index += entries.len();
        for decision in &decisions {
            if each(commit_loop.state().cluster(), decision)? == Next::Stop {
                return Ok(());
            }
        }
    }
    Ok(())
}
