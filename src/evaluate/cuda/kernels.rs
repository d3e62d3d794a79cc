//! The entry points of `kernels/*.cu`: what each takes, and on how many blocks it runs. The table of these is in
//! `kernels/abi.cuh`.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError};

use super::entry::{Entry, Loaded};
use super::memory::Rows;
use crate::evaluate::abi::{
    Candidate, Need, NodeAmounts, NodeAttributes, NodeBits, NodeEdit, NodeGpuMilli, ScoreRow, Touch,
};
use crate::evaluate::census::PoolCensus;
use crate::evaluate::fgd::FgdRow;
use crate::evaluate::kernels::Kernel;
use crate::evaluate::query::DemandClass;
use crate::fragmentation::fgd::TypicalPod;

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
/// Nodes a block of `score_fgd`.
const FGD_NODES: usize = 128;
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
    pub(super) gpu_milli: Rows<'a, NodeGpuMilli>,
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

/// A chunk of the classes of a question for FGD's scores, what it is about, and room for the answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct FgdOnDevice<'a> {
    pub(super) classes: Rows<'a, DemandClass>,
    pub(super) pool_bits: Rows<'a, u32>,
    pub(super) pods: Rows<'a, TypicalPod>,
    pub(super) allowed: Rows<'a, u32>,
    /// Words of a pool among `allowed`.
    pub(super) words: usize,
    pub(super) rows: Rows<'a, FgdRow>,
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
    score_fgd: Entry,
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
            score_fgd: load(Kernel::score_fgd)?.entry("score_fgd", 128)?,
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

    /// Scores all nodes for each class of a chunk as FGD does.
    pub(super) fn score_fgd(
        &self,
        stream: &Arc<CudaStream>,
        nodes: NodesOnDevice<'_>,
        query: FgdOnDevice<'_>,
    ) -> Result<(), DriverError> {
        let FgdOnDevice { classes, pool_bits, pods, allowed, words, rows } = query;
        self.score_fgd.launch(
            stream,
            (tiles(nodes.bits.len, FGD_NODES), classes.len),
            &[
                nodes.amounts.into(),
                nodes.attributes.into(),
                nodes.gpu_milli.into(),
                classes.into(),
                pool_bits.into(),
                pods.into(),
                allowed.into(),
                nodes.bits.len.into(),
                pods.len.into(),
                words.into(),
                rows.into(),
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
            &[
                edits.into(),
                edits.len.into(),
                nodes.bits.into(),
                nodes.amounts.into(),
                nodes.attributes.into(),
                nodes.gpu_milli.into(),
            ],
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
