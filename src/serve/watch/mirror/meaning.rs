//! What objects mean to the cluster.

use std::sync::Arc;

use super::objects::Objects;
use crate::cluster::MAX_GPUS;
use crate::formats::{GangSpec, Holding, NodeView, PodView, SeatSpec, StartSpec, TopologyKeys, WaitSpec, WithinSpec};

/// What of a node no edit can change. Nodes without whole GPUs, or with more than 16, have none and do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) devices: u8,
    /// How many of them can be given out.
    pub(super) working: u8,
    pub(super) product: Option<String>,
    pub(super) domain: Option<String>,
    pub(super) rack: Option<String>,
    pub(super) cpu_milli: Option<u32>,
    pub(super) memory_mib: Option<u32>,
    /// Which labels say where nodes are is found by what nodes have.
    labels: u64,
}

impl Shape {
    /// With the labels that are in use, and those that the user gave.
    pub(super) fn of(node: &NodeView, keys: &TopologyKeys, given: Option<&TopologyKeys>) -> Option<Self> {
        let (devices, working) = node.gpus()?;
        let ((domain, rack), (cpu_milli, memory_mib)) = (node.place(keys), node.amounts());
        let (product, labels) = (node.product().map(str::to_owned), node.topology_labels(given));
        Some(Self { devices, working, product, domain, rack, cpu_milli, memory_mib, labels })
    }
}

/// What a pod holds, or all pods of a node that hold no whole GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Runs {
    pub(super) holding: Holding,
    movable: bool,
    pub(super) gang: Option<Arc<str>>,
}

impl Runs {
    pub(super) fn edit(&self, name: &str, node: &str) -> StartSpec {
        let Holding { gpus, devices, cpu_milli, memory_mib } = self.holding;
        let gpus_of = |mask| crate::cluster::gpu_indices(mask).map(u64::from).collect();
        StartSpec {
            job: name.to_owned(),
            gpus_per_instance: gpus,
            cpu_milli,
            memory_mib,
            migratable: self.movable,
            gang: self.gang.as_deref().map(str::to_owned),
            instances: vec![SeatSpec { node: node.to_owned(), gpus: devices.map(gpus_of) }],
            ..StartSpec::default()
        }
    }
}

/// A job that stands for all pods of a node that hold no whole GPUs: what they leave free matters, not who they are. A pod
/// has a `/` in its name.
fn rest_of(node: &str) -> Arc<str> {
    format!("{node} (pods without GPUs)").into()
}

/// What runs on a node, by name.
pub(super) fn runs_on(objects: &Objects, name: &str) -> Vec<(Arc<str>, Runs)> {
    let Some(node) = objects.node(name) else { return Vec::new() };
    let (names, pods): (Vec<&Arc<str>>, Vec<_>) =
        objects.pods_on(name).into_iter().map(|(name, pod, claims)| (name, (pod, claims))).unzip();
    let held = crate::formats::holdings(node, &pods);
    let with_gpus = names.into_iter().zip(&pods).zip(held.pods);
    let mut runs: Vec<(Arc<str>, Runs)> = with_gpus
        .filter_map(|((name, (pod, _)), holding)| {
            let gang = pod.gang.as_deref().map(Into::into);
            Some((Arc::clone(name), Runs { holding: holding?, movable: pod.movable, gang }))
        })
        .collect();
    if held.rest != Holding::default() {
        runs.push((rest_of(name), Runs { holding: held.rest, movable: false, gang: None }));
    }
    runs
}

/// What a pod waits for; nothing if it has a place, something else has to happen first, or it wants no whole GPUs.
pub(super) fn waits(pod: &PodView) -> Option<WaitSpec> {
    let gpus = u8::try_from(pod.gpus).ok().filter(|gpus| (1..=MAX_GPUS as u8).contains(gpus));
    let gpus = gpus.filter(|_| !pod.parts && !pod.by_claim)?;
    let waits = pod.node.is_empty() && !pod.gated && !pod.ends && !pod.ended;
    let &PodView { cpu_milli, memory_mib, .. } = pod;
    waits.then(|| WaitSpec {
        job: pod.name.clone(),
        gpus,
        cpu_milli,
        memory_mib,
        gang: pod.gang.clone(),
        gang_size: None,
    })
}

/// What there is to say of a gang of which `told` pods are known in the cluster. Others, such as a launcher without GPUs,
/// are there and count, but are not the cluster's: so many fewer are needed of those that are.
pub(super) fn gang(objects: &Objects, keys: &TopologyKeys, name: &str, told: u32) -> Option<GangSpec> {
    let (size, together) = objects.stated(name);
    let present = objects.gang(name).map_or(0, |gang| gang.present);
    let size = size.map(|size| size.saturating_sub(present.saturating_sub(told)).max(1));
    let within = together.and_then(|key| keys.within(key)).map(WithinSpec::from);
    (size.is_some() || within.is_some()).then(|| GangSpec { gang: name.to_owned(), size, within })
}
