//! The entry points of `kernels/*.cu`: what each takes, and on how many blocks it runs. The table of these is in
//! `kernels/abi.cuh`.
#![expect(unsafe_code, reason = "PTX is handed to the driver, and run by it")]

use std::sync::Arc;

use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

use super::driver::words;
use super::memory::Rows;
use super::ptx;
use crate::evaluate::abi::{Candidate, Need, NodeAmounts, NodeAttributes, NodeBits, NodeEdit, ScoreRow, Touch};
use crate::evaluate::census::PoolCensus;
use crate::evaluate::kernels::Kernel;
use crate::evaluate::query::DemandClass;

/// Touches a block of `score_candidates`.
const TOUCHES: usize = 512;
/// Candidates a block of `best_candidate`.
const CANDIDATES: usize = 256;
/// Nodes a block of `rank_nodes_count` and `census`.
const NODES: usize = 2048;
/// Classes a block of `rank_nodes_count`.
const CLASSES: usize = 16;
/// Tiles a block of the second and third passes.
const TILES: usize = 4;
/// Edits a block of `apply_edits`.
const EDITS: usize = 128;

/// Counters of a class and tile of nodes: one for each key.
pub(super) const KEYS: usize = 128;

/// The most blocks in the second direction of a grid.
pub(super) const MAX_CLASSES: usize = 65_535;

fn tiles(n: usize, tile: usize) -> usize {
    n.div_ceil(tile).max(1)
}

/// The tiles of so many touches, each of which needs a row and a word of scratch.
pub(super) fn tiles_of_touches(n: usize) -> usize {
    tiles(n, TOUCHES)
}

/// The tiles of so many candidates, each of which needs two words of scratch.
pub(super) fn tiles_of_candidates(n: usize) -> usize {
    tiles(n, CANDIDATES)
}

/// The tiles of so many nodes, each of which needs `KEYS` words of scratch for every class.
pub(super) fn tiles_of_nodes(n: usize) -> usize {
    tiles(n, NODES)
}

/// The resident rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodesOnDevice<'a> {
    pub(super) bits: Rows<'a, NodeBits>,
    pub(super) amounts: Rows<'a, NodeAmounts>,
    pub(super) attributes: Rows<'a, NodeAttributes>,
}

/// A chunk of a batch, and room for its results. Its candidates and jobs stand together in the batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkOnDevice<'a> {
    pub(super) needs: Rows<'a, Need>,
    pub(super) touches: Rows<'a, Touch>,
    /// Of the batch, from the chunk's first candidate on, and the end.
    pub(super) offsets: Rows<'a, u32>,
    pub(super) given: Rows<'a, u32>,
    pub(super) candidates: Rows<'a, Candidate>,
    /// Of the batch, from the chunk's first job on, and the end.
    pub(super) jobs: Rows<'a, u32>,
    /// The first of `offsets`.
    pub(super) first_touch: u32,
    /// The first of `jobs`.
    pub(super) first_candidate: u32,
    pub(super) rows: Rows<'a, ScoreRow>,
    pub(super) best: Rows<'a, u32>,
    /// Scratch: a row for every tile of touches.
    pub(super) parts: Rows<'a, ScoreRow>,
    /// Scratch: a word for every tile of touches.
    pub(super) carried: Rows<'a, u32>,
    /// Scratch: a word for every tile of candidates.
    pub(super) best_parts: Rows<'a, u32>,
    /// Scratch: a word for every tile of candidates.
    pub(super) best_carried: Rows<'a, u32>,
}

/// A chunk of the classes of a query, and room for the answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassesOnDevice<'a> {
    pub(super) classes: Rows<'a, DemandClass>,
    pub(super) pool_bits: Rows<'a, u32>,
    /// Scratch: `KEYS` for every class and tile of nodes.
    pub(super) counts: Rows<'a, u32>,
    pub(super) slots: Rows<'a, u32>,
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug)]
enum Arg {
    Address(u64),
    Word(u32),
}

impl<T> From<Rows<'_, T>> for Arg {
    fn from(rows: Rows<'_, T>) -> Self {
        Self::Address(rows.address)
    }
}

impl From<u32> for Arg {
    fn from(word: u32) -> Self {
        Self::Word(word)
    }
}

impl From<usize> for Arg {
    /// All sizes of a chunk fit a word: `Batch` and `NodeRows` hold no more.
    fn from(n: usize) -> Self {
        Self::Word(n as u32)
    }
}

impl Arg {
    fn size(self) -> usize {
        match self {
            Self::Address(_) => size_of::<u64>(),
            Self::Word(_) => size_of::<u32>(),
        }
    }
}

