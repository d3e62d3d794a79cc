//! Scores every candidate of a batch on the resident nodes.

use crate::evaluate::abi::{NodeBits, ScoreRow, Touch, class_of};
use crate::evaluate::batch::Batch;
use crate::evaluate::reason::Reason;
use crate::evaluate::state::State;

/// One row a candidate, in order.
pub fn score_candidates(state: &State, batch: &Batch, rows: &mut [ScoreRow]) {
    for (candidate, row) in rows.iter_mut().enumerate() {
        *row = score(state, batch, candidate);
    }
}

fn score(state: &State, batch: &Batch, candidate: usize) -> ScoreRow {
    let touches = batch.touches_of(candidate);
    // The reason known before comes first in the order, so nothing on a node can precede it.
    let given = batch.given()[candidate];
    let found = touches.iter().filter_map(|touch| obstacle(state, batch, touch)).min();
    let reason = if given != 0 { given } else { found.map_or(0, Reason::number) };
    if reason != 0 {
        return ScoreRow { reason, ..ScoreRow::default() };
    }
    let mut row = ScoreRow::default();
    for touch in touches {
        let node = state.bits[touch.node as usize];
        let after = node.state.after(touch.step);
        let is = |class: u8, bit: u8| i32::from(class & bit != 0);
        let (before_class, after_class) = (node.class, class_of(node.capacity, after));
        let (outside, outside_after) = (is(before_class, NodeBits::OUTSIDE), is(after_class, NodeBits::OUTSIDE));
        let (empty, empty_after) = (is(before_class, NodeBits::EMPTY), is(after_class, NodeBits::EMPTY));
        row.delta_partial += is(after_class, NodeBits::PARTIAL) - is(before_class, NodeBits::PARTIAL);
        row.left += u32::from(outside < outside_after);
        row.entered += u32::from(outside > outside_after);
        row.outside += outside_after as u32;
        row.opened += u32::from(empty > empty_after);
        row.delta_empty += empty_after - empty;
        row.residual += after.free();
    }
    row
}

/// What stands against a touch now.
fn obstacle(state: &State, batch: &Batch, touch: &Touch) -> Option<Reason> {
    let node = state.bits[touch.node as usize];
    if touch.taken & !(node.free | touch.freed) != 0 {
        return Some(Reason::GpuBusy);
    }
    let (cpu, memory) = state.amounts[touch.node as usize].meets(batch.needs()[touch.need as usize]);
    if !cpu {
        Some(Reason::NoCpu)
    } else if !memory {
        Some(Reason::NoMemory)
    } else {
        None
    }
}
