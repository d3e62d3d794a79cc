//! Jobs with a time, and their replay as a queue.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use crate::cluster::{BuildError, Cluster, JobId, JobSpec, RequestId, TooManyNames, WHOLE_GPU};

use super::{Queue, QueueEntry};

/// How a job of a trace ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The trace does not say, or in a word that is not known.
    #[default]
    Unknown,
    /// As it should.
    Completed,
    /// By a fault of its own.
    Failed,
    /// Somebody ended it.
    Cancelled,
    /// It ran out of its time limit.
    TimedOut,
    /// By a fault of a node.
    NodeFailed,
    /// It made way for another job.
    Preempted,
    /// It had not ended when the trace was taken.
    Running,
    /// It had not started when the trace was taken.
    Pending,
}

/// A job of a trace. What a trace does not say is as in the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceJob {
    /// Its name, unique in the trace.
    pub name: String,
    /// When it was submitted, in seconds from the start of the trace.
    pub submit_s: u64,
    /// How long it runs, in seconds; [`TraceJob::FOREVER`] if it never leaves.
    pub duration_s: u64,
    /// Its instances, at least 1.
    pub instances: u32,
    /// GPUs an instance, 0..=16; 0 is a CPU-only instance.
    pub gpus_per_instance: u8,
    /// How much of each of its GPUs it asks for, in thousandths: 1000 is all of it. Less only with 1 GPU an instance.
    pub gpu_milli: u16,
    /// Milli-cores an instance.
    pub cpu_milli: u32,
    /// MiB an instance.
    pub memory_mib: u32,
    /// Allowed GPU models, sorted, each once; empty allows all.
    pub models: Vec<Arc<str>>,
    /// Who submitted it.
    pub user: Option<Arc<str>>,
    /// The virtual cluster, organization, partition or queue that it belongs to.
    pub group: Option<Arc<str>>,
    /// Higher goes first where a queue discipline asks; 0 where the trace states no order.
    pub priority: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// True if its duration is not how long it would have run: it still ran, or had never started, when the trace was
    /// taken.
    pub censored: bool,
}

impl Default for TraceJob {
    /// One whole job of one CPU-only instance that takes no time.
    fn default() -> Self {
        Self {
            name: String::new(),
            submit_s: 0,
            duration_s: 0,
            instances: 1,
            gpus_per_instance: 0,
            gpu_milli: Self::WHOLE,
            cpu_milli: 0,
            memory_mib: 0,
            models: Vec::new(),
            user: None,
            group: None,
            priority: 0,
            outcome: Outcome::Unknown,
            censored: false,
        }
    }
}

impl TraceJob {
    /// The duration of a job that never leaves, as where a trace has no times: 2^53 − 1 seconds, far beyond any real
    /// one, and small enough to be added to a time and counted in milliseconds.
    pub const FOREVER: u64 = (1 << 53) - 1;

    /// The thousandths of a whole GPU.
    pub const WHOLE: u16 = WHOLE_GPU;

    /// All its GPUs, one of which it asks for a share counted whole: the most devices that it ever holds.
    pub fn gpus(&self) -> u64 {
        u64::from(self.instances) * u64::from(self.gpus_per_instance)
    }

    /// Its demand: all that it asks for, in thousandths of a GPU.
    pub fn demand_milli(&self) -> u64 {
        self.gpus() * u64::from(self.gpu_milli)
    }

    /// True if it asks for a share of a GPU.
    pub fn is_share(&self) -> bool {
        self.gpu_milli < Self::WHOLE
    }

    /// Registers it in a cluster: its name, and what its instances ask for.
    ///
    /// # Errors
    /// If its name is taken, or its amounts are beyond what a cluster can count.
    pub fn register(&self, cluster: &mut Cluster) -> Result<JobId, BuildError> {
        self.with_spec(|spec| cluster.register(spec, self.instances))
    }

