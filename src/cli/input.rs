//! Reads what commands work on. All of it is read before the first line of output.

use super::args::{ProcessorsArg, TraceArgs};
use super::failure::Failure;
use super::output::Talk;
use crate::cluster::Cluster;
use crate::formats::{
    FormatError, Note, Snapshot, TopologyKeys, TraceOptions, cluster_source, dump_source, queue_source,
    read_node_events, trace_source,
};
use crate::workload::synthetic::Mix;
use crate::workload::{NodeEvent, Queue, TraceJob};

/// The cluster that `--cluster` names, and what its reader noted.
///
/// # Errors
/// If it cannot be read or made, or there are `keys` and it is no dump of Kubernetes.
pub(super) fn cluster(origin: &str, keys: Option<&TopologyKeys>, talk: &Talk) -> Result<Snapshot, Failure> {
    if keys.is_some() && !origin.starts_with("kubernetes:") {
        return Err(Failure::input(format_args!(
            "--topology-keys: found the cluster {origin:?}, expected kubernetes:FILE, whose nodes have labels"
        )));
    }
    let snapshot = cluster_source(origin, keys)?;
    tell(&snapshot.notes, talk);
    if origin.starts_with("kubernetes:") || origin.starts_with("slurm:") {
        expect_nodes(origin, &snapshot.cluster)?;
    }
    Ok(snapshot)
}

/// Refuses a dump of another scheduler without nodes: an audit of it would find nothing wrong.
///
/// # Errors
/// If there are none.
pub(super) fn expect_nodes(origin: &str, cluster: &Cluster) -> Result<(), FormatError> {
    let text = "found no node that can be kept, expected a dump of the nodes among the files";
    if cluster.nodes().is_empty() { Err(FormatError::new(origin, text)) } else { Ok(()) }
}

/// The queue that `--queue` names; its jobs are registered in `cluster`.
///
/// # Errors
/// If it cannot be read or made.
pub(super) fn queue(
    origin: &str,
    keys: Option<&TopologyKeys>,
    cluster: &mut Cluster,
    trace: TraceArgs,
    talk: &Talk,
) -> Result<Queue, Failure> {
    let (queue, notes) = queue_source(origin, cluster, trace.load, trace.processors.gpus_per_proc, keys)?;
    tell(&notes, talk);
    Ok(queue)
}

/// A queue, and what its jobs are called besides.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) queue: Queue,
    /// What their owners call jobs, with the names of these in the cluster.
    pub(super) own_names: Vec<(String, String)>,
}

/// The queue that `--queue` names, of which a job is to be looked at; its jobs are registered in `cluster`.
///
/// # Errors
/// If it cannot be read or made.
pub(super) fn waiting(
    origin: &str,
    keys: Option<&TopologyKeys>,
    cluster: &mut Cluster,
    talk: &Talk,
) -> Result<Waiting, Failure> {
    let Some(import) = dump_source(origin, keys)? else {
        return Ok(Waiting { queue: queue(origin, keys, cluster, TraceArgs::default(), talk)?, own_names: Vec::new() });
    };
    let (queue, notes) = import.queue(origin, cluster)?;
    tell(&notes, talk);
    Ok(Waiting { queue, own_names: import.own_names })
}

/// The trace that `--trace` names, and what its reader noted.
///
/// # Errors
/// If it cannot be read or made.
pub(super) fn trace(origin: &str, options: &TraceOptions, talk: &Talk) -> Result<(Vec<TraceJob>, Vec<Note>), Failure> {
    let (jobs, notes) = trace_source(origin, options)?;
    tell(&notes, talk);
    Ok((jobs, notes))
}

/// The jobs of a trace for which times do not matter, as of one that says what is typical.
///
/// # Errors
/// If it cannot be read or made.
pub(super) fn jobs(origin: &str, gpus: u64, processors: ProcessorsArg, talk: &Talk) -> Result<Vec<TraceJob>, Failure> {
    let options = TraceOptions { gpus, load_percent: 95, mix: Mix::default(), gpus_per_proc: processors.gpus_per_proc };
    trace(origin, &options, talk).map(|(jobs, _)| jobs)
}

/// The events that `--events` names, of the nodes of `cluster`.
///
/// # Errors
/// If they cannot be read.
pub(super) fn node_events(path: &str, cluster: &Cluster, talk: &Talk) -> Result<Vec<NodeEvent>, Failure> {
    let (events, notes) = read_node_events(path, cluster)?;
    tell(&notes, talk);
    Ok(events)
}

/// Tells the user what a reader noted.
pub(super) fn tell(notes: &[Note], talk: &Talk) {
    for note in notes {
        talk.note(note);
    }
}
