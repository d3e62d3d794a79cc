//! What a node says of itself.

use super::object::{Metadata, Spec, Status, Taint, Texts};
use super::quantity;
use super::resource::{Resource, resource};

/// A node, without what nobody asks for.
#[derive(Debug, Default)]
pub(super) struct NodeRecord {
    pub(super) name: String,
    /// Whole GPUs that can be given out, and all that there are.
    pub(super) gpus: u64,
    pub(super) devices: u64,
    /// Something here is a part of a GPU.
    pub(super) slices: bool,
    pub(super) cpu_milli: Option<u64>,
    pub(super) memory_mib: Option<u64>,
    pub(super) cordoned: bool,
    /// False only where the node says so.
    pub(super) ready: bool,
    pub(super) taints: Vec<Taint>,
    pub(super) labels: Texts,
    /// What HAMi says of its devices.
    pub(super) hami: Option<String>,
}

impl NodeRecord {
    /// From the object.
    ///
    /// # Errors
    /// If a quantity is none.
    pub(super) fn new(metadata: Metadata, spec: Spec, status: &Status) -> Result<Self, String> {
        let name = metadata.name;
        let bad = |what: &str, text: &str, expected: &str| {
            format!("node {name}: found {text:?} of {what}, expected {expected}")
        };
        let (mut gpus, mut devices, mut slices) = (0_u64, 0_u64, false);
        for (texts, sum) in [(&status.allocatable, &mut gpus), (&status.capacity, &mut devices)] {
            for (key, value) in texts {
                match resource(key) {
                    Resource::Gpu => {
                        let count = quantity::whole(&value.0);
                        let count = count.ok_or_else(|| bad(key, &value.0, "a whole number"))?;
                        *sum = sum.saturating_add(count);
                    }
                    Resource::Slice | Resource::Share => slices |= quantity::milli(&value.0) != Some(0),
                    Resource::Other => {}
                }
            }
        }
        let amount = |key: &str, read: fn(&str) -> Option<u64>| {
            let Some(text) = status.allocatable.get(key) else { return Ok(None) };
            read(&text.0).map(Some).ok_or_else(|| bad(key, &text.0, "a quantity"))
        };
        let (cpu_milli, memory_mib) = (amount("cpu", quantity::milli)?, amount("memory", memory_down)?);
        let ready = status.conditions.iter().find(|condition| condition.r#type == "Ready");
        Ok(Self {
            gpus,
            devices: devices.max(gpus),
            slices,
            cpu_milli,
            memory_mib,
            cordoned: spec.unschedulable,
            ready: ready.is_none_or(|ready| ready.status.0 == "True"),
            taints: spec.taints,
            hami: metadata.annotations.get("hami.io/node-nvidia-register").map(|text| text.0.clone()),
            labels: metadata.labels,
            name,
        })
    }

    /// The value of a label; empty where there is none.
    pub(super) fn label(&self, key: &str) -> &str {
        self.labels.get(key).map_or("", |value| value.0.as_str())
    }

    /// Why what it counts as GPUs are none, if they are not.
    pub(super) fn not_whole(&self) -> Option<&'static str> {
        let product = self.label("nvidia.com/gpu.product");
        let replicas = self.label("nvidia.com/gpu.replicas").parse::<u64>().unwrap_or(1);
        if product.contains("-MIG-") || self.label("nvidia.com/mig.strategy") == "single" && product.contains("MIG") {
            Some("nodes whose GPUs are cut in slices (MIG), left out")
        } else if replicas > 1 || product.ends_with("-SHARED") {
            Some("nodes whose GPUs are time-sliced, left out")
        } else if self.hami.as_deref().is_some_and(super::device::hami_shares) {
            Some("nodes whose GPUs HAMi shares out, left out")
        } else if self.devices == 0 && self.slices {
            Some("nodes with parts of GPUs alone (MIG, shares), left out")
        } else {
            None
        }
    }
}

/// Bytes as MiB, rounded down: a part of one is no use.
fn memory_down(text: &str) -> Option<u64> {
    quantity::milli(text).map(|milli| milli / (1000 << 20))
}
