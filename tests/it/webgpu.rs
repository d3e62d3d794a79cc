//! The wgpu backend, on whatever adapter is here: on a machine without a GPU that is Mesa's driver for processors.

mod cases;
mod failures;
#[cfg(target_os = "linux")]
mod memory;
mod shaders;

use slotwise::evaluate::webgpu::{AdapterChoice, Limits, adapters};
use slotwise::evaluate::{EvalError, WebGpu, conformance};

/// The backend on a processor, or on what there is.
fn open(limits: &Limits) -> WebGpu {
    let opened = WebGpu::open_with(AdapterChoice::Software, limits);
    let opened = opened.or_else(|_| WebGpu::open_with(AdapterChoice::Any, limits));
    opened.unwrap_or_else(|error| panic!("{error}: install `mesa-vulkan-drivers`, which the tests need"))
}

/// Small enough that everything is chunked, large enough for the nodes of the suite.
fn tiny() -> Limits {
    Limits { binding: 400 << 10, buffer: 800 << 10, groups: 3, piece: 1040, scratch: 64 << 10, ..Limits::default() }
}

fn passes_the_suite(limits: &Limits, seed: u64) {
    let mut backend = open(limits);
    let checks = conformance::suite(&mut backend, seed).unwrap();
    for check in &checks {
        assert_eq!(check.mismatch, None, "{check:?}");
    }
    assert!(checks.iter().map(|check| check.values).sum::<usize>() > 10_000);
}

#[test]
fn it_passes_the_suite() {
    passes_the_suite(&Limits::default(), 11);
}

#[test]
fn it_passes_the_suite_in_small_pieces() {
    passes_the_suite(&tiny(), 12);
}

#[test]
fn adapters_are_described_and_processors_not_taken_unasked() {
    let adapters = adapters();
    assert!(!adapters.is_empty(), "no adapter: install `mesa-vulkan-drivers`, which the tests need");
    for adapter in &adapters {
        assert!(!adapter.name.is_empty());
        assert_eq!(adapter.refused, None);
        assert_eq!(adapter.software, adapter.kind == "processor");
    }
    let hardware = WebGpu::open(AdapterChoice::Hardware);
    if adapters.iter().all(|adapter| adapter.software) {
        let Err(error @ EvalError::Absent { .. }) = hardware else { panic!("a processor was taken unasked") };
        assert!(error.to_string().contains(&adapters[0].name), "{error}");
    } else {
        assert!(hardware.is_ok());
    }
}
