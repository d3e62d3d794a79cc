//! The jobs that wait: which could start, and which fit by count and yet do not fit.

use rustc_hash::FxHashMap;

use crate::anchor::State;
use crate::cluster::{GroupedJob, JobId, RequestId};
use crate::decide::commit_loop::{CommitLoop, PlaceOptions};
use crate::decide::decision::Status;
use crate::decide::groups::{Refusal, why_groups_blocked};
use crate::decide::policy::Policy;
use crate::decide::why::{Why, why_blocked};
use crate::workload::QueueEntry;

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

/// A waiting job of several groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingGroups {
    /// It.
    pub job: GroupedJob,
    /// Why it, alone on the cluster as it is, does not fit, and whether that is proved; `None` if it fits.
    pub refusal: Option<Refusal>,
}

/// The jobs that wait, each looked at alone on the cluster as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Jobs that ask the same, by their first in the queue.
    pub alike: Vec<PendingJobs>,
    /// Jobs of several groups, in the order of the queue.
    pub groups: Vec<PendingGroups>,
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
        let alike = self.alike.iter().filter(|alike| is_so(alike.why)).map(|alike| alike.jobs.len() as u64);
        let groups = self.groups.iter().filter(|pending| is_so(pending.refusal.map(|refusal| refusal.why)));
        alike.sum::<u64>() + groups.count() as u64
    }
}

/// Looks at each waiting job, of which all groups are there. O(jobs), and for each kind of them what [`why_blocked`] takes.
pub(super) fn pending(state: &State, waiting: &[JobId]) -> Pending {
    let mut numbers: FxHashMap<(RequestId, u32), usize> = FxHashMap::default();
    let mut alike: Vec<PendingJobs> = Vec::new();
    let mut groups: Vec<PendingGroups> = Vec::new();
    let mut copy: Option<State> = None;
    for &id in waiting {
        if let Some(job) = state.cluster().grouped_job_of(id) {
            if job.first() == id {
                let refusal = why_groups_blocked(state, job);
                // Where nothing is proved a policy may still know a place.
                let open = refusal.is_some_and(|refusal| !refusal.proven);
                let placed = open && is_placed(copy.get_or_insert_with(|| state.clone()), job);
                groups.push(PendingGroups { job, refusal: refusal.filter(|_| !placed) });
            }
            continue;
        }
        let job = state.cluster().job(id);
        let (request, instances) = (job.request(), job.instances());
        let number = *numbers.entry((request, instances)).or_insert(alike.len());
        if number == alike.len() {
            let why = Some(why_blocked(state, id)).filter(|&why| why != Why::Space);
            alike.push(PendingJobs { request, instances, jobs: Vec::new(), why });
        }
        alike[number].jobs.push(id);
    }
    Pending { alike, groups }
}

/// Whether best-fit finds a place for all groups; the state is then as it was.
fn is_placed(state: &mut State, job: GroupedJob) -> bool {
    let options = PlaceOptions { policy: Policy::BestFit, threads: 1, ..PlaceOptions::default() };
    let mut commit_loop = CommitLoop::new(state, options);
    let placed = commit_loop.decide(QueueEntry::SubmitGroups(job), 0).status == Status::Placed;
    if placed {
        commit_loop.decide(QueueEntry::RemoveGroups(job), 0);
    }
    placed
}
