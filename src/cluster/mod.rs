//! What is: nodes, the devices they hold, and who holds them. Plain integers; no I/O, no clock, no threads.

mod admission;
mod budget;
mod builder;
mod capacity;
mod composition;
mod edit;
mod groups;
mod ids;
mod ledger;
mod names;
mod node;
mod node_set;
mod recount;
mod registry;
mod request;
mod shares;

pub use budget::DisruptionBudget;
pub use builder::{BuildError, ClusterBuilder, JobSpec, NodeSpec, Seat};
pub use capacity::{MAX_GPUS, PerSize, slot_width};
pub use composition::{Composition, N_COMPOSITIONS};
pub use edit::{Edit, EditError};
pub use groups::GroupedJob;
pub use ids::{DomainId, InstanceId, JobId, ModelId, NodeId, PoolId, RackId, RequestId};
pub use ledger::{Cluster, Instance, Job, JobTimes, Pool};
pub use names::{Names, TooManyNames};
pub use node::{GpuMask, Node, gpu_indices, lowest_gpus};
pub use node_set::NodeSet;
pub use registry::JobMark;
pub use request::{MAX_AMOUNT, Request, UNLIMITED, WHOLE_GPU, Within};
