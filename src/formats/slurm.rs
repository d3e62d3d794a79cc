//! A Slurm cluster as its own tools dump it: `scontrol show nodes` and `show jobs`, or `squeue`, as `--json` or as text, and
//! its topology.

mod gres;
mod hostlist;
mod json;
mod record;
mod running;
mod text;
mod topology;
mod waiting;
mod walls;

use std::io::{BufRead, Read};

use jiff::Timestamp;
use rustc_hash::FxHashMap;

use super::dump::{Assembled, Handles, Import, Tally, WaitingJob, assemble, name_of};
use super::error::{FormatError, Note};
use super::snapshot::{Snapshot, overcommitted};
use super::source::Source;
use record::{JobRecord, NodeRecord};
use running::Running;
use topology::Topology;
use waiting::waiting;

/// Reads the files of one dump; the content of each tells what it is. Each may be gzip'd, and one may be standard input.
///
/// Files are `scontrol show nodes --json`, `scontrol show jobs --json` or `squeue --json` (22.05 and later), `sinfo --json` of
/// 22.05, `scontrol -d show node`, `scontrol -d show job`, both also with `-o`, `scontrol show topology` and
/// `topology.conf`. In text only `-d` tells devices.
///
/// - A node counts its GPUs whatever their type; nodes without GPUs, with slices of GPUs or with more than 16 are left
///   out. It takes new jobs in the states idle, mixed and allocated, unless a flag such as DRAIN, DOWN, RESERVED or
///   MAINTENANCE says no. A block is a domain, a leaf switch a rack.
/// - Partitions are walls: nodes of one GPU type that serve other partitions are other models.
/// - A job has one instance a node, and what Slurm gave it there, whatever it asked for. It can be moved if it may be
///   requeued, neither asks for nodes nor excludes open ones, and has no reservation. Devices of which somebody has shards are held whole by a job
///   `NODE/shards`.
/// - A job that waits for a place is queued, an array as a job a task, a heterogeneous
///   job as one with a group for each part; one that waits for something else is left out, and
///   so is one that asks for what a queue has no words for.
///
/// # Errors
/// If a file cannot be read or is none of these, or if there are neither nodes nor jobs.
pub fn read_slurm(paths: &[&str]) -> Result<Import, FormatError> {
    let mut records = Records::default();
    for path in paths {
        let mut source = Source::open(path)?.not_empty("what scontrol or squeue prints")?;
        let name = source.name().to_owned();
        records.read(&name, source.reader())?;
    }
    records.import(&name_of(paths))
}

/// Reads a dump of one file; `name` stands in errors.
///
/// # Errors
/// As for [`read_slurm`].
pub fn read_slurm_from(name: &str, reader: impl BufRead) -> Result<Import, FormatError> {
    let mut records = Records::default();
    records.read(name, reader)?;
    records.import(name)
}

/// What all files say.
#[derive(Debug, Default)]
struct Records {
    nodes: Vec<NodeRecord>,
    jobs: Vec<JobRecord>,
    topology: Vec<topology::Line>,
    /// The latest time of a dump, in seconds since 1970.
    at_s: Option<u64>,
}

impl Records {
    fn read(&mut self, name: &str, mut reader: impl BufRead) -> Result<(), FormatError> {
        let mut start = Vec::new();
        // The first byte that is no blank tells JSON from text; blanks before it are few.
        while let Some(byte) = next_byte(name, &mut reader)? {
            start.push(byte);
            if !byte.is_ascii_whitespace() {
                break;
            }
        }
        let is_json = start.last() == Some(&b'{');
        let whole = start.chain(reader);
        let before = (self.nodes.len(), self.jobs.len(), self.topology.len());
        if is_json {
            json::read(name, whole, self)?;
        } else {
            text::read(name, whole, self)?;
            if before == (self.nodes.len(), self.jobs.len(), self.topology.len()) {
                let text = "found no nodes, jobs or switches, expected what scontrol show node, job or topology prints";
                return Err(FormatError::new(name, text).at_line(1));
            }
        }
        Ok(())
    }

    fn import(mut self, input: &str) -> Result<Import, FormatError> {
        let fault = |text: String| FormatError::new(input, text);
        if self.nodes.is_empty() && self.jobs.is_empty() {
            return Err(fault("found no nodes and no jobs, expected some".to_owned()));
        }
        let mut tally = Tally::new(input);
        let topology = Topology::new(&self.topology).map_err(fault)?;
        let mut running = Running::new(&mut self.nodes, &self.jobs, &topology, &mut tally);
        running.take_jobs(&self.jobs, self.at_s, &mut tally).map_err(fault)?;
        let mut later = Tally::new(input);
        let waiting = waiting(&self.jobs, &running, &mut later);
        let (nodes, jobs) = running.finish();
        let assembled = assemble(&nodes, jobs, &mut tally).map_err(|error| fault(error.to_string()))?;
        let Assembled { cluster, index_source, origins } = assembled;
        let as_of = self.at_s.and_then(|at| Timestamp::from_second(i64::try_from(at).ok()?).ok());
        let mut notes = tally.notes();
        if self.jobs.is_empty() {
            notes.push(Note {
                place: input.to_owned(),
                text: "no jobs are listed: how large they are is not known".to_owned(),
            });
        }
        notes.extend(overcommitted(&cluster));
        let snapshot = Snapshot {
            cluster,
            as_of: as_of.map(|at| at.to_string()),
            index_source: Some(index_source),
            notes,
            handles: Some(Handles::of_jobs(origins)),
            budgets: Vec::new(),
        };
        let own_names = own_names(&self.jobs, &waiting);
        Ok(Import { snapshot, waiting, waiting_notes: later.notes(), own_names })
    }
}

/// What their owners call the jobs that wait, with the names of these here; the tasks of an array are all called the same.
fn own_names(jobs: &[JobRecord], waiting: &[WaitingJob]) -> Vec<(String, String)> {
    let called: FxHashMap<String, &str> = jobs.iter().map(|job| (job.id.to_string(), job.name.as_str())).collect();
    let of = |job: &WaitingJob| {
        let id = job.name.split('_').next()?;
        Some(((*called.get(id)?).to_owned(), job.name.clone()))
    };
    waiting.iter().filter_map(of).collect()
}

fn next_byte(name: &str, reader: &mut impl BufRead) -> Result<Option<u8>, FormatError> {
    reader.by_ref().bytes().next().transpose().map_err(|error| FormatError::unreadable(name, error))
}
