//! Alibaba's 2023 trace of GPU sharing, `openb`: a list of nodes and lists of pods, CSV.

use std::io::Read;

use crate::cluster::{MAX_AMOUNT, MAX_GPUS, NodeSpec};
use crate::workload::{Outcome, TraceJob};

use super::error::FormatError;
use super::gather::{Gather, LeftOut, Row, Run, SameId, Trace, Unread};
use super::node_table::read_nodes;
use super::snapshot::Snapshot;
use super::source::Source;
use super::split::each;
use super::table::{Column, Table};

/// Reads the node list, `sn,cpu_milli,memory_mib,gpu,model`. Nodes without GPUs are left out and counted in a note.
///
/// The file of all nodes and the file of those with GPUs number them apart: `sn` of one says nothing in the other.
///
/// # Errors
/// If it cannot be read, a column is missing, or a node cannot be.
pub fn read_openb_nodes(path: &str) -> Result<Snapshot, FormatError> {
    let mut source = Source::open(path)?.not_empty("a CSV list of nodes")?;
    let name = source.name().to_owned();
    read_openb_nodes_from(&name, source.reader())
}

/// Reads the node list; `name` stands in errors.
///
/// # Errors
/// As for [`read_openb_nodes`].
pub fn read_openb_nodes_from(name: &str, reader: impl Read) -> Result<Snapshot, FormatError> {
    let table = Table::new(name, reader)?;
    let [sn, cpu, memory] = [table.needed("sn")?, table.needed("cpu_milli")?, table.needed("memory_mib")?];
    let [gpu, model] = [table.needed("gpu")?, table.needed("model")?];
    read_nodes(name, table, (sn, model), |table| {
        let gpus = table.int(gpu, MAX_GPUS as u64)? as u8;
        let amount = |column| Ok::<_, FormatError>(table.int(column, u64::from(MAX_AMOUNT))? as u32);
        let (cpu_milli, memory_mib) = (Some(amount(cpu)?), Some(amount(memory)?));
        Ok(NodeSpec { gpus, cpu_milli, memory_mib, ..NodeSpec::default() })
    })
}

/// Reads a list of pods, each a job of one instance: `name,cpu_milli,memory_mib,num_gpu,gpu_milli` and, but in the
/// `multigpu` variants, `gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time`.
///
/// `gpu_milli` is for each GPU; less than 1000 is a share of one. `gpu_spec` lists the models that would do. A pod runs
/// from its scheduling to its deletion. One that was never scheduled is taken to have wanted the time from its creation
/// to its deletion, and is marked as censored, as is one that still ran when the trace ends. Where the file has no times,
/// all are submitted at once, in the order of the file, and stay forever. The names are those of this file alone.
///
/// # Errors
/// If it cannot be read, a column is missing, or a value is malformed.
pub fn read_openb_pods(path: &str) -> Result<Trace, FormatError> {
    let mut source = Source::open(path)?.not_empty("a CSV list of pods")?;
    let name = source.name().to_owned();
    read_openb_pods_from(&name, source.reader())
}

/// Reads a list of pods; `name` stands in errors.
///
/// # Errors
/// As for [`read_openb_pods`].
pub fn read_openb_pods_from(name: &str, reader: impl Read) -> Result<Trace, FormatError> {
    let mut table = Table::new(name, reader)?;
    let columns = Columns {
        name: table.needed("name")?,
        cpu: table.needed("cpu_milli")?,
        memory: table.needed("memory_mib")?,
        gpus: table.needed("num_gpu")?,
        milli: table.needed("gpu_milli")?,
        spec: table.optional("gpu_spec")?,
        phase: table.optional("pod_phase")?,
        times: match table.optional("creation_time")?.is_there() {
            true => {
                Some([table.needed("creation_time")?, table.needed("scheduled_time")?, table.needed("deletion_time")?])
            }
            false => None,
        },
    };
    let mut gather = Gather::new(name, SameId::First);
    while table.next()? {
        let row = pod(&table, &columns, &mut gather);
        gather.take(row)?;
    }
    let timeless = ["the file has no times: all are submitted at once and stay forever"];
    Ok(gather.finish(if columns.times.is_some() { &[] } else { &timeless }))
}

struct Columns {
    name: Column,
    cpu: Column,
    memory: Column,
    gpus: Column,
    milli: Column,
    spec: Column,
    phase: Column,
    /// Created, scheduled, deleted.
    times: Option<[Column; 3]>,
}

fn pod<R: Read>(table: &Table<'_, R>, columns: &Columns, gather: &mut Gather) -> Result<Row, Unread> {
    let gpus = table.gpus(columns.gpus)?;
    let gpus_per_instance = u8::try_from(gpus).ok().filter(|&gpus| usize::from(gpus) <= MAX_GPUS);
    let gpus_per_instance = gpus_per_instance.ok_or(LeftOut::TooWide)?;
    let milli = table.count(columns.milli)?.unwrap_or_default();
    let gpu_milli = match (gpus, milli) {
        // A pod without GPUs asks for 0 thousandths of them.
        (0, 0) => TraceJob::WHOLE,
        (1.., 1000) => TraceJob::WHOLE,
        (1, 1..1000) => milli as u16,
        _ => {
            let text =
                format!("found {milli} with {gpus} GPUs, expected 0 with none, 1 to 1000 with one, 1000 with more");
            return Err(table.fault(columns.milli, text).into());
        }
    };
    let mut job = TraceJob {
        name: table.text(columns.name).to_owned(),
        gpus_per_instance,
        gpu_milli,
        cpu_milli: each(table.count(columns.cpu)?.unwrap_or_default(), 1)?,
        memory_mib: each(table.count(columns.memory)?.unwrap_or_default(), 1)?,
        models: gather.models(table.text(columns.spec)),
        outcome: match table.text(columns.phase) {
            "Succeeded" => Outcome::Completed,
            "Failed" => Outcome::Failed,
            "Running" => Outcome::Running,
            "Pending" => Outcome::Pending,
            _ => Outcome::Unknown,
        },
        ..TraceJob::default()
    };
    let Some([created, scheduled, deleted]) = columns.times else {
        return Ok(Row { job, submit: 0, run: Run::Forever });
    };
    let submit = table.seconds(created)?.ok_or(LeftOut::NoSubmission)?;
    let run = match (table.seconds(scheduled)?, table.seconds(deleted)?) {
        (Some(start), Some(end)) if job.outcome == Outcome::Running => Run::Seen(start, end),
        (Some(start), Some(end)) => Run::Between(start, end),
        (Some(start), None) => Run::Since(start),
        (None, Some(end)) => {
            gather.odd("were never scheduled; taken to want the time from creation to deletion");
            job.censored = true;
            Run::Between(submit, end)
        }
        (None, None) => return Err(LeftOut::NoDuration.into()),
    };
    Ok(Row { job, submit, run })
}
