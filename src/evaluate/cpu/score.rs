//! `score_candidates` on the processor.
//!
//! Touches are worked through in blocks, across the borders of candidates, in two passes: one works out, without a
//! branch, what each touch adds to its candidate's score, packed into one word (`Contribution`); the other adds the
//! words up by candidate and takes the sums apart. What stands against a touch is a field of its word like any other.

use std::ops::Range;

use crate::evaluate::abi::{PackedState, ScoreRow, Touch};
use crate::evaluate::batch::Batch;
use crate::evaluate::node_rows::NodeRows;
use crate::evaluate::reason::Reason;

/// Touches a block: its buffer stays in the first-level cache.
pub(super) const BLOCK: usize = 256;

/// So many contributions add up without a carry from field to field.
pub(super) const CHUNK: usize = 31;

/// A node as the passes read it: its `NodeBits`, in two words.
pub(super) type NodeWords = [u32; 2];

/// A touch as the passes read it, in four words.
pub(super) type TouchWords = [u32; 4];

/// The contributions of a block of touches, and room to load `LANES` from anywhere among them.
pub(super) type Block = [u64; BLOCK + LANES];

/// How many contributions are loaded at once.
pub(super) const LANES: usize = 4;

/// A `ScoreRow`, or the sums of fields that become one.
pub(super) type RowWords = [u32; 8];

/// The two passes and what follows them, on one kind of processor.
pub(super) struct Passes<Fill, Sum, Row> {
    /// Writes the contribution of each touch.
    pub(super) fill: Fill,
    /// The sums of the fields of some contributions: see `HALF`.
    pub(super) sum: Sum,
    /// The row that a feasible candidate's sums and number of touches make.
    pub(super) row: Row,
}

/// Scores the candidates from `first` on, one for each row, on any processor.
pub(super) fn score(state: &NodeRows, batch: &Batch, first: usize, rows: &mut [ScoreRow]) {
    let fill = |nodes: &[NodeWords], touches: &[TouchWords], words: &mut [u64]| {
        let (groups, rest) = touches.as_chunks::<GROUP>();
        let (words_of_groups, words_of_rest) = words.as_chunks_mut::<GROUP>();
        for (words, touches) in words_of_groups.iter_mut().zip(groups) {
            *words = contributions(nodes, touches);
        }
        for (word, touch) in words_of_rest.iter_mut().zip(rest) {
            *word = contribution(nodes, touch);
        }
    };
    let sum = |block: &Block, range: Range<usize>| sum(&block[range]);
    Passes { fill, sum, row }.score(state, batch, first, rows);
}

impl<Fill, Sum, Row> Passes<Fill, Sum, Row>
where
    Fill: Fn(&[NodeWords], &[TouchWords], &mut [u64]),
    Sum: Fn(&Block, Range<usize>) -> RowWords,
    Row: Fn(RowWords, u32) -> RowWords,
{
    /// Scores the candidates from `first` on, one for each row.
    #[inline(always)]
    pub(super) fn score(self, state: &NodeRows, batch: &Batch, first: usize, rows: &mut [ScoreRow]) {
        let nodes: &[NodeWords] = bytemuck::cast_slice(&state.bits);
        let offsets = &batch.offsets()[first..=first + rows.len()];
        let given = &batch.given()[first..first + rows.len()];
        let rows: &mut [RowWords] = bytemuck::cast_slice_mut(rows);
        let mut block = [0; BLOCK + LANES];
        let (mut at, end) = (offsets[0] as usize, offsets[rows.len()] as usize);
        // What the blocks before had of the next candidate.
        let mut before = Sums::default();
        let mut candidate = 0;
        while candidate < rows.len() {
            let n = (end - at).min(BLOCK);
            let touches = &batch.touches()[at..at + n];
            (self.fill)(nodes, bytemuck::cast_slice(touches), &mut block[..n]);
            if batch.needs().len() > 1 {
                add_needs(state, batch, touches, &mut block[..n]);
            }
            let mut done = 0;
            if before.n > 0 {
                let stop = (offsets[candidate + 1] as usize - at).min(n);
                before.add(&block[..stop], (self.sum)(&block, 0..stop));
                if offsets[candidate + 1] as usize <= at + n {
                    let Sums { fields, n, obstacles } = std::mem::take(&mut before);
                    rows[candidate] = match given[candidate] | obstacles {
                        0 => (self.row)(fields, n),
                        _ => infeasible(given[candidate], obstacles),
                    };
                    candidate += 1;
                }
                done = stop;
            }
            // The candidates that lie in this block.
            let open = offsets[candidate + 1..].iter().zip(&mut rows[candidate..]).zip(&given[candidate..]);
            for ((&stop, row), &given) in open {
                let stop = stop as usize - at;
                if stop > n {
                    break;
                }
                let fields = (self.sum)(&block, done..stop);
                *row = (self.row)(fields, (stop - done) as u32);
                if fields[0] | given != 0 {
                    *row = infeasible(given, obstacles_among(&block[done..stop]));
                }
                done = stop;
                candidate += 1;
            }
            if done < n {
                before.add(&block[done..n], (self.sum)(&block, done..n));
            }
            at += n;
        }
    }
}

