//! Single objects, as the API server tells of them one by one: for who follows a live cluster.

use serde::Deserialize;

use super::super::error::FormatError;
use super::claim::{ClaimRecord, SliceRecord, offered};
use super::device::Devices;
use super::gang::{Gang, gang_size};
use super::node::NodeRecord;
use super::object::{Metadata, Spec, Status};
use super::pod::{PodRecord, namespace};
use super::topology::TopologyKeys;
use crate::cluster::{MAX_AMOUNT, MAX_GPUS, Within};

/// A node.
#[derive(Debug)]
pub struct NodeView {
    pub(super) record: NodeRecord,
    /// It names no whole GPUs itself: those count that slices offer.
    by_slices: bool,
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodView {
    /// Namespace and name.
    pub name: String,
    /// Where it is; empty while it waits.
    pub node: String,
    /// It has ended, and holds nothing.
    pub ended: bool,
    /// It is being deleted; it holds what it has until it is gone.
    pub ends: bool,
    /// Something holds it back from being scheduled.
    pub gated: bool,
    /// Whole GPUs, without those that it has by claims.
    pub gpus: u64,
    /// Milli-cores.
    pub cpu_milli: u32,
    /// MiB.
    pub memory_mib: u32,
    /// It asks for parts of GPUs.
    pub parts: bool,
    /// It asks for devices by claims that do not stand for a request.
    pub by_claim: bool,
    /// The claims that it has devices by: namespace and name.
    pub claims: Vec<String>,
    /// Whether something would make it again elsewhere.
    pub movable: bool,
    /// The gang that it is of: namespace and name.
    pub gang: Option<String>,
    /// How many pods must be there for the gang to start, if the pod says so.
    pub gang_size: Option<u32>,
    /// The label whose value all pods of its gang must share, if the pod says so.
    pub together: Option<String>,
    /// What is said of its devices, in the words of whoever gave them out.
    pub(super) devices: Devices,
}

/// A claim for devices, and what it was given.
#[derive(Debug, PartialEq, Eq)]
pub struct ClaimView {
    pub(super) record: ClaimRecord,
}

/// Devices that a driver offers on a node.
#[derive(Debug, PartialEq, Eq)]
pub struct SliceView {
    /// Its name.
    pub name: String,
    record: SliceRecord,
}

/// A group of pods that start together: the `PodGroup` of Kubernetes, of coscheduling or of Volcano.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodGroupView {
    /// Namespace and name.
    pub name: String,
    /// How many pods must be there for it to start, if it says so.
    pub size: Option<u32>,
    /// The label whose value all of its pods must share.
    pub together: Option<String>,
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
    Ok(NodeView { by_slices: record.devices == 0, record })
}

/// Reads a `v1.Pod`; `name` stands in errors.
///
/// # Errors
/// If it is malformed.
pub fn read_pod_view(name: &str, json: &[u8]) -> Result<PodView, FormatError> {
    let Object { metadata, spec, status } = object(name, json)?;
    let metadata = metadata.unwrap_or_default();
    let spec = spec.unwrap_or_default();
    // The record of a pod without GPUs that runs does not keep it.
    let gang = Gang::of(&metadata, &spec.scheduling_group.pod_group_name);
    let gang_size = gang_size(&metadata);
    let pod = PodRecord::new(metadata, spec, &status.unwrap_or_default());
    let pod = pod.map_err(|wrong| FormatError::new(name, wrong))?;
    Ok(PodView {
        ended: pod.ended,
        ends: pod.ends,
        gated: pod.gated,
        gpus: pod.request.gpus,
        cpu_milli: amount(pod.request.cpu_milli),
        memory_mib: amount(pod.request.memory_mib),
        parts: pod.request.parts > 0 || pod.fraction,
        by_claim: pod.asks_by_claim,
        claims: pod.claims,
        movable: !pod.pinned,
        gang: gang.filter(|_| !pod.reserves).map(|Gang { name, .. }| name),
        gang_size,
        together: pod.together,
        devices: pod.devices,
        node: pod.node,
        name: pod.name,
    })
}

/// Reads a `v1.ResourceClaim` of `resource.k8s.io`; `name` stands in errors.
///
/// # Errors
/// If it is malformed.
pub fn read_claim_view(name: &str, json: &[u8]) -> Result<ClaimView, FormatError> {
    let Object { metadata, status, .. } = object(name, json)?;
    Ok(ClaimView { record: ClaimRecord::new(&metadata.unwrap_or_default(), status.unwrap_or_default()) })
}

/// Reads a `v1.ResourceSlice` of `resource.k8s.io`; `name` stands in errors.
///
/// # Errors
/// If it is malformed.
pub fn read_slice_view(name: &str, json: &[u8]) -> Result<SliceView, FormatError> {
    let Object { metadata, spec, .. } = object(name, json)?;
    Ok(SliceView { name: metadata.unwrap_or_default().name, record: SliceRecord::new(spec.unwrap_or_default()) })
}

