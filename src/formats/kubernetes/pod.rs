//! What a pod asks for, where it is, and what keeps it there.

use std::collections::BTreeSet;

use super::device::Devices;
use super::gang::Gang;
use super::object::{Container, Metadata, Owner, Spec, Status, Term, Texts, Toleration};
use super::quantity;
use super::resource::{Resource, resource};

/// A pod, without what nobody asks for.
#[derive(Debug, Default)]
pub(super) struct PodRecord {
    /// Namespace and name.
    pub(super) name: String,
    /// Where it is; empty while it waits.
    pub(super) node: String,
    /// It has ended, and holds nothing.
    pub(super) ended: bool,
    pub(super) ends: bool,
    pub(super) request: Request,
    pub(super) gang: Option<Gang>,
    pub(super) devices: Devices,
    /// Nothing else may take its place elsewhere.
    pub(super) pinned: bool,
    pub(super) gated: bool,
    /// The claims that it has devices by: namespace and name.
    pub(super) claims: Vec<String>,
    /// By which budgets find it, where it may be moved.
    pub(super) labels: Texts,
    /// It asks for devices by a claim that does not stand for a request.
    pub(super) asks_by_claim: bool,
    /// It shares a device by an annotation, which its request does not count.
    pub(super) fraction: bool,
    /// It holds a device for pods that share it.
    pub(super) reserves: bool,
    /// It has wishes about other pods.
    pub(super) near_or_far: bool,
    pub(super) priority: i64,
    /// When it was made, as text that sorts by time.
    pub(super) created: String,
    pub(super) selector: Texts,
    pub(super) terms: Vec<Term>,
    pub(super) tolerations: Vec<Toleration>,
    /// The label whose value all pods of its gang must share.
    pub(super) together: Option<String>,
}

/// What a pod asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Request {
    /// Whole GPUs.
    pub(super) gpus: u64,
    /// Slices and shares of GPUs, in whatever unit.
    pub(super) parts: u64,
    pub(super) cpu_milli: u64,
    pub(super) memory_mib: u64,
}

impl PodRecord {
    /// From the object.
    ///
    /// # Errors
    /// If a quantity is none.
    pub(super) fn new(metadata: Metadata, spec: Spec, status: &Status) -> Result<Self, String> {
        let name = format!("{}/{}", namespace(&metadata), metadata.name);
        let request = request(&spec).map_err(|wrong| format!("pod {name}: {wrong}"))?;
        let annotation = |key: &str| metadata.annotations.get(key).map(|text| text.0.as_str());
        let gang = Gang::of(&metadata, &spec.scheduling_group.pod_group_name);
        let made_by = |kind: &str| metadata.owner_references.iter().any(|owner: &Owner| owner.kind == kind);
        let reserves = matches!(metadata.namespace.as_str(), "kai-resource-reservation" | "runai-reservation");
        let affinity = &spec.affinity;
        let near_or_far = [&affinity.pod_affinity, &affinity.pod_anti_affinity]
            .iter()
            .any(|wish| !wish.required_during_scheduling_ignored_during_execution.is_empty())
            || !spec.topology_spread_constraints.is_empty();
        let mut pod = Self {
            // Whatever nothing would make again, or is about to end, is not moved.
            pinned: metadata.owner_references.is_empty()
                || !metadata.deletion_timestamp.0.is_empty()
                || made_by("DaemonSet")
                || made_by("Node")
                || reserves
                || annotation("cluster-autoscaler.kubernetes.io/safe-to-evict") == Some("false"),
            devices: Devices::of(request.gpus, &metadata.annotations, &spec.containers, status),
            fraction: ["gpu-fraction", "gpu-memory"].iter().any(|&key| annotation(key).is_some()),
            together: ["kueue.x-k8s.io/podset-required-topology", "kai.scheduler/topology-required-placement"]
                .iter()
                .find_map(|&key| annotation(key))
                .map(str::to_owned),
            ended: matches!(status.phase.as_str(), "Succeeded" | "Failed"),
            ends: !metadata.deletion_timestamp.0.is_empty(),
            gated: !spec.scheduling_gates.is_empty(),
            asks_by_claim: !spec.resource_claims.is_empty(),
            claims: claims(&metadata, &spec, status),
            labels: metadata.labels,
            priority: spec.priority,
            node: spec.node_name,
            created: metadata.creation_timestamp.0,
            selector: spec.node_selector,
            terms: spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms,
            tolerations: spec.tolerations,
            name,
            request,
            gang,
            reserves,
            near_or_far,
        };
        if pod.request.gpus == 0 && pod.claims.is_empty() && (pod.gang.is_none() || pod.node.is_empty()) {
            // Most pods are of this kind, and nobody asks where they might go. Others may launch pods that have GPUs.
            (pod.selector, pod.terms, pod.tolerations, pod.labels) = Default::default();
        }
        // Every pod has these of itself; they say nothing.
        pod.tolerations.retain(|toleration| !toleration.key.starts_with("node.kubernetes.io/"));
        Ok(pod)
    }
}

/// The namespace of an object; that of nobody is `default`.
pub(super) fn namespace(metadata: &Metadata) -> &str {
    if metadata.namespace.is_empty() { "default" } else { &metadata.namespace }
}

