//! A device with a cluster's nodes on it, and what is asked of it.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError};

use super::chunks::{Chunk, chunks};
use super::kernels::{Kernels, NodesOnDevice};
use super::lane::Lane;
use super::memory::{DeviceBuffer, Layout, Pinned, Section, stage, unstage};
use super::ranking::{Desk, Ranking};
use crate::cluster::N_COMPOSITIONS;
use crate::evaluate::abi::{NONE, NodeAmounts, NodeAttributes, NodeBits, NodeEdit, Touch};
use crate::evaluate::batch::{Batch, Scores};
use crate::evaluate::census::{Census, PoolCensus};
use crate::evaluate::measure::Speed;
use crate::evaluate::node_rows::NodeRows;
use crate::evaluate::query::NodeQuery;

/// Bytes of a chunk at the most: a fraction of a millisecond on the bus, beside which what a chunk costs is little.
const MOST: usize = 8 << 20;
/// And at the least, however small the memory.
const LEAST: usize = 64 << 10;
/// The part of the free memory that a chunk may take; it needs about that again for its results, on each of two lanes.
const PART: usize = 16;
/// Chunks that the scratch of `rank_nodes` may take.
const RANK_CHUNKS: usize = 8;

/// An open device. Everything is put on one of two streams, in an order that needs one wait: the second lane's for the
/// edits, which are put on the first one.
#[derive(Debug)]
pub(super) struct Device {
    lanes: [Lane; 2],
    nodes: Nodes,
    edits: Edits,
    ranking: Ranking,
    kernels: Kernels,
    /// Bytes of a chunk.
    chunk: usize,
    context: Arc<CudaContext>,
}

impl Drop for Device {
    fn drop(&mut self) {
        // The host's memory must not go while the device copies it; this also makes the context current for the frees.
        // The first answer may be an error that an earlier call has left behind, with no wait at all. If the second is
        // one too, the context is at its end, and nothing runs any more.
        let _ = self.context.synchronize().or_else(|_| self.context.synchronize());
    }
}

impl Device {
    pub(super) fn new(context: Arc<CudaContext>, kernels: Kernels) -> Result<Self, DriverError> {
        let lanes = [Lane::new(&context)?, Lane::new(&context)?];
        let nodes = Nodes::new(&lanes[0].stream);
        let edits = Edits::new(&lanes[0].stream)?;
        Ok(Self { lanes, nodes, edits, ranking: Ranking::default(), kernels, chunk: MOST, context })
    }

