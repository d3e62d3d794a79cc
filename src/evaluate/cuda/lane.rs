//! One of two lanes that the chunks of a batch take in turn: while a chunk is scored on one, the other's comes or goes.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError};

use super::chunks::Chunk;
use super::kernels::{ChunkOnDevice, Kernels, NodesOnDevice, tiles_of_candidates, tiles_of_touches};
use super::memory::{DeviceBuffer, Layout, Pinned, Section, stage, unstage};
use crate::evaluate::abi::{Candidate, Need, ScoreRow, Touch};
use crate::evaluate::batch::{Batch, Scores};

/// A stream with all the memory that its work needs. Inputs go over in one copy and results come back in one, since
/// every copy costs microseconds whatever its size.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) stream: Arc<CudaStream>,
    pub(super) up: Pinned,
    pub(super) down: Pinned,
    pub(super) input: DeviceBuffer,
    pub(super) output: DeviceBuffer,
    pub(super) scratch: DeviceBuffer,
    /// The chunk whose results are on their way.
    under_way: Option<Chunk>,
    /// The batch's table of needs is at the start of `input`.
    has_needs: bool,
}

impl Lane {
    /// With no memory yet.
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let stream = context.new_stream()?;
        let buffer = || DeviceBuffer::new(&stream);
        let (input, output, scratch) = (buffer(), buffer(), buffer());
        let (up, down) = (Pinned::to_write(context), Pinned::to_read(context));
        Ok(Self { stream, up, down, input, output, scratch, under_way: None, has_needs: false })
    }

    /// Gives all memory back, and forgets what was under way. The stream has been waited for.
    pub(super) fn free(&mut self) {
        (self.under_way, self.has_needs) = (None, false);
        self.up.free();
        self.down.free();
        self.input.free();
        self.output.free();
        self.scratch.free();
    }

    /// Makes room for any of the chunks of a batch. The stream has been waited for.
    pub(super) fn prepare(&mut self, batch: &Batch, chunks: &[Chunk]) -> Result<(), DriverError> {
        (self.under_way, self.has_needs) = (None, false);
        let plans = || chunks.iter().map(|chunk| Plan::new(batch, chunk));
        let most = |bytes: fn(&Plan) -> usize| plans().map(|plan| bytes(&plan)).max().unwrap_or(0);
        self.up.reserve(most(|plan| plan.input))?;
        self.input.reserve(most(|plan| plan.input))?;
        self.output.reserve(most(|plan| plan.output))?;
        self.down.reserve(most(|plan| plan.output))?;
        self.scratch.reserve(most(|plan| plan.scratch))
    }

    /// Puts a chunk on the stream: upload, scoring, download. The chunk before has been finished.
    pub(super) fn start(
        &mut self,
        kernels: &Kernels,
        nodes: NodesOnDevice<'_>,
        batch: &Batch,
        chunk: &Chunk,
    ) -> Result<(), DriverError> {
        let plan = Plan::new(batch, chunk);
        let words = self.up.words()?;
        plan.stage(batch, chunk, words);
        let (first, end) = (if self.has_needs { plan.after_needs / 4 } else { 0 }, plan.input / 4);
        self.input.upload(first, &words[first..end])?;
        self.has_needs = true;
        let on_device = self.on_device(batch, chunk, &plan);
        kernels.score_candidates(&self.stream, nodes, on_device)?;
        kernels.best_candidate(&self.stream, on_device)?;
        self.output.download(&mut self.down.words()?[..plan.output / 4])?;
        self.under_way = Some(chunk.clone());
        Ok(())
    }

    /// Waits for the results of the chunk that is under way, if one is, and enters them.
    pub(super) fn finish(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), DriverError> {
        let Some(chunk) = self.under_way.take() else { return Ok(()) };
        self.stream.synchronize()?;
        // An error of a free, or of anything else that could not tell, may have let work begin too early.
        self.stream.context().check_err()?;
        let plan = Plan::new(batch, &chunk);
        let words = self.down.words()?;
        unstage(words, plan.rows, &mut out.rows[chunk.candidates.clone()]);
        let mut best = vec![0; chunk.jobs.len()];
        unstage(words, plan.best, &mut best);
        chunk.enter_best(batch, &best, out);
        Ok(())
    }

    /// Uploads a chunk straight from the batch, for measurements. Nothing is under way.
    pub(super) fn upload(&mut self, batch: &Batch, chunk: &Chunk) -> Result<(), DriverError> {
        let plan = Plan::new(batch, chunk);
        self.input.reserve(plan.input)?;
        self.output.reserve(plan.output)?;
        self.scratch.reserve(plan.scratch)?;
        let c = chunk.candidates.clone();
        self.input.upload_rows(plan.needs, batch.needs())?;
        self.input.upload_rows(plan.touches, &batch.touches()[chunk.touches(batch)])?;
        self.input.upload_rows(plan.offsets, &batch.offsets()[c.start..=c.end])?;
        self.input.upload_rows(plan.given, &batch.given()[c])
    }

    /// Where a chunk lies on the device.
    pub(super) fn chunk(&self, batch: &Batch, chunk: &Chunk) -> ChunkOnDevice<'_> {
        self.on_device(batch, chunk, &Plan::new(batch, chunk))
    }

    fn on_device(&self, batch: &Batch, chunk: &Chunk, plan: &Plan) -> ChunkOnDevice<'_> {
        ChunkOnDevice {
            needs: self.input.rows(plan.needs),
            touches: self.input.rows(plan.touches),
            offsets: self.input.rows(plan.offsets),
            given: self.input.rows(plan.given),
            candidates: self.input.rows(plan.candidates),
            jobs: self.input.rows(plan.jobs),
            first_touch: chunk.touches(batch).start as u32,
            first_candidate: chunk.candidates.start as u32,
            rows: self.output.rows(plan.rows),
            best: self.output.rows(plan.best),
            parts: self.scratch.rows(plan.parts),
            carried: self.scratch.rows(plan.carried),
            best_parts: self.scratch.rows(plan.best_parts),
            best_carried: self.scratch.rows(plan.best_carried),
        }
    }
}