/// Reads a `PodGroup`, of whichever of the groups that have one; `name` stands in errors.
///
/// # Errors
/// If it is malformed.
pub fn read_pod_group_view(name: &str, json: &[u8]) -> Result<PodGroupView, FormatError> {
    let Object { metadata, spec, .. } = object(name, json)?;
    let (metadata, spec) = (metadata.unwrap_or_default(), spec.unwrap_or_default());
    let count = |count: i64| u32::try_from(count).ok().filter(|&count| count > 0);
    let constraints = spec.scheduling_constraints.topology;
    Ok(PodGroupView {
        name: format!("{}/{}", namespace(&metadata), metadata.name),
        size: count(spec.scheduling_policy.gang.min_count).or(count(spec.min_member)),
        together: constraints.into_iter().map(|constraint| constraint.key).find(|key| !key.is_empty()),
    })
}

/// More than can be counted is as good as the most that can.
fn amount(amount: u64) -> u32 {
    amount.min(u64::from(MAX_AMOUNT)) as u32
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

    /// Counts what slices offer on it, all that there are of it, where it names no whole GPUs itself.
    pub fn offer<'a>(&mut self, slices: impl Iterator<Item = &'a SliceView>) {
        if self.by_slices {
            let offered = offered(slices.map(|slice| &slice.record).filter(|slice| slice.node == self.record.name));
            let gpus = offered.values().sum();
            (self.record.gpus, self.record.devices) = (gpus, gpus);
        }
    }

    /// Its milli-cores and its MiB, where it sets a limit that can be counted.
    pub fn amounts(&self) -> (Option<u32>, Option<u32>) {
        let limit = |amount: Option<u64>| amount.and_then(|n| u32::try_from(n).ok()).filter(|&n| n <= MAX_AMOUNT);
        (limit(self.record.cpu_milli), limit(self.record.memory_mib))
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

impl ClaimView {
    /// Namespace and name.
    pub fn name(&self) -> &str {
        &self.record.name
    }
}

impl SliceView {
    /// The node that it is about; empty for none alone.
    pub fn node(&self) -> &str {
        &self.record.node
    }
}

impl TopologyKeys {
    /// The first preset that any of these nodes has a label of.
    pub fn of_nodes<'a>(nodes: impl Iterator<Item = &'a NodeView> + Clone) -> Self {
        Self::first_preset(|key| nodes.clone().any(|node| !node.record.label(key).is_empty()))
    }

    /// Those that any of these nodes has.
    #[must_use]
    pub fn used_by<'a>(self, nodes: impl Iterator<Item = &'a NodeView> + Clone) -> Self {
        self.in_use(|key| nodes.clone().any(|node| !node.record.label(key).is_empty())).0
    }

    /// The bond between the pods of a gang that must share the value of this label; `None` if it is neither a domain nor a
    /// rack here.
    pub fn within(&self, key: &str) -> Option<Within> {
        self.level(key).map(|is_domain| if is_domain { Within::Domain } else { Within::Rack })
    }
}

impl NodeView {
    /// Which it has of the labels that say where a node is, those that the user gave or those of all presets, as a mask.
    pub fn topology_labels(&self, given: Option<&TopologyKeys>) -> u64 {
        TopologyKeys::mask(given, |key| !self.record.label(key).is_empty())
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
            gpus: 2,
            movable: true,
            gang: Some("s/j".into()),
            gang_size: Some(4),
            ..PodView::default()
        };
        assert_eq!(pod, expected);
        let claim = r#"{"metadata":{"name":"c","namespace":"s"},"status":{"allocation":{"devices":{"results":[]}}}}"#;
        assert_eq!(read_claim_view("claim", claim.as_bytes()).unwrap().name(), "s/c");
        let error = read_pod_view("Pod", br#"{"spec":{"containers":{}}}"#).unwrap_err().to_string();
        assert!(error.contains("spec.containers"), "{error}");
    }
    /// Each kind of PodGroup says in its own words how large it is.
    #[test]
    fn groups_of_pods_are_read_whosever_they_are() {
        let of = |spec: &str| {
            let json = format!(r#"{{"metadata":{{"name":"g","namespace":"s"}},"spec":{spec}}}"#);
            let view = read_pod_group_view("group", json.as_bytes()).unwrap();
            assert_eq!(view.name, "s/g");
            (view.size, view.together)
        };
        // Of coscheduling, of Volcano, of Kubernetes.
        assert_eq!(of(r#"{"minMember":4,"scheduleTimeoutSeconds":60}"#), (Some(4), None));
        let volcano = r#"{"minMember":3,"queue":"default","networkTopology":{"mode":"hard","highestTierAllowed":2}}"#;
        assert_eq!(of(volcano), (Some(3), None));
        let gang = r#"{"schedulingPolicy":{"gang":{"minCount":8}},
            "schedulingConstraints":{"topology":[{"key":"cloud.provider.com/topology-rack"}]}}"#;
        assert_eq!(of(gang), (Some(8), Some("cloud.provider.com/topology-rack".to_owned())));
        assert_eq!(of(r#"{"schedulingPolicy":{"basic":{}},"minMember":-1}"#), (None, None));
    }
}