/// What a touch adds to the sums of its candidate: a word of fields, each with room for `CHUNK` touches.
///
/// | bits | number |
/// |---|---|
/// | 0..5 | outside Σ before |
/// | 5..10 | outside Σ afterwards |
/// | 10..15 | both |
/// | 16..21 | a GPU is taken that is busy |
/// | 21..26 | too little CPU |
/// | 26..31 | too little memory |
/// | 32..38 | not full afterwards less before + 1 |
/// | 38..44 | not empty afterwards less before + 1 |
/// | 44..55 | free GPUs afterwards + 31 |
/// | 55..60 | opened |
///
/// Most fields stand where `PackedState` has what they follow from, so that few shifts are needed.
#[inline(always)]
pub(super) fn contribution(nodes: &[NodeWords], touch: &TouchWords) -> u64 {
    contribution_of(nodes[touch[0] as usize], *touch)
}

#[inline(always)]
fn contribution_of([free, state]: NodeWords, [_, _, masks, step]: TouchWords) -> u64 {
    let after = state.wrapping_add(step);
    // An anchor and negative slack, or an overflow.
    let outside = ((after & !(after >> 6)) | after >> 24) & PackedState::ANCHOR;
    let both = state >> 25 & outside;
    let busy = ((masks & !free & !(masks << 16)) >> 16).wrapping_add(0xffff) & GPU_BUSY;
    let low = outside | both << 5 | state >> 30 | busy;
    let change = (after & COUNTED) + (!state & COUNTED);
    let opened = after & !state & PackedState::NOT_EMPTY;
    let high = ((after & FREE) | opened) + (change >> 17);
    u64::from(high) << 32 | u64::from(low)
}

/// How many touches are worked on at once: a loop over so many is one that compilers turn into vector instructions.
const GROUP: usize = 8;

/// The contributions of a group, lane by lane.
#[inline(always)]
fn contributions(nodes: &[NodeWords], touches: &[TouchWords; GROUP]) -> [u64; GROUP] {
    let rows = touches.map(|touch| nodes[touch[0] as usize]);
    let mut words = [0; GROUP];
    for i in 0..GROUP {
        words[i] = contribution_of(rows[i], touches[i]);
    }
    words
}

/// The devices that a touch takes, in its word of masks.
pub(super) const TAKEN: u32 = 0xffff << 16;
/// What a contribution counts of a state, to be shifted by 17.
pub(super) const COUNTED: u32 = PackedState::NOT_FULL | PackedState::NOT_EMPTY;
/// The free GPUs of a state, which keep their place.
pub(super) const FREE: u32 = 0x3f << 12;
/// What stands against a touch, by one, in the low half of its contribution.
pub(super) const GPU_BUSY: u32 = 1 << 16;
const NO_CPU: u32 = 1 << 21;
const NO_MEMORY: u32 = 1 << 26;

