//! Which backend evaluates: the only file that names the concrete ones.
//!
//! `auto` is CUDA, else a GPU through WebGPU, else the processor. An adapter that is software is slower than the
//! processor's own backend, so only `--backend wgpu` takes it.

use super::backend::{Backend, DeviceInfo, EvalError};
use super::cpu::Cpu;
use super::crossover::Crossover;
use super::cuda::{self, Cuda};
use super::failover::{Failover, Warn};
use super::webgpu::{self, Adapter, AdapterChoice, WebGpu};

/// What is wanted of `--backend`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The best that is there.
    #[default]
    Auto,
    /// This machine's processor.
    Cpu,
    /// An adapter through WebGPU.
    Wgpu,
    /// A GPU through CUDA.
    Cuda,
}

impl Choice {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Cpu, Self::Wgpu, Self::Cuda];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Wgpu => "wgpu",
            Self::Cuda => "cuda",
        }
    }

    /// The crossover where none is asked for: who names a device wants it to answer, whatever it costs.
    pub const fn usual_crossover(self) -> Crossover {
        match self {
            Self::Auto => Crossover::Measured,
            Self::Cpu | Self::Wgpu | Self::Cuda => Crossover::At(0),
        }
    }

    /// The devices of this choice, the best first; what stands behind the first is for when that fails. The processor
    /// comes after all of them.
    pub fn devices(self) -> Vec<Opener> {
        match self {
            Self::Auto | Self::Cuda => vec![cuda(), wgpu(AdapterChoice::Hardware)],
            Self::Wgpu => vec![wgpu(AdapterChoice::Any)],
            Self::Cpu => Vec::new(),
        }
    }
}

/// A backend that can be opened, once.
pub struct Opener {
    backend: &'static str,
    open: Box<dyn FnOnce() -> Result<Box<dyn Backend>, EvalError> + Send>,
}

impl Opener {
    /// The backend of this name, as in `--backend`.
    pub fn new(
        backend: &'static str,
        open: impl FnOnce() -> Result<Box<dyn Backend>, EvalError> + Send + 'static,
    ) -> Self {
        Self { backend, open: Box::new(open) }
    }

    /// The name of the backend.
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// Opens it.
    ///
    /// # Errors
    /// `Absent` if there is no such device here; anything else if there is one and it failed.
    pub fn open(self) -> Result<Box<dyn Backend>, EvalError> {
        (self.open)()
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").field("backend", &self.backend).finish_non_exhaustive()
    }
}

fn cuda() -> Opener {
    Opener::new(Choice::Cuda.name(), || Ok(Box::new(Cuda::open()?)))
}

fn wgpu(adapters: AdapterChoice) -> Opener {
    Opener::new(Choice::Wgpu.name(), move || Ok(Box::new(WebGpu::open(adapters)?)))
}

/// Opens a backend that answers for itself: if its device fails, its calls do. `threads` is for the processor: 0 is one
/// a core.
///
/// # Errors
/// If the wanted one is not there; `Auto` passes over what is not there or does not open, and always finds one.
pub fn open(choice: Choice, threads: usize) -> Result<Box<dyn Backend>, EvalError> {
    let mut devices = choice.devices().into_iter();
    let opened = match choice {
        Choice::Auto => devices.find_map(|device| device.open().ok()),
        Choice::Cpu | Choice::Wgpu | Choice::Cuda => devices.next().map(Opener::open).transpose()?,
    };
    match opened {
        Some(backend) => Ok(backend),
        None => Ok(Box::new(Cpu::new(threads)?)),
    }
}

/// Opens a backend that goes on elsewhere if a device fails, and says so to `warn`. A device that `choice` names is
/// opened now; under `Auto` none is before there is work enough for it.
///
/// # Errors
/// If the device that is named is not there, or no threads can be started.
pub fn open_safely(choice: Choice, threads: usize, crossover: Crossover, warn: Warn) -> Result<Failover, EvalError> {
    let mut failover = Failover::new(Cpu::new(threads)?, choice.devices(), crossover, warn);
    if !matches!(choice, Choice::Auto | Choice::Cpu) {
        failover.open_first()?;
    }
    Ok(failover)
}

