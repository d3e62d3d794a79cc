//! Tables of jobs as Helios and Acme publish them: a row a job, its GPUs and cores in total, its times, and a
//! `duration` that is not always what it says.

use std::io::Read;

use crate::workload::{Outcome, TraceJob};

use super::error::FormatError;
use super::gather::{Gather, LeftOut, Row, Run, SameId, Trace, Unread, slurm_outcome};
use super::split::{each, split};
use super::table::{Column, Table};

/// Reads such a table, in which the column `group` says what a job belongs to.
pub(super) fn read(name: &str, reader: impl Read, group: &'static str, assumed: &[&str]) -> Result<Trace, FormatError> {
    let mut table = Table::new(name, reader)?;
    let columns = Columns {
        id: table.needed("job_id")?,
        user: table.optional("user")?,
        group: table.optional(group)?,
        gpus: table.needed("gpu_num")?,
        cpus: table.optional("cpu_num")?,
        nodes: table.optional("node_num")?,
        state: table.optional("state")?,
        submit: table.needed("submit_time")?,
        start: table.needed("start_time")?,
        end: table.needed("end_time")?,
        duration: table.optional("duration")?,
    };
    let mut gather = Gather::new(name, SameId::First);
    while table.next()? {
        let row = job(&table, &columns, &mut gather);
        gather.take(row)?;
    }
    let mut trace = gather.finish(assumed);
    // The public counts of these traces disagree with each other, so say which were found here.
    let with_gpus = trace.jobs.iter().filter(|job| job.gpus_per_instance > 0).count();
    let text = format!("{} jobs are kept, {with_gpus} of them with GPUs", trace.jobs.len());
    trace.report.assumed.push(text);
    Ok(trace)
}

struct Columns {
    id: Column,
    user: Column,
    group: Column,
    gpus: Column,
    cpus: Column,
    nodes: Column,
    state: Column,
    submit: Column,
    start: Column,
    end: Column,
    duration: Column,
}

fn job<R: Read>(table: &Table<'_, R>, columns: &Columns, gather: &mut Gather) -> Result<Row, Unread> {
    let split = split(table.gpus(columns.gpus)?, table.count(columns.nodes)?)?;
    let outcome = slurm_outcome(table.text(columns.state));
    let submit = table.time(columns.submit)?.ok_or(LeftOut::NoSubmission)?;
    let start = table.time(columns.start)?.ok_or(LeftOut::NeverStarted)?;
    let end = table.time(columns.end)?;
    let job = TraceJob {
        name: table.text(columns.id).to_owned(),
        instances: split.instances,
        gpus_per_instance: split.gpus,
        cpu_milli: each(table.cores(columns.cpus)?, split.instances)?,
        user: gather.text(table.text(columns.user)),
        group: gather.text(table.text(columns.group)),
        outcome,
        ..TraceJob::default()
    };
    if let (Some(end), Some(stated)) = (end, table.seconds(columns.duration)?)
        && end.saturating_sub(start) != stated
    {
        gather.odd("state a duration that is not end - start, which counts");
    }
    if columns.state.is_there() && outcome == Outcome::Unknown {
        gather.odd("are in a state that is not known");
    }
    if split.gpus == 0 {
        gather.odd("ask for no GPU; they are kept as instances of CPU alone");
    } else if split.instances > 1 && split.by_nodes {
        gather.odd("become as many instances as their node_num says");
    } else if split.instances > 1 {
        gather.odd("become instances of 8 GPUs: node_num does not divide their GPUs");
    }
    Ok(Row { job, submit, run: end.map_or(Run::Since(start), |end| Run::Between(start, end)) })
}
