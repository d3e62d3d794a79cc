//! SenseTime's Helios trace (Earth, Saturn, Uranus, Venus): `cluster_log.csv`.

use std::io::Read;

use super::error::FormatError;
use super::gather::Trace;
use super::job_table;
use super::source::Source;

const ASSUMED: [&str; 2] = [
    "gpu_num and cpu_num are taken as the totals of a job, times as those of one place without a zone",
    "virtual clusters are kept as a column; they were hard partitions, so a run without them understates waiting",
];

/// Reads the jobs of one cluster, `job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue`.
///
/// `gpu_num` is the job's total. Where `node_num` divides it, an instance a node; else up to 8 GPUs are one instance, a
/// larger multiple of 8 is instances of 8, any other job is left out. Jobs without GPUs (more than half of them) are
/// instances of CPU alone. A job runs from start to end, whatever `duration` says; rows where that differs are counted.
///
/// # Errors
/// If it cannot be read, a column is missing, or a value is malformed.
pub fn read_helios(path: &str) -> Result<Trace, FormatError> {
    let mut source = Source::open(path)?.not_empty("a CSV list of jobs")?;
    let name = source.name().to_owned();
    read_helios_from(&name, source.reader())
}

/// Reads the jobs; `name` stands in errors.
///
/// # Errors
/// As for [`read_helios`].
pub fn read_helios_from(name: &str, reader: impl Read) -> Result<Trace, FormatError> {
    job_table::read(name, reader, "vc", &ASSUMED)
}
