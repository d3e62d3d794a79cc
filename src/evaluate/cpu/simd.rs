//! `score_candidates` with the instructions that some processors have beyond what the build asks for.
//!
//! The only file with `unsafe`: a call of code that is compiled for more than the build's target.
#![expect(unsafe_code, reason = "only a check at run time tells that a processor has the instructions")]

use std::arch::x86_64::*;
use std::ops::Range;

use super::score::{
    self, BIAS, BLOCK, Block, CHUNK, COUNTED, FREE, GPU_BUSY, HALF, LANES, MASK, NodeWords, OTHER, OTHER_SIGN, Passes,
    RowWords, SHIFT, SIGN, TAKEN, TouchWords,
};
use crate::evaluate::abi::{PackedState, ScoreRow};
use crate::evaluate::batch::Batch;
use crate::evaluate::node_rows::NodeRows;

/// Proof that the processor has AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// `None` if it has not.
    pub(super) fn detect() -> Option<Self> {
        std::is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// `score::score`, several touches at a time.
    pub(super) fn score(self, state: &NodeRows, batch: &Batch, first: usize, rows: &mut [ScoreRow]) {
        // SAFETY: `self` is only made by `detect`, which has found AVX2, and `score` asks for nothing else. Covered by
        // `every_way_of_scoring_passes_the_suite`.
        unsafe { score(state, batch, first, rows) }
    }
}

#[target_feature(enable = "avx2")]
fn score(state: &NodeRows, batch: &Batch, first: usize, rows: &mut [ScoreRow]) {
    let fill = |nodes: &[NodeWords], touches: &[TouchWords], words: &mut [u64]| {
        let (groups, rest) = touches.as_chunks::<8>();
        let (words_of_groups, words_of_rest) = words.as_chunks_mut::<8>();
        let mut soon = groups.iter().skip(SOON);
        for (words, touches) in words_of_groups.iter_mut().zip(groups) {
            let later = std::ptr::from_ref(touches).wrapping_byte_add(LATER).cast::<u8>();
            prefetch::<_MM_HINT_T1, _>(later);
            prefetch::<_MM_HINT_T1, _>(later.wrapping_add(64));
            if let Some(soon) = soon.next() {
                for touch in soon {
                    prefetch::<_MM_HINT_T0, _>(nodes.as_ptr().wrapping_add(touch[0] as usize));
                }
            }
            *words = contributions(nodes, touches);
        }
        for (word, touch) in words_of_rest.iter_mut().zip(rest) {
            *word = score::contribution(nodes, touch);
        }
    };
    Passes { fill, sum: |block: &Block, range| bytemuck::cast(sum(block, range)), row: |fields, n| row(fields, n) }
        .score(state, batch, first, rows);
}

/// `score::sum`.
#[inline]
#[target_feature(enable = "avx2")]
fn sum(block: &Block, range: Range<usize>) -> __m256i {
    let n = range.end.wrapping_sub(range.start);
    let sums = if n <= LANES {
        load(block, range)
    } else if n <= CHUNK {
        let mut sums = _mm256_setzero_si256();
        let mut at = range.start;
        while at + LANES <= range.end {
            sums = _mm256_add_epi64(sums, load(block, at..at + LANES));
            at += LANES;
        }
        _mm256_add_epi64(sums, load(block, at..range.end))
    } else {
        return sum_many(block, range);
    };
    let halves = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    let sum = _mm_add_epi64(halves, _mm_unpackhi_epi64(halves, halves));
    fields(_mm256_castsi128_si256(sum), 0)
}

/// `score::sum` for more than a chunk: four sums at once, each of no more than a chunk.
#[target_feature(enable = "avx2")]
fn sum_many(block: &Block, mut range: Range<usize>) -> __m256i {
    let mut total = _mm256_setzero_si256();
    while range.len() >= LANES * CHUNK {
        let sums = sum_groups(&block[range.start..range.start + LANES * CHUNK]);
        total = _mm256_add_epi32(total, fields_of_four(sums));
        range.start += LANES * CHUNK;
    }
    let last = range.end - range.len() % LANES;
    let sums = _mm256_add_epi64(sum_groups(&block[range.start..last]), load(block, last..range.end));
    _mm256_add_epi32(total, fields_of_four(sums))
}

/// Up to four contributions, and zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn load(block: &Block, range: Range<usize>) -> __m256i {
    // There is room for four beyond the end of the block, and nothing is wanted from there on: so the compiler sees
    // that no index is out of bounds.
    let at = range.start % BLOCK;
    let words = block[at..at + LANES].first_chunk::<LANES>().copied().unwrap_or_default();
    let wanted = WANTED[range.end.wrapping_sub(range.start).min(LANES)];
    _mm256_and_si256(bytemuck::cast(wanted), bytemuck::cast(words))
}

/// Masks of the first lanes, by their number.
const WANTED: [[i64; LANES]; LANES + 1] =
    [[0, 0, 0, 0], [-1, 0, 0, 0], [-1, -1, 0, 0], [-1, -1, -1, 0], [-1, -1, -1, -1]];

/// Every fourth contribution together, from the first four on; of a multiple of four.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_groups(words: &[u64]) -> __m256i {
    let mut sums = _mm256_setzero_si256();
    for &group in words.as_chunks::<LANES>().0 {
        sums = _mm256_add_epi64(sums, bytemuck::cast(group));
    }
    sums
}

