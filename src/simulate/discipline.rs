//! Queue disciplines: who is the head of the queue, and whether anybody may overtake it.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::workload::TraceJob;

/// In which order waiting jobs start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out, strictly: the head starts or the pass ends.
    #[default]
    Fifo,
    /// FIFO with EASY backfill (Lifka, *The ANL/IBM SP scheduling system*, 1995). Durations count as known.
    ///
    /// When the head cannot start, it gets a reservation by its number of GPUs alone: the earliest instant at which
    /// enough would be free if every running job left when it now is to finish. GPUs of nodes that take nothing, cordoned
    /// or drained, count neither now nor then. The jobs behind it are tried in order, once each. One starts if the policy
    /// can place it now and it either ends by that instant or takes GPUs that the head leaves over then. Fragmentation may
    /// keep the head longer than its reservation says, never what is backfilled by GPU count; moves that a backfilled job
    /// causes may delay running jobs, which the next pass sees.
    ///
    /// With shares of a GPU what is counted are the places that the head could have: as many thousandths of one device as
    /// it asks of each. A device that shares lie on is free when the last of them has left, so no rest is promised to a
    /// head of whole GPUs. Which devices a job behind it would get is not known before: its shares are taken to cost the
    /// head as many places as they ever could, each a device of its own. That may keep it back without need, and keeps
    /// no head from its reservation.
    Easy,
    /// The shortest duration first, strictly, ties by submission.
    Sjf,
    /// The highest priority first, strictly, ties by submission; the same as FIFO where the trace has no priorities.
    Priority,
}

impl Discipline {
    /// All disciplines.
    pub const ALL: [Self; 4] = [Self::Fifo, Self::Easy, Self::Sjf, Self::Priority];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Easy => "easy",
            Self::Sjf => "sjf",
            Self::Priority => "priority",
        }
    }

    /// The discipline of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|discipline| discipline.name() == name)
    }

    /// What sorts a job before its position in the trace does.
    fn key(self, job: &TraceJob) -> u64 {
        match self {
            Self::Fifo | Self::Easy => 0,
            Self::Sjf => job.duration_s,
            Self::Priority => u64::from(u32::MAX - job.priority),
        }
    }
}

/// The jobs that wait, in the order of a discipline. A job is its position in the trace.
#[derive(Debug)]
pub(super) struct Waiting {
    discipline: Discipline,
    jobs: BTreeSet<(u64, u32)>,
}

impl Waiting {
    pub(super) fn new(discipline: Discipline) -> Self {
        Self { discipline, jobs: BTreeSet::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// The first job.
    pub(super) fn head(&self) -> Option<usize> {
        self.jobs.first().map(|&(_, position)| position as usize)
    }

    /// All of them, in order.
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> {
        self.jobs.iter().map(|&(_, position)| position as usize)
    }

    /// The first job behind this one; it need not wait itself any more.
    pub(super) fn after(&self, position: usize, job: &TraceJob) -> Option<usize> {
        let behind = Bound::Excluded((self.discipline.key(job), position as u32));
        self.jobs.range((behind, Bound::Unbounded)).next().map(|&(_, position)| position as usize)
    }

    /// Whether a job waits.
    pub(super) fn has(&self, position: usize, job: &TraceJob) -> bool {
        self.jobs.contains(&(self.discipline.key(job), position as u32))
    }

    pub(super) fn push(&mut self, position: usize, job: &TraceJob) {
        self.jobs.insert((self.discipline.key(job), position as u32));
    }

    pub(super) fn remove(&mut self, position: usize, job: &TraceJob) {
        self.jobs.remove(&(self.discipline.key(job), position as u32));
    }
}
