//! The Standard Workload Format 2.2 of the Parallel Workloads Archive: a job a line, 18 fields between blanks, comments
//! after `;`.

use std::fmt;
use std::io::BufRead;
use std::str::FromStr;

use crate::workload::{Outcome, TraceJob};

use super::error::FormatError;
use super::gather::{Gather, LeftOut, Row, Run, SameId, Trace, Unread};
use super::lines::Lines;
use super::source::Source;
use super::split::{MOST, split};

/// The names of the fields, for errors.
const FIELDS: [&str; 18] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
];

/// The largest number that a field may state: what a float keeps exact.
const LARGEST: f64 = (1u64 << 53) as f64;

/// How many GPUs stand for so many processors, `N` or `N/M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpusPerProc {
    gpus: u32,
    procs: u32,
}

impl GpusPerProc {
    /// The GPUs of so many processors, if they are a whole number.
    fn of(self, procs: u64) -> Option<u64> {
        let gpus = procs.checked_mul(u64::from(self.gpus))?;
        gpus.is_multiple_of(u64::from(self.procs)).then_some(gpus / u64::from(self.procs))
    }
}

impl FromStr for GpusPerProc {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (gpus, procs) = text.split_once('/').unwrap_or((text, "1"));
        let number = |text: &str| text.parse().ok().filter(|&number: &u32| number > 0);
        let ratio = number(gpus).zip(number(procs)).map(|(gpus, procs)| Self { gpus, procs });
        ratio.ok_or_else(|| format!("found {text:?}, expected GPUs a processor as N or N/M, integers from 1"))
    }
}

impl fmt::Display for GpusPerProc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.gpus, self.procs)
    }
}

/// Reads the jobs. The format counts processors, neither GPUs nor nodes: `ratio` says what they stand for.
///
/// The requested processors count, or the allocated ones where the request is unknown. Up to 8 GPUs are one instance, a
/// larger multiple of 8 is instances of 8, any other job is left out. Bursts of a job that was swapped out (status 2, 3,
/// 4) are left out: the job has a line of its own. A run of 0 means less than half a second and stays 0. Memory is not
/// read.
///
/// # Errors
/// If it cannot be read, or a line is malformed.
pub fn read_swf(path: &str, ratio: GpusPerProc) -> Result<Trace, FormatError> {
    let mut source = Source::open(path)?.not_empty("jobs in the Standard Workload Format")?;
    let name = source.name().to_owned();
    read_swf_from(&name, source.reader(), ratio)
}

/// Reads the jobs; `name` stands in errors.
///
/// # Errors
/// As for [`read_swf`].
pub fn read_swf_from(name: &str, reader: impl BufRead, ratio: GpusPerProc) -> Result<Trace, FormatError> {
    let mut lines = Lines::new(name, reader);
    let mut gather = Gather::new(name, SameId::First);
    // Submission counts from this moment, where the file says which one it is.
    let mut origin = 0;
    while let Some((line, text)) = lines.next()? {
        let fault = |text: &str| FormatError::new(name, text).at_line(line);
        let text = std::str::from_utf8(text).map_err(|_| fault("found bytes that are not UTF-8, expected text"))?;
        if let Some(comment) = text.trim_start().strip_prefix(';') {
            let start = comment.trim().strip_prefix("UnixStartTime:").and_then(|rest| rest.trim().parse::<i64>().ok());
            origin = start.filter(|start| start.unsigned_abs() < 1 << 53).unwrap_or(origin);
            continue;
        }
        let row = job(&Fields::read(name, line, text)?, origin, ratio, &mut gather);
        gather.take(row)?;
    }
    let assumed = format!("processors stand for GPUs at {ratio} GPUs each");
    Ok(gather.finish(&[&assumed]))
}

/// The numbers of a line.
struct Fields([f64; 18]);

impl Fields {
    fn read(name: &str, line: u64, text: &str) -> Result<Self, FormatError> {
        let mut numbers = [-1.0; 18];
        let mut words = text.split_whitespace();
        for (field, number) in numbers.iter_mut().enumerate() {
            let Some(word) = words.next() else {
                let text = format!("found {field} fields, expected 18");
                return Err(FormatError::new(name, text).at_line(line));
            };
            let read = word.parse().ok().filter(|number: &f64| (-LARGEST..=LARGEST).contains(number));
            *number = read.ok_or_else(|| {
                let text = format!("found {word:?}, expected a number");
                FormatError::new(name, text).at_line(line).at_place(FIELDS[field])
            })?;
        }
        if words.next().is_some() {
            let text = format!("found {} fields, expected 18", 19 + words.count());
            return Err(FormatError::new(name, text).at_line(line));
        }
        Ok(Self(numbers))
    }

    /// Field `number`, from 1 as in the format's own text; −1 is unknown in any of them.
    fn get(&self, number: usize) -> Option<f64> {
        Some(self.0[number - 1]).filter(|&value| value >= 0.0)
    }

    fn seconds(&self, number: usize) -> Option<i64> {
        self.get(number).map(|seconds| (seconds + 0.5).floor() as i64)
    }
}

fn job(fields: &Fields, origin: i64, ratio: GpusPerProc, gather: &mut Gather) -> Result<Row, Unread> {
    let status = fields.get(11).unwrap_or(-1.0) as i64;
    if (2..=4).contains(&status) {
        return Err(LeftOut::Burst.into());
    }
    let id = fields.get(1).ok_or(LeftOut::NoId)?;
    let procs = fields.get(8).filter(|&procs| procs > 0.0).or(fields.get(5).filter(|&procs| procs > 0.0));
    let procs = procs.ok_or(LeftOut::NoCount)?;
    if procs.fract() != 0.0 {
        return Err(LeftOut::OddProcessors.into());
    }
    let gpus = ratio.of(procs as u64).ok_or(LeftOut::OddProcessors)?;
    let split = split(gpus.min(MOST + 1), None)?;
    let submit = fields.seconds(2).ok_or(LeftOut::NoSubmission)?;
    // A job that was cancelled in the queue has no run; one that was recorded without its run is no use either.
    let run = fields.seconds(4).ok_or(if status == 5 { LeftOut::NeverStarted } else { LeftOut::NoDuration })?;
    let named = |value: Option<f64>| value.map(|value| value.to_string());
    let job = TraceJob {
        name: id.to_string(),
        instances: split.instances,
        gpus_per_instance: split.gpus,
        user: named(fields.get(12)).and_then(|user| gather.text(&user)),
        group: named(fields.get(15)).and_then(|queue| gather.text(&queue)),
        outcome: match status {
            0 => Outcome::Failed,
            1 => Outcome::Completed,
            5 => Outcome::Cancelled,
            _ => Outcome::Unknown,
        },
        ..TraceJob::default()
    };
    Ok(Row { job, submit: submit.saturating_add(origin), run: Run::For(run) })
}
