//! The queue, our own format: JSONL, one job or removal a line, in the order in which it is decided.

use std::io::{self, BufRead, BufWriter, Write};

use serde::Serialize;
use serde::de::{DeserializeSeed, Error, MapAccess};

use crate::cluster::{BuildError, Cluster};
use crate::workload::{Queue, QueueEntry};

use super::error::{FormatError, Note};
use super::job::{COMMON_FIELDS, JobScratch, RequestOut};
use super::json::{Int, Object, ObjectSeed, Path, Text, require};
use super::lines::Lines;
use super::source::Source;

/// The most instances of one job: what can be numbered.
const MAX_INSTANCES: u64 = u32::MAX as u64 - 1;

/// Reads a queue from a file, or from standard input for `-`, and registers its jobs. It may be gzip'd. Blank lines
/// are skipped; a queue without a line is an empty queue.
///
/// # Errors
/// If it cannot be read, a line is malformed, a job runs or is queued already, or a removal names a job that neither
/// runs nor was queued on a line before.
pub fn read_queue(path: &str, cluster: &mut Cluster) -> Result<(Queue, Vec<Note>), FormatError> {
    let mut source = Source::open(path)?.of_objects("a queue in JSONL")?;
    let name = source.name().to_owned();
    read_queue_from(&name, source.reader(), cluster)
}

/// Reads a queue; `name` stands in errors.
///
/// # Errors
/// As for [`read_queue`].
pub fn read_queue_from(
    name: &str,
    reader: impl BufRead,
    cluster: &mut Cluster,
) -> Result<(Queue, Vec<Note>), FormatError> {
    let mut lines = Lines::new(name, reader);
    let mut queue = Queue::new();
    let mut scratch = LineScratch::default();
    let mut path = Path::default();
    while let Some((line, text)) = lines.next()? {
        scratch.clear();
        let mut json = serde_json::Deserializer::from_slice(text);
        let read = ObjectSeed(&mut scratch, &mut path).deserialize(&mut json).and_then(|()| json.end());
        read.map_err(|error| FormatError::json(name, Some(line - 1), &path.to_string(), error))?;
        let fault = |place: &str, text: String| FormatError::new(name, text).at_line(line).at_place(place);
        if scratch.is_removal {
            let known = cluster.find_job(&scratch.remove);
            let job = known.ok_or_else(|| {
                let text = format!("found job \"{}\", expected one that runs or is queued before", scratch.remove);
                fault("remove", text)
            })?;
            queue.push(QueueEntry::Remove(job));
        } else {
            let registered = scratch.job.with_spec(|spec| cluster.register(spec, scratch.instances));
            let job = registered.map_err(|error| match error {
                BuildError::DuplicateJob(job) => {
                    fault("job", format!("found job \"{job}\", which runs or is queued already, expected a new name"))
                }
                error @ BuildError::Share(..) => fault("gpu_milli", error.to_string()),
                error => fault("", error.to_string()),
            })?;
            queue.push(QueueEntry::Submit(job));
        }
    }
    let mut notes = Vec::new();
    if queue.is_empty() {
        notes.push(Note { place: name.to_owned(), text: "the queue is empty".to_owned() });
    }
    Ok((queue, notes))
}

/// One line, in buffers that the next line uses again.
#[derive(Default)]
struct LineScratch {
    job: JobScratch,
    instances: u32,
    remove: String,
    is_removal: bool,
}

impl LineScratch {
    fn clear(&mut self) {
        self.job.clear();
        self.is_removal = false;
    }
}

impl Object for LineScratch {
    const WHAT: &'static str = "a queued job or a removal";
    const FIELDS: &'static [&'static str] = &[
        "job",
        "gpus_per_instance",
        "cpu_milli",
        "memory_mib",
        "migratable",
        "models",
        "within",
        "gpu_milli",
        "instances",
        "remove",
    ];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, path: &mut Path) -> Result<(), A::Error> {
        match field {
            0..COMMON_FIELDS => self.job.field(field, map, path)?,
            COMMON_FIELDS => self.instances = map.next_value_seed(Int(1, MAX_INSTANCES))? as u32,
            _ => {
                map.next_value_seed(Text(&mut self.remove))?;
                self.is_removal = true;
            }
        }
        Ok(())
    }

    fn finish<E: Error>(&mut self, seen: u32, _: &mut Path) -> Result<(), E> {
        if !self.is_removal {
            return require::<Self, E>(seen, &[0, COMMON_FIELDS, 1]);
        }
        match Self::FIELDS.iter().enumerate().find(|&(field, _)| field != COMMON_FIELDS + 1 && seen >> field & 1 == 1) {
            Some((_, name)) => Err(E::custom(format_args!("found `{name}` beside `remove`, expected `remove` alone"))),
            None => Ok(()),
        }
    }
}

/// Writes a queue that [`read_queue`] reads again.
///
/// # Errors
/// If `out` fails.
pub fn write_queue(cluster: &Cluster, queue: &[QueueEntry], out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, out);
    for &entry in queue {
        match entry {
            QueueEntry::Submit(job) => {
                let (name, instances) = (cluster.job_name(job), cluster.job(job).instances());
                let line = SubmitOut { job: name, instances, request: RequestOut::of(cluster, job) };
                serde_json::to_writer(&mut out, &line)?;
            }
            QueueEntry::Remove(job) => {
                serde_json::to_writer(&mut out, &RemoveOut { remove: cluster.job_name(job) })?;
            }
        }
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[derive(Serialize)]
struct SubmitOut<'a> {
    job: &'a str,
    instances: u32,
    #[serde(flatten)]
    request: RequestOut<'a>,
}

#[derive(Serialize)]
struct RemoveOut<'a> {
    remove: &'a str,
}