/// Every backend and adapter, and which of them `auto` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    /// All of them, in the order in which `auto` looks at them.
    pub all: Vec<DeviceInfo>,
    /// The place in `all` of the one that `auto` takes.
    pub auto: usize,
    /// Why that one, in words.
    pub why_auto: String,
}

impl Devices {
    /// The one that `auto` takes.
    pub fn chosen(&self) -> Option<&DeviceInfo> {
        self.all.get(self.auto)
    }

    /// What `auto` makes of these; the processor is the last.
    fn of(all: Vec<DeviceInfo>) -> Self {
        let takes = |device: &DeviceInfo| device.usable && !device.software;
        let auto = all.iter().position(takes).unwrap_or(all.len().saturating_sub(1));
        let why_auto = match all.get(auto).map_or("cpu", |device| device.backend) {
            "cpu" if all.iter().any(|device| device.software && device.usable) => {
                "no GPU can be used here, and the processor is faster than adapters in software"
            }
            "cpu" => "no GPU can be used here",
            "wgpu" => "a GPU, and CUDA cannot be used here",
            _ => "a GPU through CUDA comes first",
        };
        Self { all, auto, why_auto: why_auto.to_owned() }
    }
}

/// Looks at every backend and adapter, and whether it can be used here.
pub fn devices() -> Devices {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu =
        DeviceInfo { backend: "cpu", name: format!("{threads} threads"), usable: true, software: false, why: None };
    Devices::of(cuda::devices().into_iter().chain(adapters()).chain([cpu]).collect())
}

/// The adapters of WebGPU, or one line that says that there is none.
fn adapters() -> Vec<DeviceInfo> {
    let backend = Choice::Wgpu.name();
    let info = |adapter: Adapter| DeviceInfo {
        backend,
        name: format!("{}, {} through {}, {}", adapter.name, adapter.kind, adapter.api, adapter.driver),
        usable: adapter.refused.is_none(),
        software: adapter.software,
        why: adapter.refused.map(|error| match error {
            EvalError::Absent { why, .. } | EvalError::Unusable { why, .. } => why,
            error => error.to_string(),
        }),
    };
    let all: Vec<DeviceInfo> = webgpu::adapters().into_iter().map(info).collect();
    if all.is_empty() {
        let why = Some("no adapter was found".to_owned());
        return vec![DeviceInfo { backend, name: String::new(), usable: false, software: false, why }];
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(backend: &'static str, usable: bool, software: bool) -> DeviceInfo {
        DeviceInfo { backend, name: "some".to_owned(), usable, software, why: (!usable).then(|| "old".to_owned()) }
    }

    #[test]
    fn auto_takes_cuda_then_a_gpu_then_the_processor() {
        let cpu = || device("cpu", true, false);
        let auto = |all: Vec<DeviceInfo>| {
            let found = Devices::of(all);
            (found.auto, found.why_auto)
        };
        let (cuda, gpu, software) =
            (device("cuda", true, false), device("wgpu", true, false), device("wgpu", true, true));
        let broken = device("cuda", false, false);
        assert_eq!(auto(vec![cuda, gpu.clone(), cpu()]).0, 0);
        assert_eq!(auto(vec![broken.clone(), software.clone(), gpu, cpu()]).0, 2);
        let (at, why) = auto(vec![broken.clone(), software, cpu()]);
        assert!(at == 2 && why.contains("software"), "{why}");
        let (at, why) = auto(vec![broken, cpu()]);
        assert!(at == 1 && !why.contains("software"), "{why}");
    }

    #[test]
    fn every_choice_ends_well_or_with_a_reason() {
        for choice in Choice::ALL {
            match open(choice, 1) {
                Ok(backend) => assert!(choice == Choice::Auto || backend.name() == choice.name()),
                Err(error) => assert!(matches!(choice, Choice::Wgpu | Choice::Cuda), "{error}"),
            }
        }
        assert_eq!(open(Choice::Cpu, 2).unwrap().name(), "cpu");
    }

    /// What `devices` says is what `open` does.
    #[test]
    fn auto_takes_what_it_is_said_to_take() {
        let devices = devices();
        assert_eq!(open(Choice::Auto, 1).unwrap().name(), devices.all[devices.auto].backend);
        assert!(devices.all.iter().all(|device| device.usable == device.why.is_none()));
    }
}
