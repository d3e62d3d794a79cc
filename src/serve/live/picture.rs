//! What the cluster looks like, for those who watch: columns of nodes and sums. Made once a version, when somebody looks.

mod totals;

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::Live;
use crate::cluster::{Cluster, DomainId, GpuMask, ModelId, Node, NodeId, RackId};
use crate::serve::fault::ServeError;
use crate::serve::version::Version;
pub use totals::{GangRoom, Product, Totals};

/// What of a cluster stays as it is from one snapshot to the next, a column a field. Where a node names no rack, domain or
/// model, the number is -1.
#[derive(Debug, Serialize)]
pub struct Topology {
    /// The version with which it came.
    pub topology: Version,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Names of the racks.
    pub racks: Vec<String>,
    /// Names of the NVLink domains, each without its rack's.
    pub domains: Vec<String>,
    /// Names of the models.
    pub models: Vec<String>,
    /// The rack of each node.
    pub rack: Vec<i64>,
    /// The domain of each node.
    pub domain: Vec<i64>,
    /// The model of each node.
    pub model: Vec<i64>,
    /// Devices of each node, broken ones included.
    pub devices: Vec<u8>,
    /// Which of them work, as a mask.
    pub usable: Vec<GpuMask>,
}

impl Topology {
    fn of(cluster: &Cluster, topology: Version) -> Self {
        let number = |number: Option<usize>| number.map_or(-1, |number| number as i64);
        let pools = cluster.pools();
        let n_models = pools.iter().filter_map(|pool| pool.model).map(|model| model.index() + 1).max().unwrap_or(0);
        let nodes = cluster.nodes();
        Self {
            topology,
            nodes: cluster.node_ids().map(|id| cluster.node_name(id).to_owned()).collect(),
            racks: (0..cluster.n_racks() as u32).map(|id| cluster.rack_name(RackId(id)).to_owned()).collect(),
            domains: (0..cluster.n_domains() as u32).map(|id| cluster.domain_name(DomainId(id)).to_owned()).collect(),
            models: (0..n_models as u32).map(|id| cluster.model_name(ModelId(id)).to_owned()).collect(),
            rack: nodes.iter().map(|node| number(node.rack().map(|rack| rack.index()))).collect(),
            domain: nodes.iter().map(|node| number(node.domain().map(|domain| domain.index()))).collect(),
            model: nodes.iter().map(|node| number(pools[node.pool().index()].model.map(|id| id.index()))).collect(),
            devices: nodes.iter().map(Node::devices).collect(),
            usable: nodes.iter().map(Node::usable).collect(),
        }
    }
}

/// What a node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Devices that are held.
    pub busy: GpuMask,
    /// Those that instances of two GPUs or more hold.
    pub anchors: GpuMask,
    /// Those that shares lie on.
    pub shared: GpuMask,
    /// Whether anything may be placed there.
    pub schedulable: bool,
}

impl NodeRow {
    fn of(node: &Node) -> Self {
        Self { busy: node.busy(), anchors: node.anchors(), shared: node.shared(), schedulable: node.schedulable() }
    }
}

/// The cluster of one version.
#[derive(Debug)]
pub struct Picture {
    /// Of which version.
    pub version: Version,
    /// The version with which the topology came.
    pub topology: Version,
    /// When the version came to be.
    pub since: Instant,
    /// The nodes.
    pub rows: Vec<NodeRow>,
    /// The sums.
    pub totals: Totals,
    /// The first generation that is known to have each row as it is.
    changed: Vec<u64>,
}

impl Picture {
    /// The nodes that may differ from what they were at a version, ascending; `None` for all of them, if the cluster has
    /// another topology since.
    pub fn changed_since(&self, version: Version) -> Option<impl Iterator<Item = NodeId> + '_> {
        let is_known = version.epoch == self.version.epoch
            && (self.topology.generation..=self.version.generation).contains(&version.generation);
        let nodes = (0..).map(NodeId).zip(&self.changed);
        is_known.then(|| nodes.filter(move |&(_, &since)| since > version.generation).map(|(node, _)| node))
    }
}

