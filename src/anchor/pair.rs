//! How two nodes of a pool can be repacked so that fewer of them are outside Σ or have unprofiled room (§4, the
//! invariant): all ways for two compositions, best first, worked out once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::shape::{Kind, NARROWEST_SLOT, Outside, Shape};
use crate::cluster::{Composition, MAX_GPUS, PerSize};

/// How bad a pair of nodes is: nodes outside Σ, those of them whose slots overflow (which no later event can fill up),
/// then slotted nodes whose room a slot could still use.
type Badness = (u8, u8, u8);

/// One way to repack a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairPlan {
    pub(super) after: Badness,
    /// GPUs moved.
    pub(super) gpus: u8,
    /// Instances moved.
    pub(super) moves: u8,
    /// Instances of each size that go from the first node to the second.
    pub(super) to_second: PerSize<u8>,
    /// Instances of each size that go from the second node to the first.
    pub(super) to_first: PerSize<u8>,
}

/// All ways for all pairs that came up.
#[derive(Clone, Debug, Default)]
pub(super) struct PairPlans {
    known: FxHashMap<(u8, Composition, Composition), Arc<[PairPlan]>>,
}

impl PairPlans {
    /// The ways to make a pair of nodes of `capacity` better than it is, best first: least bad afterwards, then fewest
    /// GPUs moved, then fewest instances.
    pub(super) fn of(&mut self, capacity: u8, first: Composition, second: Composition) -> Arc<[PairPlan]> {
        Arc::clone(
            self.known.entry((capacity, first, second)).or_insert_with(|| enumerate(capacity, first, second).into()),
        )
    }
}

fn badness(capacity: u8, first: Composition, second: Composition) -> Badness {
    let shapes = [Shape::of(capacity, first), Shape::of(capacity, second)];
    let outside = shapes.iter().filter(|shape| !shape.in_space()).count();
    let overflow = shapes.iter().filter(|shape| shape.kind == Kind::Outside(Outside::SlotsOverflow)).count();
    let with_room = shapes.iter().filter(|shape| shape.has_anchor() && shape.room >= NARROWEST_SLOT).count();
    (outside as u8, overflow as u8, with_room as u8)
}

/// Every split of the anchors over the two nodes, each with the split of the 1-GPU instances that is best for it.
fn enumerate(capacity: u8, first: Composition, second: Composition) -> Vec<PairPlan> {
    let before = badness(capacity, first, second);
    let mut totals = [0u8; MAX_GPUS + 1];
    for size in 1..=MAX_GPUS as u8 {
        totals[usize::from(size)] = first.count(size) + second.count(size);
    }
    let mut plans = Vec::new();
    let mut counts = [0u8; MAX_GPUS + 1];
    split(capacity, &totals, MAX_GPUS, &mut counts, &mut |counts| {
        let mut best: Option<PairPlan> = None;
        for ones in 0..=totals[1].min(capacity) {
            let mut mine = *counts;
            mine[1] = ones;
            if let Some(plan) = plan(capacity, first, second, &totals, &mine)
                && plan.after < before
                && best.is_none_or(|best| rank(&plan) < rank(&best))
            {
                best = Some(plan);
            }
        }
        plans.extend(best);
    });
    plans.sort_by_key(rank);
    plans
}

fn rank(plan: &PairPlan) -> (Badness, u8, u8, PerSize<u8>) {
    (plan.after, plan.gpus, plan.moves, plan.to_second)
}

/// Calls `visit` with every choice of how many anchors of each size the first node gets, as far as they fit.
fn split(
    capacity: u8,
    totals: &PerSize<u8>,
    size: usize,
    counts: &mut PerSize<u8>,
    visit: &mut dyn FnMut(&PerSize<u8>),
) {
    if size < 2 {
        visit(counts);
        return;
    }
    let held: u8 = counts.iter().enumerate().map(|(size, n)| size as u8 * n).sum();
    for n in 0..=totals[size].min((capacity - held) / size as u8) {
        counts[size] = n;
        split(capacity, totals, size - 1, counts, visit);
    }
    counts[size] = 0;
}

/// The plan by which the first node ends with `mine`; `None` if one of the nodes cannot hold its part.
fn plan(
    capacity: u8,
    first: Composition,
    second: Composition,
    totals: &PerSize<u8>,
    mine: &PerSize<u8>,
) -> Option<PairPlan> {
    let build = |count: &dyn Fn(usize) -> u8| {
        let sizes = (1..=MAX_GPUS).flat_map(|size| std::iter::repeat_n(size as u8, usize::from(count(size))));
        Composition::from_sizes(sizes).filter(|composition| composition.busy() <= capacity)
    };
    let first_after = build(&|size| mine[size])?;
    let second_after = build(&|size| totals[size] - mine[size])?;
    let mut plan = PairPlan {
        after: badness(capacity, first_after, second_after),
        gpus: 0,
        moves: 0,
        to_second: [0; MAX_GPUS + 1],
        to_first: [0; MAX_GPUS + 1],
    };
    for (size, &has) in mine.iter().enumerate().skip(1) {
        let had = first.count(size as u8);
        plan.to_second[size] = had.saturating_sub(has);
        plan.to_first[size] = has.saturating_sub(had);
        debug_assert!(plan.to_first[size] <= second.count(size as u8));
        plan.moves += had.abs_diff(has);
        plan.gpus += size as u8 * had.abs_diff(has);
    }
    Some(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cheapest(capacity: u8, first: &[u8], second: &[u8]) -> Option<(u8, u8, Badness)> {
        let of = |sizes: &[u8]| Composition::from_sizes(sizes.iter().copied()).unwrap();
        PairPlans::default().of(capacity, of(first), of(second)).first().map(|p| (p.moves, p.gpus, p.after))
    }

    #[test]
    fn the_examples_of_the_method_need_the_moves_it_names() {
        assert_eq!(cheapest(8, &[4], &[2, 2, 2]), Some((2, 4, (0, 0, 1))));
        assert_eq!(cheapest(8, &[4], &[4, 2]), Some((1, 4, (0, 0, 1))));
        assert_eq!(cheapest(8, &[2], &[2, 1, 1, 1, 1, 1, 1]), Some((1, 2, (0, 0, 1))));
        assert_eq!(cheapest(8, &[5, 3], &[]), Some((1, 3, (0, 0, 1))));
        assert_eq!(cheapest(8, &[8], &[4]), None);
    }

    /// What the invariant rests on: two slotted nodes with room can always be repacked until one has none.
    #[test]
    fn two_nodes_with_room_never_stay_where_widths_divide_the_capacity() {
        for capacity in [2, 4, 8] {
            let anchored = |c: &Composition| {
                let shape = Shape::of(capacity, *c);
                shape.has_anchor() && shape.widths <= capacity && shape.room >= NARROWEST_SLOT
            };
            for first in Composition::all(capacity).filter(anchored) {
                for second in Composition::all(capacity).filter(anchored) {
                    let plans = enumerate(capacity, first, second);
                    assert!(!plans.is_empty(), "{first} {second} on {capacity}");
                    assert!(plans[0].after.2 <= 1, "{first} {second} on {capacity}");
                }
            }
        }
    }
}
