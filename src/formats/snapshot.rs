//! The cluster snapshot, our own format: read element by element, straight into the ledger.

use std::io::{BufReader, Read};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess};
use serde_json::value::RawValue;

use crate::cluster::{BuildError, Cluster, ClusterBuilder, GpuMask, MAX_GPUS, NodeId, NodeSpec, Seat};

use super::error::{FormatError, Note, json_text};
use super::job::{COMMON_FIELDS, JobScratch, MAX_SECONDS, amount};
use super::json::{Flag, Int, Items, ListSeed, Maybe, Object, ObjectSeed, Path, Text, require};
use super::source::{HeadThenRest, Source};

/// Notes of one kind that are told one by one; the others are counted.
const MOST_NOTES: usize = 20;

/// What a cluster file says.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The cluster.
    pub cluster: Cluster,
    /// When it was so, in the words of the file.
    pub as_of: Option<String>,
    /// What the user should know.
    pub notes: Vec<Note>,
}

/// Reads a snapshot from a file, or from standard input for `-`. It may be gzip'd.
///
/// The keys may come in any order, but `running` before `nodes` is kept as text until the nodes are known. A field that
/// may be left out may as well be null.
///
/// # Errors
/// If it cannot be read, or is not a cluster that can be.
pub fn read_cluster(path: &str) -> Result<Snapshot, FormatError> {
    let mut source = Source::open(path)?.not_empty("a cluster snapshot in JSON")?;
    let name = source.name().to_owned();
    read_cluster_from(&name, source.reader())
}

/// Reads a snapshot; `name` stands in errors.
///
/// # Errors
/// As for [`read_cluster`].
pub fn read_cluster_from(name: &str, reader: impl Read) -> Result<Snapshot, FormatError> {
    let mut path = Path::default();
    let mut document = Document::default();
    let mut reader = reader;
    let mut head = Vec::new();
    let read = match reader.by_ref().take(READ_WHOLE as u64 + 1).read_to_end(&mut head) {
        Err(error) => Err(serde_json::Error::io(error)),
        Ok(_) if head.len() <= READ_WHOLE => document.read(&mut serde_json::Deserializer::from_slice(&head), &mut path),
        Ok(_) => {
            let all = HeadThenRest::new(head, reader);
            // A BufReader of its own: serde_json reads byte by byte, which the standard library makes fast for this
            // type alone.
            let all = BufReader::with_capacity(64 << 10, all);
            document.read(&mut serde_json::Deserializer::from_reader(all), &mut path)
        }
    };
    if let Err(error) = read {
        let lines_before = (!document.no_position).then_some(0);
        return Err(FormatError::json(name, lines_before, &path.to_string(), error));
    }
    let cluster = document.parts.builder.finish();
    let cluster = cluster.map_err(|error| FormatError::new(name, error).at_place("running"))?;
    let notes = overcommitted(&cluster);
    Ok(Snapshot { cluster, as_of: document.as_of, notes })
}

/// A document up to this size is read whole, which is twice as fast; a larger one is read piece by piece, so that memory
/// stays with the cluster.
const READ_WHOLE: usize = 8 << 20;

fn overcommitted(cluster: &Cluster) -> Vec<Note> {
    let all = || cluster.node_ids().filter(|&id| cluster.node(id).overcommitted());
    let mut notes: Vec<Note> = all()
        .take(MOST_NOTES)
        .map(|id| {
            let node = cluster.node(id);
            let text = format!(
                "node \"{}\" is overcommitted: {} of {} milli-cores and {} of {} MiB in use",
                cluster.node_name(id),
                node.cpu_used(),
                limit(node.cpu_milli()),
                node.memory_used(),
                limit(node.memory_mib())
            );
            Note { place: format!("nodes[{}]", id.0), text }
        })
        .collect();
    let more = all().count() - notes.len();
    if more > 0 {
        notes.push(Note { place: "nodes".to_owned(), text: format!("{more} more nodes are overcommitted") });
    }
    notes
}

