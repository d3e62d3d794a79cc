//! How good is it: candidates in, rows of integers out, the same on every backend.

pub mod abi;
pub mod conformance;
pub mod cuda;
pub mod measure;
pub mod synthetic;
pub mod twin;
pub mod webgpu;

mod backend;
mod batch;
mod candidate;
mod census;
mod choose;
mod cpu;
mod crossover;
mod failover;
mod fgd;
mod kernels;
mod node_rows;
mod phi;
mod query;
mod rank;
mod reason;

pub use backend::{Backend, DeviceInfo, EvalError};
pub use batch::{Batch, BatchRows, MAX_TOUCHES, Scores};
pub use candidate::{BatchBuilder, CandidateSet, DeltaPhi, Move, Place, PoolChange};
pub use census::{Census, PoolCensus};
pub use choose::{Choice, Devices, Opener, devices, open, open_safely};
pub use cpu::Cpu;
pub use crossover::{Crossover, Crossovers};
pub use cuda::Cuda;
pub use failover::{Failover, Warn};
pub use fgd::{FgdQuery, FgdRow};
pub use kernels::Kernel;
pub use node_rows::{MAX_NODES, NodeRows};
pub use phi::PhiChanges;
pub use query::{DemandClass, NodeOrder, NodeQuery};
pub use rank::{RankKey, delta_sif_nodes};
pub use reason::Reason;
pub use webgpu::WebGpu;
