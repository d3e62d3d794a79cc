//! Candidate placement sets, our own format: JSONL, one candidate a line.
//!
//! What a candidate names is not looked up here: an unknown job or node, or a bad index, is a reason why the candidate
//! is infeasible and not a fault of the file.

use std::io::BufRead;

use serde::{Deserialize, Serialize};

use crate::cluster::GpuMask;

use super::error::FormatError;
use super::fields::{Fields, maybe_objects, objects};
use super::lines::Lines;
use super::source::Source;

/// One candidate as the file states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateSpec {
    /// Its line in the file, from 1.
    pub line: u64,
    /// The queued job it is for.
    pub job: String,
    /// Its own name.
    pub candidate: String,
    /// Where the instances of the job go, one entry each.
    pub place: Vec<SeatSpec>,
    /// Running instances that move in the same step.
    pub migrate: Vec<MoveSpec>,
}

/// Where one instance goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that is an instance")]
pub struct SeatSpec {
    /// The node's name.
    pub node: String,
    /// Device indices; `None` for the lowest that are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Vec<u64>>,
}

/// Why indices are no set of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDevices {
    /// No node has so many.
    #[error("found device {0}, expected 0 to 15")]
    OutOfRange(u64),
    /// An index is there twice.
    #[error("found device {0} twice")]
    Twice(u64),
}

/// Indices of devices as a set.
///
/// # Errors
/// If one is no index of a device, or is there twice.
pub fn devices(indices: &[u64]) -> Result<GpuMask, NoDevices> {
    indices.iter().try_fold(0, |mask: GpuMask, &index| {
        let bit = u32::try_from(index).ok().and_then(|index| (1 as GpuMask).checked_shl(index));
        let bit = bit.ok_or(NoDevices::OutOfRange(index))?;
        if mask & bit == 0 { Ok(mask | bit) } else { Err(NoDevices::Twice(index)) }
    })
}

/// Where one running instance moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that is a move")]
pub struct MoveSpec {
    /// The running job's name.
    pub job: String,
    /// Which of its instances, from 0.
    pub instance: u64,
    /// The name of the node that it moves to; plans and decisions call it `to`, and so may whoever sends one back.
    #[serde(alias = "to")]
    pub node: String,
    /// The name of the node that it moves from, if the sender says so: it must be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Device indices; `None` for the lowest that are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Vec<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that is a candidate")]
struct Line {
    job: String,
    candidate: String,
    #[serde(deserialize_with = "objects")]
    place: Vec<SeatSpec>,
    #[serde(default, deserialize_with = "maybe_objects")]
    migrate: Option<Vec<MoveSpec>>,
}

/// Reads candidates from a file, or from standard input for `-`. It may be gzip'd. Blank lines are skipped.
///
/// # Errors
/// If it cannot be read, or a line is malformed.
pub fn read_candidates(path: &str) -> Result<Vec<CandidateSpec>, FormatError> {
    let mut source = Source::open(path)?.of_objects("candidates in JSONL")?;
    let name = source.name().to_owned();
    read_candidates_from(&name, source.reader())
}

/// Reads candidates; `name` stands in errors.
///
/// # Errors
/// As for [`read_candidates`].
pub fn read_candidates_from(name: &str, reader: impl BufRead) -> Result<Vec<CandidateSpec>, FormatError> {
    let mut lines = Lines::new(name, reader);
    let mut candidates = Vec::new();
    while let Some((line, text)) = lines.next()? {
        // A line is read again with its path tracked only where it is bad: tracking allocates for every field.
        let read = serde_json::from_slice(text).map_err(|error| explain(name, line, text, error))?;
        let Fields(Line { job, candidate, place, migrate }) = read;
        candidates.push(CandidateSpec { line, job, candidate, place, migrate: migrate.unwrap_or_default() });
    }
    Ok(candidates)
}

fn explain(name: &str, line: u64, text: &[u8], error: serde_json::Error) -> FormatError {
    let mut json = serde_json::Deserializer::from_slice(text);
    let place = match serde_path_to_error::deserialize::<_, Fields<Line>>(&mut json) {
        Err(tracked) if tracked.path().iter().next().is_some() => tracked.path().to_string(),
        _ => String::new(),
    };
    FormatError::json(name, Some(line - 1), &place, error)
}