/// An entry point.
#[derive(Debug)]
struct Entry {
    function: CudaFunction,
    /// Threads a block.
    threads: u32,
    /// The sizes of its parameters, as the PTX declares them.
    sizes: Vec<usize>,
}

impl Entry {
    /// Puts a launch on a stream. All addresses among `args` are of rows that the kernel may use as its source says.
    fn launch(&self, stream: &Arc<CudaStream>, grid: (usize, usize), args: &[Arg]) -> Result<(), DriverError> {
        if !args.iter().map(|arg| arg.size()).eq(self.sizes.iter().copied()) {
            // The driver would read beyond the arguments.
            return Err(DriverError(CUresult::CUDA_ERROR_INVALID_VALUE));
        }
        let mut launch = stream.launch_builder(&self.function);
        for arg in args {
            match arg {
                Arg::Address(address) => launch.arg(address),
                Arg::Word(word) => launch.arg(word),
            };
        }
        let (x, y) = (grid.0 as u32, grid.1 as u32);
        let config = LaunchConfig { grid_dim: (x, y, 1), block_dim: (self.threads, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: number and sizes of the arguments are those of the PTX, as was looked at above; their order and types
        // are those of the source, which the functions of `Kernels` follow line by line. The rows are of buffers of
        // this stream, or resident, with the lengths that are passed or documented; they are freed in the order of the
        // stream or after a wait. What is read was written before on this stream, or was waited for.
        unsafe { launch.launch(config) }.map(drop)
    }
}

/// All entry points, loaded.
#[derive(Debug)]
pub(super) struct Kernels {
    score_candidates: Entry,
    score_candidates_join: Entry,
    best_candidate: Entry,
    best_candidate_join: Entry,
    rank_nodes_count: Entry,
    rank_nodes_scan: Entry,
    rank_nodes_place: Entry,
    apply_edits: Entry,
    census: Entry,
}

impl Kernels {
    /// Hands the PTX to the driver, which makes code for this device of it.
    pub(super) fn load(context: &Arc<CudaContext>) -> Result<Self, String> {
        let load = |kernel: Kernel| Loaded::new(context, kernel);
        let (score, best, rank) =
            (load(Kernel::score_candidates)?, load(Kernel::best_candidate)?, load(Kernel::rank_nodes)?);
        Ok(Self {
            score_candidates: score.entry("score_candidates", 128)?,
            score_candidates_join: score.entry("score_candidates_join", 128)?,
            best_candidate: best.entry("best_candidate", 128)?,
            best_candidate_join: best.entry("best_candidate_join", 128)?,
            rank_nodes_count: rank.entry("rank_nodes_count", 256)?,
            rank_nodes_scan: rank.entry("rank_nodes_scan", 128)?,
            rank_nodes_place: rank.entry("rank_nodes_place", 128)?,
            apply_edits: load(Kernel::apply_edits)?.entry("apply_edits", 128)?,
            census: load(Kernel::census)?.entry("census", 256)?,
        })
    }

    /// Scores the candidates of a chunk.
    pub(super) fn score_candidates(
        &self,
        stream: &Arc<CudaStream>,
        nodes: NodesOnDevice<'_>,
        chunk: ChunkOnDevice<'_>,
    ) -> Result<(), DriverError> {
        let ChunkOnDevice { touches, offsets, given, needs, rows, parts, carried, first_touch, .. } = chunk;
        if given.len == 0 {
            return Ok(());
        }
        let tiles = tiles_of_touches(touches.len);
        self.score_candidates.launch(
            stream,
            (tiles, 1),
            &[
                nodes.bits.into(),
                nodes.amounts.into(),
                touches.into(),
                offsets.into(),
                given.into(),
                needs.into(),
                first_touch.into(),
                touches.len.into(),
                given.len.into(),
                rows.into(),
                parts.into(),
                carried.into(),
            ],
        )?;
        // With one tile no candidate crosses into another.
        if tiles == 1 {
            return Ok(());
        }
        self.score_candidates_join.launch(
            stream,
            (tiles.div_ceil(TILES), 1),
            &[
                offsets.into(),
                given.into(),
                first_touch.into(),
                tiles.into(),
                parts.into(),
                carried.into(),
                rows.into(),
            ],
        )
    }

    /// Finds the best candidate of each job of a chunk, of those that are in the chunk. Their rows are there.
    pub(super) fn best_candidate(&self, stream: &Arc<CudaStream>, chunk: ChunkOnDevice<'_>) -> Result<(), DriverError> {
        let ChunkOnDevice { rows, candidates, jobs, first_candidate, best, best_parts, best_carried, .. } = chunk;
        if best.len == 0 {
            return Ok(());
        }
        let tiles = tiles_of_candidates(candidates.len);
        self.best_candidate.launch(
            stream,
            (tiles, 1),
            &[
                rows.into(),
                candidates.into(),
                jobs.into(),
                first_candidate.into(),
                candidates.len.into(),
                best.len.into(),
                best.into(),
                best_parts.into(),
                best_carried.into(),
            ],
        )?;
        if tiles == 1 {
            return Ok(());
        }
        self.best_candidate_join.launch(
            stream,
            (tiles.div_ceil(TILES), 1),
            &[
                rows.into(),
                candidates.into(),
                jobs.into(),
                first_candidate.into(),
                tiles.into(),
                best_parts.into(),
                best_carried.into(),
                best.into(),
            ],
        )
    }

    /// Finds the `k` best nodes for each class of a chunk.
    pub(super) fn rank_nodes(
        &self,
        stream: &Arc<CudaStream>,
        nodes: NodesOnDevice<'_>,
        query: ClassesOnDevice<'_>,
        k: usize,
    ) -> Result<(), DriverError> {
        let ClassesOnDevice { classes, pool_bits, counts, slots } = query;
        let (n, tiles) = (nodes.bits.len, tiles_of_nodes(nodes.bits.len));
        self.rank_nodes_count.launch(
            stream,
            (tiles, classes.len.div_ceil(CLASSES)),
            &[
                nodes.bits.into(),
                nodes.amounts.into(),
                nodes.attributes.into(),
                classes.into(),
                pool_bits.into(),
                n.into(),
                classes.len.into(),
                counts.into(),
            ],
        )?;
        self.rank_nodes_scan.launch(
            stream,
            (classes.len, 1),
            &[counts.into(), tiles.into(), k.into(), slots.into()],
        )?;
        self.rank_nodes_place.launch(
            stream,
            (tiles.div_ceil(TILES), classes.len),
            &[
                nodes.bits.into(),
                nodes.amounts.into(),
                nodes.attributes.into(),
                classes.into(),
                pool_bits.into(),
                n.into(),
                tiles.into(),
                counts.into(),
                k.into(),
                slots.into(),
            ],
        )
    }

    /// Replaces rows of nodes, each at most once.
    pub(super) fn apply_edits(
        &self,
        stream: &Arc<CudaStream>,
        nodes: NodesOnDevice<'_>,
        edits: Rows<'_, NodeEdit>,
    ) -> Result<(), DriverError> {
        self.apply_edits.launch(
            stream,
            (tiles(edits.len, EDITS), 1),
            &[edits.into(), edits.len.into(), nodes.bits.into(), nodes.amounts.into(), nodes.attributes.into()],
        )
    }

    /// Adds the counts of all nodes to what is zero before.
    pub(super) fn census(
        &self,
        stream: &Arc<CudaStream>,
        nodes: NodesOnDevice<'_>,
        pools: Rows<'_, PoolCensus>,
        compositions: Rows<'_, u32>,
    ) -> Result<(), DriverError> {
        self.census.launch(
            stream,
            (tiles_of_nodes(nodes.bits.len), 1),
            &[
                nodes.bits.into(),
                nodes.attributes.into(),
                nodes.bits.len.into(),
                pools.len.into(),
                pools.into(),
                compositions.into(),
            ],
        )
    }
}

/// The PTX of a kernel, handed to the driver.
struct Loaded {
    kernel: Kernel,
    module: Arc<CudaModule>,
    declared: Vec<ptx::Entry<'static>>,
}

impl Loaded {
    fn new(context: &Arc<CudaContext>, kernel: Kernel) -> Result<Self, String> {
        let module = context.load_module(Ptx::from_src(kernel.ptx()));
        let module = module.map_err(|error| format!("the kernel {} does not load: {}", kernel.name(), words(error)))?;
        Ok(Self { kernel, module, declared: ptx::entries(kernel.ptx()) })
    }

    fn entry(&self, name: &str, threads: u32) -> Result<Entry, String> {
        let fail = |why| format!("the kernel {} has no entry point {name}: {why}", self.kernel.name());
        let declared = self.declared.iter().find(|entry| entry.name == name);
        let sizes = declared.ok_or_else(|| fail("its PTX declares none".into()))?.sizes.clone();
        let function = self.module.load_function(name).map_err(|error| fail(words(error)))?;
        Ok(Entry { function, threads, sizes })
    }
}
