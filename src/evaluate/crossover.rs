//! From how much work on a device answers sooner than the processor, found by asking both.
//!
//! What a device takes for a call is about `a + b · work`: `a` is the way there and back, which a small call does not
//! earn. Two sizes of work, timed on both, give the point where the lines meet. It decides who answers, never what.

use std::time::{Duration, Instant};

use super::abi::{Candidate, Need, Touch};
use super::backend::{Backend, EvalError};
use super::batch::{Batch, BatchRows, Scores};
use super::fgd::FgdQuery;
use super::query::{DemandClass, NodeOrder, NodeQuery};

/// What is wanted of `--crossover`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Crossover {
    /// Whatever is measured, once there is work enough for a measurement to be worth its time.
    Measured,
    /// A device answers calls of at least so much work; at 0 all of them.
    At(u64),
}

/// The size of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Touches that are scored.
    Touches(u64),
    /// Nodes that are looked at, once for each class that they are ranked for.
    Nodes(u64),
}

impl Work {
    /// The work of scoring a batch.
    pub fn of_batch(batch: &Batch) -> Self {
        Self::Touches(batch.touches().len() as u64)
    }

    /// The work of ranking so many nodes.
    pub fn of_query(query: &NodeQuery, nodes: usize) -> Self {
        Self::Nodes(query.len() as u64 * nodes as u64)
    }

    /// The work of scoring so many nodes as FGD does: each is looked at once for each typical pod too.
    pub fn of_fgd(query: &FgdQuery, nodes: usize) -> Self {
        Self::Nodes(query.len() as u64 * nodes as u64 * query.pods().len().max(1) as u64)
    }

    /// Its number.
    pub fn amount(self) -> u64 {
        let (Self::Touches(amount) | Self::Nodes(amount)) = self;
        amount
    }

    /// Whether the processor is done with it before any device could have been asked: some 10 µs. Nothing is measured,
    /// and no device opened, for calls like that.
    pub fn is_small(self) -> bool {
        match self {
            Self::Touches(touches) => touches < LEAST_TOUCHES as u64,
            Self::Nodes(nodes) => nodes < LEAST_NODES,
        }
    }
}

const LEAST_TOUCHES: usize = 1 << 12;
const LEAST_NODES: u64 = 1 << 13;

/// The sizes of the timed batches, in touches.
const PROBE_TOUCHES: [usize; 2] = [LEAST_TOUCHES, 1 << 16];
/// The sizes of the timed queries: class by node. There is at least one class and at most `MOST_CLASSES`.
const PROBE_NODES: [u64; 2] = [LEAST_NODES, 1 << 18];
const MOST_CLASSES: u64 = 256;
/// Nodes wanted a class, as many as a window of the commit loop wants.
const PROBE_K: usize = 64;

/// A probe is timed so often, or as often as this time allows, and once at least. The shortest counts.
const REPEATS: usize = 5;
const PROBE_TIME: Duration = Duration::from_millis(2);

/// Where a device begins to be the faster one; `None` where it never is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossovers {
    /// In touches of a batch.
    pub touches: Option<u64>,
    /// In nodes, once for each class that they are ranked for.
    pub nodes: Option<u64>,
}

impl Crossovers {
    /// Measures a device beside the processor. Both have the same nodes loaded, so many in so many pools. Takes some
    /// milliseconds.
    ///
    /// # Errors
    /// If one of them fails.
    pub fn measure(
        device: &mut dyn Backend,
        processor: &mut dyn Backend,
        nodes: usize,
        pools: usize,
    ) -> Result<Self, EvalError> {
        if nodes == 0 {
            return Ok(Self::default());
        }
        let mut touches = Vec::new();
        let mut scores = Scores::default();
        for n in PROBE_TOUCHES {
            let batch = probe_batch(nodes, n)?;
            touches.push(Probe {
                work: n as u64,
                device: time(&mut || device.evaluate(&batch, &mut scores))?,
                processor: time(&mut || processor.evaluate(&batch, &mut scores))?,
            });
        }
        let mut ranked = Vec::new();
        let mut best = Vec::new();
        for n in PROBE_NODES {
            let query = probe_query(nodes, pools, n);
            ranked.push(Probe {
                work: Work::of_query(&query, nodes).amount(),
                device: time(&mut || device.rank_nodes(&query, &mut best))?,
                processor: time(&mut || processor.rank_nodes(&query, &mut best))?,
            });
        }
        Ok(Self { touches: meet(touches[0], touches[1]), nodes: meet(ranked[0], ranked[1]) })
    }

    /// Whether work of this size is for the device.
    pub fn pays(self, work: Work) -> bool {
        let at = match work {
            Work::Touches(_) => self.touches,
            Work::Nodes(_) => self.nodes,
        };
        at.is_some_and(|at| work.amount() >= at)
    }
}

/// What both took for the same work.
#[derive(Clone, Copy, Debug)]
struct Probe {
    work: u64,
    device: Duration,
    processor: Duration,
}

impl Probe {
    /// By how much the device is later, in seconds; negative if it is sooner.
    fn lag(self) -> f64 {
        self.device.as_secs_f64() - self.processor.as_secs_f64()
    }
}