fn limit(amount: u32) -> String {
    if amount == crate::cluster::UNLIMITED { "unlimited".to_owned() } else { amount.to_string() }
}

/// The whole document.
#[derive(Debug, Default)]
struct Document {
    parts: Parts,
    as_of: Option<String>,
    /// `running` as text, where it came before `nodes`.
    early: Option<Box<RawValue>>,
    /// The reader's position says nothing: the fault is in the text that was kept.
    no_position: bool,
    nodes_read: bool,
}

impl Document {
    fn read<'de, R: serde_json::de::Read<'de>>(
        &mut self,
        json: &mut serde_json::Deserializer<R>,
        path: &mut Path,
    ) -> Result<(), serde_json::Error> {
        ObjectSeed(self, path).deserialize(&mut *json)?;
        json.end()
    }
}

impl Object for Document {
    const WHAT: &'static str = "a cluster snapshot";
    const FIELDS: &'static [&'static str] = &["schema", "as_of", "nodes", "running"];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, path: &mut Path) -> Result<(), A::Error> {
        match field {
            0 => _ = map.next_value_seed(Maybe(Int(1, 1)))?,
            1 => {
                let mut text = String::new();
                self.as_of = map.next_value_seed(Maybe(Text(&mut text)))?.map(|()| text);
            }
            2 => {
                map.next_value_seed(ListSeed(&mut NodeList(&mut self.parts), path))?;
                self.nodes_read = true;
            }
            _ if self.nodes_read => {
                map.next_value_seed(Maybe(ListSeed(&mut RunningList(&mut self.parts), path)))?;
            }
            _ => self.early = Some(map.next_value()?),
        }
        Ok(())
    }

    fn finish<E: Error>(&mut self, seen: u32, path: &mut Path) -> Result<(), E> {
        require::<Self, E>(seen, &[2])?;
        let Some(early) = self.early.take() else { return Ok(()) };
        path.key("running");
        let mut json = serde_json::Deserializer::from_str(early.get());
        let read = Maybe(ListSeed(&mut RunningList(&mut self.parts), path)).deserialize(&mut json);
        read.map_err(|error| {
            self.no_position = true;
            E::custom(json_text(&error))
        })?;
        path.up();
        Ok(())
    }
}

/// The cluster as far as it is built, and the buffers that every element uses again.
#[derive(Debug, Default)]
struct Parts {
    builder: ClusterBuilder,
    node: NodeScratch,
    job: JobScratch,
    seats: Vec<Seat>,
    /// The device indices of all instances of the job, as listed, and where each instance's end: for the path of errors.
    indices: Vec<u8>,
    ends: Vec<u32>,
    node_name: String,
}

struct NodeList<'a>(&'a mut Parts);

impl Items for NodeList<'_> {
    const WHAT: &'static str = "a list of nodes";

    fn item<'de, D: Deserializer<'de>>(&mut self, _: usize, deserializer: D, path: &mut Path) -> Result<(), D::Error> {
        let Parts { builder, node, .. } = &mut *self.0;
        node.clear();
        ObjectSeed(node, path).deserialize(deserializer)?;
        node.add_to(builder, path).map_err(D::Error::custom)
    }
}

/// One node as the file states it.
#[derive(Debug, Default)]
struct NodeScratch {
    name: String,
    gpus: u8,
    /// Model, domain and rack.
    words: [String; 3],
    has_word: [bool; 3],
    cpu_milli: Option<u32>,
    memory_mib: Option<u32>,
    unschedulable: bool,
    unavailable: Indices,
}

impl NodeScratch {
    fn clear(&mut self) {
        self.has_word = [false; 3];
        (self.cpu_milli, self.memory_mib, self.unschedulable) = (None, None, false);
        self.unavailable.clear();
    }