/// The fields of four sums together.
#[inline]
#[target_feature(enable = "avx2")]
fn fields_of_four(sums: __m256i) -> __m256i {
    let even = _mm256_add_epi32(fields(sums, 0), fields(sums, 2));
    let odd = _mm256_add_epi32(fields(sums, 1), fields(sums, 3));
    _mm256_add_epi32(even, odd)
}

/// The fields of one of four sums.
#[inline]
#[target_feature(enable = "avx2")]
fn fields(sums: __m256i, which: u32) -> __m256i {
    let halves = _mm256_permutevar8x32_epi32(sums, bytemuck::cast(HALF.map(|half| 2 * which + half)));
    _mm256_and_si256(_mm256_srlv_epi32(halves, bytemuck::cast(SHIFT)), bytemuck::cast(MASK))
}

/// `score::row`.
#[inline]
#[target_feature(enable = "avx2")]
fn row(fields: RowWords, n: u32) -> RowWords {
    let fields = bytemuck::cast(fields);
    let other = _mm256_permutevar8x32_epi32(fields, bytemuck::cast(OTHER));
    let signed = _mm256_sign_epi32(fields, bytemuck::cast(SIGN));
    let signed = _mm256_add_epi32(signed, _mm256_sign_epi32(other, bytemuck::cast(OTHER_SIGN)));
    let bias = _mm256_mullo_epi32(_mm256_set1_epi32(n as i32), bytemuck::cast(BIAS));
    bytemuck::cast(_mm256_add_epi32(signed, bias))
}

/// `score::contribution` of eight touches.
#[inline]
#[target_feature(enable = "avx2")]
fn contributions(nodes: &[NodeWords], touches: &[TouchWords; 8]) -> [u64; 8] {
    let [t0, t1, t2, t3]: [__m256i; 4] = bytemuck::cast(*touches);
    // The masks and steps of the touches 0, 2, 1, 3, and the nodes in that order.
    let (touches_a, touches_b) = (_mm256_unpackhi_epi64(t0, t1), _mm256_unpackhi_epi64(t2, t3));
    let nodes_of = |order: [usize; 4]| bytemuck::cast(order.map(|at| nodes[touches[at][0] as usize]));
    let (nodes_a, nodes_b): (__m256i, __m256i) = (nodes_of([0, 2, 1, 3]), nodes_of([4, 6, 5, 7]));
    let (masks, step) = split(touches_a, touches_b);
    let (free, state) = split(nodes_a, nodes_b);

    let bits = |word: u32| _mm256_set1_epi32(word as i32);
    let after = _mm256_add_epi32(state, step);
    let no_slack = _mm256_andnot_si256(_mm256_srli_epi32::<6>(after), after);
    let outside = _mm256_or_si256(no_slack, _mm256_srli_epi32::<24>(after));
    let outside = _mm256_and_si256(outside, bits(PackedState::ANCHOR));
    let both = _mm256_and_si256(_mm256_srli_epi32::<25>(state), outside);
    let busy = _mm256_andnot_si256(_mm256_or_si256(_mm256_slli_epi32::<16>(masks), free), masks);
    let busy = _mm256_min_epu32(_mm256_and_si256(busy, bits(TAKEN)), bits(GPU_BUSY));
    let low = _mm256_or_si256(_mm256_or_si256(outside, busy), _mm256_slli_epi32::<5>(both));
    let low = _mm256_or_si256(low, _mm256_srli_epi32::<30>(state));

    let counted = bits(COUNTED);
    let change = _mm256_add_epi32(_mm256_and_si256(after, counted), _mm256_andnot_si256(state, counted));
    let opened = _mm256_and_si256(_mm256_andnot_si256(state, after), bits(PackedState::NOT_EMPTY));
    let high = _mm256_or_si256(_mm256_and_si256(after, bits(FREE)), opened);
    let high = _mm256_add_epi32(high, _mm256_srli_epi32::<17>(change));

    // Back into the order of the touches.
    let a = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_unpacklo_epi32(low, high));
    let b = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_unpackhi_epi32(low, high));
    bytemuck::cast([a, b])
}

/// The low and the high halves of eight 64-bit words: of `a` and `b` in turn by pairs, as `unpack` takes them back.
#[inline]
#[target_feature(enable = "avx2")]
fn split(a: __m256i, b: __m256i) -> (__m256i, __m256i) {
    let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    let halves = (_mm256_shuffle_ps::<0b10_00_10_00>(a, b), _mm256_shuffle_ps::<0b11_01_11_01>(a, b));
    (_mm256_castps_si256(halves.0), _mm256_castps_si256(halves.1))
}

/// How many bytes before its turn a touch is asked for, into the second-level cache: the first one's misses are few at
/// a time, and the nodes need those. Measured between 1 and 16 KiB.
const LATER: usize = 4096;

/// How many groups of touches before its turn a node is asked for.
const SOON: usize = 3;

/// Asks for what will be read soon, wherever it is.
#[inline]
#[target_feature(enable = "avx2")]
fn prefetch<const HINT: i32, T>(row: *const T) {
    _mm_prefetch::<HINT>(row.cast());
}