/// The work at which the device catches up; what is sooner at the smaller work is taken to be so from there on.
fn meet(small: Probe, large: Probe) -> Option<u64> {
    let (lag, lag_after) = (small.lag(), large.lag());
    if lag <= 0.0 && lag_after <= 0.0 {
        return Some(small.work);
    }
    let gain = (lag - lag_after) / large.work.saturating_sub(small.work).max(1) as f64;
    // Past 2^53 units of work nothing would be certain, and nothing is that large.
    let further = lag / gain;
    (gain > 0.0 && further < (1u64 << 53) as f64).then(|| small.work + further.ceil() as u64)
}

/// The shortest of some runs; the first, which may make room or compile, does not count.
fn time(call: &mut dyn FnMut() -> Result<(), EvalError>) -> Result<Duration, EvalError> {
    call()?;
    let all = Instant::now();
    let mut best = Duration::MAX;
    for _ in 0..REPEATS {
        let start = Instant::now();
        call()?;
        best = best.min(start.elapsed());
        if all.elapsed() > PROBE_TIME {
            break;
        }
    }
    Ok(best)
}

/// Candidates that touch four nodes each, spread over the cluster, and change nothing there.
fn probe_batch(nodes: usize, touches: usize) -> Result<Batch, EvalError> {
    let n_nodes = nodes as u64;
    let each = touches.min(4).min(nodes);
    let n = touches / each;
    // Neighbours in the batch lie far apart in the cluster, as those of real candidates do.
    let node = |touch: usize| (touch as u64 * 0x9e37_79b1 % n_nodes) as u32;
    let mut rows = BatchRows { nodes, needs: vec![Need::NONE], ..BatchRows::default() };
    for candidate in 0..n {
        let first = node(candidate * each);
        let of_candidate = (0..each as u64).map(|at| ((u64::from(first) + at) % n_nodes) as u32);
        rows.touches.extend(of_candidate.map(|node| Touch { node, ..Touch::default() }));
    }
    rows.offsets = (0..=n).map(|candidate| (candidate * each) as u32).collect();
    rows.given = vec![0; n];
    rows.candidates = vec![Candidate::default(); n];
    rows.jobs = (0..n as u32).step_by(8).chain([n as u32]).collect();
    Batch::from_rows(rows)
}

/// Classes of about as much work together, one size of instance after the other.
fn probe_query(nodes: usize, pools: usize, work: u64) -> NodeQuery {
    let classes = (work / nodes as u64).clamp(1, MOST_CLASSES);
    // The second query must be the larger one, on a cluster of any size.
    let classes = if work == PROBE_NODES[1] { classes.max(4) } else { classes };
    let class = |number: u64| DemandClass {
        gpus: 1 + (number % 8) as u32,
        cpu: Need::NOTHING,
        memory: Need::NOTHING,
        order: NodeOrder::BestFit as u32,
        ..DemandClass::ANYWHERE
    };
    NodeQuery::of_classes(pools, PROBE_K, (0..classes).map(class).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(work: u64, device: u64, processor: u64) -> Probe {
        Probe { work, device: Duration::from_micros(device), processor: Duration::from_micros(processor) }
    }

    #[test]
    fn lines_meet_where_the_device_catches_up() {
        // 50 + work/100 µs against work/50 µs: equal at 5,000.
        assert_eq!(meet(probe(1000, 60, 20), probe(10_000, 150, 200)), Some(5000));
        assert_eq!(meet(probe(1000, 10, 20), probe(10_000, 20, 200)), Some(1000), "sooner from the start");
        assert_eq!(meet(probe(1000, 60, 20), probe(10_000, 300, 200)), None, "later and later");
        assert_eq!(meet(probe(1000, 60, 20), probe(10_000, 240, 200)), None, "as much later");
        assert_eq!(meet(probe(1000, 10, 20), probe(10_000, 300, 200)), None, "sooner, then later");
        assert_eq!(meet(probe(5, 60, 20), probe(5, 60, 20)), None, "no second size");
    }

    #[test]
    fn probes_are_about_the_cluster() {
        for n_nodes in [1, 2, 3, 4, 5, 1000, 1 << 20] {
            for touches in PROBE_TOUCHES {
                let batch = probe_batch(n_nodes, touches).unwrap();
                assert!(batch.touches().len() > touches - 4, "{n_nodes}");
            }
            let [small, large] = PROBE_NODES.map(|work| probe_query(n_nodes, 3, work).len());
            assert!(small < large || n_nodes < 32, "{n_nodes}: {small} and {large} classes");
            assert!(large <= MOST_CLASSES as usize);
        }
    }

    #[test]
    fn work_below_the_crossover_does_not_pay() {
        let some = Crossovers { touches: Some(5000), nodes: None };
        assert!(!some.pays(Work::Touches(4999)) && some.pays(Work::Touches(5000)));
        assert!(!some.pays(Work::Nodes(u64::MAX)));
        assert!(Work::Touches(0).is_small() && !Work::Touches(LEAST_TOUCHES as u64).is_small());
    }
}
