//! Philly's `cluster_job_log`: a JSON list of jobs with their attempts, and with nodes and GPUs of each attempt.

use std::fmt;
use std::io::Read;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use crate::workload::{Outcome, TraceJob};

use super::clock;
use super::error::FormatError;
use super::gather::{Gather, LeftOut, Row, Run, SameId, Trace, Unread, is_missing};
use super::split::split;

/// Reads the log, a job at a time.
pub(super) fn read(name: &str, reader: impl Read) -> Result<Trace, FormatError> {
    let mut gather = Gather::new(name, SameId::First);
    let mut json = serde_json::Deserializer::from_reader(reader);
    let mut track = serde_path_to_error::Track::new();
    let read = Log(&mut gather).deserialize(serde_path_to_error::Deserializer::new(&mut json, &mut track));
    read.map_err(|error| FormatError::json(name, Some(0), &track.path().to_string(), error))?;
    json.end().map_err(|error| FormatError::json(name, Some(0), "", error))?;
    Ok(gather.finish(&[]))
}

struct Log<'a>(&'a mut Gather);

impl<'de> DeserializeSeed<'de> for Log<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Log<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut jobs: A) -> Result<(), A::Error> {
        while let Some(logged) = jobs.next_element::<Logged>()? {
            let row = job(logged, self.0);
            self.0.take(row).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// A job as it is logged. Other fields are none of our business.
#[derive(Deserialize)]
struct Logged {
    jobid: String,
    status: Option<String>,
    vc: Option<String>,
    user: Option<String>,
    submitted_time: Moment,
    attempts: Option<Vec<Attempt>>,
}

#[derive(Deserialize)]
struct Attempt {
    start_time: Moment,
    end_time: Moment,
    detail: Option<Vec<Detail>>,
}

impl Attempt {
    fn gpus(&self) -> u64 {
        self.detail.iter().flatten().map(|detail| detail.gpus.len() as u64).sum()
    }
}

/// The GPUs of an attempt on one node.
#[derive(Deserialize)]
struct Detail {
    gpus: Vec<IgnoredAny>,
}

/// A time that may be missing: null, empty, or a word that says so.
#[derive(Clone, Copy)]
struct Moment(Option<i64>);

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct OneMoment;
        impl Visitor<'_> for OneMoment {
            type Value = Moment;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}, or null", clock::EXAMPLE)
            }

            fn visit_unit<E: Error>(self) -> Result<Moment, E> {
                Ok(Moment(None))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Moment, E> {
                if is_missing(text) {
                    return Ok(Moment(None));
                }
                let fault = || E::custom(format_args!("found {text:?}, expected {}, or null", clock::EXAMPLE));
                clock::seconds(text).map(|seconds| Moment(Some(seconds))).ok_or_else(fault)
            }
        }
        json.deserialize_any(OneMoment)
    }
}

fn job(logged: Logged, gather: &mut Gather) -> Result<Row, Unread> {
    let attempts = logged.attempts.as_deref().unwrap_or_default();
    // Without an attempt nobody knows how many GPUs were asked for.
    let mut counts = attempts.iter().map(Attempt::gpus).filter(|&gpus| gpus > 0);
    let gpus = counts.next().ok_or(LeftOut::NoCount)?;
    let split = split(gpus, None)?;
    let submit = logged.submitted_time.0.ok_or(LeftOut::NoSubmission)?;
    let start = attempts.iter().find_map(|attempt| attempt.start_time.0).ok_or(LeftOut::NeverStarted)?;
    if counts.any(|other| other != gpus) {
        gather.odd("have attempts of different numbers of GPUs; the first one counts");
    }
    if attempts.len() > 1 {
        gather.odd("were started again; they run from the first start to the last end, gaps included");
    }
    let run = match attempts.last().and_then(|attempt| attempt.end_time.0) {
        Some(end) => Run::Between(start, end),
        None => Run::Since(start),
    };
    let job = TraceJob {
        instances: split.instances,
        gpus_per_instance: split.gpus,
        user: logged.user.as_deref().and_then(|user| gather.text(user)),
        group: logged.vc.as_deref().and_then(|vc| gather.text(vc)),
        outcome: match logged.status.as_deref() {
            Some("Pass") => Outcome::Completed,
            Some("Failed") => Outcome::Failed,
            Some("Killed") => Outcome::Cancelled,
            _ => Outcome::Unknown,
        },
        name: logged.jobid,
        ..TraceJob::default()
    };
    Ok(Row { job, submit, run })
}
