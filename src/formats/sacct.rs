//! What a Slurm site has itself: `sacct -a -X -P -o JobIDRaw,User,Account,Partition,QOS,Submit,Start,End,ElapsedRaw,
//! State,NNodes,ReqTRES,AllocTRES`, fields between bars under a header.

use std::io::Read;

use crate::workload::{Outcome, TraceJob};

use super::error::FormatError;
use super::gather::{Gather, LeftOut, Row, Run, SameId, Trace, Unread, slurm_outcome};
use super::source::Source;
use super::split::{each, split};
use super::table::{Column, Table};
use super::tres::Tres;

/// Reads the accounting of a site. Needed are `JobIDRaw`, `Submit`, `Start`, `ElapsedRaw`, `State`, and `AllocTRES` or
/// `ReqTRES`; `User`, `Account`, `Partition`, `End`, `NNodes` are used where they are there, others are ignored.
///
/// What a job was given counts (`AllocTRES`), or what it asked for where it was given nothing. Its GPUs are the untyped
/// total (`gres/gpu=8`), or the sum over the types. A type that it asked for is the model that it may have. Where `NNodes`
/// divides the GPUs, an instance a node; else up to 8 are one instance, a larger multiple of 8 is instances of 8, any
/// other job is left out. Cores and memory are split evenly, rounded up.
///
/// Steps are left out, should they be there without `-X`. A job that was requeued has several rows with `-D`: the last
/// run counts, from the first submission; without `-D` its submission is that of the last time. A job that still runs
/// has the time it ran so far. Times are local; how long a job ran does not depend on them.
///
/// # Errors
/// If it cannot be read, a column is missing, or a value is malformed.
pub fn read_sacct(path: &str) -> Result<Trace, FormatError> {
    let mut source = Source::open(path)?.not_empty("the output of sacct -P, with its header")?;
    let name = source.name().to_owned();
    read_sacct_from(&name, source.reader())
}

/// Reads the accounting; `name` stands in errors.
///
/// # Errors
/// As for [`read_sacct`].
pub fn read_sacct_from(name: &str, reader: impl Read) -> Result<Trace, FormatError> {
    let mut table = Table::with_bars(name, reader)?;
    let columns = Columns {
        id: table.needed("JobIDRaw")?,
        user: table.optional("User")?,
        account: table.optional("Account")?,
        partition: table.optional("Partition")?,
        submit: table.needed("Submit")?,
        start: table.needed("Start")?,
        end: table.optional("End")?,
        elapsed: table.needed("ElapsedRaw")?,
        state: table.needed("State")?,
        nodes: table.optional("NNodes")?,
        asked: table.optional("ReqTRES")?,
        given: table.optional("AllocTRES")?,
    };
    if !columns.asked.is_there() && !columns.given.is_there() {
        return Err(table.lacks("a column `AllocTRES` or `ReqTRES`"));
    }
    let mut gather = Gather::new(name, SameId::Last);
    while table.next()? {
        let row = job(&table, &columns, &mut gather);
        gather.take(row)?;
    }
    Ok(gather.finish(&[]))
}

struct Columns {
    id: Column,
    user: Column,
    account: Column,
    partition: Column,
    submit: Column,
    start: Column,
    end: Column,
    elapsed: Column,
    state: Column,
    nodes: Column,
    asked: Column,
    given: Column,
}

fn job<R: Read>(table: &Table<'_, R>, columns: &Columns, gather: &mut Gather) -> Result<Row, Unread> {
    let id = table.text(columns.id);
    // 123.batch, 123.0, 123.extern.
    if id.contains('.') {
        return Err(LeftOut::Step.into());
    }
    let outcome = slurm_outcome(table.text(columns.state));
    let submit = table.time(columns.submit)?.ok_or(LeftOut::NoSubmission)?;
    // The start of a pending job is when Slurm expects it.
    if table.time(columns.start)?.is_none() || outcome == Outcome::Pending {
        return Err(LeftOut::NeverStarted.into());
    }
    let elapsed = table.seconds(columns.elapsed)?.ok_or(LeftOut::NoDuration)?;
    let tres = |column| {
        let fault = |text| table.fault(column, text);
        Tres::read(table.text(column)).map_err(fault)
    };
    let (asked, given) = (tres(columns.asked)?, tres(columns.given)?);
    let used = if given.is_empty { &asked } else { &given };
    if asked.types.len() > 1 {
        return Err(LeftOut::Mixed.into());
    }
    let gpus = used.gpus();
    if gpus == 0 && used.shares > 0 {
        return Err(LeftOut::Share.into());
    }
    let split = split(gpus, table.count(columns.nodes)?)?;
    // Without a column of ends the state alone can tell.
    let runs = outcome == Outcome::Running || columns.end.is_there() && table.time(columns.end)?.is_none();
    let job = TraceJob {
        name: id.to_owned(),
        instances: split.instances,
        gpus_per_instance: split.gpus,
        cpu_milli: each(used.cpu_milli, split.instances)?,
        memory_mib: each(used.memory_mib, split.instances)?,
        models: asked.types.first().map_or_else(Vec::new, |(model, _)| gather.models(model)),
        user: gather.text(table.text(columns.user)),
        group: gather.text(table.text(columns.partition)).or_else(|| gather.text(table.text(columns.account))),
        outcome: if runs { Outcome::Running } else { outcome },
        censored: runs,
        ..TraceJob::default()
    };
    if outcome == Outcome::Unknown {
        gather.odd("are in a state that is not known");
    }
    if split.instances > 1 && split.by_nodes {
        gather.odd("become as many instances as their NNodes says");
    } else if split.instances > 1 {
        gather.odd("become instances of 8 GPUs: no NNodes divides their GPUs");
    }
    // Not end - start: that would be wrong by an hour across a change of the clocks.
    Ok(Row { job, submit, run: Run::For(elapsed) })
}
