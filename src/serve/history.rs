//! What has happened lately, for the page: samples of the cluster, decisions, and how long calls took. All of it bounded,
//! whatever clients send.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::live::Picture;
use crate::cluster::{Cluster, NodeId};
use crate::decide::{Decision, Status};

/// How often the cluster is sampled.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// So many samples are kept: an hour of them.
pub const MOST_SAMPLES: usize = 720;

/// So many decisions are kept.
pub const MOST_DECISIONS: usize = 256;

/// So many calls of an endpoint tell how long it takes.
const MOST_CALLS: usize = 512;

/// So many nodes of a decision are named.
const MOST_NAMED: usize = 4;

/// A text from outside is kept up to so many characters.
const LONGEST_TEXT: usize = 96;

/// The cluster at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// GPUs, broken ones included.
    pub gpus: u64,
    /// GPUs that are held.
    pub allocated: u64,
    /// GPUs that are free and of use.
    pub free: u64,
    /// Avoidable partial nodes.
    pub n_sif: i64,
    /// Nodes with some but not all GPUs busy.
    pub partial: u64,
    /// Calls that wait for the cluster.
    pub waiting: usize,
}

impl Sample {
    /// Of a picture, now.
    pub fn of(picture: &Picture, waiting: usize) -> Self {
        let totals = &picture.totals;
        Self {
            at_ms: now_ms(),
            gpus: totals.gpus(|gpus| gpus.allocated + gpus.free + gpus.stranded + gpus.unavailable),
            allocated: totals.gpus(|gpus| gpus.allocated),
            free: totals.gpus(|gpus| gpus.free),
            n_sif: totals.n_sif,
            partial: totals.partial,
            waiting,
        }
    }
}

/// A decision, as people read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decided {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who asked: `place`, or the verb of another interface.
    pub via: &'static str,
    /// The job.
    pub job: String,
    /// `placed`, `blocked`, `removed` or `absent`.
    pub status: &'static str,
    /// Why it is blocked.
    pub why: Option<String>,
    /// Its instances, if placed.
    pub instances: usize,
    /// Its GPUs, if placed.
    pub gpus: u64,
    /// The first of its nodes, each once.
    pub nodes: Vec<String>,
    /// Instances of others that were moved for it.
    pub moves: usize,
    /// N·ΔSIF, where it is known.
    pub delta_sif_nodes: Option<i64>,
    /// Whether it was for good, or only asked.
    pub commit: bool,
}

impl Decided {
    /// A decision of the commit loop.
    pub fn of(cluster: &Cluster, decision: &Decision, via: &'static str, commit: bool) -> Self {
        let (status, why) = match decision.status {
            Status::Placed => ("placed", None),
            Status::Blocked(why) => ("blocked", Some(why.name().to_owned())),
            Status::Removed => ("removed", None),
            Status::Absent => ("absent", None),
        };
        let mut nodes: Vec<NodeId> = Vec::with_capacity(MOST_NAMED);
        for &(node, _) in &decision.placements {
            if nodes.len() == MOST_NAMED {
                break;
            }
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        Self {
            at_ms: now_ms(),
            via,
            job: clip(cluster.whole_job_name(decision.job)),
            status,
            why,
            instances: decision.placements.len(),
            gpus: decision.placements.iter().map(|&(_, gpus)| u64::from(gpus.count_ones())).sum(),
            nodes: nodes.iter().map(|&node| clip(cluster.node_name(node))).collect(),
            moves: decision.migrations.len(),
            delta_sif_nodes: decision.delta_sif_nodes,
            commit,
        }
    }
}

/// Decisions on pods, as the extender makes them: a node for one pod, or none.
impl Decided {
    /// Of a pod that wants so many GPUs: its node, or why there is none. Nothing is done yet: the scheduler binds.
    pub fn pod(via: &'static str, pod: &str, gpus: u8, node: Result<&str, &str>) -> Self {
        let placed = node.is_ok();
        Self {
            at_ms: now_ms(),
            via,
            job: clip(pod),
            status: if placed { "placed" } else { "blocked" },
            why: node.err().map(clip),
            instances: usize::from(placed),
            gpus: if placed { u64::from(gpus) } else { 0 },
            nodes: node.ok().map(clip).into_iter().collect(),
            moves: 0,
            delta_sif_nodes: None,
            commit: true,
        }
    }
}

/// How long the calls of an endpoint took lately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Took {
    /// The endpoint, as its route has it.
    pub endpoint: String,
    /// Calls since the start.
    pub calls: u64,
    /// The median of the last calls, in microseconds.
    pub p50_us: u32,
    /// The 99th percentile of them.
    pub p99_us: u32,
}

/// What was kept after a number, and the number of what comes next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Since<T> {
    /// What comes next has this number.
    pub next: u64,
    /// The oldest first.
    pub items: Vec<T>,
}

