//! Where a cluster, a queue or a trace comes from: a path, or a prefix and what follows it.

use crate::cluster::{Cluster, WHOLE_GPU};
use crate::workload::synthetic::{
    ClusterOptions, Mix, StreamOptions, synthetic_cluster, synthetic_queue, synthetic_trace,
};
use crate::workload::{Queue, TraceJob, natural, replay, trace_to_queue};

use super::acme::read_acme;
use super::alibaba::{read_alibaba_2026, read_alibaba_2026_jobs};
use super::dump::Import;
use super::error::{FormatError, Note};
use super::gather::Trace;
use super::helios::read_helios;
use super::kubernetes::{TopologyKeys, read_kubernetes};
use super::openb::{read_openb_nodes, read_openb_pods};
use super::philly::read_philly;
use super::queue::read_queue;
use super::sacct::read_sacct;
use super::slurm::read_slurm;
use super::snapshot::{Snapshot, read_cluster};
use super::swf::{GpusPerProc, read_swf};
use super::trace::read_trace;

/// The most GPUs or jobs that are made.
const MOST: u64 = 100_000_000;

/// The traces that [`foreign_trace`] reads.
const TRACES: [&str; 7] = ["philly", "openb", "alibaba-2026", "helios", "acme", "swf", "sacct"];

/// The dumps that [`dump_source`] reads.
const DUMPS: [&str; 2] = ["kubernetes", "slurm"];

/// The dump that `--cluster` or `--queue` names: `kubernetes:FILE[,FILE…]` or `slurm:FILE[,FILE…]`, the files of one dump
/// together. `None` if it names something else. The labels that say where a node of Kubernetes is are `keys`, or those that
/// its nodes have.
///
/// # Errors
/// If it cannot be read.
pub fn dump_source(origin: &str, keys: Option<&TopologyKeys>) -> Result<Option<Import>, FormatError> {
    let Some((prefix, files)) = origin.split_once(':') else { return Ok(None) };
    let files: Vec<&str> = files.split(',').collect();
    match prefix {
        "kubernetes" => read_kubernetes(&files, keys).map(Some),
        "slurm" => read_slurm(&files).map(Some),
        _ => Ok(None),
    }
}

/// The cluster that `--cluster` names: `alibaba-2026:FILE`, `openb:FILE`, a dump as [`dump_source`] reads it,
/// `synthetic:GPUS[:SEED]`, or the path of a snapshot.
///
/// # Errors
/// If it cannot be read or made.
pub fn cluster_source(origin: &str, keys: Option<&TopologyKeys>) -> Result<Snapshot, FormatError> {
    if let Some(import) = dump_source(origin, keys)? {
        return Ok(import.snapshot);
    }
    match origin.split_once(':') {
        Some(("alibaba-2026", path)) => read_alibaba_2026(path),
        Some(("openb", path)) => read_openb_nodes(path),
        Some(("synthetic", rest)) => {
            let (gpus, seed) = synthetic(origin, rest, "synthetic:GPUS[:SEED]")?;
            let cluster = synthetic_cluster(&ClusterOptions { gpus, seed, ..ClusterOptions::default() });
            let cluster = cluster.map_err(|error| FormatError::new(origin, error))?;
            Ok(Snapshot { cluster, ..Snapshot::default() })
        }
        Some((prefix, _)) if TRACES.contains(&prefix) => {
            Err(FormatError::new(origin, "found a format of queues, expected one of clusters"))
        }
        _ => read_cluster(origin),
    }
}

/// The trace that `--queue` or `--trace` names: `philly:FILE`, `openb:FILE`, `alibaba-2026:FILE`, `helios:FILE`, `acme:FILE`,
/// `swf:FILE` or `sacct:FILE`. `None` if it names something else. The processors of `swf:` stand for as many GPUs as
/// `ratio` says.
///
/// # Errors
/// If it cannot be read, or is `swf:` without a ratio.
pub fn foreign_trace(origin: &str, ratio: Option<GpusPerProc>) -> Result<Option<Trace>, FormatError> {
    let Some((prefix, path)) = origin.split_once(':') else { return Ok(None) };
    let trace = match prefix {
        "philly" => read_philly(path),
        "openb" => read_openb_pods(path),
        "alibaba-2026" => read_alibaba_2026_jobs(path),
        "helios" => read_helios(path),
        "acme" => read_acme(path),
        "sacct" => read_sacct(path),
        "swf" => match ratio {
            Some(ratio) => read_swf(path, ratio),
            None => {
                let text =
                    "found a trace of processors, expected to be told what they stand for: --gpus-per-proc N or N/M";
                Err(FormatError::new(origin, text))
            }
        },
        _ => return Ok(None),
    };
    trace.map(Some)
}

