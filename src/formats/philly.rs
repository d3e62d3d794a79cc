//! Microsoft's Philly trace, in two forms: the log of the trace itself (JSON, see `philly_log`), and the CSV that
//! simulators use, `timestamp,duration,num_gpus` and other columns.

use std::io::{BufReader, Cursor, Read};

use crate::workload::TraceJob;

use super::error::FormatError;
use super::gather::{Gather, LeftOut, Row, Run, SameId, Trace, Unread};
use super::philly_log;
use super::source::Source;
use super::split::split;
use super::table::{Column, Table};

/// Read to tell the one form from the other.
const HEAD: u64 = 64;

/// Reads the jobs, from whichever form the content has.
///
/// Both state the GPUs of a whole job: up to 8 are one instance, a larger multiple of 8 is instances of 8, any other job
/// is left out. That is so for the log too, though it knows the nodes of each attempt: how a job was spread was the
/// choice of the scheduler of then.
///
/// In the CSV a job is named `philly-N` by its row, from 1, and durations are rounded to the nearest second, a half up.
/// In the log a job runs from the start of its first attempt to the end of its last one, gaps included.
///
/// # Errors
/// If it cannot be read, a column or field is missing, or a value is malformed.
pub fn read_philly(path: &str) -> Result<Trace, FormatError> {
    let mut source = Source::open(path)?.not_empty("a CSV list of jobs, or a JSON log of them")?;
    let name = source.name().to_owned();
    read_philly_from(&name, source.reader())
}

/// Reads the jobs; `name` stands in errors.
///
/// # Errors
/// As for [`read_philly`].
pub fn read_philly_from(name: &str, reader: impl Read) -> Result<Trace, FormatError> {
    let mut reader = reader;
    let mut head = Vec::new();
    reader.by_ref().take(HEAD).read_to_end(&mut head).map_err(|error| FormatError::unreadable(name, error))?;
    let is_json = matches!(head.trim_ascii_start().first(), Some(b'[' | b'{'));
    let whole = Cursor::new(head).chain(reader);
    if is_json { philly_log::read(name, BufReader::new(whole)) } else { read_csv(name, whole) }
}

struct Columns {
    submit: Column,
    duration: Column,
    gpus: Column,
    cluster: Column,
}

fn read_csv(name: &str, reader: impl Read) -> Result<Trace, FormatError> {
    let mut table = Table::new(name, reader)?;
    let columns = Columns {
        submit: table.needed("timestamp")?,
        duration: table.needed("duration")?,
        gpus: table.needed("num_gpus")?,
        cluster: table.optional("cluster")?,
    };
    let mut gather = Gather::new(name, SameId::First);
    while table.next()? {
        let row = job(&table, &columns, &mut gather);
        gather.take(row)?;
    }
    Ok(gather.finish(&[]))
}

fn job<R: Read>(table: &Table<'_, R>, columns: &Columns, gather: &mut Gather) -> Result<Row, Unread> {
    let submit = table.time(columns.submit)?.ok_or(LeftOut::NoSubmission)?;
    let duration = table.seconds(columns.duration)?.ok_or(LeftOut::NoDuration)?;
    let split = match table.gpus(columns.gpus)? {
        0 => return Err(LeftOut::NoGpus.into()),
        gpus => split(gpus, None)?,
    };
    let job = TraceJob {
        name: format!("philly-{}", gather.rows() + 1),
        instances: split.instances,
        gpus_per_instance: split.gpus,
        group: gather.text(table.text(columns.cluster)),
        ..TraceJob::default()
    };
    Ok(Row { job, submit, run: Run::For(duration) })
}
