//! What one instance of a job asks for. Equal requests are stored once and share a number, the signature by which
//! everything that depends on the request alone is worked out once.

use super::ids::ModelId;

/// Where all instances of a job must lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Within {
    /// One NVLink domain.
    Domain,
    /// One rack.
    Rack,
}

/// What each instance of a job asks for, and what binds the instances together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// GPUs an instance, 0..=16; 0 is a CPU-only instance.
    pub gpus: u8,
    /// How much of each of its GPUs it asks for, in thousandths: [`WHOLE_GPU`], or less with 1 GPU an instance. What is
    /// left of that GPU may go to other shares.
    pub gpu_milli: u16,
    /// Milli-cores an instance, at most `MAX_AMOUNT`.
    pub cpu_milli: u32,
    /// MiB an instance, at most `MAX_AMOUNT`.
    pub memory_mib: u32,
    /// Allowed GPU models, sorted, without duplicates; `None` allows every node.
    pub models: Option<Box<[ModelId]>>,
    /// All instances in one domain or rack.
    pub within: Option<Within>,
}

impl Default for Request {
    /// A CPU-only instance that asks for nothing.
    fn default() -> Self {
        Self { gpus: 0, gpu_milli: WHOLE_GPU, cpu_milli: 0, memory_mib: 0, models: None, within: None }
    }
}

impl Request {
    /// True if it asks for less than a whole GPU.
    pub fn is_share(&self) -> bool {
        self.gpu_milli < WHOLE_GPU
    }

    /// The GPUs of an instance for people, as in `4`, or `0.250` of a share.
    pub fn gpus_text(&self) -> String {
        if self.is_share() { format!("0.{:03}", self.gpu_milli) } else { self.gpus.to_string() }
    }
}

/// The thousandths of a whole GPU.
pub const WHOLE_GPU: u16 = 1000;

/// The largest amount of milli-cores or MiB of a node or an instance: 2^31 − 2.
pub const MAX_AMOUNT: u32 = i32::MAX as u32 - 1;

/// The amount of a node that sets no limit.
pub const UNLIMITED: u32 = u32::MAX;
