//! Single nodes and pods, as the API server tells of them one by one: for who follows a live cluster.

use serde::Deserialize;

use super::super::error::FormatError;
use super::gang::{Gang, gang_size};
use super::node::NodeRecord;
use super::object::{Metadata, Spec, Status};
use super::pod::PodRecord;
use super::topology::TopologyKeys;
use crate::cluster::MAX_GPUS;

/// A node.
#[derive(Debug)]
pub struct NodeView {
    record: NodeRecord,
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodView {
    /// Namespace and name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Where it is; empty while it waits.
    pub node: String,
    /// It has ended, and holds nothing.
    pub ended: bool,
    /// It is being deleted; it holds what it has until it is gone.
    pub ends: bool,
    /// Something holds it back from being scheduled.
    pub gated: bool,
    /// Whole GPUs.
    pub gpus: u64,
    /// It asks for parts of GPUs, or for devices by claims, which are not followed.
    pub parts: bool,
    /// Whether something would make it again elsewhere.
    pub movable: bool,
    /// The gang that it is of: namespace and name.
    pub gang: Option<String>,
    /// How many pods must be there for the gang to start, if the pod says so.
    pub gang_size: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default, expecting = "an object")]
struct Object {
    metadata: Option<Metadata>,
    spec: Option<Spec>,
    status: Option<Status>,
}

/// Reads a `v1.Node`; `name` stands in errors.
///
/// # Errors
/// If it is malformed.
pub fn read_node_view(name: &str, json: &[u8]) -> Result<NodeView, FormatError> {
    let Object { metadata, spec, status } = object(name, json)?;
    let status = status.unwrap_or_default();
    let record = NodeRecord::new(metadata.unwrap_or_default(), spec.unwrap_or_default(), &status);
    let record = record.map_err(|wrong| FormatError::new(name, wrong))?;
    Ok(NodeView { record })
}

/// Reads a `v1.Pod`; `name` stands in errors.
///
/// # Errors
/// If it is malformed.
pub fn read_pod_view(name: &str, json: &[u8]) -> Result<PodView, FormatError> {
    let Object { metadata, spec, status } = object(name, json)?;
    let metadata = metadata.unwrap_or_default();
    let (uid, gang_size) = (metadata.uid.0.clone(), gang_size(&metadata));
    let pod = PodRecord::new(metadata, spec.unwrap_or_default(), &status.unwrap_or_default());
    let pod = pod.map_err(|wrong| FormatError::new(name, wrong))?;
    Ok(PodView {
        uid,
        ended: pod.ended,
        ends: pod.ends,
        gated: pod.gated,
        gpus: pod.request.gpus,
        parts: pod.request.parts > 0 || pod.fraction || pod.asks_by_claim,
        movable: !pod.pinned,
        gang: pod.gang.map(|Gang { name, .. }| name),
        gang_size,
        node: pod.node,
        name: pod.name,
    })
}

fn object(name: &str, json: &[u8]) -> Result<Object, FormatError> {
    let mut json = serde_json::Deserializer::from_slice(json);
    let mut track = serde_path_to_error::Track::new();
    let read = Object::deserialize(serde_path_to_error::Deserializer::new(&mut json, &mut track));
    read.map_err(|error| FormatError::json(name, None, &track.path().to_string(), error))
}

impl NodeView {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Its devices, and how many of them can be given out. `None` if it has no whole GPUs, or more than 16.
    pub fn gpus(&self) -> Option<(u8, u8)> {
        let NodeRecord { devices, gpus, .. } = self.record;
        let counts = self.record.not_whole().is_none() && (1..=MAX_GPUS as u64).contains(&devices);
        counts.then_some((devices as u8, gpus as u8))
    }

    /// Whether it is ready and not cordoned. What its taints allow is for the scheduler to say.
    pub fn is_open(&self) -> bool {
        self.record.ready && !self.record.cordoned
    }

    /// What its GPUs are, if it says so.
    pub fn product(&self) -> Option<&str> {
        Some(self.record.label("nvidia.com/gpu.product")).filter(|product| !product.is_empty())
    }

    /// Its domain and its rack.
    pub fn place(&self, keys: &TopologyKeys) -> (Option<String>, Option<String>) {
        let place = keys.place(&self.record);
        (place.domain, place.rack)
    }
}

impl TopologyKeys {
    /// The first preset that any of these nodes has a label of.
    pub fn of_nodes<'a>(nodes: impl Iterator<Item = &'a NodeView> + Clone) -> Self {
        Self::first_preset(|key| nodes.clone().any(|node| !node.record.label(key).is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_and_a_pod_are_read_alone() {
        let node = br#"{"kind":"Node","metadata":{"name":"n","labels":{"nvidia.com/gpu.product":"H100","cloud.provider.com/topology-rack":"r"}},
            "spec":{"unschedulable":true},"status":{"allocatable":{"nvidia.com/gpu":"7"},"capacity":{"nvidia.com/gpu":"8"}}}"#;
        let node = read_node_view("node", node).unwrap();
        assert_eq!(
            (node.name(), node.gpus(), node.is_open(), node.product()),
            ("n", Some((8, 7)), false, Some("H100"))
        );
        let keys = TopologyKeys::of_nodes([&node].into_iter());
        assert_eq!(node.place(&keys), (None, Some("r".to_owned())));
        let pod = br#"{"metadata":{"name":"p","namespace":"s","uid":"u","labels":{"job-name":"j"},
            "annotations":{"kueue.x-k8s.io/pod-group-total-count":"4"},"ownerReferences":[{"kind":"Job","name":"j"}]},
            "spec":{"containers":[{"resources":{"requests":{"nvidia.com/gpu":"2"}}}]},"status":null}"#;
        let pod = read_pod_view("pod", pod).unwrap();
        let expected = PodView {
            name: "s/p".into(),
            uid: "u".into(),
            gpus: 2,
            movable: true,
            gang: Some("s/j".into()),
            gang_size: Some(4),
            ..PodView::default()
        };
        assert_eq!(pod, expected);
        let error = read_pod_view("Pod", br#"{"spec":{"containers":{}}}"#).unwrap_err().to_string();
        assert!(error.contains("spec.containers"), "{error}");
    }
}