    /// The number of nodes that are resident.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len
    }

    /// The number of pools of those.
    pub(super) fn pools(&self) -> usize {
        self.nodes.pools
    }

    /// Whether everything that could not tell of an error went well.
    pub(super) fn check(&self) -> Result<(), DriverError> {
        self.context.check_err()
    }

    /// Waits for all work, and gives back all memory but that of the resident rows. From here on chunks are half as
    /// large.
    pub(super) fn shrink(&mut self) -> Result<(), DriverError> {
        self.settle()?;
        self.context.synchronize()?;
        self.lanes.iter_mut().for_each(Lane::free);
        self.edits.free();
        self.chunk = (self.chunk / 2).max(LEAST);
        // Frees are done in the order of the streams.
        self.context.synchronize()
    }

    pub(super) fn load(&mut self, rows: &NodeRows) -> Result<(), DriverError> {
        self.settle()?;
        self.nodes.load(rows)?;
        // What is put on the other stream then finds them there.
        self.lanes[0].stream.synchronize()?;
        let (free, _) = self.context.mem_get_info()?;
        self.chunk = (free / PART).clamp(LEAST, MOST);
        Ok(())
    }

    pub(super) fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), DriverError> {
        if edits.is_empty() {
            return Ok(());
        }
        self.settle()?;
        self.edits.put(&self.kernels, self.nodes.on_device(), edits)
    }

    pub(super) fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), DriverError> {
        self.settle()?;
        let chunks = chunks(batch, self.chunk);
        if chunks.is_empty() {
            out.best.fill(NONE);
            return Ok(());
        }
        for (number, lane) in self.lanes.iter_mut().take(chunks.len()).enumerate() {
            lane.prepare(batch, &chunks)?;
            if let Some(edited) = self.edits.last().filter(|_| number > 0) {
                lane.stream.wait(edited)?;
            }
        }
        for (number, chunk) in chunks.iter().enumerate() {
            let lane = &mut self.lanes[number % 2];
            lane.finish(batch, out)?;
            lane.start(&self.kernels, self.nodes.on_device(), batch, chunk)?;
        }
        // The next chunk would have been on the lane of the one that is now the older.
        let next = chunks.len() % 2;
        self.lanes[next].finish(batch, out)?;
        self.lanes[1 - next].finish(batch, out)
    }

    pub(super) fn begin_ranking(&mut self, query: &NodeQuery) -> Result<bool, DriverError> {
        let (ranking, mut desk) = self.desk();
        ranking.begin(&mut desk, query)
    }

    pub(super) fn rank_nodes(&mut self, query: &NodeQuery, out: &mut [u32]) -> Result<(), DriverError> {
        let (ranking, mut desk) = self.desk();
        ranking.answer(&mut desk, query, out)
    }

    fn desk(&mut self) -> (&mut Ranking, Desk<'_>) {
        let (kernels, nodes, lane) = (&self.kernels, self.nodes.on_device(), &mut self.lanes[0]);
        (&mut self.ranking, Desk { kernels, nodes, lane, scratch: RANK_CHUNKS * self.chunk })
    }

    /// Makes the first lane free for anything but a question for nodes, and what it was asked ahead forgotten.
    fn settle(&mut self) -> Result<(), DriverError> {
        self.ranking.settle(&self.lanes[0])
    }

    pub(super) fn census(&mut self, out: &mut Census) -> Result<(), DriverError> {
        self.settle()?;
        out.reset(self.nodes.pools);
        if self.nodes.len == 0 {
            return Ok(());
        }
        let lane = &mut self.lanes[0];
        let mut output = Layout::default();
        let pools: Section<PoolCensus> = output.section(self.nodes.pools);
        let compositions: Section<u32> = output.section(N_COMPOSITIONS);
        lane.output.reserve(output.bytes)?;
        lane.down.reserve(output.bytes)?;
        lane.output.clear(output.bytes)?;
        let (pool_rows, composition_rows) = (lane.output.rows(pools), lane.output.rows(compositions));
        self.kernels.census(&lane.stream, self.nodes.on_device(), pool_rows, composition_rows)?;
        lane.output.download(&mut lane.down.words()?[..output.bytes / 4])?;
        lane.stream.synchronize()?;
        self.context.check_err()?;
        let words = lane.down.words()?;
        unstage(words, pools, &mut out.pools);
        unstage(words, compositions, &mut out.compositions);
        Ok(())
    }

    /// Times `score_candidates` alone on a batch that is all on the device, in turn with a copy of its touches there.
    pub(super) fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, DriverError> {
        self.settle()?;
        let lane = &mut self.lanes[0];
        let all = Chunk::whole(batch);
        // Of one touch at least: there is no copy of nothing.
        let bytes = size_of::<Touch>() * batch.touches().len().max(1);
        lane.upload(batch, &all)?;
        let (mut from, mut to) = (DeviceBuffer::new(&lane.stream), DeviceBuffer::new(&lane.stream));
        from.reserve(bytes)?;
        to.reserve(bytes)?;
        from.clear(bytes)?;
        let chunk = lane.chunk(batch, &all);
        let score = || self.kernels.score_candidates(&lane.stream, self.nodes.on_device(), chunk);
        // The first launch waits for the code to be on the device.
        score()?;
        let timer = Timer::new(&lane.stream)?;
        let (mut scoring, mut copying) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..passes.max(1) {
            copying = copying.min(timer.seconds(|| to.copy_from(&from, bytes))?);
            scoring = scoring.min(timer.seconds(score)?);
        }
        self.context.check_err()?;
        // Every byte that is copied is read and written, so twice as many went over the memory's wires.
        let time = Duration::from_secs_f64;
        Ok(Speed::of(batch, time(scoring), time(copying / 2.0)))
    }
}

/// The resident rows.
#[derive(Debug)]
struct Nodes {
    bits: DeviceBuffer,
    amounts: DeviceBuffer,
    attributes: DeviceBuffer,
    len: usize,
    pools: usize,
}

