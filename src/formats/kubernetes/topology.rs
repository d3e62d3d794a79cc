//! Where a node is, by its labels.

use std::str::FromStr;

use super::node::NodeRecord;

/// The labels that say where a node is, outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyKeys(Vec<String>);

/// Labels that name an NVLink domain.
const DOMAINS: [&str; 3] =
    ["nvidia.com/gpu.clique", "accelerator.topograph.run/domain", "network.topology.nvidia.com/accelerator"];

/// Levels below which nothing is shared.
const HOST: &str = "kubernetes.io/hostname";

/// Sets of labels that are in use, by name; outermost first.
const PRESETS: [(&str, &[&str]); 4] = [
    (
        "topograph",
        &[
            "fabric.topograph.run/tier-3",
            "fabric.topograph.run/tier-2",
            "fabric.topograph.run/tier-1",
            "fabric.topograph.run/tier-0",
            "accelerator.topograph.run/domain",
        ],
    ),
    (
        "nvidia",
        &[
            "network.topology.nvidia.com/datacenter",
            "network.topology.nvidia.com/core",
            "network.topology.nvidia.com/spine",
            "network.topology.nvidia.com/block",
            "network.topology.nvidia.com/leaf",
            "network.topology.nvidia.com/accelerator",
        ],
    ),
    ("cloud", &["cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"]),
    ("none", &[]),
];

impl FromStr for TopologyKeys {
    type Err = String;

    /// The name of a preset, or labels between commas.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, keys)) = PRESETS.iter().find(|(name, _)| *name == text) {
            return Ok(Self(keys.iter().map(|&key| key.to_owned()).collect()));
        }
        let keys: Vec<String> = text.split(',').map(|key| key.trim().to_owned()).collect();
        let is_label = |key: &String| !key.is_empty() && !key.contains(char::is_whitespace);
        if keys.iter().all(is_label) {
            return Ok(Self(keys));
        }
        let names: Vec<&str> = PRESETS.iter().map(|&(name, _)| name).collect();
        Err(format!("expected labels between commas, outermost first, or one of {}", names.join(", ")))
    }
}

/// Where a node is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) domain: Option<String>,
    pub(super) rack: Option<String>,
    /// Whether it has one of the labels that make up a rack, and lacks another.
    pub(super) lacks: bool,
}

impl TopologyKeys {
    /// Those that the user gave, else the levels of a topology that the dump has, else the first preset that any node has a
    /// label of; of these the ones that any node has, and then those that none has.
    pub(super) fn choose(given: Option<&Self>, levels: &[String], nodes: &[NodeRecord]) -> (Self, Vec<String>) {
        let is_used = |key: &str| nodes.iter().any(|node| !node.label(key).is_empty());
        match given {
            Some(given) => given.clone().in_use(is_used),
            None if !levels.is_empty() => Self(levels.to_vec()).in_use(is_used),
            None => (Self::first_preset(is_used), Vec::new()),
        }
    }

    /// Those that are in use, and those that are not.
    pub(super) fn in_use(self, is_used: impl Fn(&str) -> bool) -> (Self, Vec<String>) {
        let (used, unused) = self.0.into_iter().partition(|key| is_used(key));
        (Self(used), unused)
    }

    /// The labels in use of the first preset that has any.
    pub(super) fn first_preset(is_used: impl Fn(&str) -> bool) -> Self {
        let preset = PRESETS.iter().find(|(_, keys)| keys.iter().any(|key| is_used(key)));
        let keys = preset.map_or(&[][..], |(_, keys)| keys);
        Self(keys.iter().map(|&key| key.to_owned()).collect()).in_use(is_used).0
    }

    /// Which are in use of the labels that the user gave, else of those of all presets: a mask, of the first 64.
    pub(super) fn mask(given: Option<&Self>, is_used: impl Fn(&str) -> bool) -> u64 {
        let mask = |mask, (at, key): (usize, &str)| mask | u64::from(is_used(key)) << at;
        match given {
            Some(given) => given.0.iter().map(String::as_str).take(64).enumerate().fold(0, mask),
            None => PRESETS.iter().flat_map(|(_, keys)| *keys).copied().enumerate().fold(0, mask),
        }
    }

