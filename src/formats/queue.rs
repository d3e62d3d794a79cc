//! The queue, our own format: JSONL, one job or removal a line, in the order in which it is decided.

use std::io::{self, BufRead, BufWriter, Write};

use serde::Serialize;
use serde::de::{DeserializeSeed, Error, MapAccess};

use crate::cluster::{BuildError, Cluster, GroupedJob};
use crate::workload::{Queue, QueueEntry};

use super::error::{FormatError, Note};
use super::groups::{GroupList, Registered};
use super::job::{COMMON_FIELDS, JobScratch, RequestOut, within_word};
use super::json::{Int, ListSeed, Object, ObjectSeed, Path, Text, require};
use super::lines::Lines;
use super::source::Source;

/// The most instances of one job: what can be numbered.
pub(super) const MAX_INSTANCES: u64 = u32::MAX as u64 - 1;

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
            queue.push(removal(cluster, &scratch.remove).map_err(|text| fault("remove", text))?);
        } else {
            let registered = if scratch.groups.is_empty() {
                let registered = scratch.job.with_spec(|spec| cluster.register(spec, scratch.instances));
                registered.map(Registered::Job).map_err(|error| (None, error))
            } else {
                scratch.groups.register(&scratch.job, cluster)
            };
            let registered = registered.map_err(|(group, error)| {
                let group = group.map(|group| format!("groups[{group}]"));
                match (error, group) {
                    (BuildError::DuplicateJob(job), _) => {
                        let text = "which runs or is queued already, expected a new name";
                        fault("job", format!("found job \"{job}\", {text}"))
                    }
                    (error @ BuildError::Share(..), None) => fault("gpu_milli", error.to_string()),
                    (error @ BuildError::Share(..), Some(group)) => {
                        fault(&format!("{group}.gpu_milli"), error.to_string())
                    }
                    (error, group) => fault(&group.unwrap_or_default(), error.to_string()),
                }
            })?;
            queue.push(match registered {
                Registered::Job(job) => QueueEntry::Submit(job),
                Registered::Groups(job) => QueueEntry::SubmitGroups(job),
            });
        }
    }
    let mut notes = Vec::new();
    if queue.is_empty() {
        notes.push(Note { place: name.to_owned(), text: "the queue is empty".to_owned() });
    }
    Ok((queue, notes))
}

/// The end of the job of this name.
///
/// # Errors
/// What is wrong with the name: no job has it, or a group of one.
pub fn removal(cluster: &Cluster, name: &str) -> Result<QueueEntry, String> {
    if let Some(job) = cluster.find_grouped_job(name) {
        return Ok(QueueEntry::RemoveGroups(job));
    }
    let job = cluster.find_job(name);
    let job = job.ok_or_else(|| format!("found job \"{name}\", expected one that runs or is queued before"))?;
    match cluster.grouped_job_of(job) {
        None => Ok(QueueEntry::Remove(job)),
        Some(_) => {
            let whole = cluster.whole_job_name(job);
            Err(format!("found \"{name}\", a group of the job \"{whole}\", expected the whole job"))
        }
    }
}

/// One line, in buffers that the next line uses again.
#[derive(Default)]
struct LineScratch {
    job: JobScratch,
    instances: u32,
    groups: GroupList,
    remove: String,
    is_removal: bool,
}

/// The field of the groups.
const GROUPS: usize = COMMON_FIELDS + 1;

impl LineScratch {
    fn clear(&mut self) {
        self.job.clear();
        self.groups.clear();
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
        "groups",
        "remove",
    ];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, path: &mut Path) -> Result<(), A::Error> {
        match field {
            0..COMMON_FIELDS => self.job.field(field, map, path)?,
            COMMON_FIELDS => self.instances = map.next_value_seed(Int(1, MAX_INSTANCES))? as u32,
            GROUPS => {
                map.next_value_seed(ListSeed(&mut self.groups, path))?;
                if self.groups.is_empty() {
                    return Err(A::Error::custom("found an empty list, expected at least one group"));
                }
            }
            _ => {
                map.next_value_seed(Text(&mut self.remove))?;
                self.is_removal = true;
            }
        }
        Ok(())
    }

    fn finish<E: Error>(&mut self, seen: u32, _: &mut Path) -> Result<(), E> {
        let first = |fields: &[usize]| fields.iter().find(|&&field| seen >> field & 1 == 1).map(|&at| Self::FIELDS[at]);
        if self.is_removal {
            return match first(&[0, 1, 2, 3, 4, 5, 6, 7, COMMON_FIELDS, GROUPS]) {
                Some(name) => Err(E::custom(format_args!("found `{name}` beside `remove`, expected `remove` alone"))),
                None => Ok(()),
            };
        }
        if self.groups.is_empty() {
            return require::<Self, E>(seen, &[0, COMMON_FIELDS, 1]);
        }
        // What an instance asks for is said of each group.
        match first(&[1, 2, 3, 5, 7, COMMON_FIELDS]) {
            Some(name) => Err(E::custom(format_args!("found `{name}` beside `groups`, expected it in each group"))),
            None => require::<Self, E>(seen, &[0]),
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
            QueueEntry::SubmitGroups(job) => serde_json::to_writer(&mut out, &GroupsOut::of(cluster, job))?,
            QueueEntry::Remove(_) | QueueEntry::RemoveGroups(_) => {
                serde_json::to_writer(&mut out, &RemoveOut { remove: cluster.whole_job_name(entry.job()) })?;
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
struct GroupsOut<'a> {
    job: &'a str,
    groups: Vec<GroupOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    migratable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<&'static str>,
}

#[derive(Serialize)]
struct GroupOut<'a> {
    instances: u32,
    #[serde(flatten)]
    request: RequestOut<'a>,
}

impl<'a> GroupsOut<'a> {
    fn of(cluster: &'a Cluster, job: GroupedJob) -> Self {
        let group =
            |id| GroupOut { instances: cluster.job(id).instances(), request: RequestOut::of_group(cluster, id) };
        Self {
            job: cluster.whole_job_name(job.first()),
            groups: job.jobs().map(group).collect(),
            migratable: (!cluster.job(job.first()).migratable()).then_some(false),
            within: cluster.request_of(job.first()).within.map(within_word),
        }
    }
}

#[derive(Serialize)]
struct RemoveOut<'a> {
    remove: &'a str,
}