/// Where what of a chunk lies in the buffers of a lane; the ends in bytes.
#[derive(Debug)]
struct Plan {
    /// First, so that they stay where they are from chunk to chunk.
    needs: Section<Need>,
    after_needs: usize,
    touches: Section<Touch>,
    offsets: Section<u32>,
    given: Section<u32>,
    candidates: Section<Candidate>,
    jobs: Section<u32>,
    input: usize,
    rows: Section<ScoreRow>,
    best: Section<u32>,
    output: usize,
    parts: Section<ScoreRow>,
    carried: Section<u32>,
    best_parts: Section<u32>,
    best_carried: Section<u32>,
    scratch: usize,
}

impl Plan {
    fn new(batch: &Batch, chunk: &Chunk) -> Self {
        let (n, n_jobs, n_touches) = (chunk.candidates.len(), chunk.jobs.len(), chunk.touches(batch).len());
        let (mut input, mut output, mut scratch) = (Layout::default(), Layout::default(), Layout::default());
        let needs = input.section(batch.needs().len());
        let after_needs = input.bytes;
        let (tiles, best_tiles) = (tiles_of_touches(n_touches), tiles_of_candidates(n));
        Self {
            needs,
            after_needs,
            touches: input.section(n_touches),
            offsets: input.section(n + 1),
            given: input.section(n),
            candidates: input.section(n),
            jobs: input.section(n_jobs + 1),
            input: input.bytes,
            rows: output.section(n),
            best: output.section(n_jobs),
            output: output.bytes,
            parts: scratch.section(tiles),
            carried: scratch.section(tiles),
            best_parts: scratch.section(best_tiles),
            best_carried: scratch.section(best_tiles),
            scratch: scratch.bytes,
        }
    }

    fn stage(&self, batch: &Batch, chunk: &Chunk, words: &mut [u32]) {
        let c = chunk.candidates.clone();
        stage(words, self.needs, batch.needs());
        stage(words, self.touches, &batch.touches()[chunk.touches(batch)]);
        stage(words, self.offsets, &batch.offsets()[c.start..=c.end]);
        stage(words, self.given, &batch.given()[c.clone()]);
        stage(words, self.candidates, &batch.candidates()[c]);
        let jobs: Vec<u32> = chunk.job_offsets(batch).collect();
        stage(words, self.jobs, &jobs);
    }
}
