//! The cluster snapshot, our own format: read element by element, straight into the ledger.

mod node;
mod running;

use std::io::Read;

use serde::de::{DeserializeSeed, Error, MapAccess, Unexpected};
use serde_json::value::RawValue;

use crate::cluster::{Cluster, ClusterBuilder, DisruptionBudget, Seat};

use super::dump::Handles;
use super::error::{FormatError, Note, json_text};
use super::job::JobScratch;
use super::json::{Int, ListSeed, Maybe, Object, ObjectSeed, Path, Text, require};
use super::source::Source;
use super::window::Stream;
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
    /// Where the device indices of what runs are from; `None` where nobody said.
    pub index_source: Option<IndexSource>,
    /// What the user should know.
    pub notes: Vec<Note>,
    /// What the scheduler calls what runs, if the file is a dump of one that commands can be written for.
    pub handles: Option<Handles>,
    /// How many instances of some jobs may be stopped at a time, where a dump says so. Our own format has no word for it.
    pub budgets: Vec<DisruptionBudget>,
}

/// Where the device indices of the running instances are from.
///
/// What does not depend on them is a fact all the same: free GPUs of each node, what fits, the measures of fragmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexSource {
    /// The source named all of them, or left no choice.
    Stated,
    /// Some were not known, and chosen as the lowest free ones.
    Partly,
    /// None was known.
    Assumed,
}

impl IndexSource {
    /// All of them, with the words of a snapshot.
    const WORDS: [(Self, &str); 3] =
        [(Self::Stated, "stated"), (Self::Partly, "partly-assumed"), (Self::Assumed, "assumed")];

    /// Its word in a snapshot.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize].1
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known)| *known == word).map(|&(source, _)| source)
    }
}

/// Reads a snapshot from a file, or from standard input for `-`. It may be gzip'd.
///
/// The keys may come in any order, but `running` before `nodes` is kept as text until the nodes are known. A field that
/// may be left out may as well be null.
///
/// # Errors
/// If it cannot be read, or is not a cluster that can be.
pub fn read_cluster(path: &str) -> Result<Snapshot, FormatError> {
    let mut source =
        Source::open(path)?.not_empty("a cluster snapshot in JSON")?.of_objects("a cluster snapshot in JSON")?;
    let name = source.name().to_owned();
    read_cluster_from(&name, source.reader())
}

/// Reads a snapshot; `name` stands in errors.
///
/// # Errors
/// As for [`read_cluster`].
pub fn read_cluster_from(name: &str, reader: impl Read) -> Result<Snapshot, FormatError> {
    read_in_pieces(name, reader, READ_WHOLE, WINDOW)
}

/// Reads a snapshot of up to `whole` bytes whole, and a longer one `window` bytes at a time after those.
fn read_in_pieces(name: &str, reader: impl Read, whole: usize, window: usize) -> Result<Snapshot, FormatError> {
    let mut document = Document::default();
    let mut reader = reader;
    let mut head = Vec::new();
    match reader.by_ref().take(whole as u64 + 1).read_to_end(&mut head) {
        Err(error) => return Err(FormatError::unreadable(name, error)),
        Ok(_) if head.len() <= whole => {
            let mut path = Path::default();
            let read = document.read(&mut serde_json::Deserializer::from_slice(&head), &mut path);
            read.map_err(|error| document.fault(name, &path, error))?;
        }
        Ok(_) => {
            let stream = Stream::new(head, reader, window);
            let window = stream.window();
            let mut path = Path::through(stream.window());
            let read = document.read(&mut serde_json::Deserializer::from_reader(stream), &mut path);
            let moved = |line, column| window.position_of(line, column);
            read.map_err(|error| document.fault(name, &path, error).moved(moved))?;
        }
    }
    let cluster = document.parts.builder.finish();
    let cluster = cluster.map_err(|error| FormatError::new(name, error).at_place("running"))?;
    let notes = overcommitted(&cluster);
    Ok(Snapshot { cluster, as_of: document.as_of, index_source: document.index_source, notes, ..Snapshot::default() })
}

