//! Where a cluster or a queue comes from: a path, or a prefix and what follows it.

use crate::cluster::Cluster;
use crate::workload::synthetic::{
    ClusterOptions, Mix, StreamOptions, synthetic_cluster, synthetic_queue, synthetic_trace,
};
use crate::workload::{Queue, TraceJob, natural, replay, trace_to_queue};

use super::alibaba::read_alibaba_2026;
use super::error::{FormatError, Note};
use super::philly::read_philly;
use super::queue::read_queue;
use super::snapshot::{Snapshot, read_cluster};
use super::trace::read_trace;

/// The most GPUs or jobs that are made.
const MOST: u64 = 100_000_000;

/// The cluster that `--cluster` names: `alibaba-2026:FILE`, `synthetic:GPUS[:SEED]`, or the path of a snapshot.
///
/// # Errors
/// If it cannot be read or made.
pub fn cluster_source(origin: &str) -> Result<Snapshot, FormatError> {
    match origin.split_once(':') {
        Some(("alibaba-2026", path)) => read_alibaba_2026(path),
        Some(("synthetic", rest)) => {
            let (gpus, seed) = synthetic(origin, rest, "synthetic:GPUS[:SEED]")?;
            let cluster = synthetic_cluster(&ClusterOptions { gpus, seed, ..ClusterOptions::default() });
            let cluster = cluster.map_err(|error| FormatError::new(origin, error))?;
            Ok(Snapshot { cluster, as_of: None, notes: Vec::new() })
        }
        Some((prefix @ ("kubernetes" | "slurm" | "openb"), _)) => Err(later(origin, prefix)),
        Some(("philly", _)) => Err(FormatError::new(origin, "found a format of queues, expected one of clusters")),
        _ => read_cluster(origin),
    }
}

/// The queue that `--queue` names: `philly:FILE`, `synthetic:JOBS[:SEED]`, or the path of a queue. Its jobs are
/// registered in `cluster`.
///
/// Philly's jobs come and go at their own pace; with `load_percent` they are pressed together until the GPUs of the
/// cluster that nothing holds yet are loaded to that share (see [`replay`]). A synthetic queue always is, to 95 % by
/// default.
///
/// # Errors
/// If it cannot be read or made, or a load is given for a queue without times.
pub fn queue_source(
    origin: &str,
    cluster: &mut Cluster,
    load_percent: Option<u32>,
) -> Result<(Queue, Vec<Note>), FormatError> {
    match origin.split_once(':') {
        Some(("philly", path)) => {
            let (jobs, notes) = read_philly(path)?;
            let events = match load_percent {
                None => natural(&jobs),
                Some(percent) => replay(&jobs, unheld(cluster), percent),
            };
            let queue = trace_to_queue(&jobs, &events, cluster);
            Ok((queue.map_err(|error| FormatError::new(path, error))?, notes))
        }
        Some(("synthetic", rest)) => {
            let (jobs, seed) = synthetic(origin, rest, "synthetic:JOBS[:SEED]")?;
            let defaults = StreamOptions::default();
            let load_percent = load_percent.unwrap_or(defaults.load_percent);
            let options = StreamOptions { jobs, seed, gpus: unheld(cluster), load_percent, ..defaults };
            let queue = synthetic_queue(cluster, &options);
            Ok((queue.map_err(|error| FormatError::new(origin, error))?, Vec::new()))
        }
        Some((prefix @ ("kubernetes" | "slurm" | "openb"), _)) => Err(later(origin, prefix)),
        Some(("alibaba-2026", _)) => {
            Err(FormatError::new(origin, "found a format of clusters, expected one of queues"))
        }
        _ if load_percent.is_some() => {
            Err(FormatError::new(origin, "found a queue without times, expected philly: or synthetic: with a load"))
        }
        _ => read_queue(origin, cluster),
    }
}

/// What a trace that is made is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// The GPUs that it is to load.
    pub gpus: u64,
    /// To which share.
    pub load_percent: u32,
    /// How common instances of each size are.
    pub mix: Mix,
}

/// The trace that `--trace` names: `philly:FILE`, `synthetic:JOBS[:SEED]`, or the path of a trace of our own. Sorted by
/// submission, ties in the order of the file. Options only concern a synthetic trace, which has Poisson arrivals.
///
/// # Errors
/// If it cannot be read or made.
pub fn trace_source(origin: &str, options: &TraceOptions) -> Result<(Vec<TraceJob>, Vec<Note>), FormatError> {
    match origin.split_once(':') {
        Some(("philly", path)) => read_philly(path),
        Some(("synthetic", rest)) => {
            let (jobs, seed) = synthetic(origin, rest, "synthetic:JOBS[:SEED]")?;
            let &TraceOptions { gpus, load_percent, mix } = options;
            let stream = StreamOptions { jobs, seed, gpus, load_percent, mix, ..StreamOptions::default() };
            Ok((synthetic_trace(&stream), Vec::new()))
        }
        Some((prefix @ ("openb" | "helios" | "acme" | "swf" | "sacct" | "slurm"), _)) => Err(later(origin, prefix)),
        Some(("alibaba-2026" | "kubernetes", _)) => {
            Err(FormatError::new(origin, "found a format of clusters, expected one of traces"))
        }
        _ => read_trace(origin),
    }
}

/// Working GPUs that no running job holds.
fn unheld(cluster: &Cluster) -> u64 {
    cluster.nodes().iter().map(|node| u64::from(node.free_gpus())).sum()
}

fn later(origin: &str, prefix: &str) -> FormatError {
    let text = format!("found the format `{prefix}`, which comes later and cannot be read yet");
    FormatError::new(origin, text)
}

/// A number and a seed, 1 by default.
fn synthetic(origin: &str, rest: &str, expected: &str) -> Result<(u64, u64), FormatError> {
    let (number, seed) = rest.split_once(':').map_or((rest, None), |(number, seed)| (number, Some(seed)));
    let number = number.parse().ok().filter(|number| (1..=MOST).contains(number));
    let seed = seed.map_or(Some(1), |seed| seed.parse().ok());
    number.zip(seed).ok_or_else(|| {
        let text = format!("found {rest:?}, expected {expected}, integers, the first from 1 to {MOST}");
        FormatError::new(origin, text)
    })
}
