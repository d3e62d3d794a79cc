//! Scores every candidate of a batch on the resident nodes.

use crate::evaluate::abi::{PackedState, ScoreRow, Touch};
use crate::evaluate::batch::Batch;
use crate::evaluate::node_rows::NodeRows;
use crate::evaluate::reason::Reason;

/// One row a candidate, in order.
pub fn score_candidates(state: &NodeRows, batch: &Batch, rows: &mut [ScoreRow]) {
    for (candidate, row) in rows.iter_mut().enumerate() {
        *row = score(state, batch, candidate);
    }
}

fn score(state: &NodeRows, batch: &Batch, candidate: usize) -> ScoreRow {
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
        let before = state.bits[touch.node as usize].state;
        let after = before.after(touch.step);
        row.delta_partial += partial(after) - partial(before);
        let (outside, outside_after) = (before.is(PackedState::WAS_OUTSIDE), after.outside().is_some());
        row.left += u32::from(!outside && outside_after);
        row.entered += u32::from(outside && !outside_after);
        row.outside += u32::from(outside_after);
        let (empty, empty_after) = (!before.is(PackedState::NOT_EMPTY), !after.is(PackedState::NOT_EMPTY));
        row.opened += u32::from(empty && !empty_after);
        row.delta_empty += i32::from(empty_after) - i32::from(empty);
        row.residual = row.residual.wrapping_add_signed(after.free());
    }
    row
}

/// 1 for a partial node, which is neither full nor empty, and 0 for others; -1 for a node without a working device,
/// which is both before and after every step.
fn partial(state: PackedState) -> i32 {
    i32::from(state.is(PackedState::NOT_EMPTY)) + i32::from(state.is(PackedState::NOT_FULL)) - 1
}

/// What stands against a touch now.
fn obstacle(state: &NodeRows, batch: &Batch, touch: &Touch) -> Option<Reason> {
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