/// The queue that `--queue` names: a trace as [`foreign_trace`] reads it, the waiting jobs of a dump as [`dump_source`] reads
/// it, `synthetic:JOBS[:SEED]`, or the path of a queue.
/// Its jobs are registered in `cluster`.
///
/// The jobs of a trace come and go at their own pace; with `load_percent` they are pressed together until what nothing holds
/// yet of the GPUs of the cluster, rests of shared ones included, is loaded to that share (see [`replay`]). A synthetic
/// queue is always pressed together, to 95 % by default.
///
/// # Errors
/// If it cannot be read or made, or a load is given for a queue without times.
pub fn queue_source(
    origin: &str,
    cluster: &mut Cluster,
    load_percent: Option<u32>,
    ratio: Option<GpusPerProc>,
    keys: Option<&TopologyKeys>,
) -> Result<(Queue, Vec<Note>), FormatError> {
    if let Some(trace) = foreign_trace(origin, ratio)? {
        let Trace { jobs, report } = trace;
        let events = match load_percent {
            None => natural(&jobs),
            Some(percent) => replay(&jobs, unheld_milli(cluster), percent),
        };
        let queue = trace_to_queue(&jobs, &events, cluster);
        return Ok((queue.map_err(|error| FormatError::new(origin, error))?, report.notes()));
    }
    if load_percent.is_none()
        && let Some(import) = dump_source(origin, keys)?
    {
        return import.queue(origin, cluster);
    }
    match origin.split_once(':') {
        Some(("synthetic", rest)) => {
            let (jobs, seed) = synthetic(origin, rest, "synthetic:JOBS[:SEED]")?;
            let defaults = StreamOptions::default();
            let load_percent = load_percent.unwrap_or(defaults.load_percent);
            let gpus = unheld_milli(cluster) / u64::from(WHOLE_GPU);
            let options = StreamOptions { jobs, seed, gpus, load_percent, ..defaults };
            let queue = synthetic_queue(cluster, &options);
            Ok((queue.map_err(|error| FormatError::new(origin, error))?, Vec::new()))
        }
        _ if load_percent.is_some() => {
            Err(FormatError::new(origin, "found a queue without times, expected a trace or synthetic: with a load"))
        }
        _ => read_queue(origin, cluster),
    }
}

/// What a trace does not say itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// The GPUs that a trace which is made is to load.
    pub gpus: u64,
    /// To which share.
    pub load_percent: u32,
    /// How common instances of each size are in it.
    pub mix: Mix,
    /// The GPUs that a processor of `swf:` stands for.
    pub gpus_per_proc: Option<GpusPerProc>,
}

/// The trace that `--trace` names: one that [`foreign_trace`] reads, `synthetic:JOBS[:SEED]` with Poisson arrivals, or the
/// path of a trace of our own. Sorted by submission, ties in the order of the file.
///
/// # Errors
/// If it cannot be read or made.
pub fn trace_source(origin: &str, options: &TraceOptions) -> Result<(Vec<TraceJob>, Vec<Note>), FormatError> {
    let &TraceOptions { gpus, load_percent, mix, gpus_per_proc } = options;
    if let Some(trace) = foreign_trace(origin, gpus_per_proc)? {
        let Trace { jobs, report } = trace;
        return Ok((jobs, report.notes()));
    }
    match origin.split_once(':') {
        Some(("synthetic", rest)) => {
            let (jobs, seed) = synthetic(origin, rest, "synthetic:JOBS[:SEED]")?;
            let stream = StreamOptions { jobs, seed, gpus, load_percent, mix, ..StreamOptions::default() };
            Ok((synthetic_trace(&stream), Vec::new()))
        }
        Some((prefix, _)) if DUMPS.contains(&prefix) => {
            Err(FormatError::new(origin, "found a dump, which has no times, expected a trace"))
        }
        _ => read_trace(origin),
    }
}

/// Thousandths of working GPUs that no running job holds.
fn unheld_milli(cluster: &Cluster) -> u64 {
    cluster.node_ids().flat_map(|node| cluster.gpu_milli_left(node)).map(u64::from).sum()
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
