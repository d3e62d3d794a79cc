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
#[cfg(target_os = "linux")]
mod cuda_overlap;
#[cfg(target_os = "linux")]
mod cuda_process;
mod decide;
mod decide_audit;
mod decide_audit_laws;
mod decide_cases;
mod decide_choices;
mod decide_cost;
mod decide_groups;
mod decide_obstacles;
mod decide_regions;
mod decide_support;
mod decide_windows;
mod evaluate;
mod failover;
mod fgd;
mod formats;
mod kubernetes;
mod layers;
mod model_check;
mod operators;
mod pinned;
mod plan;
mod serve;
mod serve_grpc;
mod shares;
mod simulate;
mod simulate_backfill;
mod simulate_laws;
mod simulate_moments;
mod simulate_nodes;
mod simulate_recorder;
mod slurm;
mod spoil;
mod traces;
mod webgpu;