/// What was made for those who watch.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    topology: Option<Arc<Topology>>,
    last: Option<Arc<Picture>>,
}

impl Live {
    /// The cluster as it looks now. O(nodes + jobs) for the first who asks after a change.
    ///
    /// # Errors
    /// If there is no cluster yet.
    pub fn picture(&mut self) -> Result<Arc<Picture>, ServeError> {
        let topology = self.topology()?.topology;
        let state = self.state.as_mut().ok_or(ServeError::NoCluster)?;
        let last = self.pictures.last.as_ref();
        if let Some(last) = last.filter(|last| last.version == self.version) {
            return Ok(Arc::clone(last));
        }
        let rows: Vec<NodeRow> = state.cluster().nodes().iter().map(NodeRow::of).collect();
        let now = self.version.generation;
        let changed = match last {
            Some(last) => {
                let before = last.rows.iter().zip(&last.changed);
                rows.iter().zip(before).map(|(row, (old, &since))| if row == old { since } else { now }).collect()
            }
            None => vec![now; rows.len()],
        };
        let totals = Totals::of(state, &self.gangs);
        let picture = Picture { version: self.version, topology, since: self.changed, rows, totals, changed };
        Ok(Arc::clone(self.pictures.last.insert(Arc::new(picture))))
    }

    /// What stays as it is until another snapshot is put. O(nodes) for the first who asks.
    ///
    /// # Errors
    /// If there is no cluster yet.
    pub fn topology(&mut self) -> Result<Arc<Topology>, ServeError> {
        let state = self.state.as_ref().ok_or(ServeError::NoCluster)?;
        let known = &mut self.pictures.topology;
        let topology = known.get_or_insert_with(|| Arc::new(Topology::of(state.cluster(), self.version)));
        Ok(Arc::clone(topology))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Cpu;
    use crate::formats::EditSpec;
    use crate::formats::read_cluster_from;
    use crate::serve::live::Condition;

    fn changed(picture: &Picture, version: Version) -> Option<Vec<usize>> {
        picture.changed_since(version).map(|nodes| nodes.map(NodeId::index).collect())
    }

    #[test]
    fn a_picture_knows_what_has_changed_since_another() {
        let nodes = r#"{"nodes":[{"name":"n0","gpus":4},{"name":"n1","gpus":4},{"name":"n2","gpus":4}]}"#;
        let mut live = Live::new(Box::new(Cpu::new(1).unwrap()));
        live.put(read_cluster_from("test", nodes.as_bytes()).unwrap().cluster);
        let first = live.picture().unwrap();
        assert!(Arc::ptr_eq(&first, &live.picture().unwrap()), "made once a version");
        assert_eq!(changed(&first, first.version), Some(vec![]));
        let mut edit = |text: &str| {
            let edits: Vec<EditSpec> = serde_json::from_str(text).unwrap();
            live.edit(&Condition::default(), &edits).unwrap();
            live.picture().unwrap()
        };
        let start = |job: &str, node: &str| {
            format!(r#"[{{"start":{{"job":"{job}","gpus_per_instance":2,"instances":[{{"node":"{node}"}}]}}}}]"#)
        };
        let second = edit(&start("a", "n1"));
        assert_eq!(second.rows[1], NodeRow { busy: 3, anchors: 3, shared: 0, schedulable: true });
        assert_eq!(changed(&second, first.version), Some(vec![1]));
        let third = edit(r#"[{"cordon":"n2"}]"#);
        assert_eq!(changed(&third, first.version), Some(vec![1, 2]));
        assert_eq!(changed(&third, second.version), Some(vec![2]));
        // Of what is to come, of another life and of another topology nothing is known.
        assert_eq!(changed(&second, third.version), None);
        assert_eq!(changed(&third, Version { epoch: crate::serve::Epoch::new(), ..third.version }), None);
        let cluster = live.copy().unwrap();
        live.put(Cluster::clone(&cluster));
        let fourth = live.picture().unwrap();
        assert_eq!(changed(&fourth, third.version), None);
        assert_eq!(fourth.topology, fourth.version);
        live.drop_cluster();
        assert!(live.picture().is_err() && live.topology().is_err());
    }
}