    /// The number in a cluster for what its instances ask for. The job is not registered.
    ///
    /// # Errors
    /// If there are too many names of models.
    pub fn request(&self, cluster: &mut Cluster) -> Result<RequestId, TooManyNames> {
        self.with_spec(|spec| cluster.request_for(spec))
    }

    /// Hands the job to `use_it` as a cluster wants it.
    fn with_spec<R>(&self, use_it: impl FnOnce(&JobSpec<'_>) -> R) -> R {
        let models: Vec<&str> = self.models.iter().map(|model| &**model).collect();
        use_it(&JobSpec {
            name: &self.name,
            gpus: self.gpus_per_instance,
            gpu_milli: self.gpu_milli,
            cpu_milli: self.cpu_milli,
            memory_mib: self.memory_mib,
            models: &models,
            ..JobSpec::default()
        })
    }

    /// True unless it stays forever.
    pub fn leaves(&self) -> bool {
        self.duration_s < Self::FOREVER
    }
}

/// What happens next; the number is the job's position in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// The job is submitted.
    Submit(usize),
    /// The job leaves.
    Remove(usize),
}

/// The trace at its own pace: every job starts when it is submitted and leaves after its duration. `jobs` are sorted by
/// submission. At one instant all departures come first, by job; a job of no duration leaves right after it came, and one
/// that stays forever has no departure.
pub fn natural(jobs: &[TraceJob]) -> Vec<TraceEvent> {
    run(jobs, None)
}

/// The trace pressed together until `gpu_milli` thousandths of GPUs are loaded to `load_percent`: jobs are admitted in their order, each as
/// soon as the demand of all admitted jobs that have not left, its own included, is at most that share. The head of the
/// line waits and nobody overtakes it. Durations stay as they are; submission times count for the order alone.
///
/// So the demand rises to the share and hovers just below it until the trace has run out, whatever the trace's own
/// pace, and no job is ever short of GPUs in total: one that cannot be placed is blocked by fragmentation or by a
/// constraint. A job larger than the share is admitted when nothing holds a GPU. Where all that runs stays forever, the
/// first job that no longer fits ends the trace: nobody would ever make room for it.
pub fn replay(jobs: &[TraceJob], gpu_milli: u64, load_percent: u32) -> Vec<TraceEvent> {
    let room = u128::from(gpu_milli) * u128::from(load_percent) / 100;
    run(jobs, Some(u64::try_from(room).unwrap_or(u64::MAX)))
}

fn run(jobs: &[TraceJob], room: Option<u64>) -> Vec<TraceEvent> {
    let mut events = Vec::with_capacity(jobs.len() * 2);
    let mut leaving = BinaryHeap::new();
    let mut waiting: VecDeque<usize> = (0..jobs.len()).collect();
    let (mut now, mut demand) = (0, 0u64);
    while let Some(&head) = waiting.front() {
        let job = &jobs[head];
        let next_leaves = leaving.peek().map(|&Reverse((at, _))| at);
        let admitted = match room {
            None => next_leaves.is_none_or(|at| at > job.submit_s),
            Some(room) => demand == 0 || demand.saturating_add(job.demand_milli()) <= room,
        };
        // Pressed together, all departures of this instant still come before the next arrival.
        let admitted = admitted && (room.is_none() || next_leaves.is_none_or(|at| at > now));
        if admitted {
            if room.is_none() {
                now = job.submit_s;
            }
            waiting.pop_front();
            events.push(TraceEvent::Submit(head));
            if job.duration_s == 0 {
                events.push(TraceEvent::Remove(head));
            } else {
                demand = demand.saturating_add(job.demand_milli());
                if job.leaves() {
                    leaving.push(Reverse((now.saturating_add(job.duration_s), head)));
                }
            }
        } else if let Some(Reverse((at, left))) = leaving.pop() {
            now = at;
            events.push(TraceEvent::Remove(left));
            demand = demand.saturating_sub(jobs[left].demand_milli());
        } else {
            break;
        }
    }
    while let Some(Reverse((_, left))) = leaving.pop() {
        events.push(TraceEvent::Remove(left));
    }
    events
}

