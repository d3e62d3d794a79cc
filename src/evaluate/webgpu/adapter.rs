//! Which devices there are, and which is taken.

use super::limits::{Limits, absent};
use crate::evaluate::backend::EvalError;

/// Which adapters may be taken. Of several, a discrete GPU goes before an integrated one, that before a virtual one,
/// and a processor that stands in for a GPU comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdapterChoice {
    /// Only what is no processor: such a one is slower than the backend for processors.
    Hardware,
    /// Any.
    Any,
    /// Only a processor: for tests.
    Software,
}

/// An adapter, for `devices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// What the device is called.
    pub name: String,
    /// The interface it is reached through: `vulkan`, `metal` or `dx12`.
    pub api: &'static str,
    /// What it is: a discrete, integrated or virtual GPU, a processor, or something else.
    pub kind: &'static str,
    /// The driver and its version, in its own words.
    pub driver: String,
    /// Whether a processor stands in for a GPU.
    pub software: bool,
    /// Why it cannot be used, if so.
    pub refused: Option<EvalError>,
}

/// Every adapter of this machine, best first.
pub fn adapters() -> Vec<Adapter> {
    let described = |adapter: wgpu::Adapter| {
        let info = adapter.get_info();
        Adapter {
            api: info.backend.to_str(),
            kind: kind(info.device_type),
            driver: [info.driver, info.driver_info].join(" ").trim().to_owned(),
            software: is_software(info.device_type),
            refused: Limits::default().within(&adapter.limits()).err(),
            name: info.name,
        }
    };
    enumerate().into_iter().map(described).collect()
}

/// An adapter that has been opened.
pub(super) struct Opened {
    pub(super) name: String,
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) limits: Limits,
}

/// Opens the best adapter of those that may be taken and can be opened.
///
/// # Errors
/// `Absent` if there is none, `Unusable` if none of those that are there opens: why each one is not taken.
pub(super) fn open(choice: AdapterChoice, limits: &Limits) -> Result<Opened, EvalError> {
    let mut reasons = Vec::new();
    let mut is_there = false;
    for adapter in enumerate() {
        let info = adapter.get_info();
        let taken = match choice {
            AdapterChoice::Hardware => !is_software(info.device_type),
            AdapterChoice::Any => true,
            AdapterChoice::Software => is_software(info.device_type),
        };
        is_there |= taken;
        let opened = if taken { open_one(&adapter, &info.name, limits) } else { Err(not_taken(choice).to_owned()) };
        match opened {
            Ok(opened) => return Ok(opened),
            Err(why) => reasons.push(format!("{}: {why}", info.name)),
        }
    }
    let why = if reasons.is_empty() { "no adapter was found".to_owned() } else { reasons.join("; ") };
    Err(if is_there { EvalError::Unusable { backend: super::NAME, why } } else { absent(why) })
}

const fn not_taken(choice: AdapterChoice) -> &'static str {
    match choice {
        AdapterChoice::Hardware => "a processor in place of a GPU, which is taken only when asked for",
        AdapterChoice::Any | AdapterChoice::Software => "a GPU, where a processor was asked for",
    }
}

fn open_one(adapter: &wgpu::Adapter, name: &str, limits: &Limits) -> Result<Opened, String> {
    let found = adapter.limits();
    let limits = limits.within(&found).map_err(|error| match error {
        EvalError::Absent { why, .. } => why,
        other => other.to_string(),
    })?;
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("slotwise"),
        required_features: wgpu::Features::empty(),
        required_limits: limits.required(&found),
        ..Default::default()
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).map_err(|error| error.to_string())?;
    Ok(Opened { name: name.to_owned(), device, queue, limits })
}

/// All adapters, best first.
fn enumerate() -> Vec<wgpu::Adapter> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        // The layers that check drivers are for those who write them.
        flags: wgpu::InstanceFlags::empty(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
    adapters.sort_by_key(|adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    });
    adapters
}

fn is_software(kind: wgpu::DeviceType) -> bool {
    kind == wgpu::DeviceType::Cpu
}

const fn kind(kind: wgpu::DeviceType) -> &'static str {
    match kind {
        wgpu::DeviceType::DiscreteGpu => "discrete GPU",
        wgpu::DeviceType::IntegratedGpu => "integrated GPU",
        wgpu::DeviceType::VirtualGpu => "virtual GPU",
        wgpu::DeviceType::Cpu => "processor",
        wgpu::DeviceType::Other => "other",
    }
}
