//! `score_fgd`: as many classes at a time as there is room for the answers of.

use cudarc::driver::DriverError;

use super::kernels::{FgdOnDevice, MAX_CLASSES};
use super::memory::{Layout, Section, stage, unstage};
use super::ranking::Desk;
use crate::evaluate::fgd::{FgdQuery, FgdRow};
use crate::evaluate::query::DemandClass;
use crate::fragmentation::fgd::TypicalPod;

impl Desk<'_> {
    /// Answers a question for FGD's scores. Nothing else is on the lane.
    pub(super) fn score_fgd(&mut self, query: &FgdQuery, out: &mut [FgdRow]) -> Result<(), DriverError> {
        let nodes = self.nodes.bits.len;
        if nodes == 0 {
            return Ok(());
        }
        let a_part = (self.scratch / (nodes * size_of::<FgdRow>())).clamp(1, MAX_CLASSES);
        let parts = query.demands().classes().chunks(a_part).zip(out.chunks_mut(a_part * nodes));
        parts.into_iter().try_for_each(|(classes, rows)| self.score_some(query, classes, rows))
    }

    fn score_some(&mut self, query: &FgdQuery, classes: &[DemandClass], out: &mut [FgdRow]) -> Result<(), DriverError> {
        let lane = &mut *self.lane;
        let (mut input, mut output) = (Layout::default(), Layout::default());
        let class_rows: Section<DemandClass> = input.section(classes.len());
        let pool_bits: Section<u32> = input.section(query.demands().pool_bits().len());
        let pods: Section<TypicalPod> = input.section(query.pods().len());
        let allowed: Section<u32> = input.section(query.allowed().len());
        let rows: Section<FgdRow> = output.section(out.len());
        lane.up.reserve(input.bytes)?;
        lane.input.reserve(input.bytes)?;
        lane.output.reserve(output.bytes)?;
        lane.down.reserve(output.bytes)?;
        let words = lane.up.words()?;
        stage(words, class_rows, classes);
        stage(words, pool_bits, query.demands().pool_bits());
        stage(words, pods, query.pods());
        stage(words, allowed, query.allowed());
        lane.input.upload(0, &words[..input.bytes / 4])?;
        let on_device = FgdOnDevice {
            classes: lane.input.rows(class_rows),
            pool_bits: lane.input.rows(pool_bits),
            pods: lane.input.rows(pods),
            allowed: lane.input.rows(allowed),
            words: query.words(),
            rows: lane.output.rows(rows),
        };
        self.kernels.score_fgd(&lane.stream, self.nodes, on_device)?;
        lane.output.download(&mut lane.down.words()?[..output.bytes / 4])?;
        lane.stream.synchronize()?;
        lane.stream.context().check_err()?;
        unstage(lane.down.words()?, rows, out);
        Ok(())
    }
}