/// Registers the jobs in the cluster and turns the events into a queue. A removal of a job that could not be placed
/// does nothing when it is decided.
///
/// # Errors
/// If a job's name is taken, or its amounts are beyond what a cluster can count.
pub fn trace_to_queue(jobs: &[TraceJob], events: &[TraceEvent], cluster: &mut Cluster) -> Result<Queue, BuildError> {
    let mut ids = Vec::with_capacity(jobs.len());
    for job in jobs {
        ids.push(job.register(cluster)?);
    }
    let entry = |event: &TraceEvent| match *event {
        TraceEvent::Submit(job) => QueueEntry::Submit(ids[job]),
        TraceEvent::Remove(job) => QueueEntry::Remove(ids[job]),
    };
    Ok(events.iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(submit_s: u64, duration_s: u64, gpus_per_instance: u8) -> TraceJob {
        TraceJob { name: format!("{submit_s}"), submit_s, duration_s, gpus_per_instance, ..TraceJob::default() }
    }

    #[test]
    fn departures_come_before_arrivals_of_one_instant() {
        use TraceEvent::{Remove, Submit};
        let jobs = [job(0, 10, 1), job(3, 0, 1), job(10, 5, 1), job(11, 1, 1)];
        let expected = [Submit(0), Submit(1), Remove(1), Remove(0), Submit(2), Submit(3), Remove(3), Remove(2)];
        assert_eq!(natural(&jobs), expected);
    }

    #[test]
    fn a_replay_hovers_below_the_load() {
        let jobs: Vec<_> = (0..500u64).map(|i| job(i * 1000, 1 + i * 7919 % 300, 1 + (i % 8) as u8)).collect();
        let (mut demand, mut most, mut seen) = (0, 0, vec![0; jobs.len()]);
        for event in replay(&jobs, 100_000, 95) {
            match event {
                TraceEvent::Submit(i) => (demand, seen[i]) = (demand + jobs[i].gpus(), 1),
                TraceEvent::Remove(i) => {
                    assert_eq!(seen[i], 1);
                    (demand, seen[i]) = (demand - jobs[i].gpus(), 2);
                }
            }
            most = most.max(demand);
        }
        assert!((88..=95).contains(&most), "{most}");
        assert!(seen.iter().all(|&state| state == 2));
    }

    #[test]
    fn a_replay_counts_shares_as_such() {
        use TraceEvent::{Remove, Submit};
        let share = |gpu_milli| TraceJob { gpu_milli, instances: 2, ..job(0, 10, 1) };
        // 600, 800 and 598 thousandths of 2,000; then two more are not there.
        let jobs = [share(300), share(400), share(299), share(1)];
        let later = [Remove(0), Remove(1), Remove(2)];
        assert_eq!(replay(&jobs, 2000, 100)[..4], [Submit(0), Submit(1), Submit(2), Submit(3)]);
        assert_eq!(replay(&jobs, 1999, 100)[..6], [[Submit(0), Submit(1), Submit(2)], later].concat());
    }

    #[test]
    fn who_stays_forever_has_no_departure_and_fills_the_cluster_for_good() {
        use TraceEvent::{Remove, Submit};
        let forever = TraceJob::FOREVER;
        let jobs = [job(0, forever, 4), job(1, 5, 4), job(2, forever, 3), job(3, forever, 2), job(4, 1, 1)];
        let expected = [Submit(0), Submit(1), Submit(2), Submit(3), Submit(4), Remove(4), Remove(1)];
        assert_eq!(natural(&jobs), expected);
        // Of 8 GPUs the third job waits for the second to leave; the fourth would wait for ever.
        assert_eq!(replay(&jobs, 8000, 100), [Submit(0), Submit(1), Remove(1), Submit(2)]);
        assert_eq!(replay(&[job(0, forever, 9), job(1, 1, 1)], 8000, 100), [Submit(0)]);
    }
}
