//! The jobs that wait: which could start, and which fit by count and yet do not fit.

use rustc_hash::FxHashMap;

use crate::anchor::State;
use crate::cluster::{JobId, RequestId};
use crate::decide::why::{Why, why_blocked};

/// Waiting jobs that ask the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingJobs {
    /// What each of their instances asks.
    pub request: RequestId,
    /// Instances of each.
    pub instances: u32,
    /// They, in the order of the queue.
    pub jobs: Vec<JobId>,
    /// Why each of them, alone on the cluster as it is, does not fit; `None` if it does. Never
    /// [`Why::Space`]: no policy is asked.
    pub why: Option<Why>,
}

/// The jobs that wait, each looked at alone on the cluster as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Jobs that ask the same, by their first in the queue.
    pub alike: Vec<PendingJobs>,
}

impl Pending {
    /// How many jobs wait.
    pub fn jobs(&self) -> u64 {
        self.count(|_| true)
    }

    /// How many of them fit; each alone, not all of them together.
    pub fn startable(&self) -> u64 {
        self.count(|why| why.is_none())
    }

    /// How many of them do not fit for this reason.
    pub fn blocked(&self, why: Why) -> u64 {
        self.count(|other| other == Some(why))
    }

    /// How many do not fit though enough GPUs are free: the shape is wrong, or CPU, memory, model or topology.
    pub fn though_free(&self) -> u64 {
        self.blocked(Why::Fragmentation) + self.blocked(Why::Constraint)
    }

    fn count(&self, is_so: impl Fn(Option<Why>) -> bool) -> u64 {
        self.alike.iter().filter(|alike| is_so(alike.why)).map(|alike| alike.jobs.len() as u64).sum()
    }
}

/// Looks at each waiting job. O(jobs), and for each kind of them what [`why_blocked`] takes.
pub(super) fn pending(state: &State, waiting: &[JobId]) -> Pending {
    let mut numbers: FxHashMap<(RequestId, u32), usize> = FxHashMap::default();
    let mut alike: Vec<PendingJobs> = Vec::new();
    for &id in waiting {
        let job = state.cluster().job(id);
        let (request, instances) = (job.request(), job.instances());
        let number = *numbers.entry((request, instances)).or_insert(alike.len());
        if number == alike.len() {
            let why = Some(why_blocked(state, id)).filter(|&why| why != Why::Space);
            alike.push(PendingJobs { request, instances, jobs: Vec::new(), why });
        }
        alike[number].jobs.push(id);
    }
    Pending { alike }
}
