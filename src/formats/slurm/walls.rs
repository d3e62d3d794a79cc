//! Partitions as walls, and GPU types, in the one word that a cluster has for them: the model.
//!
//! Nodes of one GPU type are one model where all of them serve the same partitions, and have the same of those features
//! that a job asks for. Where they do not, they are models of their own, `TYPE/PARTITIONS` or
//! `TYPE/PARTITIONS&FEATURES`. A job may have the models of its type that serve its partition, so that no plan takes a
//! job through a wall.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{JobRecord, NodeRecord};

/// What tells nodes apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    gpu: String,
    partitions: Vec<String>,
    features: Vec<String>,
}

/// All kinds of nodes, and their models.
#[derive(Debug, Default)]
pub(super) struct Walls {
    /// Features that a job asks for.
    asked: BTreeSet<String>,
    models: BTreeMap<Kind, String>,
    /// Partitions with a node without GPUs.
    without_gpus: BTreeSet<String>,
}

impl Walls {
    /// Between these nodes, each with the type of its GPUs or none, for these jobs.
    pub(super) fn new<'a>(nodes: impl Iterator<Item = (&'a NodeRecord, Option<String>)>, jobs: &[JobRecord]) -> Self {
        let asked = jobs.iter().filter_map(|job| Features::read(&job.features)).flat_map(|features| features.names);
        let mut walls = Self { asked: asked.collect(), ..Self::default() };
        for (node, gpu) in nodes {
            match gpu {
                Some(gpu) => drop(walls.models.insert(walls.kind(node, gpu), String::new())),
                None => walls.without_gpus.extend(node.partitions.iter().cloned()),
            }
        }
        let kinds: Vec<Kind> = walls.models.keys().cloned().collect();
        for (kind, model) in &mut walls.models {
            let alike = kinds.iter().filter(|other| other.gpu == kind.gpu);
            let within = alike.clone().filter(|other| other.partitions == kind.partitions).count();
            model.clone_from(&kind.gpu);
            if alike.count() > 1 {
                model.push('/');
                model.push_str(&kind.partitions.join(","));
            }
            if within > 1 && !kind.features.is_empty() {
                model.push('&');
                model.push_str(&kind.features.join("&"));
            }
        }
        walls
    }

    fn kind(&self, node: &NodeRecord, gpu: String) -> Kind {
        let features = self.asked.iter().filter(|asked| node.features.contains(asked)).cloned().collect();
        let partitions: BTreeSet<String> = node.partitions.iter().cloned().collect();
        Kind { gpu, partitions: partitions.into_iter().collect(), features }
    }

    /// The model of a node whose GPUs are of this type.
    pub(super) fn model(&self, node: &NodeRecord, gpu: String) -> Option<&String> {
        self.models.get(&self.kind(node, gpu))
    }

    /// The models that a job may have, if it asks for GPUs of this type (empty for any).
    pub(super) fn allowed(&self, job: &JobRecord, gpu: &str) -> Allowed {
        let Some(features) = Features::read(&job.features) else { return Allowed::Unreadable };
        let mut models: Vec<String> = Vec::new();
        for (kind, model) in &self.models {
            let serves = job.partitions.is_empty() || job.partitions.iter().any(|name| kind.partitions.contains(name));
            if serves && (gpu.is_empty() || gpu == kind.gpu) && features.hold(&kind.features) {
                models.push(model.clone());
            }
        }
        match models.len() {
            0 => Allowed::Nowhere,
            all if all == self.models.len() => Allowed::These(Vec::new()),
            _ => Allowed::These(models),
        }
    }

    /// Whether a job that asks for no GPU may go to a node that has none.
    pub(super) fn has_node_without_gpus(&self, job: &JobRecord) -> bool {
        job.partitions.iter().any(|partition| self.without_gpus.contains(partition))
    }

    /// Whether any node is known.
    pub(super) fn is_empty(&self) -> bool {
        self.models.is_empty()
    }
}

/// Where a job may go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// Nodes of these models; empty for every node.
    These(Vec<String>),
    /// No node has such GPUs and serves its partition.
    Nowhere,
    /// Its features are an expression that is not understood here.
    Unreadable,
}

/// Features that a job asks for: all of them, or any.
#[derive(Debug)]
struct Features {
    any: bool,
    names: Vec<String>,
}

impl Features {
    /// Reads `a`, `a&b`, `a,b` or `a|b`; `None` for anything else: counts, brackets, both signs.
    fn read(text: &str) -> Option<Self> {
        let any = text.contains('|');
        if text.contains(['[', ']', '(', ')', '*', '!', '=']) || any && text.contains(['&', ',']) {
            return None;
        }
        let names = text.split(['&', ',', '|']).map(str::trim).filter(|name| !name.is_empty());
        Some(Self { any, names: names.map(str::to_owned).collect() })
    }

    fn hold(&self, features: &[String]) -> bool {
        let mut has = self.names.iter().map(|name| features.contains(name));
        if self.any { has.any(|has| has) } else { has.all(|has| has) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn models_tell_partitions_and_features_apart_only_where_they_must() {
        let node = |partitions, features| NodeRecord {
            partitions: words(partitions),
            features: words(features),
            ..NodeRecord::default()
        };
        let nodes = [
            node("batch", "ib"),
            node("batch debug", ""),
            node("batch debug", "ib"),
            node("batch", ""),
            node("cpu", ""),
        ];
        let types = [Some("h100"), Some("h100"), Some("h100"), Some("a100"), None];
        let job = |partition, features: &str| JobRecord {
            partitions: words(partition),
            features: features.to_owned(),
            ..JobRecord::default()
        };
        let plain = Walls::new(nodes.iter().zip(types.map(|gpu| gpu.map(str::to_owned))), &[]);
        let model = |walls: &Walls, at: usize| walls.model(&nodes[at], types[at].unwrap().to_owned()).unwrap().clone();
        assert_eq!(model(&plain, 0), "h100/batch");
        assert_eq!(model(&plain, 1), model(&plain, 2));
        assert_eq!(model(&plain, 3), "a100");
        assert_eq!(plain.allowed(&job("batch", ""), ""), Allowed::These(Vec::new()));
        assert_eq!(plain.allowed(&job("debug", ""), ""), Allowed::These(words("h100/batch,debug")));
        assert_eq!(plain.allowed(&job("batch", ""), "a100"), Allowed::These(words("a100")));
        assert_eq!(plain.allowed(&job("debug", ""), "a100"), Allowed::Nowhere);
        assert!(plain.has_node_without_gpus(&job("cpu", "")) && !plain.has_node_without_gpus(&job("batch", "")));

        let asks = job("batch", "ib");
        let walls = Walls::new(nodes.iter().zip(types.map(|gpu| gpu.map(str::to_owned))), std::slice::from_ref(&asks));
        assert_eq!([model(&walls, 1), model(&walls, 2)], ["h100/batch,debug", "h100/batch,debug&ib"]);
        assert_eq!(walls.allowed(&asks, ""), Allowed::These(words("h100/batch h100/batch,debug&ib")));
        assert_eq!(walls.allowed(&job("batch", "ib|nvl"), "a100"), Allowed::Nowhere);
        assert_eq!(walls.allowed(&job("batch", "[ib*2]"), ""), Allowed::Unreadable);
    }
}
