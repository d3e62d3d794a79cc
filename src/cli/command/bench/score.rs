//! Touches, candidates and ranked nodes a second, and how long a small batch takes.

use std::time::{Duration, Instant};

use super::super::Failure;
use super::{BenchRow, Measured, SEED, Size, best};
use crate::cluster::{Cluster, Request};
use crate::evaluate::{Batch, NodeOrder, NodeQuery, Scores, synthetic};

/// Touches a candidate, and every which of them asks for CPU and memory (0 for none). What share of the limit scoring
/// reaches depends on it: a candidate has a row of its own to be written, whatever its size.
const MIXES: [(usize, u32, &str); 4] =
    [(1, 0, "1 each"), (4, 8, "4 each, needs"), (16, 0, "16 each"), (200, 0, "200 each")];

/// Candidates of small batches, of four touches each.
const SMALL: [(usize, &str); 3] = [(1, "1 candidate"), (100, "100 candidates"), (10_000, "10,000 candidates")];

/// A small batch is timed so often, or as often as this time allows.
const REPEATS: usize = 201;
const TIME: Duration = Duration::from_millis(100);

/// Reading fewer bytes than this says more of waking threads than of memory.
const ENOUGH: usize = 8 << 20;

/// Nodes wanted for a class.
const WANTED: usize = 64;

pub(super) fn measure(size: &Size, cluster: &Cluster, backends: &mut [Measured]) -> Result<Vec<BenchRow>, Failure> {
    let mut rows = Vec::new();
    let mut scores = Scores::default();
    for (each, asking, variant) in MIXES {
        let batch = synthetic::batch(cluster, size.touches, each, asking, SEED)?;
        for measured in backends.iter_mut() {
            let speed = measured.backend.measure(&batch, size.passes)?;
            let told = size_of_val(batch.touches()) >= ENOUGH;
            rows.push(BenchRow {
                candidates_per_s: Some(speed.touches_per_s / touches_each(&batch)),
                bytes_per_s: told.then_some(speed.bytes_per_s),
                limit_bytes_per_s: told.then_some(speed.limit_bytes_per_s),
                of_limit: told.then(|| speed.of_limit()),
                ..measured.row("score_candidates", variant, speed.touches_per_s, "touches/s")
            });
        }
        for measured in backends.iter_mut() {
            let seconds = best(size.passes, || measured.backend.evaluate(&batch, &mut scores))?;
            rows.push(BenchRow {
                candidates_per_s: Some(batch.len() as f64 / seconds),
                ..measured.row("score_transfer", variant, batch.touches().len() as f64 / seconds, "touches/s")
            });
        }
    }
    for (candidates, variant) in SMALL {
        let batch = synthetic::batch(cluster, candidates * 4, 4, 8, SEED)?;
        for measured in backends.iter_mut() {
            let seconds = median(|| measured.backend.evaluate(&batch, &mut scores))?;
            rows.push(measured.row("latency", variant, seconds * 1e6, "µs"));
        }
    }
    let query = query(cluster, size.classes);
    let looked_at = (query.len() * cluster.nodes().len()) as f64;
    let (variant, mut found) = (format!("{} classes", query.len()), Vec::new());
    for measured in backends.iter_mut() {
        let seconds = best(size.passes.min(3), || measured.backend.rank_nodes(&query, &mut found))?;
        rows.push(measured.row("rank_nodes", &variant, looked_at / seconds, "nodes/s"));
    }
    Ok(rows)
}

fn touches_each(batch: &Batch) -> f64 {
    batch.touches().len() as f64 / batch.len().max(1) as f64
}

/// The median time of a call, in seconds; the first, which may make room, does not count.
fn median<E>(mut call: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    call()?;
    let all = Instant::now();
    let mut times = Vec::with_capacity(REPEATS);
    while times.len() < REPEATS && (times.is_empty() || all.elapsed() < TIME) {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2].as_secs_f64().max(1e-9))
}

/// Classes of every size and order, some of which ask for CPU and memory.
fn query(cluster: &Cluster, classes: usize) -> NodeQuery {
    let mut query = NodeQuery::new(cluster, WANTED);
    for class in 0..classes {
        let asks = (class / 32 % 2) as u32;
        let request = Request {
            gpus: 1 + (class % 8) as u8,
            cpu_milli: 16_000 * asks,
            memory_mib: 131_072 * asks,
            ..Request::default()
        };
        query.push(cluster, &request, NodeOrder::ALL[class / 8 % 4], None, None);
    }
    query
}
