//! Microsoft's Philly trace as the Sia simulator has it: CSV with `timestamp,duration,num_gpus` and other columns.

use std::io::Read;

use jiff::civil::DateTime;

use crate::workload::TraceJob;

use super::error::{FormatError, Note};
use super::source::Source;
use super::table::Table;

/// The GPUs of a node, of which larger jobs take whole ones.
const NODE: u64 = 8;
/// The most GPUs of a job that a file may state.
const MOST_GPUS: u64 = 1 << 24;
/// The longest duration that a file may state, in seconds: what a float keeps exact.
const LONGEST: f64 = (1u64 << 53) as f64;

/// Reads the jobs, sorted by submission, ties in file order.
///
/// A job of up to 8 GPUs is one instance; of a larger multiple of 8, instances of 8; any other is left out and counted in
/// a note. A job is named `philly-N` by its row, from 1. Submission counts in seconds from the earliest job that is
/// kept; durations are rounded to the nearest second, a half up.
///
/// # Errors
/// If it cannot be read, a column is missing, or a value is none.
pub fn read_philly(path: &str) -> Result<(Vec<TraceJob>, Vec<Note>), FormatError> {
    let mut source = Source::open(path)?.not_empty("a CSV list of jobs")?;
    let name = source.name().to_owned();
    read_philly_from(&name, source.reader())
}

/// Reads the jobs; `name` stands in errors.
///
/// # Errors
/// As for [`read_philly`].
pub fn read_philly_from(name: &str, reader: impl Read) -> Result<(Vec<TraceJob>, Vec<Note>), FormatError> {
    let mut table = Table::new(name, reader, &["timestamp", "duration", "num_gpus"])?;
    let mut jobs = Vec::new();
    let (mut row, mut dropped) = (0u64, 0u64);
    while table.next()? {
        row += 1;
        let at: DateTime = DateTime::strptime("%Y-%m-%d %H:%M:%S", table.text(0)).map_err(|_| {
            table.fault(0, format_args!("found {:?}, expected a time such as 2017-10-09 07:01:55", table.text(0)))
        })?;
        let text = table.text(1);
        let duration = text.parse().ok().filter(|seconds: &f64| (0.0..=LONGEST).contains(seconds));
        let duration = duration.ok_or_else(|| {
            table.fault(1, format_args!("found {text:?}, expected a number of seconds from 0 to {LONGEST}"))
        })?;
        let gpus = table.int(2, MOST_GPUS)?;
        let (instances, gpus_per_instance) = match gpus {
            0 => return Err(table.fault(2, format_args!("found 0, expected an integer from 1 to {MOST_GPUS}"))),
            1..=NODE => (1, gpus as u8),
            _ if gpus % NODE == 0 => ((gpus / NODE) as u32, NODE as u8),
            _ => {
                dropped += 1;
                continue;
            }
        };
        let seconds = at.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs();
        let name = format!("philly-{row}");
        let duration_s = duration.round() as u64;
        let job = TraceJob { name, duration_s, instances, gpus_per_instance, ..TraceJob::default() };
        jobs.push((seconds, job));
    }
    // Stable: ties stay in file order.
    jobs.sort_by_key(|&(seconds, _)| seconds);
    let start = jobs.first().map_or(0, |&(seconds, _)| seconds);
    let jobs: Vec<_> =
        jobs.into_iter().map(|(seconds, job)| TraceJob { submit_s: seconds.abs_diff(start), ..job }).collect();
    let mut notes = Vec::new();
    if dropped > 0 {
        let text = format!("{dropped} of {row} jobs are left out: more than 8 GPUs, but no multiple of 8");
        notes.push(Note { place: name.to_owned(), text });
    }
    Ok((jobs, notes))
}
