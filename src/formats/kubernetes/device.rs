//! Which devices a pod has: by what the kubelet reports in its status, else by what another scheduler wrote on it.
//!
//! Indices, minor numbers and identifiers are three orders of the same devices; they are not mixed on a node.

use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::cluster::{GpuMask, MAX_GPUS};

use super::object::{Container, Status, Texts};

/// The devices of a pod in the words of whoever gave them out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Devices {
    /// Nobody says.
    #[default]
    Unknown,
    /// Their indices.
    Indices(GpuMask),
    /// Their minor numbers.
    Minors(GpuMask),
    /// Their identifiers.
    Names(Vec<String>),
}

impl Devices {
    /// The devices of a pod that has `gpus` of them, from the most trusted source that names as many.
    pub(super) fn of(gpus: u64, annotations: &Texts, containers: &[Container], status: &Status) -> Self {
        let text = |key: &str| annotations.get(key).map(|text| text.0.as_str());
        let indices = |list: &str| mask(list).map(Self::Indices);
        let sources = [
            reported(status),
            text("hami.io/vgpu-devices-allocated").map(|list| Self::Names(hami_allocated(list))),
            text("volcano.sh/gpu-index").and_then(indices),
            text("scheduling.koordinator.sh/device-allocated").and_then(koordinator),
            text("alibabacloud.com/gpu-index").and_then(indices),
            text("hivedscheduler.microsoft.com/pod-leaf-cell-isolation").and_then(indices),
            visible(containers),
        ];
        sources.into_iter().flatten().find(|found| found.count() == gpus).unwrap_or_default()
    }

    /// The devices of these minor numbers.
    pub(super) fn minors(minors: &[&str]) -> Self {
        mask(&minors.join(",")).map_or(Self::Unknown, Self::Minors)
    }

    /// How many are named.
    pub(super) fn count(&self) -> u64 {
        match self {
            Devices::Unknown => 0,
            Devices::Indices(mask) | Devices::Minors(mask) => u64::from(mask.count_ones()),
            Devices::Names(names) => names.len() as u64,
        }
    }
}

/// Numbers between commas or dashes, each once.
fn mask(list: &str) -> Option<GpuMask> {
    let mut mask = 0;
    for number in list.split([',', '-']) {
        let index = number.trim().parse::<usize>().ok().filter(|&index| index < MAX_GPUS)?;
        if mask >> index & 1 == 1 {
            return None;
        }
        mask |= 1 << index;
    }
    Some(mask)
}

/// What the kubelet reports: an index or an identifier, or `DRIVER/POOL/gpu-MINOR` for a claim.
fn reported(status: &Status) -> Option<Devices> {
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    let mut names: Vec<&str> = Vec::new();
    for resource in containers.flat_map(|container| &container.allocated_resources_status) {
        let is_gpu = resource.name.starts_with("claim:")
            || super::resource::resource(&resource.name) == super::resource::Resource::Gpu;
        if is_gpu {
            names.extend(resource.resources.iter().map(|device| device.resource_id.0.as_str()));
        }
    }
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return None;
    }
    let all = names.join(",");
    if let Some(mask) = mask(&all) {
        return Some(Devices::Indices(mask));
    }
    let minors: Option<Vec<&str>> = names.iter().map(|name| name.rsplit('/').next()?.strip_prefix("gpu-")).collect();
    if let Some(mask) = minors.and_then(|minors| mask(&minors.join(","))) {
        return Some(Devices::Minors(mask));
    }
    Some(Devices::Names(names.into_iter().map(str::to_owned).collect()))
}

/// Koordinator's `{"gpu":[{"minor":0,…},…]}`.
fn koordinator(text: &str) -> Option<Devices> {
    #[derive(Deserialize)]
    struct Allocated {
        gpu: Vec<Minor>,
    }
    #[derive(Deserialize)]
    struct Minor {
        minor: u64,
    }
    let allocated: Allocated = serde_json::from_str(text).ok()?;
    let minors: Vec<String> = allocated.gpu.iter().map(|gpu| gpu.minor.to_string()).collect();
    mask(&minors.join(",")).map(Devices::Minors)
}

