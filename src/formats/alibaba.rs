//! Alibaba's 2026 trace of spot GPUs: a list of nodes and a list of jobs, CSV with the columns in any order and others
//! beside them.

use std::io::Read;

use crate::cluster::{MAX_AMOUNT, MAX_GPUS, NodeSpec};
use crate::workload::TraceJob;

use super::error::FormatError;
use super::gather::{Gather, LeftOut, Row, Run, SameId, Trace, Unread};
use super::node_table::read_nodes;
use super::snapshot::Snapshot;
use super::source::Source;
use super::split::{MOST, each};
use super::table::{Column, Table};

/// Reads the node list, `gpu_model,gpu_capacity_num,cpu_num,node_name`. vCPUs become milli-cores, memory is unlimited,
/// nothing runs. Nodes without GPUs are left out and counted in a note.
///
/// # Errors
/// If it cannot be read, a column is missing, or a node cannot be.
pub fn read_alibaba_2026(path: &str) -> Result<Snapshot, FormatError> {
    let mut source = Source::open(path)?.not_empty("a CSV list of nodes")?;
    let name = source.name().to_owned();
    read_alibaba_2026_from(&name, source.reader())
}

/// Reads the node list; `name` stands in errors.
///
/// # Errors
/// As for [`read_alibaba_2026`].
pub fn read_alibaba_2026_from(name: &str, reader: impl Read) -> Result<Snapshot, FormatError> {
    let table = Table::new(name, reader)?;
    let [model, capacity] = [table.needed("gpu_model")?, table.needed("gpu_capacity_num")?];
    let [cpu, node_name] = [table.needed("cpu_num")?, table.needed("node_name")?];
    read_nodes(name, table, (node_name, model), |table| {
        let gpus = table.int(capacity, MAX_GPUS as u64)? as u8;
        let cpus = table.int(cpu, u64::from(MAX_AMOUNT / 1000))? as u32;
        Ok(NodeSpec { gpus, cpu_milli: Some(cpus * 1000), ..NodeSpec::default() })
    })
}

/// Reads the job list, `job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type`.
///
/// The requests are taken as those of each of `worker_num` workers, which become the instances: only so do its rows of 1
/// GPU and many workers make sense, though its text says "requested by the job". A fractional `gpu_request` is left out
/// and counted. High-priority jobs (`HP`) have priority 1. The trace has no starts: a job runs for its duration, which
/// for `HP` may be cut at the end of the trace.
///
/// # Errors
/// If it cannot be read, a column is missing, or a value is malformed.
pub fn read_alibaba_2026_jobs(path: &str) -> Result<Trace, FormatError> {
    let mut source = Source::open(path)?.not_empty("a CSV list of jobs")?;
    let name = source.name().to_owned();
    read_alibaba_2026_jobs_from(&name, source.reader())
}

/// Reads the job list; `name` stands in errors.
///
/// # Errors
/// As for [`read_alibaba_2026_jobs`].
pub fn read_alibaba_2026_jobs_from(name: &str, reader: impl Read) -> Result<Trace, FormatError> {
    let mut table = Table::new(name, reader)?;
    let columns = Columns {
        name: table.needed("job_name")?,
        organization: table.optional("organization")?,
        model: table.optional("gpu_model")?,
        cpu: table.optional("cpu_request")?,
        gpus: table.needed("gpu_request")?,
        workers: table.needed("worker_num")?,
        submit: table.needed("submit_time")?,
        duration: table.needed("duration")?,
        kind: table.optional("job_type")?,
    };
    let mut gather = Gather::new(name, SameId::First);
    while table.next()? {
        let row = job(&table, &columns, &mut gather);
        gather.take(row)?;
    }
    Ok(gather.finish(&["gpu_request and cpu_request are taken as those of each of worker_num workers"]))
}

struct Columns {
    name: Column,
    organization: Column,
    model: Column,
    cpu: Column,
    gpus: Column,
    workers: Column,
    submit: Column,
    duration: Column,
    kind: Column,
}

fn job<R: Read>(table: &Table<'_, R>, columns: &Columns, gather: &mut Gather) -> Result<Row, Unread> {
    let gpus_per_instance = u8::try_from(table.gpus(columns.gpus)?).ok().filter(|&gpus| usize::from(gpus) <= MAX_GPUS);
    let instances = match table.count(columns.workers)? {
        None | Some(0) => return Err(LeftOut::NoWorkers.into()),
        Some(workers) if workers > MOST => return Err(LeftOut::TooMuch.into()),
        Some(workers) => workers as u32,
    };
    let job = TraceJob {
        name: table.text(columns.name).to_owned(),
        instances,
        gpus_per_instance: gpus_per_instance.ok_or(LeftOut::TooWide)?,
        cpu_milli: each(table.cores(columns.cpu)?, 1)?,
        models: gather.models(table.text(columns.model)),
        group: gather.text(table.text(columns.organization)),
        priority: match table.text(columns.kind) {
            "HP" => 1,
            "Spot" | "" => 0,
            _ => {
                gather.odd("are neither HP nor Spot; taken as Spot");
                0
            }
        },
        ..TraceJob::default()
    };
    let submit = table.seconds(columns.submit)?.ok_or(LeftOut::NoSubmission)?;
    let run = Run::For(table.seconds(columns.duration)?.ok_or(LeftOut::NoDuration)?);
    Ok(Row { job, submit, run })
}
