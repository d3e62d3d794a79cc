//! `score_candidates` on the processor.
//!
//! Touches are worked through in blocks, across the borders of candidates, in three passes that each do one thing:
//! fetch the hot rows of the touched nodes; work out, without a branch, what each touch adds to its candidate's score,
//! packed into two words (the compiler does this pass several touches at a time); add the words up by candidate.
//! Whether anything stands against a touch is asked of the block as a whole, and one by one only if so.

use crate::evaluate::abi::{PackedState, ScoreRow, Touch};
use crate::evaluate::batch::Batch;
use crate::evaluate::reason::Reason;
use crate::evaluate::state::State;

/// Touches a block: its buffers stay in the first-level cache.
const BLOCK: usize = 256;

/// Touches whose nodes are fetched before the first of them is worked on.
const GROUP: usize = 8;

/// So many packed words add up without a carry from field to field.
const CHUNK: usize = 31;

/// What stands against a touch, a bit each.
const GPU_BUSY: u8 = 1;
const NO_CPU: u8 = 2;
const NO_MEMORY: u8 = 4;

/// What the touches of a block add.
struct Block {
    /// See `contribution`.
    after: [u32; BLOCK],
    before: [u32; BLOCK],
    /// What stands against them; only written if something does.
    obstacles: [u8; BLOCK],
}

