//! Shanghai AI Laboratory's Acme trace: `trace_seren.csv` and `trace_kalos.csv`.

use std::io::Read;

use super::error::FormatError;
use super::gather::Trace;
use super::job_table;
use super::source::Source;

const ASSUMED: [&str; 1] = ["gpu_num and cpu_num are taken as the totals of a job"];

/// Reads the jobs of one cluster. Both files have
/// `job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration`, and others beside them.
///
/// `gpu_num` is the job's total. Where `node_num` divides it, an instance a node; else up to 8 GPUs are one instance, a
/// larger multiple of 8 is instances of 8, any other job is left out. A job runs from start to end: in Kalos `duration`
/// counts from the submission, so rows where it differs are counted. The kind of a job (`type`) is kept as its group.
/// Memory is not read: Kalos states it a pod, Seren not at all.
///
/// # Errors
/// If it cannot be read, a column is missing, or a value is malformed.
pub fn read_acme(path: &str) -> Result<Trace, FormatError> {
    let mut source = Source::open(path)?.not_empty("a CSV list of jobs")?;
    let name = source.name().to_owned();
    read_acme_from(&name, source.reader())
}

/// Reads the jobs; `name` stands in errors.
///
/// # Errors
/// As for [`read_acme`].
pub fn read_acme_from(name: &str, reader: impl Read) -> Result<Trace, FormatError> {
    job_table::read(name, reader, "type", &ASSUMED)
}