/// A document up to this size is read whole, which is faster; a larger one is read piece by piece, so that memory stays
/// with the cluster.
const READ_WHOLE: usize = 8 << 20;

/// How much of a larger document is in memory at a time. An element across its end is read at the stream's pace, which one
/// in hundreds is.
const WINDOW: usize = 128 << 10;

/// A note for each node of which more CPU or memory is in use than it has.
pub fn overcommitted(cluster: &Cluster) -> Vec<Note> {
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
    index_source: Option<IndexSource>,
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

    fn fault(&self, name: &str, path: &Path, error: serde_json::Error) -> FormatError {
        let lines_before = (!self.no_position).then_some(0);
        FormatError::json(name, lines_before, &path.to_string(), error)
    }
}

impl Object for Document {
    const WHAT: &'static str = "a cluster snapshot";
    const FIELDS: &'static [&'static str] = &["schema", "as_of", "index_source", "nodes", "running"];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, path: &mut Path) -> Result<(), A::Error> {
        match field {
            0 => _ = map.next_value_seed(Maybe(Int(1, 1)))?,
            1 => {
                let mut text = String::new();
                self.as_of = map.next_value_seed(Maybe(Text(&mut text)))?.map(|()| text);
            }
            2 => {
                let mut word = String::new();
                if map.next_value_seed(Maybe(Text(&mut word)))?.is_some() {
                    let unknown = || {
                        A::Error::invalid_value(
                            Unexpected::Str(&word),
                            &"\"stated\", \"partly-assumed\" or \"assumed\"",
                        )
                    };
                    self.index_source = Some(IndexSource::from_word(&word).ok_or_else(unknown)?);
                }
            }
            3 => {
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
        require::<Self, E>(seen, &[3])?;
        let Some(early) = self.early.take() else { return Ok(()) };
        path.key("running");
        path.leave_window();
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
    /// The job that the job is a group of; empty if it is none.
    group_of: String,
    seats: Vec<Seat>,
    /// The device indices of all instances of the job, as listed, and where each instance's end: for the path of errors.
    indices: Vec<u8>,
    ends: Vec<u32>,
    node_name: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = r#"{"schema": 1, "as_of": "now",
 "nodes": [{"name": "a", "gpus": 8, "model": "}]\"{", "unavailable": [7]},
  {"name": "b", "gpus": 4,
   "cpu_milli": 64000},{"name":"c","gpus":1} , {"name": "d", "gpus": 16}],
 "running": [{"job": "x", "gpus_per_instance": 2, "instances": [{"node": "a", "gpus": [0, 1]}, {"node": "b"}]},
  {"job": "y", "gpus_per_instance": 1, "models": ["}"], "instances": [{"node": "a"}]},
{"job": "z", "gpus_per_instance": 1, "migratable": false, "instances": [{"node": "c", "gpus": [0]}]}]}
"#;

    /// What is read, as text, or the error with all that it says.
    fn read(text: &[u8], whole: usize, window: usize) -> Result<String, String> {
        let snapshot = read_in_pieces("f", text, whole, window).map_err(|error| error.to_string())?;
        let mut written = Vec::new();
        crate::formats::write_cluster(&snapshot.cluster, snapshot.as_of.as_deref(), &mut written).unwrap();
        Ok(String::from_utf8(written).unwrap())
    }

    #[test]
    fn pieces_of_any_size_are_read_like_the_whole() {
        let (nodes, running) = (TEXT.find("\"nodes\"").unwrap(), TEXT.find("\"running\"").unwrap());
        let (head, nodes, running) = (&TEXT[..nodes], &TEXT[nodes..running], TEXT[running..].trim_end());
        // Also with the running jobs before the nodes.
        let turned = format!("{head}{}, {}}}", running.trim_end_matches('}'), nodes.trim_end().trim_end_matches(','));
        for text in [TEXT, &turned] {
            let whole = read(text.as_bytes(), usize::MAX >> 1, 0);
            assert!(whole.is_ok(), "{whole:?}");
            for head in 0..text.len() {
                for window in [1, 2, 7, 60, 1000] {
                    assert_eq!(read(text.as_bytes(), head, window), whole, "{head} {window}");
                }
            }
        }
    }

    #[test]
    fn a_fault_in_a_piece_is_where_it_is() {
        let error_of =
            |good: &str, bad: &str, head, window| read(TEXT.replace(good, bad).as_bytes(), head, window).unwrap_err();
        for (good, bad, place) in [
            ("\"gpus\": 16", "\"gpus\": 17", "f:4:71: nodes[3].gpus: "),
            ("64000", "6.5", "f:4:19: nodes[1].cpu_milli: "),
            ("\"migratable\": false", "\"migratable\": 0", "f:7:52: running[2].migratable: "),
        ] {
            let (pieces, whole) = (error_of(good, bad, 10, 1000), error_of(good, bad, usize::MAX >> 1, 0));
            assert!(pieces.starts_with(place) && pieces == whole, "{pieces}\n{whole}");
        }
    }

    /// A name that is there twice is wrong not in itself but where it stands; so is a device that is held twice.
    #[test]
    fn what_contradicts_the_rest_is_found_at_the_same_place() {
        for (from, to) in [(r#""name": "b""#, r#""name": "a""#), (r#""name":"c""#, r#""name":"a""#), ("[0]", "[8]")] {
            let text = TEXT.replace(from, to);
            let expected = read(text.as_bytes(), usize::MAX >> 1, 0).unwrap_err();
            let (place, what) = told(text.as_bytes(), &expected);
            for window in [1, 30, 59, 100, 200, 1000] {
                let (found, said) = told(text.as_bytes(), &read(text.as_bytes(), 0, window).unwrap_err());
                assert_eq!(said, what);
                assert!(found.abs_diff(place) <= NEAR, "{window}: {found} and {place}: {expected}");
            }
        }
    }

    /// A stream's reader may put an error a byte off; and of the blanks behind an element, of which `TEXT` has three and an
    /// edit may add one, those that are not in the buffer are not known.
    const NEAR: usize = 8;

    /// Which byte of a text an error is about, and what it says besides.
    fn told(text: &[u8], error: &str) -> (usize, String) {
        let parts: Vec<&str> = error.splitn(4, ':').collect();
        let [file, line, column, what] = parts[..] else { return (0, error.to_owned()) };
        let (Ok(line), Ok(column)) = (line.parse::<usize>(), column.parse::<usize>()) else {
            return (0, error.to_owned());
        };
        let lines: usize = text.split_inclusive(|&byte| byte == b'\n').take(line - 1).map(<[u8]>::len).sum();
        (lines + column, format!("{file}{what}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The same errors too, whatever was broken where.
        #[test]
        fn what_is_wrong_is_the_same_in_pieces(
            edits in prop::collection::vec((0..TEXT.len(), 0_u8..4, prop::sample::select(&b"{}[],:\"\\ \n0a-\xff"[..])), 1..3),
            head in 0..TEXT.len(),
            window in 1_usize..300,
        ) {
            let mut text = TEXT.as_bytes().to_vec();
            for (at, how, byte) in edits {
                let at = at.min(text.len() - 1);
                match how {
                    0 => drop(text.remove(at)),
                    1 => text.insert(at, byte),
                    2 => text[at] = byte,
                    _ => text.truncate(at.max(1)),
                }
            }
            match (read(&text, head, window), read(&text, usize::MAX >> 1, 0)) {
                (Err(in_pieces), Err(whole)) => {
                    let ((place, what), (whole_place, whole_what)) = (told(&text, &in_pieces), told(&text, &whole));
                    prop_assert_eq!(what, whole_what);
                    prop_assert!(place.abs_diff(whole_place) <= NEAR, "{} and {}", in_pieces, whole);
                }
                (in_pieces, whole) => prop_assert_eq!(in_pieces, whole),
            }
        }
    }
}
