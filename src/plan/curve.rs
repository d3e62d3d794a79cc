//! How few partial nodes each number of moves reaches.

use super::budgets::plan;
use super::question::{Cost, Goal, Plan, PlanOptions};
use crate::anchor::State;
use crate::cluster::Cluster;

/// The most points of a curve; of more moves some are left out, evenly.
const MOST_POINTS: u64 = 50;

/// The best that so many moves do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurvePoint {
    /// The most moves.
    pub moves: u64,
    /// Partial nodes afterwards, under the best plan that was found.
    pub partial: u64,
    /// Φ\* afterwards, which moves between pools may change.
    pub phi_star: u64,
    /// Whether it is proved that no plan of so many moves leaves fewer partial nodes.
    pub proved: bool,
}

impl CurvePoint {
    /// N·SIF afterwards: avoidable partial nodes. Below 0 what runs is packed better than its pools allow by themselves.
    pub fn n_sif(&self) -> i64 {
        self.partial as i64 - self.phi_star as i64
    }

    fn of(moves: u64, after: &Cluster, proved: bool) -> Self {
        let mut state = State::new(after.clone());
        Self { moves, partial: state.n_partial(), phi_star: state.phi_star(), proved }
    }
}

/// The points from no move on to those of a plan that has the fewest partial nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// By moves.
    pub points: Vec<CurvePoint>,
    /// Whether the clock ended a search.
    pub by_clock: bool,
}

/// The curve that leads to `last`, a plan for [`Goal::LeastPartial`] with these options; their effort is for each search.
///
/// A plan with k moves allowed that makes do with m is the best for every number from m to k, so there are no more searches
/// than numbers of partial nodes.
pub fn curve(cluster: &Cluster, last: &Plan, options: &PlanOptions) -> Curve {
    let budgets = budgets(last.steps.len() as u64);
    let mut points: Vec<CurvePoint> = Vec::with_capacity(budgets.len());
    let (mut from, mut by_clock) = (budgets.len(), false);
    let mut best = last.after.as_ref().map(|after| CurvePoint::of(last.steps.len() as u64, after, last.fewest_partial));
    // From the last to the first; each search settles all budgets from its own moves on.
    while from > 0 {
        let budget = budgets[from - 1];
        let found = best.take().unwrap_or_else(|| {
            if budget == 0 {
                return CurvePoint::of(0, cluster, true);
            }
            let options = PlanOptions { cost: Cost::Moves, max_moves: Some(budget), ways: false, ..options.clone() };
            let answer = plan(cluster, Goal::LeastPartial, &options);
            by_clock |= answer.by_clock;
            match &answer.after {
                Some(after) => CurvePoint::of(answer.steps.len() as u64, after, answer.fewest_partial),
                // Nothing was found, so that things stay as they are, as far as is known.
                None => CurvePoint::of(budget, cluster, false),
            }
        });
        while from > 0 && budgets[from - 1] >= found.moves {
            from -= 1;
            points.push(CurvePoint { moves: budgets[from], ..found });
        }
    }
    points.reverse();
    settle(&mut points);
    Curve { points, by_clock }
}

/// What few moves do, more moves do; and what more cannot do, few cannot.
fn settle(points: &mut [CurvePoint]) {
    // Without a move there is nothing to prove.
    points.iter_mut().filter(|point| point.moves == 0).for_each(|point| point.proved = true);
    for at in 1..points.len() {
        if points[at].partial > points[at - 1].partial {
            points[at] = CurvePoint { moves: points[at].moves, proved: false, ..points[at - 1] };
        }
    }
    for at in (1..points.len()).rev() {
        points[at - 1].proved |= points[at].proved && points[at].partial == points[at - 1].partial;
    }
}

/// Numbers of moves from 0 to `last`, all or evenly spaced.
fn budgets(last: u64) -> Vec<u64> {
    let points = last.saturating_add(1).min(MOST_POINTS);
    (0..points).map(|at| (u128::from(at) * u128::from(last) / u128::from((points - 1).max(1))) as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_few_and_reach_both_ends() {
        assert_eq!(budgets(0), [0]);
        assert_eq!(budgets(3), [0, 1, 2, 3]);
        let many = budgets(1_000_003);
        assert_eq!((many.len(), many[0], many[49]), (50, 0, 1_000_003));
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] >= 20_000));
    }

    #[test]
    fn what_few_moves_do_more_moves_do() {
        let point = |moves, partial, proved| CurvePoint { moves, partial, phi_star: 1, proved };
        let mut points = [
            point(0, 9, true),
            point(1, 7, false),
            point(2, 8, false),
            point(3, 5, false),
            point(4, 5, true),
            point(5, 4, false),
        ];
        settle(&mut points);
        let expected = [
            point(0, 9, true),
            point(1, 7, false),
            point(2, 7, false),
            point(3, 5, true),
            point(4, 5, true),
            point(5, 4, false),
        ];
        assert_eq!(points, expected);
    }
}