    fn add_to(&self, builder: &mut ClusterBuilder, path: &mut Path) -> Result<(), BuildError> {
        let word = |i: usize| self.has_word[i].then_some(self.words[i].as_str());
        let spec = NodeSpec {
            name: &self.name,
            gpus: self.gpus,
            model: word(0),
            domain: word(1),
            rack: word(2),
            cpu_milli: self.cpu_milli,
            memory_mib: self.memory_mib,
            unschedulable: self.unschedulable,
            unavailable: self.unavailable.mask,
        };
        builder.add_node(&spec).map(drop).inspect_err(|error| match error {
            BuildError::DuplicateNode(_) => path.key("name"),
            BuildError::UnavailableIndex(_, index, _) => {
                path.key("unavailable");
                path.index(position(&self.unavailable.list, *index));
            }
            _ => {}
        })
    }
}

impl Object for NodeScratch {
    const WHAT: &'static str = "a node";
    const FIELDS: &'static [&'static str] =
        &["name", "gpus", "model", "domain", "rack", "cpu_milli", "memory_mib", "schedulable", "unavailable"];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, path: &mut Path) -> Result<(), A::Error> {
        match field {
            0 => map.next_value_seed(Text(&mut self.name))?,
            1 => self.gpus = map.next_value_seed(Int(1, MAX_GPUS as u64))? as u8,
            2..=4 => {
                let word = map.next_value_seed(Maybe(Text(&mut self.words[field - 2])))?;
                self.has_word[field - 2] = word.is_some();
            }
            5 => self.cpu_milli = amount(map)?,
            6 => self.memory_mib = amount(map)?,
            7 => self.unschedulable = !map.next_value_seed(Maybe(Flag))?.unwrap_or(true),
            _ => _ = map.next_value_seed(Maybe(ListSeed(&mut self.unavailable, path)))?,
        }
        Ok(())
    }

    fn finish<E: Error>(&mut self, seen: u32, _: &mut Path) -> Result<(), E> {
        require::<Self, E>(seen, &[0, 1])
    }
}

/// A list of distinct device indices.
#[derive(Debug, Default)]
struct Indices {
    mask: GpuMask,
    list: Vec<u8>,
}

impl Indices {
    fn clear(&mut self) {
        self.mask = 0;
        self.list.clear();
    }
}

impl Items for Indices {
    const WHAT: &'static str = "a list of device indices";

    fn item<'de, D: Deserializer<'de>>(&mut self, _: usize, deserializer: D, _: &mut Path) -> Result<(), D::Error> {
        let index = Int(0, MAX_GPUS as u64 - 1).deserialize(deserializer)? as u8;
        if self.mask >> index & 1 == 1 {
            return Err(D::Error::custom(format_args!("found index {index} twice, expected distinct indices")));
        }
        self.mask |= 1 << index;
        self.list.push(index);
        Ok(())
    }
}

fn position(list: &[u8], index: u32) -> usize {
    list.iter().position(|&listed| u32::from(listed) == index).unwrap_or(0)
}

struct RunningList<'a>(&'a mut Parts);

impl Items for RunningList<'_> {
    const WHAT: &'static str = "a list of running jobs";

    fn item<'de, D: Deserializer<'de>>(&mut self, _: usize, deserializer: D, path: &mut Path) -> Result<(), D::Error> {
        let parts = &mut *self.0;
        parts.job.clear();
        parts.seats.clear();
        parts.indices.clear();
        parts.ends.clear();
        ObjectSeed(parts, path).deserialize(deserializer)?;
        let Parts { builder, job, seats, .. } = parts;
        let added = job.with_spec(|spec| builder.add_running(spec, seats));
        added.map(drop).map_err(|error| {
            self.0.point_at(&error, path);
            D::Error::custom(error)
        })
    }
}