impl Nodes {
    fn new(stream: &Arc<CudaStream>) -> Self {
        let buffer = || DeviceBuffer::new(stream);
        Self { bits: buffer(), amounts: buffer(), attributes: buffer(), len: 0, pools: 0 }
    }

    fn load(&mut self, rows: &NodeRows) -> Result<(), DriverError> {
        // If it fails, nothing is resident.
        (self.len, self.pools) = (0, 0);
        let (bits, amounts, attributes) = Self::sections(rows.len());
        self.bits.reserve(size_of_val(&*rows.bits))?;
        self.amounts.reserve(size_of_val(&*rows.amounts))?;
        self.attributes.reserve(size_of_val(&*rows.attributes))?;
        self.bits.upload_rows(bits, &rows.bits)?;
        self.amounts.upload_rows(amounts, &rows.amounts)?;
        self.attributes.upload_rows(attributes, &rows.attributes)?;
        (self.len, self.pools) = (rows.len(), rows.pools);
        Ok(())
    }

    fn on_device(&self) -> NodesOnDevice<'_> {
        let (bits, amounts, attributes) = Self::sections(self.len);
        NodesOnDevice {
            bits: self.bits.rows(bits),
            amounts: self.amounts.rows(amounts),
            attributes: self.attributes.rows(attributes),
        }
    }

    /// Each at the start of its own buffer.
    fn sections(n: usize) -> (Section<NodeBits>, Section<NodeAmounts>, Section<NodeAttributes>) {
        (Layout::default().section(n), Layout::default().section(n), Layout::default().section(n))
    }
}

/// Edits on their way, on the first lane's stream. There is room for two batches of them, so that the host can commit
/// on while the ones before are copied.
#[derive(Debug)]
struct Edits {
    stream: Arc<CudaStream>,
    places: [Place; 2],
    last: Option<usize>,
}

#[derive(Debug)]
struct Place {
    up: Pinned,
    rows: DeviceBuffer,
    /// Once the edits are applied.
    applied: CudaEvent,
}

impl Edits {
    fn new(stream: &Arc<CudaStream>) -> Result<Self, DriverError> {
        let context = stream.context();
        let place = || {
            let applied = context.new_event(None)?;
            Ok(Place { up: Pinned::to_write(context), rows: DeviceBuffer::new(stream), applied })
        };
        Ok(Self { stream: stream.clone(), places: [place()?, place()?], last: None })
    }

    fn put(&mut self, kernels: &Kernels, nodes: NodesOnDevice<'_>, edits: &[NodeEdit]) -> Result<(), DriverError> {
        let number = self.last.map_or(0, |last| 1 - last);
        let place = &mut self.places[number];
        place.applied.synchronize()?;
        let mut layout = Layout::default();
        let section = layout.section(edits.len());
        place.up.reserve(layout.bytes)?;
        place.rows.reserve(layout.bytes)?;
        let words = place.up.words()?;
        stage(words, section, edits);
        place.rows.upload(0, &words[..layout.bytes / 4])?;
        kernels.apply_edits(&self.stream, nodes, place.rows.rows(section))?;
        place.applied.record(&self.stream)?;
        self.last = Some(number);
        Ok(())
    }

    /// When the last edits are applied, if there have been any.
    fn last(&self) -> Option<&CudaEvent> {
        self.last.map(|last| &self.places[last].applied)
    }

    /// Gives all memory back. The stream has been waited for.
    fn free(&mut self) {
        for place in &mut self.places {
            place.up.free();
            place.rows.free();
        }
    }
}

/// Times what is put on a stream.
struct Timer<'a> {
    stream: &'a Arc<CudaStream>,
    start: CudaEvent,
    end: CudaEvent,
}

impl<'a> Timer<'a> {
    fn new(stream: &'a Arc<CudaStream>) -> Result<Self, DriverError> {
        let event = || stream.context().new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
        Ok(Self { stream, start: event()?, end: event()? })
    }

    fn seconds(&self, work: impl FnOnce() -> Result<(), DriverError>) -> Result<f64, DriverError> {
        self.start.record(self.stream)?;
        work()?;
        self.end.record(self.stream)?;
        Ok(f64::from(self.start.elapsed_ms(&self.end)?) / 1000.0)
    }
}
