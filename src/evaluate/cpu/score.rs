//! `score_candidates` on the processor.
//!
//! Touches are worked through in blocks, across the borders of candidates, in three passes that each do one thing:
//! fetch the hot rows of the touched nodes; work out, without a branch, what each touch adds to its candidate's score,
//! packed into two words (the compiler does this pass several touches at a time); add the words up by candidate.

use crate::evaluate::abi::{NodeBits, ScoreRow, Touch};
use crate::evaluate::batch::Batch;
use crate::evaluate::reason::Reason;
use crate::evaluate::state::State;

/// Touches a block: its buffers stay in the first-level cache.
const BLOCK: usize = 512;

/// So many packed words add up without a carry from field to field.
const CHUNK: usize = 31;

/// Where the fields of the packed words begin. Every field has room for `CHUNK` times the largest value of a touch.
/// Low word: free GPUs after (0..=31), partial after less before plus 1 (0..=2), left Σ, device busy, no CPU.
const PARTIAL: u32 = 10;
const LEFT: u32 = 16;
const BUSY: u32 = 21;
const CPU: u32 = 26;
/// High word: entered Σ, outside Σ after, opened, emptied, no memory.
const OUTSIDE: u32 = 5;
const OPENED: u32 = 10;
const EMPTIED: u32 = 15;
const MEMORY: u32 = 20;

/// What the touches of a block add.
struct Block {
    masks: [u32; BLOCK],
    states: [u32; BLOCK],
    low: [u32; BLOCK],
    high: [u32; BLOCK],
}

/// Scores the candidates from `first` on, one for each row.
pub(super) fn score(state: &State, batch: &Batch, first: usize, rows: &mut [ScoreRow]) {
    let offsets = &batch.offsets()[first..=first + rows.len()];
    let given = &batch.given()[first..first + rows.len()];
    let mut block = Block { masks: [0; BLOCK], states: [0; BLOCK], low: [0; BLOCK], high: [0; BLOCK] };
    let mut sums = Sums::default();
    // The candidates in order: where their touches end, their row, what was known of them.
    let mut open = offsets[1..].iter().zip(rows).zip(given).peekable();
    let mut at = offsets[0] as usize;
    let end = offsets[offsets.len() - 1] as usize;
    loop {
        let n = (end - at).min(BLOCK);
        let touches = &batch.touches()[at..at + n];
        block.fill(state, batch, touches);
        let mut done = 0;
        while let Some(((stop, _), _)) = open.peek() {
            let stop = (**stop as usize - at).min(n);
            sums.add(&block.low[done..stop], &block.high[done..stop]);
            done = stop;
            match open.next_if(|((stop, _), _)| **stop as usize <= at + n) {
                Some(((_, row), &given)) => *row = std::mem::take(&mut sums).row(given),
                None => break,
            }
        }
        at += n;
        if at == end {
            break;
        }
    }
}

impl Block {
    fn fill(&mut self, state: &State, batch: &Batch, touches: &[Touch]) {
        let mut needs = 0;
        for ((touch, masks), packed) in touches.iter().zip(&mut self.masks).zip(&mut self.states) {
            let [word, state]: [u32; 2] = bytemuck::cast(state.bits[touch.node as usize]);
            (*masks, *packed) = (word, state);
            needs |= touch.need;
        }
        let touches_words: &[[u32; 4]] = bytemuck::cast_slice(touches);
        let n = touches_words.len();
        let (low, high) = (&mut self.low[..n], &mut self.high[..n]);
        let (masks, states) = (&self.masks[..n], &self.states[..n]);
        for i in 0..n {
            (low[i], high[i]) = contribution(touches_words[i][1], touches_words[i][2], masks[i], states[i]);
        }
        if needs != 0 {
            self.check_needs(state, batch, touches);
        }
    }

    /// CPU and memory, for the touches that ask for any.
    fn check_needs(&mut self, state: &State, batch: &Batch, touches: &[Touch]) {
        for (i, touch) in touches.iter().enumerate().filter(|(_, touch)| touch.need != 0) {
            let (cpu, memory) = state.amounts[touch.node as usize].meets(batch.needs()[touch.need as usize]);
            self.low[i] += u32::from(!cpu) << CPU;
            self.high[i] += u32::from(!memory) << MEMORY;
        }
    }
}

/// What a touch adds to the two packed words. Only additions, shifts and masks: no branch, no table.
#[inline(always)]
fn contribution(freed_taken: u32, step: u32, node: u32, state: u32) -> (u32, u32) {
    // `NodeBits` as a word: free devices, capacity, class.
    let (partial, outside, empty) = (node >> 24 & 1, node >> 25 & 1, node >> 26 & 1);
    let capacity = node >> 16 & 0xff;
    let busy = u32::from(freed_taken >> 16 & !(node | freed_taken) & 0xffff != 0);
    let after = state.wrapping_add(step);
    let free = after >> 16 & 31;
    let empty_after = u32::from(free == capacity);
    let partial_after = u32::from(free != 0) & !empty_after;
    // Widths above 0 and the signs of slack and room, each in the top bit of its byte.
    let signs = (after & !0x80) + 0x7f;
    let outside_after = ((signs >> 7 & !(signs >> 15)) | !(signs >> 31)) & 1;
    let low = free + ((1 + partial_after - partial) << PARTIAL) + ((outside_after & !outside) << LEFT) + (busy << BUSY);
    let high = (outside & !outside_after)
        + (outside_after << OUTSIDE)
        + ((empty & !empty_after) << OPENED)
        + ((empty_after & !empty) << EMPTIED);
    (low, high)
}

/// The sums of a candidate so far.
#[derive(Default)]
struct Sums {
    row: ScoreRow,
    busy: u32,
    cpu: u32,
    memory: u32,
}

impl Sums {
    fn add(&mut self, low: &[u32], high: &[u32]) {
        for (low, high) in low.chunks(CHUNK).zip(high.chunks(CHUNK)) {
            let n = low.len() as i32;
            let low: u32 = low.iter().sum();
            let high: u32 = high.iter().sum();
            let field = |word: u32, at: u32, bits: u32| word >> at & ((1 << bits) - 1);
            let row = &mut self.row;
            row.residual += field(low, 0, 10);
            row.delta_partial += field(low, PARTIAL, 6) as i32 - n;
            row.left += field(low, LEFT, 5);
            self.busy |= field(low, BUSY, 5);
            self.cpu |= field(low, CPU, 5);
            row.entered += field(high, 0, 5);
            row.outside += field(high, OUTSIDE, 5);
            let opened = field(high, OPENED, 5);
            row.opened += opened;
            row.delta_empty += field(high, EMPTIED, 5) as i32 - opened as i32;
            self.memory |= field(high, MEMORY, 5);
        }
    }

    /// The row of the candidate, given the reason that was known before.
    fn row(self, given: u32) -> ScoreRow {
        if given | self.busy | self.cpu | self.memory == 0 {
            return self.row;
        }
        let reason = if given != 0 {
            given
        } else if self.busy != 0 {
            Reason::GpuBusy.number()
        } else if self.cpu != 0 {
            Reason::NoCpu.number()
        } else {
            Reason::NoMemory.number()
        };
        ScoreRow { reason, ..ScoreRow::default() }
    }
}

const _: () = assert!(NodeBits::PARTIAL == 1 && NodeBits::OUTSIDE == 2 && NodeBits::EMPTY == 4);
