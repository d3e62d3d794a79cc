//! Jobs with a time, and their replay as a queue.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::cluster::{BuildError, Cluster, JobSpec};

use super::{Queue, QueueEntry};

/// A job of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceJob {
    /// Its name, unique in the trace.
    pub name: String,
    /// When it was submitted, in seconds from the start of the trace.
    pub submit_s: u64,
    /// How long it runs, in seconds.
    pub duration_s: u64,
    /// Its instances, at least 1.
    pub instances: u32,
    /// GPUs an instance, 0..=16.
    pub gpus_per_instance: u8,
    /// Higher goes first where a queue discipline asks; 0 where the trace says nothing.
    pub priority: u32,
}

impl TraceJob {
    /// All its GPUs.
    pub fn gpus(&self) -> u64 {
        u64::from(self.instances) * u64::from(self.gpus_per_instance)
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
/// submission. At one instant all departures come first, by job; a job of no duration leaves right after it came.
pub fn natural(jobs: &[TraceJob]) -> Vec<TraceEvent> {
    run(jobs, None)
}

/// The trace pressed together until `gpus` GPUs are loaded to `load_percent`: jobs are admitted in their order, each as
/// soon as the demand of all admitted jobs that have not left, its own included, is at most that share. The head of the
/// line waits and nobody overtakes it. Durations stay as they are; submission times count for the order alone.
///
/// So the demand rises to the share and hovers just below it until the trace has run out, whatever the trace's own
/// pace, and no job is ever short of GPUs in total: one that cannot be placed is blocked by fragmentation or by a
/// constraint. A job larger than the share is admitted when nothing else runs.
pub fn replay(jobs: &[TraceJob], gpus: u64, load_percent: u32) -> Vec<TraceEvent> {
    let room = u128::from(gpus) * u128::from(load_percent) / 100;
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
            Some(room) => leaving.is_empty() || demand.saturating_add(job.gpus()) <= room,
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
                leaving.push(Reverse((now.saturating_add(job.duration_s), head)));
                demand = demand.saturating_add(job.gpus());
            }
        } else if let Some(Reverse((at, left))) = leaving.pop() {
            now = at;
            events.push(TraceEvent::Remove(left));
            demand = demand.saturating_sub(jobs[left].gpus());
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
/// If a job's name is taken.
pub fn trace_to_queue(jobs: &[TraceJob], events: &[TraceEvent], cluster: &mut Cluster) -> Result<Queue, BuildError> {
    let mut ids = Vec::with_capacity(jobs.len());
    for job in jobs {
        let spec = JobSpec { name: &job.name, gpus: job.gpus_per_instance, ..JobSpec::default() };
        ids.push(cluster.register(&spec, job.instances)?);
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
        TraceJob { name: format!("{submit_s}"), submit_s, duration_s, instances: 1, gpus_per_instance, priority: 0 }
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
        for event in replay(&jobs, 100, 95) {
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
}