/// What has happened lately.
#[derive(Debug)]
pub struct History {
    samples: Mutex<Ring<Sample>>,
    decisions: Mutex<Ring<Decided>>,
    calls: Mutex<BTreeMap<String, Ring<u32>>>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            samples: Mutex::new(Ring::new(MOST_SAMPLES)),
            decisions: Mutex::new(Ring::new(MOST_DECISIONS)),
            calls: Mutex::new(BTreeMap::new()),
        }
    }
}

impl History {
    /// Keeps a sample.
    pub fn sample(&self, sample: Sample) {
        lock(&self.samples).push(sample);
    }

    /// Keeps decisions, in their order.
    pub fn decided(&self, decisions: impl IntoIterator<Item = Decided>) {
        let mut ring = lock(&self.decisions);
        decisions.into_iter().for_each(|decision| ring.push(decision));
    }

    /// Keeps how long a call took. There are only as many endpoints as routes.
    pub fn took(&self, endpoint: &str, seconds: f64) {
        let mut calls = lock(&self.calls);
        let micros = (seconds * 1e6) as u32;
        match calls.get_mut(endpoint) {
            Some(ring) => ring.push(micros),
            None => calls.entry(endpoint.to_owned()).or_insert_with(|| Ring::new(MOST_CALLS)).push(micros),
        }
    }

    /// The samples from a number on.
    pub fn samples_since(&self, number: u64) -> Since<Sample> {
        lock(&self.samples).since(number)
    }

    /// The decisions from a number on.
    pub fn decisions_since(&self, number: u64) -> Since<Decided> {
        lock(&self.decisions).since(number)
    }

    /// How long calls took, by endpoint.
    pub fn calls(&self) -> Vec<Took> {
        let calls = lock(&self.calls).clone();
        calls
            .into_iter()
            .map(|(endpoint, ring)| {
                let mut last: Vec<u32> = ring.items.into();
                let mut at = |percent: usize| {
                    let index = (last.len() * percent / 100).min(last.len().saturating_sub(1));
                    if last.is_empty() { 0 } else { *last.select_nth_unstable(index).1 }
                };
                Took { endpoint, calls: ring.next, p50_us: at(50), p99_us: at(99) }
            })
            .collect()
    }
}

/// The last of what was pushed, numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Ring<T> {
    items: VecDeque<T>,
    most: usize,
    next: u64,
}

impl<T> Ring<T> {
    fn new(most: usize) -> Self {
        Self { items: VecDeque::new(), most, next: 0 }
    }

    /// Of so many decisions of one call, all that will be kept.
    pub(super) fn of_decisions() -> Self {
        Self::new(MOST_DECISIONS)
    }

    pub(super) fn push(&mut self, item: T) {
        if self.items.len() == self.most {
            self.items.pop_front();
        }
        self.items.push_back(item);
        self.next += 1;
    }

    fn since(&self, number: u64) -> Since<T>
    where
        T: Clone,
    {
        let first = self.next - self.items.len() as u64;
        // A number that is yet to come is of another life: all is new then.
        let seen = if number > self.next { 0 } else { number.saturating_sub(first) };
        Since { next: self.next, items: self.items.iter().skip(seen as usize).cloned().collect() }
    }
}

impl<T> IntoIterator for Ring<T> {
    type Item = T;
    type IntoIter = std::collections::vec_deque::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

/// Every change of these is a single push, so what a panic left is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A text from outside, cut where it gets long.
fn clip(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_last_and_says_what_is_new() {
        let mut ring = Ring::new(3);
        assert_eq!(ring.since(0), Since::<u32> { next: 0, items: vec![] });
        (0..5).for_each(|item| ring.push(item));
        for (number, items) in [(0, vec![2, 3, 4]), (2, vec![2, 3, 4]), (4, vec![4]), (5, vec![]), (6, vec![2, 3, 4])] {
            assert_eq!(ring.since(number), Since { next: 5, items }, "{number}");
        }
    }

    #[test]
    fn percentiles_are_of_the_last_calls() {
        let history = History::default();
        // These are pushed out.
        (0..MOST_CALLS).for_each(|_| history.took("/a", 1.0));
        (1..=MOST_CALLS).for_each(|i| history.took("/a", i as f64 * 1e-6));
        history.took("/b", 0.002);
        let calls = history.calls();
        assert_eq!((calls[0].endpoint.as_str(), calls[0].calls), ("/a", 2 * MOST_CALLS as u64));
        assert!(calls[0].p50_us.abs_diff(257) <= 1 && calls[0].p99_us.abs_diff(507) <= 1, "{calls:?}");
        assert_eq!((calls[1].calls, calls[1].p50_us.abs_diff(2000) <= 1), (1, true));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(clip("short"), "short");
        assert_eq!(clip(&"é".repeat(LONGEST_TEXT)), "é".repeat(LONGEST_TEXT));
        assert_eq!(clip(&"é".repeat(LONGEST_TEXT + 1)), "é".repeat(LONGEST_TEXT) + "…");
    }
}
