//! Dynamic resource allocation: devices that pods have by claims, and that nodes offer in slices.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::dump::Tally;
use super::device::Devices;
use super::listing::Listing;
use super::object::{Metadata, Spec, Status};
use super::pod::namespace;

/// A claim and the whole GPUs that were allocated to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ClaimRecord {
    /// Namespace and name.
    pub(super) name: String,
    minors: Vec<String>,
    /// It has something of a GPU that is no whole one.
    parts: bool,
}

/// The whole GPUs that a driver offers on a node.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SliceRecord {
    pub(super) node: String,
    pool: String,
    generation: u64,
    gpus: u64,
}

/// What only administrators of GPUs look at takes no device; other drivers are none of GPUs.
fn is_gpu(driver: &str) -> bool {
    driver.starts_with("gpu.")
}

/// The minor number in the name of a whole GPU, `gpu-3`.
fn minor(device: &str) -> Option<&str> {
    device.strip_prefix("gpu-").filter(|minor| minor.bytes().all(|byte| byte.is_ascii_digit()))
}

impl ClaimRecord {
    /// From the object.
    pub(super) fn new(metadata: &Metadata, status: Status) -> Self {
        let mut claim = Self { name: format!("{}/{}", namespace(metadata), metadata.name), ..Self::default() };
        for result in status.allocation.devices.results {
            if is_gpu(&result.driver) && !result.admin_access {
                match minor(&result.device) {
                    Some(minor) => claim.minors.push(minor.to_owned()),
                    None => claim.parts = true,
                }
            }
        }
        claim
    }
}

impl SliceRecord {
    /// From the object.
    pub(super) fn new(spec: Spec) -> Self {
        let whole = spec.devices.0.iter().filter(|device| minor(&device.name).is_some()).count();
        Self {
            gpus: if is_gpu(&spec.driver) { whole as u64 } else { 0 },
            node: spec.node_name,
            generation: spec.pool.generation.0.parse().unwrap_or(0),
            pool: spec.pool.name,
        }
    }
}

/// The whole GPUs that slices offer, by node.
pub(super) fn offered<'a>(slices: impl Iterator<Item = &'a SliceRecord>) -> FxHashMap<&'a str, u64> {
    let mut newest: FxHashMap<(&str, &str), (u64, u64)> = FxHashMap::default();
    for slice in slices {
        let (generation, gpus) = newest.entry((&slice.node, &slice.pool)).or_default();
        // Slices of an older generation are about to go.
        match slice.generation.cmp(generation) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => *gpus = gpus.saturating_add(slice.gpus),
            std::cmp::Ordering::Greater => (*generation, *gpus) = (slice.generation, slice.gpus),
        }
    }
    let mut offered: FxHashMap<&str, u64> = FxHashMap::default();
    for ((node, _), (_, gpus)) in newest {
        *offered.entry(node).or_default() += gpus;
    }
    offered
}

/// The whole GPUs and the devices of a pod that asks for `gpus` of them, of which something else may say that they are
/// `devices`, and that has devices of these minor numbers by claims.
fn with_claimed(gpus: &mut u64, devices: &mut Devices, minors: &[&str]) {
    // A claim that stands for the request of a resource is counted there.
    if *gpus == 0 {
        *gpus = minors.len() as u64;
    }
    let claimed = Devices::minors(minors);
    if claimed.count() == *gpus && *devices == Devices::Unknown {
        *devices = claimed;
    }
}

/// The same of a pod that holds these claims, which no other pod holds before it.
pub(super) fn with_claims<'a>(gpus: &mut u64, devices: &mut Devices, claims: impl Iterator<Item = &'a ClaimRecord>) {
    let minors: Vec<&str> = claims.flat_map(|claim| claim.minors.iter().map(String::as_str)).collect();
    with_claimed(gpus, devices, &minors);
}

/// Adds what claims and slices say to the pods and the nodes.
pub(super) fn resolve(listing: &mut Listing, tally: &mut Tally) {
    let offered = offered(listing.slices.iter());
    for node in listing.nodes.iter_mut().filter(|node| node.devices == 0) {
        let gpus = offered.get(node.name.as_str()).copied().unwrap_or(0);
        (node.gpus, node.devices) = (gpus, gpus);
    }
    let claims: FxHashMap<&str, &ClaimRecord> =
        listing.claims.iter().map(|claim| (claim.name.as_str(), claim)).collect();
    let mut taken: FxHashSet<&str> = FxHashSet::default();
    for pod in listing.pods.iter_mut().filter(|pod| !pod.claims.is_empty() && !pod.node.is_empty() && !pod.ended) {
        let mut minors: Vec<&str> = Vec::new();
        for name in &pod.claims {
            match claims.get_key_value(name.as_str()) {
                None => {
                    tally.met("running pods with claims that no list has, whose devices are not counted", &pod.name)
                }
                Some((&name, claim)) if taken.insert(name) => {
                    minors.extend(claim.minors.iter().map(String::as_str));
                    if claim.parts {
                        tally.met("running pods with parts of GPUs by claims, which are not counted", &pod.name);
                    }
                }
                Some(_) => {
                    tally.met("running pods that share the claim of another pod, which holds its devices", &pod.name)
                }
            }
        }
        with_claimed(&mut pod.request.gpus, &mut pod.devices, &minors);
    }
}
