//! Node events, our own format: JSONL, one change of a node a line.

use std::io::BufRead;

use serde::de::{DeserializeSeed, Error, MapAccess, Unexpected};

use crate::cluster::{Cluster, NodeId};
use crate::workload::{NodeChange, NodeEvent};

use super::error::{FormatError, Note};
use super::job::MAX_SECONDS;
use super::json::{Int, Object, ObjectSeed, Path, Text, require};
use super::lines::Lines;
use super::source::Source;

/// Reads node events from a file, or from standard input for `-`. It may be gzip'd. They come sorted by time, ties in the
/// order of the file.
///
/// # Errors
/// If it cannot be read, a line is malformed, or names a node that the cluster does not have.
pub fn read_node_events(path: &str, cluster: &Cluster) -> Result<(Vec<NodeEvent>, Vec<Note>), FormatError> {
    let mut source = Source::open(path)?;
    let name = source.name().to_owned();
    read_node_events_from(&name, source.reader(), cluster)
}

/// The same from a reader; `name` stands in errors.
///
/// # Errors
/// As for [`read_node_events`].
pub fn read_node_events_from(
    name: &str,
    reader: impl BufRead,
    cluster: &Cluster,
) -> Result<(Vec<NodeEvent>, Vec<Note>), FormatError> {
    let mut lines = Lines::new(name, reader);
    let mut events: Vec<NodeEvent> = Vec::new();
    let mut late = 0u64;
    let mut path = Path::default();
    while let Some((line, text)) = lines.next()? {
        let mut scratch = Scratch { cluster, at_s: 0, node: NodeId(0), change: NodeChange::Fail };
        let mut json = serde_json::Deserializer::from_slice(text);
        let read = ObjectSeed(&mut scratch, &mut path).deserialize(&mut json).and_then(|()| json.end());
        read.map_err(|error| FormatError::json(name, Some(line - 1), &path.to_string(), error))?;
        let Scratch { at_s, node, change, .. } = scratch;
        late += u64::from(events.last().is_some_and(|last| at_s < last.at_s));
        events.push(NodeEvent { at_s, node, change });
    }
    events.sort_by_key(|event| event.at_s);
    let mut notes = Vec::new();
    if late > 0 {
        let text = format!("{late} events are earlier than the line above theirs; they are sorted");
        notes.push(Note { place: name.to_owned(), text });
    }
    Ok((events, notes))
}

/// One line.
struct Scratch<'c> {
    cluster: &'c Cluster,
    at_s: u64,
    node: NodeId,
    change: NodeChange,
}

impl Object for Scratch<'_> {
    const WHAT: &'static str = "an event of a node";
    const FIELDS: &'static [&'static str] = &["at_s", "node", "event"];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, _: &mut Path) -> Result<(), A::Error> {
        let mut word = String::new();
        match field {
            0 => self.at_s = map.next_value_seed(Int(0, MAX_SECONDS))?,
            1 => {
                map.next_value_seed(Text(&mut word))?;
                self.node = self.cluster.find_node(&word).ok_or_else(|| {
                    A::Error::invalid_value(Unexpected::Str(&word), &"the name of a node of the cluster")
                })?;
            }
            _ => {
                map.next_value_seed(Text(&mut word))?;
                self.change = NodeChange::from_name(&word).ok_or_else(|| {
                    A::Error::invalid_value(Unexpected::Str(&word), &"\"fail\", \"drain\" or \"return\"")
                })?;
            }
        }
        Ok(())
    }

    fn finish<E: Error>(&mut self, seen: u32, _: &mut Path) -> Result<(), E> {
        require::<Self, E>(seen, &[0, 1, 2])
    }
}

#[cfg(test)]
mod tests {
    use crate::cluster::{ClusterBuilder, NodeSpec};

    use super::*;

    fn read(text: &str) -> Result<(Vec<NodeEvent>, Vec<Note>), FormatError> {
        let mut builder = ClusterBuilder::new();
        for name in ["n0", "n1"] {
            builder.add_node(&NodeSpec { name, gpus: 8, ..NodeSpec::default() }).unwrap();
        }
        read_node_events_from("events", text.as_bytes(), &builder.finish().unwrap())
    }

    #[test]
    fn events_are_sorted_by_time_alone() {
        let text = r#"{"at_s":7,"node":"n1","event":"fail"}

            {"event":"drain","node":"n0","at_s":3}
            {"at_s":7,"node":"n1","event":"return"}"#;
        let (events, notes) = read(text).unwrap();
        let event = |at_s, node, change| NodeEvent { at_s, node: NodeId(node), change };
        let expected = [event(3, 0, NodeChange::Drain), event(7, 1, NodeChange::Fail), event(7, 1, NodeChange::Return)];
        assert_eq!(events, expected);
        assert_eq!(notes.len(), 1);
        assert!(read("").unwrap().0.is_empty());
    }

    #[test]
    fn bad_lines_are_told_with_their_place() {
        let good = r#"{"at_s":7,"node":"n1","event":"fail"}"#;
        for (from, to, expected) in [
            ("n1", "n2", "events:2:21: node: found string \"n2\", expected the name of a node"),
            ("fail", "explode", "expected \"fail\", \"drain\" or \"return\""),
            ("7", "-7", "at_s"),
            ("7", "7.5", "at_s"),
            (",\"event\":\"fail\"", "", "missing field `event`"),
            ("at_s", "at", "unknown field `at`"),
        ] {
            let error = read(&format!("{good}\n{}", good.replace(from, to))).unwrap_err().to_string();
            assert!(error.starts_with("events:2") && error.contains(expected), "{error}");
        }
    }
}