/// Scores the candidates from `first` on, one for each row.
pub(super) fn score(state: &State, batch: &Batch, first: usize, rows: &mut [ScoreRow]) {
    let offsets = &batch.offsets()[first..=first + rows.len()];
    let given = &batch.given()[first..first + rows.len()];
    let mut block = Block { after: [0; BLOCK], before: [0; BLOCK], obstacles: [0; BLOCK] };
    let mut sums = Sums::default();
    // The candidates in order: where their touches end, their row, what was known of them.
    let mut open = offsets[1..].iter().zip(rows).zip(given).peekable();
    let mut at = offsets[0] as usize;
    let end = offsets[offsets.len() - 1] as usize;
    loop {
        let n = (end - at).min(BLOCK);
        let obstructed = block.fill(state, batch, &batch.touches()[at..at + n]);
        let mut done = 0;
        while let Some(((stop, _), _)) = open.peek() {
            let stop = (**stop as usize - at).min(n);
            sums.add(&block.after[done..stop], &block.before[done..stop]);
            if obstructed {
                sums.obstacles |= block.obstacles[done..stop].iter().fold(0, |all, &one| all | one);
            }
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
    /// Works through the touches; true if something stands against one, and `obstacles` tells what.
    fn fill(&mut self, state: &State, batch: &Batch, touches: &[Touch]) -> bool {
        let bits: &[[u32; 2]] = bytemuck::cast_slice(&state.bits);
        let words: &[[u32; 4]] = bytemuck::cast_slice(touches);
        let n = words.len();
        let mut busy = 0;
        let (groups, rest) = words.as_chunks::<GROUP>();
        let (after_groups, after_rest) = self.after[..n].as_chunks_mut::<GROUP>();
        let (before_groups, before_rest) = self.before[..n].as_chunks_mut::<GROUP>();
        for ((group, after), before) in groups.iter().zip(after_groups).zip(before_groups) {
            let nodes = group.map(|touch| bits[touch[0] as usize]);
            for i in 0..GROUP {
                let ([_, _, masks, step], [free, state]) = (group[i], nodes[i]);
                busy |= taken_busy(masks, free);
                (after[i], before[i]) = contribution(step, state);
            }
        }
        for ((&[node, _, masks, step], after), before) in rest.iter().zip(after_rest).zip(before_rest) {
            let [free, state] = bits[node as usize];
            busy |= taken_busy(masks, free);
            (*after, *before) = contribution(step, state);
        }
        let obstructed = busy >> 16 != 0 || batch.needs().len() > 1;
        if obstructed {
            self.find_obstacles(state, batch, touches);
        }
        obstructed
    }

    fn find_obstacles(&mut self, state: &State, batch: &Batch, touches: &[Touch]) {
        for (i, touch) in touches.iter().enumerate() {
            let free = state.bits[touch.node as usize].free;
            let mut found = if touch.taken & !free & !touch.freed != 0 { GPU_BUSY } else { 0 };
            if touch.need != 0 {
                let (cpu, memory) = state.amounts[touch.node as usize].meets(batch.needs()[touch.need as usize]);
                found |= if cpu { 0 } else { NO_CPU } | if memory { 0 } else { NO_MEMORY };
            }
            self.obstacles[i] = found;
        }
    }
}

/// Devices that are taken though neither free nor freed, in the high half; the low half means nothing.
#[inline(always)]
fn taken_busy(freed_taken: u32, free: u32) -> u32 {
    freed_taken & !free & !(freed_taken << 16)
}

/// Where the fields of the packed words begin; each has room for `CHUNK` times the largest value of a touch. Of both
/// words: not full, not empty. Of the word for after: the field of free GPUs, outside Σ.
const NOT_EMPTY: u32 = 6;
const FREE: u32 = 12;
const OUTSIDE: u32 = 24;
/// Of the word for before: outside Σ, left Σ, opened.
const WAS_OUTSIDE: u32 = 13;
const LEFT: u32 = 18;
const OPENED: u32 = 23;

/// What a touch adds to the two packed words. The positions of the fields are those of `PackedState`, so that few
/// shifts are needed.
#[inline(always)]
fn contribution(step: u32, state: u32) -> (u32, u32) {
    let after = state.wrapping_add(step);
    // In bit 5: an anchor and negative slack, or an overflow.
    let outside = (after & !(after >> 6)) | after >> 24;
    let left = (outside << (LEFT - 5)) & !(state >> (30 - LEFT)) & 1 << LEFT;
    let opened = after & !state & 1 << OPENED;
    let after_word = (after >> 17 & 0x41) | (after & 0x3f << FREE) | (outside << (OUTSIDE - 5) & 1 << OUTSIDE);
    let before_word = (state >> 17 & 0x2041) | left | opened;
    (after_word, before_word)
}

// `contribution` shifts by what these say.
const _: () = assert!(
    PackedState::ANCHOR == 1 << 5
        && PackedState::SLACK == 1 << 11
        && PackedState::NOT_FULL == 1 << 17
        && PackedState::NOT_EMPTY == 1 << 23
        && PackedState::OVERFLOW == 1 << 29
        && PackedState::WAS_OUTSIDE == 1 << 30
);

/// The sums of a candidate so far.
#[derive(Default)]
struct Sums {
    row: ScoreRow,
    was_outside: u32,
    obstacles: u8,
}

impl Sums {
    #[inline(always)]
    fn add(&mut self, after: &[u32], before: &[u32]) {
        for (after, before) in after.chunks(CHUNK).zip(before.chunks(CHUNK)) {
            let n = after.len() as u32;
            let after: u32 = after.iter().sum();
            let before: u32 = before.iter().sum();
            let field = |word: u32, at: u32| word >> at & 31;
            let row = &mut self.row;
            // Partial is "not full" and "not empty"; no node that anything can be placed on is neither.
            let (not_empty, not_empty_before) = (field(after, NOT_EMPTY), field(before, NOT_EMPTY));
            let delta_not_full = field(after, 0) as i32 - field(before, 0) as i32;
            row.delta_empty += not_empty_before as i32 - not_empty as i32;
            row.delta_partial += delta_not_full + not_empty as i32 - not_empty_before as i32;
            row.residual = row.residual.wrapping_add((after >> FREE & 0x7ff).wrapping_sub(31 * n));
            row.outside += field(after, OUTSIDE);
            row.left += field(before, LEFT);
            row.opened += field(before, OPENED);
            self.was_outside += field(before, WAS_OUTSIDE);
        }
    }

    /// The row of the candidate, given the reason that was known before.
    #[inline(always)]
    fn row(self, given: u32) -> ScoreRow {
        if given == 0 && self.obstacles == 0 {
            // Outside after less outside before is left less entered.
            let entered = (self.row.left + self.was_outside).wrapping_sub(self.row.outside);
            return ScoreRow { entered, ..self.row };
        }
        let reason = if given != 0 {
            given
        } else if self.obstacles & GPU_BUSY != 0 {
            Reason::GpuBusy.number()
        } else if self.obstacles & NO_CPU != 0 {
            Reason::NoCpu.number()
        } else {
            Reason::NoMemory.number()
        };
        ScoreRow { reason, ..ScoreRow::default() }
    }
}
