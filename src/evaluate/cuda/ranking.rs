//! `rank_nodes`: as many classes at a time as there is scratch for, one part after the other on one lane. The first part of
//! a question may be on its way while the host does something else.

use cudarc::driver::DriverError;

use super::kernels::{ClassesOnDevice, KEYS, Kernels, MAX_CLASSES, NodesOnDevice, tiles_of_nodes};
use super::lane::Lane;
use super::memory::{Layout, Section, stage, unstage};
use crate::evaluate::query::{DemandClass, NodeQuery};

/// Where questions are answered.
#[derive(Debug)]
pub(super) struct Desk<'a> {
    pub(super) kernels: &'a Kernels,
    pub(super) nodes: NodesOnDevice<'a>,
    pub(super) lane: &'a mut Lane,
    /// Bytes that the scratch of a part may take.
    pub(super) scratch: usize,
}

/// What was asked ahead.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// The question whose first part is on the lane.
    begun: Option<NodeQuery>,
}

impl Ranking {
    /// Puts the first part of a question on its way. False if there is nothing to find.
    pub(super) fn begin(&mut self, desk: &mut Desk<'_>, query: &NodeQuery) -> Result<bool, DriverError> {
        self.settle(desk.lane)?;
        let Some(classes) = desk.parts(query).next() else { return Ok(false) };
        desk.start(query, classes)?;
        self.begun = Some(query.clone());
        Ok(true)
    }

    /// Answers a question, which may have been begun.
    pub(super) fn answer(
        &mut self,
        desk: &mut Desk<'_>,
        query: &NodeQuery,
        out: &mut [u32],
    ) -> Result<(), DriverError> {
        if self.begun.as_ref() != Some(query) {
            self.settle(desk.lane)?;
        }
        let slots = desk.classes_a_part(query) * query.k();
        for (classes, slots) in desk.parts(query).zip(out.chunks_mut(slots.max(1))) {
            if self.begun.take().is_none() {
                desk.start(query, classes)?;
            }
            desk.finish(slots)?;
        }
        Ok(())
    }

    /// Waits until nothing that was asked ahead uses the lane any more, and forgets it.
    pub(super) fn settle(&mut self, lane: &Lane) -> Result<(), DriverError> {
        self.begun.take().map_or(Ok(()), |_| lane.stream.synchronize())
    }
}

impl Desk<'_> {
    fn counts_a_class(&self) -> usize {
        KEYS * tiles_of_nodes(self.nodes.bits.len)
    }

    fn classes_a_part(&self, query: &NodeQuery) -> usize {
        let a_class = size_of::<u32>() * (self.counts_a_class() + query.k()) + size_of::<DemandClass>();
        (self.scratch / a_class).clamp(1, MAX_CLASSES)
    }

    /// The classes of a question, a part at a time.
    fn parts<'q>(&self, query: &'q NodeQuery) -> impl Iterator<Item = &'q [DemandClass]> + use<'q> {
        let classes = if query.k() == 0 { &[] } else { query.classes() };
        classes.chunks(self.classes_a_part(query))
    }

    /// Puts a part on the stream: upload, ranking, download. The part before has been finished.
    fn start(&mut self, query: &NodeQuery, classes: &[DemandClass]) -> Result<(), DriverError> {
        let n_counts = self.counts_a_class();
        let lane = &mut *self.lane;
        let (mut input, mut output, mut scratch) = (Layout::default(), Layout::default(), Layout::default());
        let class_rows: Section<DemandClass> = input.section(classes.len());
        let pool_bits: Section<u32> = input.section(query.pool_bits().len());
        let slots: Section<u32> = output.section(classes.len() * query.k());
        let counts: Section<u32> = scratch.section(n_counts * classes.len());
        lane.up.reserve(input.bytes)?;
        lane.input.reserve(input.bytes)?;
        lane.output.reserve(output.bytes)?;
        lane.down.reserve(output.bytes)?;
        lane.scratch.reserve(scratch.bytes)?;
        let words = lane.up.words()?;
        stage(words, class_rows, classes);
        stage(words, pool_bits, query.pool_bits());
        lane.input.upload(0, &words[..input.bytes / 4])?;
        let on_device = ClassesOnDevice {
            classes: lane.input.rows(class_rows),
            pool_bits: lane.input.rows(pool_bits),
            counts: lane.scratch.rows(counts),
            slots: lane.output.rows(slots),
        };
        self.kernels.rank_nodes(&lane.stream, self.nodes, on_device, query.k())?;
        lane.output.download(&mut lane.down.words()?[..output.bytes / 4])
    }

    /// Waits for the part that is on the stream, and takes its answers.
    fn finish(&mut self, slots: &mut [u32]) -> Result<(), DriverError> {
        let lane = &mut *self.lane;
        lane.stream.synchronize()?;
        lane.stream.context().check_err()?;
        unstage(lane.down.words()?, Layout::default().section(slots.len()), slots);
        Ok(())
    }
}