    /// The labels.
    pub(super) fn keys(&self) -> &[String] {
        &self.0
    }

    /// Where a node is. The domain is its NVLink domain; the rack is the path of all other levels, since names of inner
    /// levels need not differ between outer ones.
    pub(super) fn place(&self, node: &NodeRecord) -> Place {
        let is_domain = |key: &str| DOMAINS.contains(&key);
        let mine = self.0.iter().map(String::as_str).filter(|key| is_domain(key));
        // A clique says itself which domain a node is in, whatever the levels are.
        let domain = mine.rev().chain([DOMAINS[0]]).map(|key| node.label(key)).find(|value| is_clique(value));
        let levels = self.0.iter().filter(|key| !is_domain(key) && key.as_str() != HOST);
        let labels: Vec<&str> = levels.map(|key| node.label(key)).collect();
        let path: Vec<&str> = labels.iter().copied().filter(|value| !value.is_empty()).collect();
        // What is known of a node without the innermost label is some larger part, and no rack.
        let is_in_rack = labels.last().is_some_and(|rack| !rack.is_empty());
        Place {
            domain: domain.map(str::to_owned),
            rack: is_in_rack.then(|| path.join("/")),
            lacks: !path.is_empty() && path.len() < labels.len(),
        }
    }

    /// Whether a level is the domain (true), the innermost level beside it, which is the rack (false), or neither.
    pub(super) fn level(&self, key: &str) -> Option<bool> {
        let is_domain = |key: &str| DOMAINS.contains(&key);
        let rack = self.0.iter().rfind(|known| !is_domain(known) && known.as_str() != HOST);
        if is_domain(key) { Some(true) } else { (rack.is_some_and(|rack| rack == key)).then_some(false) }
    }
}

/// A name of a domain; zeros stand for none.
fn is_clique(value: &str) -> bool {
    value.chars().any(|c| c.is_ascii_alphanumeric() && c != '0')
}

#[cfg(test)]
mod tests {
    use super::super::object::Text;
    use super::*;

    #[test]
    fn levels_are_a_path_and_a_clique_is_a_domain() {
        let node = |labels: &[(&str, &str)]| NodeRecord {
            labels: labels.iter().map(|&(key, value)| (key.to_owned(), Text(value.to_owned()))).collect(),
            ..NodeRecord::default()
        };
        let place = |keys: &str, labels: &[(&str, &str)]| {
            let Place { domain, rack, .. } = keys.parse::<TopologyKeys>().unwrap().place(&node(labels));
            (domain.unwrap_or_default(), rack.unwrap_or_default())
        };
        let pair = |domain: &str, rack: &str| (domain.to_owned(), rack.to_owned());
        let [block, rack] = ["cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"];
        assert_eq!(place("cloud", &[(block, "b1"), (rack, "r1")]), pair("", "b1/r1"));
        assert_eq!(place("cloud", &[(rack, "r1"), ("nvidia.com/gpu.clique", "c0ffee.7")]), pair("c0ffee.7", "r1"));
        let zeros = "00000000-0000-0000-0000-000000000000.0";
        assert_eq!(place("none", &[("nvidia.com/gpu.clique", zeros)]), pair("", ""));
        assert_eq!(place("a.b/x,kubernetes.io/hostname", &[("a.b/x", "1"), (HOST, "n")]), pair("", "1"));
        assert_eq!("nvidia".parse::<TopologyKeys>().unwrap().level("network.topology.nvidia.com/leaf"), Some(false));
        assert_eq!("nvidia".parse::<TopologyKeys>().unwrap().level("nvidia.com/gpu.clique"), Some(true));
        // Without the innermost label a node is in no rack; without another it is in one.
        assert_eq!(place("row,rack", &[("row", "a")]), pair("", ""));
        assert_eq!(place("row,rack", &[("rack", "r")]), pair("", "r"));
        for bad in ["", "a.b/c,", "a b.c"] {
            assert!(bad.parse::<TopologyKeys>().is_err(), "{bad}");
        }
    }
}