/// The identifiers in HAMi's list: containers between semicolons, devices between colons, fields between commas.
fn hami_allocated(list: &str) -> Vec<String> {
    let devices = list.split(';').flat_map(|container| container.split(':'));
    let names = devices.filter_map(|device| device.split(',').next()).map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// What a container is told to see, the weakest of all sources: numbers alone count.
fn visible(containers: &[Container]) -> Option<Devices> {
    let variables = containers.iter().flat_map(|container| &container.env);
    let mut lists =
        variables.filter(|variable| variable.name == "NVIDIA_VISIBLE_DEVICES").map(|variable| &variable.value.0);
    let first = lists.next()?;
    lists.all(|list| list == first).then(|| mask(first)).flatten().map(Devices::Indices)
}

/// A device of a node as HAMi registers it.
struct Registered {
    id: String,
    index: usize,
    count: u64,
}

/// The devices that HAMi registered, in its newer or its older form.
fn registered(text: &str) -> Vec<Registered> {
    #[derive(Deserialize)]
    struct Newer {
        id: String,
        // Left out where it is 0.
        #[serde(default)]
        index: usize,
        #[serde(default)]
        count: u64,
    }
    if let Ok(devices) = serde_json::from_str::<Vec<Newer>>(text) {
        return devices.into_iter().map(|Newer { id, index, count }| Registered { id, index, count }).collect();
    }
    let devices = text.split(':').filter(|device| !device.trim().is_empty()).enumerate();
    let older = devices.map(|(at, device)| {
        let fields: Vec<&str> = device.split(',').collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.trim().parse::<u64>().ok());
        let index = number(7).map_or(at, |index| index as usize);
        Registered { id: fields[0].trim().to_owned(), index, count: number(1).unwrap_or(1) }
    });
    older.collect()
}

/// Whether HAMi gives out more than one share of a device.
pub(super) fn hami_shares(text: &str) -> bool {
    registered(text).iter().any(|device| device.count > 1)
}

/// Translates what pods say of the devices of one node.
#[derive(Debug, Default)]
pub(super) struct DeviceMap {
    indices: FxHashMap<String, usize>,
    /// Minor numbers count only where no pod of the node says indices.
    by_minor: bool,
}

impl DeviceMap {
    /// For a node with this register of HAMi, and pods that say this.
    pub(super) fn new<'a>(hami: Option<&str>, pods: impl Iterator<Item = &'a Devices>) -> Self {
        let indices = hami.map(registered).unwrap_or_default().into_iter().map(|device| (device.id, device.index));
        let mut by_minor = true;
        for devices in pods {
            by_minor &= !matches!(devices, Devices::Indices(_) | Devices::Names(_));
        }
        Self { indices: indices.collect(), by_minor }
    }

    /// The devices, if this node can tell.
    pub(super) fn mask(&self, devices: &Devices) -> Option<GpuMask> {
        match devices {
            Devices::Unknown => None,
            Devices::Indices(mask) => Some(*mask),
            Devices::Minors(mask) => Some(*mask).filter(|_| self.by_minor),
            Devices::Names(names) => {
                let indices: Option<Vec<String>> =
                    names.iter().map(|name| Some(self.indices.get(name)?.to_string())).collect();
                mask(&indices?.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_other_schedulers_are_read() {
        assert_eq!(
            [mask("2-3-4"), mask("0,1"), mask("7"), mask("1,1"), mask("16"), mask("")],
            [Some(0b1_1100), Some(3), Some(128), None, None, None]
        );
        assert_eq!(
            hami_allocated("GPU-a,NVIDIA,8192,30:GPU-b,NVIDIA,8192,30:;;GPU-c,NVIDIA,1,1:;"),
            ["GPU-a", "GPU-b", "GPU-c"]
        );
        assert_eq!(koordinator(r#"{"gpu":[{"minor":0,"resources":{}},{"minor":3}]}"#), Some(Devices::Minors(0b1001)));
        assert_eq!(koordinator("{}"), None);
    }

    #[test]
    fn identifiers_become_indices_where_a_register_tells() {
        let newer = r#"[{"id":"GPU-a","count":1,"devmem":81920},{"id":"GPU-b","index":1,"count":1}]"#;
        let older = "GPU-a,1,81920,100,A100,0,true:GPU-b,1,81920,100,A100,0,true:";
        for text in [newer, older] {
            let map = DeviceMap::new(Some(text), std::iter::empty());
            assert_eq!(map.mask(&Devices::Names(vec!["GPU-b".to_owned()])), Some(2), "{text}");
            assert_eq!(map.mask(&Devices::Names(vec!["GPU-c".to_owned()])), None);
            assert!(!hami_shares(text));
        }
        assert!(hami_shares("GPU-a,10,81920,100,A100,0,true:"));
        // A node where one pod says indices and another minors: the minors may mean others.
        let (index, minor) = (Devices::Indices(1), Devices::Minors(2));
        let mixed = DeviceMap::new(None, [&index, &minor].into_iter());
        assert_eq!((mixed.mask(&index), mixed.mask(&minor)), (Some(1), None));
        assert_eq!(DeviceMap::new(None, [&minor].into_iter()).mask(&minor), Some(2));
    }
}
