//! The nodes of a snapshot.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess};

use super::Parts;
use crate::cluster::{BuildError, ClusterBuilder, GpuMask, MAX_GPUS, NodeSpec};
use crate::formats::job::amount;
use crate::formats::json::{Flag, Int, Items, ListSeed, Maybe, Object, ObjectSeed, Path, Text, require};

/// Reads the nodes into the cluster.
pub(super) struct NodeList<'a>(pub(super) &'a mut Parts);

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
pub(super) struct NodeScratch {
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
pub(super) struct Indices {
    pub(super) mask: GpuMask,
    pub(super) list: Vec<u8>,
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

/// Where an index stands in a list; 0 if it does not.
pub(super) fn position(list: &[u8], index: u32) -> usize {
    list.iter().position(|&listed| u32::from(listed) == index).unwrap_or(0)
}
