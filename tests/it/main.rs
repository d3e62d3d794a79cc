//! The integration tests, one program for all of them.
#![expect(clippy::print_stdout, reason = "tests say what they skipped and how much they covered")]

mod cli;
#[cfg(target_os = "linux")]
mod cuda_build;
#[cfg(target_os = "linux")]
mod cuda_device;
#[cfg(target_os = "linux")]
mod cuda_driver;
#[cfg(target_os = "linux")]
mod cuda_inputs;
#[cfg(target_os = "linux")]
mod cuda_kernels;
mod decide;
mod decide_audit;
mod decide_cases;
mod decide_choices;
mod decide_cost;
mod decide_support;
mod decide_windows;
mod evaluate;
mod failover;
mod formats;
mod kubernetes;
mod layers;
mod model_check;
mod operators;
mod pinned;
mod simulate;
mod simulate_laws;
mod slurm;
mod traces;
mod webgpu;
