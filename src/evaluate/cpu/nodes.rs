//! `rank_nodes` and `census` on the processor: cut into ranges of nodes, and put together in order.

use std::ops::Range;

use rayon::prelude::*;

use crate::evaluate::abi::NONE;
use crate::evaluate::census::Census;
use crate::evaluate::node_rows::NodeRows;
use crate::evaluate::query::NodeQuery;

/// Nodes a piece of work.
const PIECE: usize = 16 * 1024;

/// On the calling thread.
pub(super) fn rank_nodes(state: &NodeRows, query: &NodeQuery, out: &mut [u32]) {
    for (class, slots) in out.chunks_mut(query.k().max(1)).enumerate() {
        fill(slots, best_in(state, query, class, 0..state.len()));
    }
}

/// On the threads of the pool that it is called in.
pub(super) fn rank_nodes_in_pool(state: &NodeRows, query: &NodeQuery, out: &mut [u32]) {
    out.par_chunks_mut(query.k().max(1)).enumerate().for_each(|(class, slots)| {
        let ranges = (0..state.len().div_ceil(PIECE)).into_par_iter();
        let nodes = |piece: usize| piece * PIECE..((piece + 1) * PIECE).min(state.len());
        let parts: Vec<Vec<u64>> = ranges.map(|piece| best_in(state, query, class, nodes(piece))).collect();
        fill(slots, parts.into_iter().flatten().collect());
    });
}

/// Writes the nodes of the least keys, in order, and `NONE` behind them.
fn fill(slots: &mut [u32], mut keys: Vec<u64>) {
    keys.sort_unstable();
    slots.fill(NONE);
    slots.iter_mut().zip(keys).for_each(|(slot, key)| *slot = key as u32);
}

/// The best `k` keys among some nodes, unordered; the node's number is the low half of a key.
fn best_in(state: &NodeRows, query: &NodeQuery, class: usize, nodes: Range<usize>) -> Vec<u64> {
    let k = query.k();
    let mut best = std::collections::BinaryHeap::with_capacity(k.min(nodes.len()) + 1);
    for node in nodes {
        let Some(key) = query.key(class, state, node as u32) else { continue };
        let key = u64::from(key) << 32 | node as u64;
        if best.len() < k {
            best.push(key);
        } else if best.peek().is_some_and(|&worst| key < worst) {
            best.pop();
            best.push(key);
        }
    }
    best.into_vec()
}

pub(super) fn census(state: &NodeRows, out: &mut Census) {
    let pieces = state.bits.par_chunks(PIECE).zip(state.attributes.par_chunks(PIECE));
    let total = pieces
        .map(|(bits, attributes)| {
            let mut part = Census::default();
            part.reset(state.pools);
            bits.iter().zip(attributes).for_each(|(node, attributes)| part.count(node, attributes));
            part
        })
        .reduce_with(|mut a, b| {
            a.add(&b);
            a
        });
    match total {
        Some(total) => *out = total,
        None => out.reset(state.pools),
    }
}