/// The claims that a pod has devices by, each once.
fn claims(metadata: &Metadata, spec: &Spec, status: &Status) -> Vec<String> {
    let named = spec.resource_claims.iter().chain(&status.resource_claim_statuses);
    let named = named.chain([&status.extended_resource_claim_status]).map(|claim| &claim.resource_claim_name);
    let names: BTreeSet<&String> = named.filter(|name| !name.is_empty()).collect();
    names.into_iter().map(|name| format!("{}/{name}", namespace(metadata))).collect()
}

/// What a pod asks for at its most: all containers and sidecars together, or an init container with the sidecars that
/// were started before it; and the overhead.
fn request(spec: &Spec) -> Result<Request, String> {
    let mut all = Request::default();
    for container in &spec.containers {
        all.add(&of_container(container)?);
    }
    let (mut sidecars, mut most) = (Request::default(), Request::default());
    for container in &spec.init_containers {
        let own = of_container(container)?;
        if container.restart_policy == "Always" {
            sidecars.add(&own);
            most.raise(&sidecars);
        } else {
            let mut together = sidecars;
            together.add(&own);
            most.raise(&together);
        }
    }
    all.add(&sidecars);
    all.raise(&most);
    all.add(&of_texts(&[&spec.overhead])?);
    Ok(all)
}

/// Limits stand in for requests that are not there, as the API server would have it.
fn of_container(container: &Container) -> Result<Request, String> {
    of_texts(&[&container.resources.requests, &container.resources.limits])
}

/// The first of these that has a resource counts.
fn of_texts(lists: &[&Texts]) -> Result<Request, String> {
    let mut request = Request::default();
    for (at, list) in lists.iter().enumerate() {
        for (key, value) in *list {
            if lists[..at].iter().any(|before| before.contains_key(key)) {
                continue;
            }
            let bad = |expected: &str| format!("found {:?} of {key}, expected {expected}", value.0);
            let sum = match (resource(key), key.as_str()) {
                (Resource::Gpu, _) => {
                    let gpus = quantity::whole(&value.0).ok_or_else(|| bad("a whole number"))?;
                    request.gpus = request.gpus.saturating_add(gpus);
                    continue;
                }
                (Resource::Slice | Resource::Share, _) => {
                    let parts = quantity::milli(&value.0).ok_or_else(|| bad("a quantity"))?;
                    request.parts = request.parts.saturating_add(parts);
                    continue;
                }
                (Resource::Other, "cpu") => (&mut request.cpu_milli, quantity::milli(&value.0)),
                (Resource::Other, "memory") => (&mut request.memory_mib, quantity::mebibytes(&value.0)),
                (Resource::Other, _) => continue,
            };
            *sum.0 = sum.0.saturating_add(sum.1.ok_or_else(|| bad("a quantity"))?);
        }
    }
    Ok(request)
}

impl Request {
    pub(super) fn add(&mut self, other: &Self) {
        self.each(other, u64::saturating_add);
    }

    fn raise(&mut self, other: &Self) {
        self.each(other, u64::max);
    }

    fn each(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.gpus = with(self.gpus, other.gpus);
        self.parts = with(self.parts, other.parts);
        self.cpu_milli = with(self.cpu_milli, other.cpu_milli);
        self.memory_mib = with(self.memory_mib, other.memory_mib);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn init_containers_and_sidecars_count_as_the_kubelet_counts_them() {
        let of = |text: &str| {
            let spec: Spec = serde_json::from_str(text).unwrap();
            request(&spec).map(|request| (request.gpus, request.cpu_milli, request.memory_mib))
        };
        let container = |gpus: u64, cpu: u64, more: &str| {
            format!(
                r#"{{"resources":{{"requests":{{"cpu":"{cpu}m"}},"limits":{{"nvidia.com/gpu":{gpus},"cpu":9}}}}{more}}}"#
            )
        };
        let sidecar = r#","restartPolicy":"Always""#;
        let spec = |init: &[String], app: &[String], overhead: &str| {
            let (init, app) = (init.join(","), app.join(","));
            format!(r#"{{"initContainers":[{init}],"containers":[{app}],"overhead":{{{overhead}}}}}"#)
        };
        let app = [container(2, 500, ""), container(1, 100, "")];
        assert_eq!(of(&spec(&[], &app, "")).unwrap(), (3, 600, 0));
        // An init container that needs more than all that comes after it.
        assert_eq!(of(&spec(&[container(8, 50, "")], &app, "")).unwrap(), (8, 600, 0));
        // A sidecar stays; an init container after it runs beside it, one before it does not.
        let after = [container(1, 100, sidecar), container(3, 900, "")];
        assert_eq!(of(&spec(&after, &app, "")).unwrap(), (4, 1000, 0));
        let before = [container(3, 900, ""), container(1, 100, sidecar)];
        assert_eq!(of(&spec(&before, &app, "")).unwrap(), (4, 900, 0));
        assert_eq!(of(&spec(&[], &app, r#""cpu":"0.25","memory":"1Gi""#)).unwrap(), (3, 850, 1024));
        let error = of(r#"{"containers":[{"resources":{"requests":{"nvidia.com/gpu":"500m"}}}]}"#).unwrap_err();
        assert_eq!(error, "found \"500m\" of nvidia.com/gpu, expected a whole number");
    }
}
