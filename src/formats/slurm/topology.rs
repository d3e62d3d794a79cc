//! Which block and which leaf switch a node is in.

use rustc_hash::FxHashMap;

use super::hostlist::each_host;
use super::record::NodeRecord;

/// A line of `scontrol show topology` or of `topology.conf`.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// A block, rather than a switch.
    pub(super) is_block: bool,
    pub(super) name: String,
    pub(super) hosts: String,
    /// A switch without switches below it.
    pub(super) is_leaf: bool,
}

/// The block (a domain to us) and the leaf switch (a rack) of each node.
#[derive(Debug, Default)]
pub(super) struct Topology {
    places: FxHashMap<String, Place>,
}

/// Where a node is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) domain: Option<String>,
    pub(super) rack: Option<String>,
}

impl Topology {
    /// From the lines of a topology, which may be none.
    ///
    /// # Errors
    /// What is wrong with a list of hosts.
    pub(super) fn new(lines: &[Line]) -> Result<Self, String> {
        let mut places: FxHashMap<String, Place> = FxHashMap::default();
        for line in lines {
            if !line.is_block && !line.is_leaf {
                continue;
            }
            each_host(&line.hosts, |host| {
                let place = places.entry(host.to_owned()).or_default();
                let part = if line.is_block { &mut place.domain } else { &mut place.rack };
                part.get_or_insert_with(|| line.name.clone());
            })?;
        }
        Ok(Self { places })
    }

    /// Where a node is: by the lines, else by its own field, `NAME:BLOCK` or `NAME:TOP:…:LEAF`, one for each topology.
    pub(super) fn place(&self, node: &NodeRecord) -> Place {
        if let Some(place) = self.places.get(&node.name) {
            return place.clone();
        }
        let mut place = Place::default();
        for words in node.topology.split(',') {
            let parts: Vec<&str> = words.split(':').collect();
            let part = match parts[..] {
                [_, block] if !block.is_empty() => place.domain.get_or_insert_with(|| block.to_owned()),
                [_, .., leaf] if parts.len() > 2 && !leaf.is_empty() => {
                    place.rack.get_or_insert_with(|| leaf.to_owned())
                }
                _ => continue,
            };
            debug_assert!(!part.is_empty());
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_lines_and_by_their_own_field() {
        let line = |is_block, name: &str, hosts: &str, is_leaf| Line {
            is_block,
            name: name.to_owned(),
            hosts: hosts.to_owned(),
            is_leaf,
        };
        let lines = [
            line(false, "spine", "n[1-4]", false),
            line(false, "leaf1", "n[1-2]", true),
            line(true, "b1", "n[2-3]", true),
        ];
        let topology = Topology::new(&lines).unwrap();
        let place = |name: &str, topology_field: &str| {
            let node =
                NodeRecord { name: name.to_owned(), topology: topology_field.to_owned(), ..NodeRecord::default() };
            let Place { domain, rack } = topology.place(&node);
            (domain.unwrap_or_default(), rack.unwrap_or_default())
        };
        let pair = |domain: &str, rack: &str| (domain.to_owned(), rack.to_owned());
        assert_eq!(place("n1", "default:b9"), pair("", "leaf1"));
        assert_eq!(place("n2", ""), pair("b1", "leaf1"));
        assert_eq!(place("n3", ""), pair("b1", ""));
        assert_eq!(place("x", "default:b9"), pair("b9", ""));
        assert_eq!(place("x", "default:core:s1:leaf7,block:b2"), pair("b2", "leaf7"));
        assert_eq!(place("x", ""), pair("", ""));
    }
}
