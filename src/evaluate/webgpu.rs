//! Evaluates on any GPU that WebGPU reaches: Vulkan, Metal, DirectX 12.
//!
//! The rows of the nodes stay on the device; edits go over as rows that replace theirs. The kernels are
//! `shaders/<kernel>.wgsl`, one module each behind `shaders/abi.wgsl`, and ask for no feature that an adapter might
//! lack. Nothing in them depends on the order in which workgroups run, and all of it is integers, so every adapter gives
//! the bits of the twins.
//!
//! **How candidates are scored.** Touches are cut into tiles of equal size, across the borders of candidates, so that a
//! candidate of two thousand instances costs a workgroup no more than two thousand of one. A workgroup sums up, with
//! fields packed in four words, what the touches of its tile up to each one add; a candidate's row is the difference of
//! two such sums. What lies in several tiles is put together by a second call. See the kernel's text.
//!
//! **How nodes are ranked.** Keys are below 128, so they are counted, by class and tile of nodes, and the counts summed
//! up: then every node knows its slot. No sort, and ties are in order.
//!
//! **What is chunked.** A batch goes over in pieces (`pieces.rs`) that are cut anywhere, inside a candidate too, and that
//! fit a binding with everything that belongs to them; questions for nodes in as many classes, and a census in as many
//! pools, as fit. A dispatch has at most as many workgroups as the device allows, and each walks on in steps of that
//! many. So the size of a batch is bound by nothing but `MAX_TOUCHES`. Only the nodes must be on the device as a whole:
//! a cluster whose rows do not fit a binding is refused (16 bytes a node: 8 million nodes at the 128 MiB that every
//! WebGPU device has).
//!
//! **What goes wrong.** A device that is lost, refuses a command or does not answer gives `EvalError::Device`, and every
//! call after that gives the same: open another backend then. One that has no memory for a buffer of ours gives
//! `EvalError::OutOfMemory` and goes on working; one that has none for a buffer of wgpu's is lost.

mod adapter;
mod buffers;
mod device;
mod limits;
mod nodes;
mod pieces;
mod rank;
mod score;
#[cfg(test)]
mod tests;

pub use adapter::{Adapter, AdapterChoice, adapters};
pub use limits::Limits;

use self::device::Device;
use self::nodes::Nodes;
use self::rank::Ranking;
use self::score::Scoring;
use super::abi::NodeEdit;
use super::backend::{Backend, EvalError};
use super::batch::{Batch, Scores};
use super::census::Census;
use super::kernels::Kernel;
use super::measure::Speed;
use super::node_rows::NodeRows;
use super::query::NodeQuery;

/// As in `--backend`.
const NAME: &str = "wgpu";

/// Rows that every kernel's text begins with.
const ABI: &str = include_str!("../../shaders/abi.wgsl");

/// A cluster on a GPU.
#[derive(Debug)]
pub struct WebGpu {
    adapter: String,
    // The buffers go before the device that they are of.
    nodes: Nodes,
    scoring: Scoring,
    ranking: Ranking,
    device: Device,
}

impl WebGpu {
    /// Opens the best adapter of those that may be taken, with no nodes loaded.
    ///
    /// # Errors
    /// `Absent` if there is none, `Unusable` if there is and it does not open, with a reason for each; `Device` if it
    /// fails at once.
    pub fn open(choice: AdapterChoice) -> Result<Self, EvalError> {
        Self::open_with(choice, &Limits::default())
    }

    /// As `open`, with no more of the device than this: for tests, and for devices that are better not used up.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_with(choice: AdapterChoice, limits: &Limits) -> Result<Self, EvalError> {
        Self::open_altered(choice, limits, &Self::shader)
    }

    /// As `open_with`, with other texts of the kernels: for tests that must see a fault found.
    ///
    /// # Errors
    /// As `open`, and if a text is no WGSL.
    pub fn open_altered(
        choice: AdapterChoice,
        limits: &Limits,
        text: &dyn Fn(Kernel) -> String,
    ) -> Result<Self, EvalError> {
        let opened = adapter::open(choice, limits)?;
        let adapter = opened.name.clone();
        let device = Device::new(opened);
        Ok(Self {
            adapter,
            nodes: Nodes::new(&device, text)?,
            scoring: Scoring::new(&device, text)?,
            ranking: Ranking::new(&device, text)?,
            device,
        })
    }

    /// The text of a kernel's module.
    pub fn shader(kernel: Kernel) -> String {
        [ABI, "\n", kernel.wgsl()].concat()
    }

    /// What the adapter is called.
    pub fn adapter(&self) -> &str {
        &self.adapter
    }

    /// How much of the device is used.
    pub fn limits(&self) -> &Limits {
        &self.device.limits
    }

    /// Gives the device up, as if the driver had lost it: for tests of what follows.
    pub fn lose(&mut self) {
        self.device.device.destroy();
    }
}

impl Backend for WebGpu {
    fn name(&self) -> &'static str {
        NAME
    }

    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
        self.device.check()?;
        self.ranking.forget();
        self.nodes.load(&self.device, nodes)
    }

    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        self.device.check()?;
        EvalError::check_edits(edits, self.nodes.resident().nodes)?;
        self.ranking.forget();
        self.nodes.apply(&self.device, edits)
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        self.device.check()?;
        EvalError::check_batch(batch, self.nodes.resident().nodes)?;
        self.scoring.evaluate(&self.device, self.nodes.resident(), batch, out)
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        self.device.check()?;
        EvalError::check_query(query, self.nodes.resident().pools)?;
        self.ranking.rank(&self.device, self.nodes.resident(), query, out)
    }

    fn begin_ranking(&mut self, query: &NodeQuery) -> Result<bool, EvalError> {
        self.device.check()?;
        EvalError::check_query(query, self.nodes.resident().pools)?;
        self.ranking.begin(&self.device, self.nodes.resident(), query)
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        self.device.check()?;
        self.nodes.census(&self.device, out)
    }

    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        self.device.check()?;
        EvalError::check_batch(batch, self.nodes.resident().nodes)?;
        self.scoring.measure(&self.device, self.nodes.resident(), batch, passes)
    }
}
