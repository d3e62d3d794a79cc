//! Writes a snapshot that `read_cluster` reads again.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::cluster::{Cluster, JobId, NodeId, UNLIMITED, gpu_indices};

use super::job::RequestOut;
use super::snapshot::{IndexSource, Snapshot};

/// Written at a time.
const CHUNK: usize = 64 << 10;

/// Writes what runs now: every node, and every job of which an instance runs, in order of registration, one element a
/// line. All devices are named, so that reading it gives the same holdings.
///
/// # Errors
/// If `out` fails.
pub fn write_cluster(cluster: &Cluster, as_of: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    write(cluster, as_of, None, out)
}

/// Writes a snapshot, as [`write_cluster`] does, and where its device indices are from.
///
/// # Errors
/// If `out` fails.
pub fn write_snapshot(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    write(&snapshot.cluster, snapshot.as_of.as_deref(), snapshot.index_source, out)
}

fn write(
    cluster: &Cluster,
    as_of: Option<&str>,
    index_source: Option<IndexSource>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(CHUNK, out);
    out.write_all(b"{\"schema\":1,")?;
    if let Some(as_of) = as_of {
        out.write_all(b"\"as_of\":")?;
        serde_json::to_writer(&mut out, as_of)?;
        out.write_all(b",")?;
    }
    if let Some(source) = index_source {
        write!(out, "\"index_source\":\"{}\",", source.word())?;
    }
    out.write_all(b"\"nodes\":[")?;
    list(&mut out, cluster.node_ids().map(|id| NodeOut::of(cluster, id)))?;
    out.write_all(b"],\n\"running\":[")?;
    let running = cluster.job_ids().filter(|&job| cluster.job(job).runs());
    list(&mut out, running.map(|job| RunningOut::of(cluster, job)))?;
    out.write_all(b"]}\n")?;
    out.flush()
}

fn list<T: Serialize>(out: &mut impl Write, elements: impl Iterator<Item = T>) -> io::Result<()> {
    for (i, element) in elements.enumerate() {
        out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &element)?;
    }
    Ok(())
}

#[derive(Serialize)]
struct NodeOut<'a> {
    name: &'a str,
    gpus: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rack: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_milli: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_mib: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedulable: Option<bool>,
    #[serde(skip_serializing_if = "Mask::is_empty")]
    unavailable: Mask,
}

impl<'a> NodeOut<'a> {
    fn of(cluster: &'a Cluster, id: NodeId) -> Self {
        let node = cluster.node(id);
        let all = ((1u32 << node.devices()) - 1) as u16;
        let limited = |amount: u32| (amount != UNLIMITED).then_some(amount);
        Self {
            name: cluster.node_name(id),
            gpus: node.devices(),
            model: cluster.pool(node.pool()).model.map(|model| cluster.model_name(model)),
            domain: node.domain().map(|domain| cluster.domain_name(domain)),
            rack: node.rack().map(|rack| cluster.rack_name(rack)),
            cpu_milli: limited(node.cpu_milli()),
            memory_mib: limited(node.memory_mib()),
            schedulable: (!node.schedulable()).then_some(false),
            unavailable: Mask(all & !node.usable()),
        }
    }
}

#[derive(Serialize)]
struct RunningOut<'a> {
    job: &'a str,
    #[serde(flatten)]
    request: RequestOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    move_cost_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_of: Option<&'a str>,
    instances: Seats<'a>,
}

impl<'a> RunningOut<'a> {
    fn of(cluster: &'a Cluster, job: JobId) -> Self {
        let times = cluster.job_times(job);
        Self {
            job: cluster.job_name(job),
            request: RequestOut::of(cluster, job),
            remaining_s: times.remaining_s,
            move_cost_s: times.move_cost_s,
            group_of: cluster.grouped_job_of(job).map(|_| cluster.whole_job_name(job)),
            instances: Seats(cluster, job),
        }
    }
}

/// The seats of a job's running instances.
struct Seats<'a>(&'a Cluster, JobId);

impl Serialize for Seats<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let &Self(cluster, job) = self;
        serializer.collect_seq(cluster.instances_of(job).filter_map(|id| {
            let instance = cluster.instance(id);
            let node = cluster.node_name(instance.node()?);
            Some(SeatOut { node, gpus: Mask(instance.gpus()) })
        }))
    }
}

#[derive(Serialize)]
struct SeatOut<'a> {
    node: &'a str,
    gpus: Mask,
}

/// A set of devices, written as a list of indices.
struct Mask(u16);

impl Mask {
    fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

impl Serialize for Mask {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(gpu_indices(self.0))
    }
}
