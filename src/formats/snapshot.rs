//! The cluster snapshot, our own format: read element by element, straight into the ledger.

mod node;
mod running;

use std::io::{BufReader, Read};

use serde::de::{DeserializeSeed, Error, MapAccess};
use serde_json::value::RawValue;

use crate::cluster::{Cluster, ClusterBuilder, Seat};

use super::error::{FormatError, Note, json_text};
use super::job::JobScratch;
use super::json::{Int, ListSeed, Maybe, Object, ObjectSeed, Path, Text, require};
use super::source::{HeadThenRest, Source};
use node::{NodeList, NodeScratch};
use running::RunningList;

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