impl Parts {
    /// Leads the path on to the element that the error is about.
    fn point_at(&self, error: &BuildError, path: &mut Path) {
        match *error {
            BuildError::DuplicateJob(_) => path.key("job"),
            BuildError::NoInstances(_) | BuildError::TooManyInstances => path.key("instances"),
            BuildError::LargerThanNode(_, instance, ..) => {
                path.key("instances");
                path.index(instance as usize);
            }
            BuildError::WrongCount(_, instance, ..) => {
                path.key("instances");
                path.index(instance as usize);
                path.key("gpus");
            }
            BuildError::GpuIndex(_, instance, gpu, ..)
            | BuildError::GpuUnavailable(_, instance, gpu, _)
            | BuildError::GpuHeldTwice(_, instance, gpu, ..) => {
                let end = |i: usize| self.ends.get(i).map_or(0, |&end| end as usize);
                let instance = instance as usize;
                let start = instance.checked_sub(1).map_or(0, end);
                path.key("instances");
                path.index(instance);
                path.key("gpus");
                path.index(position(self.indices.get(start..end(instance)).unwrap_or(&[]), gpu));
            }
            _ => {}
        }
    }
}

impl Object for Parts {
    const WHAT: &'static str = "a running job";
    const FIELDS: &'static [&'static str] = &[
        "job",
        "gpus_per_instance",
        "cpu_milli",
        "memory_mib",
        "migratable",
        "models",
        "within",
        "remaining_s",
        "move_cost_s",
        "instances",
    ];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, path: &mut Path) -> Result<(), A::Error> {
        const { assert!(COMMON_FIELDS == 7) };
        let seconds = Maybe(Int(0, MAX_SECONDS));
        match field {
            0..COMMON_FIELDS => self.job.field(field, map, path)?,
            7 => self.job.times.remaining_s = map.next_value_seed(seconds)?,
            8 => self.job.times.move_cost_s = map.next_value_seed(seconds)?,
            _ => map.next_value_seed(ListSeed(&mut SeatList(self), path))?,
        }
        Ok(())
    }

    fn finish<E: Error>(&mut self, seen: u32, _: &mut Path) -> Result<(), E> {
        require::<Self, E>(seen, &[0, 1, 9])
    }
}

struct SeatList<'a>(&'a mut Parts);

impl Items for SeatList<'_> {
    const WHAT: &'static str = "a list of instances";

    fn item<'de, D: Deserializer<'de>>(&mut self, _: usize, deserializer: D, path: &mut Path) -> Result<(), D::Error> {
        let Parts { builder, seats, indices, ends, node_name, .. } = &mut *self.0;
        // The list of this instance is appended to those before, so that one buffer serves the whole job.
        let gpus = Indices { mask: 0, list: std::mem::take(indices) };
        let mut seat = SeatScratch { builder, node_name, node: None, gpus, listed: false };
        let read = ObjectSeed(&mut seat, path).deserialize(deserializer);
        let SeatScratch { node, gpus: Indices { mask, list }, listed, .. } = seat;
        *indices = list;
        read?;
        ends.push(indices.len() as u32);
        // `finish` has seen to it that there is a node.
        let node = node.ok_or_else(|| D::Error::missing_field("node"))?;
        seats.push(Seat { node, gpus: listed.then_some(mask) });
        Ok(())
    }
}

/// One instance as the file states it.
struct SeatScratch<'a> {
    builder: &'a ClusterBuilder,
    node_name: &'a mut String,
    node: Option<NodeId>,
    gpus: Indices,
    listed: bool,
}

impl Object for SeatScratch<'_> {
    const WHAT: &'static str = "an instance";
    const FIELDS: &'static [&'static str] = &["node", "gpus"];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, path: &mut Path) -> Result<(), A::Error> {
        if field == 0 {
            map.next_value_seed(Text(self.node_name))?;
            self.node = self.builder.find_node(self.node_name);
            if self.node.is_none() {
                let text = format_args!("found node \"{}\", expected one that is listed in nodes", self.node_name);
                return Err(A::Error::custom(text));
            }
        } else {
            self.listed = map.next_value_seed(Maybe(ListSeed(&mut self.gpus, path)))?.is_some();
        }
        Ok(())
    }

    fn finish<E: Error>(&mut self, seen: u32, _: &mut Path) -> Result<(), E> {
        require::<Self, E>(seen, &[0])
    }
}
