//! The names of nodes as a scheduler lists them: thousands a call, in one text.

use std::fmt;

use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cluster::{Cluster, NodeId};

/// A list of names, one after another in one text.
#[derive(Debug, Default)]
pub(in crate::serve) struct NameList {
    text: String,
    ends: Vec<u32>,
}

impl NameList {
    /// Adds a name.
    pub(super) fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len() as u32);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many bytes all names are.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The name at a place.
    pub(super) fn get(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }

    /// All of them, in their order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|at| self.get(at))
    }
}

impl Serialize for NameList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for NameList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = NameList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of names")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NameList, A::Error> {
                let mut names = NameList::default();
                while list.next_element_seed(Next(&mut names))?.is_some() {}
                Ok(names)
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// Puts the next name behind the others, without a text of its own.
struct Next<'n>(&'n mut NameList);

impl<'de> DeserializeSeed<'de> for Next<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Next<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<(), E> {
        self.0.push(name);
        Ok(())
    }
}

/// Finds nodes by names that come in much the same order from call to call.
#[derive(Debug, Default)]
pub(in crate::serve) struct Finder {
    /// Which node came behind each, the last time that both were named.
    next: Vec<u32>,
}

impl Finder {
    /// Calls `each` with the place of every name and its node, if it is one of the cluster.
    pub(super) fn find(&mut self, cluster: &Cluster, names: &NameList, each: &mut dyn FnMut(usize, Option<NodeId>)) {
        let n = cluster.nodes().len() as u32;
        if self.next.len() != n as usize {
            // One more, for who comes first.
            self.next = (1..=n).chain([0]).take(n as usize).collect();
        }
        let mut last: Option<u32> = None;
        for (at, name) in names.iter().enumerate() {
            let guess = last.map_or(0, |last| self.next[last as usize]);
            let found = if guess < n && cluster.node_name(NodeId(guess)) == name {
                Some(NodeId(guess))
            } else {
                let found = cluster.find_node(name);
                if let (Some(last), Some(found)) = (last, found) {
                    self.next[last as usize] = found.0;
                }
                found
            };
            last = found.map(|found| found.0).or(last);
            each(at, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClusterBuilder, NodeSpec};

    #[test]
    fn names_are_listed_found_and_written_again() {
        let text = r#"["n2","n\u0030","x","n1","n2"]"#;
        let names: NameList = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&names).unwrap(), r#"["n2","n0","x","n1","n2"]"#);
        let mut builder = ClusterBuilder::new();
        for name in ["n0", "n1", "n2"] {
            builder.add_node(&NodeSpec { name, gpus: 8, ..NodeSpec::default() }).unwrap();
        }
        let (cluster, mut finder) = (builder.finish().unwrap(), Finder::default());
        for _ in 0..3 {
            let mut found = Vec::new();
            finder.find(&cluster, &names, &mut |at, node| found.push((at, node.map(|node| node.0))));
            assert_eq!(found, [(0, Some(2)), (1, Some(0)), (2, None), (3, Some(1)), (4, Some(2))]);
        }
    }
}
