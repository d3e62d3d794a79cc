//! `score_fgd`: as many nodes and classes at a time as there is room for the answers of.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};

use super::buffers::Store;
use super::device::{Device, Entry, put};
use super::nodes::Resident;
use super::rank::{Classes, words_of_pools};
use crate::evaluate::backend::EvalError;
use crate::evaluate::fgd::{FgdQuery, FgdRow};
use crate::evaluate::kernels::Kernel;
use crate::evaluate::query::DemandClass;

/// Rounds of all loops of a thread together: Mesa's driver for processors allows twice as many.
const ROUNDS: usize = 1 << 15;

/// Threads of a workgroup, as the kernel has it.
const THREADS: usize = 64;

/// The kernel, and the buffers that it works on.
#[derive(Debug)]
pub(super) struct Fgd {
    score: Entry,
    input: Store,
    rows: Store,
    answers: Store,
    classes: Classes,
}

impl Fgd {
    pub(super) fn new(device: &Device, text: &dyn Fn(Kernel) -> String) -> Result<Self, EvalError> {
        let kernel = Kernel::score_fgd;
        let [score] = device.compile(kernel, text(kernel), [kernel.name()])?;
        Ok(Self {
            score,
            input: Store::input("classes and typical pods"),
            rows: Store::rows("scores of nodes"),
            answers: Store::answers("scores"),
            classes: Classes::default(),
        })
    }

    /// See `Backend::score_fgd`.
    pub(super) fn score(
        &mut self,
        device: &Device,
        nodes: &Resident,
        query: &FgdQuery,
        out: &mut Vec<FgdRow>,
    ) -> Result<(), EvalError> {
        out.clear();
        out.resize(query.len() * nodes.nodes, FgdRow::REFUSED);
        let binding = device.limits.binding.min(device.limits.buffer / 8);
        device.fits("typical pods", size_of_val(query.pods()) as u64, binding)?;
        device.fits("models of typical pods", size_of_val(query.allowed()) as u64, binding)?;
        let rows = rows_a_part(device, query);
        let step = nodes.nodes.min(rows).max(1);
        let a_class = size_of::<DemandClass>().max(4 * words_of_pools(query.demands()));
        let classes_a_step = (rows / step).min(binding as usize / a_class).max(1);
        for first in (0..nodes.nodes).step_by(step) {
            let scored = first..(first + step).min(nodes.nodes);
            for first in (0..query.len()).step_by(classes_a_step) {
                let classes = first..(first + classes_a_step).min(query.len());
                self.score_some(device, nodes, query, scored.clone(), classes, out)?;
            }
        }
        Ok(())
    }

    fn score_some(
        &mut self,
        device: &Device,
        nodes: &Resident,
        query: &FgdQuery,
        scored: Range<usize>,
        classes: Range<usize>,
        out: &mut [FgdRow],
    ) -> Result<(), EvalError> {
        self.classes.collect(query.demands(), classes.clone());
        let numbers = [scored.start, scored.len(), classes.len(), query.pods().len(), query.words(), 0, 0, 0];
        let params = numbers.map(|number| number as u32);
        let arrays = [
            cast_slice(&params),
            cast_slice(&self.classes.rows),
            cast_slice(&self.classes.pool_bits),
            cast_slice(query.pods()),
            cast_slice(query.allowed()),
        ];
        let [params, demands, pool_bits, pods, allowed] = self.input.write(device, arrays)?;
        let n = classes.len() * scored.len();
        let bytes = (n * size_of::<FgdRow>()) as u64;
        let rows = self.rows.room(device, bytes)?;
        let answers = self.answers.room(device, bytes)?;
        let bindings = [
            (0, &params),
            (1, &nodes.amounts),
            (2, &nodes.attributes),
            (3, &nodes.gpu_milli),
            (4, &demands),
            (5, &pool_bits),
            (6, &pods),
            (7, &allowed),
            (8, &rows),
        ];
        let call = device.call(&self.score, &bindings, n.div_ceil(THREADS) as u64);
        let mut commands = device.commands();
        put(&[call], &mut commands);
        commands.copy_buffer_to_buffer(rows.buffer(), 0, answers.buffer(), 0, bytes);
        let sent = device.send(commands.finish())?;
        device.read(&sent, &answers, |found| {
            for (class, found) in classes.zip(found.chunks(scored.len() * size_of::<FgdRow>())) {
                let at = class * nodes.nodes + scored.start;
                cast_slice_mut(&mut out[at..at + scored.len()]).copy_from_slice(found);
            }
        })
    }
}

/// Rows at a time: they fit a binding, and no thread loops too often over its rows and the typical pods of each.
fn rows_a_part(device: &Device, query: &FgdQuery) -> usize {
    let room = device.limits.binding.min(device.limits.buffer) as usize / size_of::<FgdRow>();
    let rounds = ROUNDS / (query.pods().len() + 32);
    room.min(device.limits.groups as usize * THREADS * rounds.max(1)).max(1)
}