/// The fields of a contribution that the words of a `ScoreRow` are made of: in which half, from which bit, how wide.
/// The first is all that stands against it, the third what is outside before and afterwards.
pub(super) const HALF: [u32; 8] = [0, 1, 0, 0, 0, 1, 1, 1];
/// See `HALF`.
pub(super) const SHIFT: [u32; 8] = [16, 0, 10, 0, 5, 23, 6, 12];
/// See `HALF`.
pub(super) const MASK: [u32; 8] = [0x7fff, 63, 31, 31, 31, 31, 63, 0x7ff];
/// How the sum of a field enters its word of the row.
pub(super) const SIGN: [i32; 8] = [0, 1, -1, 1, 1, 1, -1, 1];
/// Which other field enters it: partial is what is neither full nor empty; left is outside less both; entered is
/// outside before less both.
pub(super) const OTHER: [u32; 8] = [0, 6, 4, 2, 0, 0, 0, 0];
/// How that one enters.
pub(super) const OTHER_SIGN: [i32; 8] = [0, 1, 1, -1, 0, 0, 0, 0];
/// What is added to the row for each touch, to undo what keeps the fields from being negative.
pub(super) const BIAS: [i32; 8] = [0, -2, 0, 0, 0, 0, 1, -31];

// `contribution` shifts by what these say.
const _: () = assert!(
    PackedState::ANCHOR == 1 << 5
        && PackedState::SLACK == 1 << 11
        && PackedState::NOT_FULL == 1 << 17
        && PackedState::NOT_EMPTY == 1 << 23
        && PackedState::OVERFLOW == 1 << 29
        && PackedState::WAS_OUTSIDE == 1 << 30
);

/// Adds what the needs of touches have against them; of a block.
#[cold]
fn add_needs(state: &NodeRows, batch: &Batch, touches: &[Touch], words: &mut [u64]) {
    // First which of them ask for anything, without a branch that nothing could foretell.
    let mut asking = [0u8; BLOCK];
    let mut n = 0;
    for (at, touch) in touches.iter().enumerate() {
        asking[n] = at as u8;
        n += usize::from(touch.need != 0);
    }
    for at in asking[..n].iter().map(|&at| usize::from(at)) {
        let touch = &touches[at];
        let (cpu, memory) = state.amounts[touch.node as usize].meets(batch.needs()[touch.need as usize]);
        words[at] += u64::from(if cpu { 0 } else { NO_CPU } | if memory { 0 } else { NO_MEMORY });
    }
}

// A place in a block is a byte.
const _: () = assert!(BLOCK == 256);

/// The sums of the fields of some contributions.
fn sum(words: &[u64]) -> RowWords {
    let mut fields = [0; 8];
    for words in words.chunks(CHUNK) {
        let sum: u64 = words.iter().sum();
        let halves = [sum as u32, (sum >> 32) as u32];
        for i in 0..8 {
            fields[i] += halves[HALF[i] as usize] >> SHIFT[i] & MASK[i];
        }
    }
    fields
}

/// The row that a feasible candidate's fields and number of touches make.
fn row(fields: RowWords, n: u32) -> RowWords {
    std::array::from_fn(|i| {
        let field = fields[i].wrapping_mul(SIGN[i] as u32);
        let other = fields[OTHER[i] as usize].wrapping_mul(OTHER_SIGN[i] as u32);
        field.wrapping_add(other).wrapping_add(n.wrapping_mul(BIAS[i] as u32))
    })
}

/// The row of an infeasible candidate: what was known of it before comes first.
#[cold]
fn infeasible(given: u32, obstacles: u32) -> RowWords {
    let reason = if given != 0 {
        given
    } else if obstacles & GPU_BUSY != 0 {
        Reason::GpuBusy.number()
    } else if obstacles & NO_CPU != 0 {
        Reason::NoCpu.number()
    } else {
        Reason::NoMemory.number()
    };
    bytemuck::cast(ScoreRow { reason, ..ScoreRow::default() })
}

/// What stands against some touches, one or the other, by their contributions.
fn obstacles_among(words: &[u64]) -> u32 {
    words.iter().fold(0, |all, &word| all | word as u32) & (GPU_BUSY | NO_CPU | NO_MEMORY)
}

/// The sums of a candidate that has touches in several blocks.
#[derive(Default)]
struct Sums {
    fields: RowWords,
    n: u32,
    obstacles: u32,
}

impl Sums {
    fn add(&mut self, words: &[u64], fields: RowWords) {
        self.n += words.len() as u32;
        if fields[0] != 0 {
            self.obstacles |= obstacles_among(words);
        }
        for (sum, field) in self.fields.iter_mut().zip(fields) {
            *sum = sum.wrapping_add(field);
        }
    }
}
