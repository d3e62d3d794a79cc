//! Integer programs, solved exactly: floats propose, integers prove.
//!
//! Branch and bound over the linear relaxation. Whatever prices the relaxation proposes, rounded to fractions they give a
//! bound by weak duality, worked out in integers; whatever point it proposes, rounded it is checked in integers. So an
//! answer cannot be wrong by rounding, only less than the best, and then it says so.

use std::time::Instant;

use super::linear::{Ended, Relaxation};

/// How a row is to be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    /// The sum is the right-hand side.
    Equal,
    /// The sum is at most the right-hand side.
    AtMost,
}

/// A row: what a sum over the columns must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) sense: Sense,
    pub(super) rhs: i64,
}

/// A variable: an integer from 0 to `upper`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// What each unit costs, at least 0.
    pub(super) cost: i64,
    pub(super) upper: i64,
    /// Row and coefficient.
    pub(super) entries: Vec<(u32, i32)>,
}

/// An integer program: the least cost such that all rows are met.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub(super) rows: Vec<Row>,
    pub(super) columns: Vec<Column>,
}

/// How much work may still be done. Steps are counted, so that an answer does not depend on the machine; the clock is for
/// those who cannot wait.
#[derive(Clone, Debug)]
pub struct Effort {
    steps: u64,
    deadline: Option<Instant>,
    by_clock: bool,
}

impl Effort {
    /// So many steps, at most until then.
    pub fn new(steps: u64, deadline: Option<Instant>) -> Self {
        Self { steps, deadline, by_clock: false }
    }

    /// Whether the clock, and not the count of steps, ended the search.
    pub fn by_clock(&self) -> bool {
        self.by_clock
    }

    /// Takes steps off. False if none are left or it is too late.
    pub(super) fn spend(&mut self, steps: u64) -> bool {
        if self.is_late() {
            self.by_clock = true;
            self.steps = 0;
        }
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0
    }

    /// Whether the clock has run out, by which a piece of work that takes long may end before it takes steps off.
    pub(super) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// A part of it, for a search that is to leave something for the next.
    pub(super) fn part(&self, steps: u64) -> Self {
        Self { steps: self.steps.min(steps), ..self.clone() }
    }

    /// Takes off what a part of it used up.
    pub(super) fn settle(&mut self, given: u64, part: &Self) {
        self.steps = self.steps.saturating_sub(given.saturating_sub(part.steps));
        self.by_clock |= part.by_clock;
    }

    /// Steps left.
    pub(super) fn left(&self) -> u64 {
        self.steps
    }
}

/// What is known of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Solution {
    /// The best values found and what they cost.
    pub(super) best: Option<(i64, Vec<i64>)>,
    /// No values cost less; `None` if there are none at all that cost less than the limit that was given.
    pub(super) lower_bound: Option<i64>,
}

/// Prices are multiples of one over this, which has all the small denominators that prices tend to have.
const FINE: i128 = 720_720 << 10;
const COARSE: i128 = 720_720;

impl Program {
    /// The least cost, if it is less than `limit`; known not to be less than `floor`.
    pub(super) fn solve(&self, floor: i64, limit: i64, effort: &mut Effort) -> Solution {
        Search::new(self, limit).run(floor, effort)
    }

    /// Whether values meet all rows and bounds.
    fn admits(&self, values: &[i64]) -> bool {
        let mut sums = vec![0i64; self.rows.len()];
        for (column, &value) in self.columns.iter().zip(values) {
            if value < 0 || value > column.upper {
                return false;
            }
            column.entries.iter().for_each(|&(row, entry)| sums[row as usize] += i64::from(entry) * value);
        }
        self.rows.iter().zip(sums).all(|(row, sum)| match row.sense {
            Sense::Equal => sum == row.rhs,
            Sense::AtMost => sum <= row.rhs,
        })
    }

    fn cost(&self, values: &[i64]) -> i64 {
        self.columns.iter().zip(values).map(|(column, value)| column.cost * value).sum()
    }

    /// The reduced costs for prices, as multiples of one over `FINE`, and the prices' worth of the right-hand sides.
    fn weigh(&self, prices: &[i128], with_cost: bool) -> (i128, impl Iterator<Item = i128>) {
        let worth = self.rows.iter().zip(prices).map(|(row, price)| i128::from(row.rhs) * price).sum();
        let reduced = self.columns.iter().map(move |column| {
            let cost = if with_cost { i128::from(column.cost) * FINE } else { 0 };
            let entries = column.entries.iter();
            cost - entries.map(|&(row, entry)| prices[row as usize] * i128::from(entry)).sum::<i128>()
        });
        (worth, reduced)
    }

    /// What any point within the bounds costs at least, by these prices: exact for whatever prices.
    fn bound(&self, prices: &[f64], bounds: &[(i64, i64)]) -> i64 {
        let bound = |unit: i128| {
            let prices = self.rounded(prices, unit, true);
            let (worth, reduced) = self.weigh(&prices, true);
            let least = |(reduced, &(lower, upper)): (i128, &(i64, i64))| {
                reduced * i128::from(if reduced >= 0 { lower } else { upper })
            };
            let total: i128 = worth + reduced.zip(bounds).map(least).sum::<i128>();
            (total + FINE - 1).div_euclid(FINE)
        };
        i64::try_from(bound(FINE).max(bound(COARSE))).unwrap_or(i64::MAX)
    }

    /// Whether rows weighed like this show that no point is within the bounds: exact for whatever weights.
    fn refutes(&self, weights: &[f64], bounds: &[(i64, i64)]) -> bool {
        let scale = weights.iter().fold(0.0f64, |most, weight| most.max(weight.abs()));
        if scale <= 0.0 || !scale.is_finite() {
            return false;
        }
        let refutes = |unit: i128, sign: f64| {
            let weights: Vec<f64> = weights.iter().map(|weight| sign * weight / scale).collect();
            let weights = self.rounded(&weights, unit, true);
            // The reduced cost of cost 0 is what the rows, added up, have on a column, negated.
            let (worth, reduced) = self.weigh(&weights, false);
            let least = |(reduced, &(lower, upper)): (i128, &(i64, i64))| {
                reduced * i128::from(if reduced >= 0 { lower } else { upper })
            };
            worth + reduced.zip(bounds).map(least).sum::<i128>() > 0
        };
        [FINE, COARSE].into_iter().any(|unit| refutes(unit, 1.0) || refutes(unit, -1.0))
    }

    /// Prices as multiples of one over `FINE` that are multiples of one over `unit`; of the sign that their row asks for.
    fn rounded(&self, prices: &[f64], unit: i128, signed: bool) -> Vec<i128> {
        let round = |(price, row): (&f64, &Row)| {
            let rounded = (price * unit as f64).round() as i64;
            let price = i128::from(rounded) * (FINE / unit);
            if signed && row.sense == Sense::AtMost { price.min(0) } else { price }
        };
        prices.iter().zip(&self.rows).map(round).collect()
    }
}

/// A part of the search that is still to be done: the bounds that differ from the program's, and a cost that no point
/// within them can be below.
#[derive(Clone, Debug)]
struct Open {
    bounds: Vec<(u32, i64, i64)>,
    at_least: i64,
}

struct Search<'p> {
    program: &'p Program,
    relaxation: Relaxation<'p>,
    bounds: Vec<(i64, i64)>,
    limit: i64,
    best: Option<Vec<i64>>,
}

impl<'p> Search<'p> {
    fn new(program: &'p Program, limit: i64) -> Self {
        let bounds = program.columns.iter().map(|column| (0, column.upper)).collect();
        Self { program, relaxation: Relaxation::new(program), bounds, limit, best: None }
    }

    /// Depth first, the nearer half of a split first.
    fn run(mut self, floor: i64, effort: &mut Effort) -> Solution {
        let mut open = vec![Open { bounds: Vec::new(), at_least: floor }];
        let mut closed_by_giving_up: Option<i64> = None;
        let mut set: Vec<u32> = Vec::new();
        while let Some(part) = open.pop() {
            if part.at_least >= self.limit {
                continue;
            }
            for &column in &set {
                self.set(column, (0, self.program.columns[column as usize].upper));
            }
            set.clear();
            for &(column, lower, upper) in &part.bounds {
                self.set(column, (lower, upper));
                set.push(column);
            }
            let mut steps = effort.left();
            let before = steps;
            let ended = self.relaxation.solve(&mut steps, || effort.is_late());
            let goes_on = effort.spend((before - steps).max(1));
            match ended {
                Ended::Infeasible if self.program.refutes(self.relaxation.prices(), &self.bounds) => continue,
                Ended::Optimal => {}
                Ended::Infeasible | Ended::GivenUp => {
                    // What is not understood stays open.
                    closed_by_giving_up = Some(closed_by_giving_up.map_or(part.at_least, |b| b.min(part.at_least)));
                    if goes_on { continue } else { break }
                }
            }
            let at_least = self.program.bound(self.relaxation.prices(), &self.bounds).max(part.at_least);
            if at_least >= self.limit {
                continue;
            }
            let values = self.relaxation.values();
            match most_fractional(&values) {
                None => {
                    let rounded: Vec<i64> = values.iter().map(|value| value.round() as i64).collect();
                    if self.program.admits(&rounded) {
                        let cost = self.program.cost(&rounded);
                        if cost < self.limit {
                            (self.limit, self.best) = (cost, Some(rounded));
                        }
                        if cost > at_least {
                            // The bound is worth less than the point by rounding alone; nobody knows which is right.
                            closed_by_giving_up = Some(closed_by_giving_up.map_or(at_least, |b| b.min(at_least)));
                        }
                    } else {
                        closed_by_giving_up = Some(closed_by_giving_up.map_or(at_least, |b| b.min(at_least)));
                    }
                }
                Some((column, value)) => {
                    let (lower, upper) = self.bounds[column];
                    let floor = value.floor() as i64;
                    let with = |lower, upper| {
                        let mut bounds: Vec<_> =
                            part.bounds.iter().copied().filter(|&(other, ..)| other as usize != column).collect();
                        bounds.push((column as u32, lower, upper));
                        Open { bounds, at_least }
                    };
                    let (down, up) = (with(lower, floor), with(floor + 1, upper));
                    if value - value.floor() > 0.5 { open.extend([down, up]) } else { open.extend([up, down]) }
                }
            }
            if !goes_on {
                break;
            }
        }
        // What is left open may still hold something that costs no less than its bound.
        let left = open.iter().map(|part| part.at_least).chain(closed_by_giving_up).min();
        let lower_bound = match (left, &self.best) {
            (None, None) => None,
            (None, Some(_)) => Some(self.limit),
            (Some(left), _) => Some(left.min(self.limit)),
        };
        Solution { best: self.best.map(|values| (self.limit, values)), lower_bound }
    }

    fn set(&mut self, column: u32, bounds: (i64, i64)) {
        self.bounds[column as usize] = bounds;
        self.relaxation.bound(column as usize, bounds);
    }
}

/// The value furthest from an integer, if any is not one.
fn most_fractional(values: &[f64]) -> Option<(usize, f64)> {
    let mut found = None;
    let mut most = 1e-6;
    for (at, &value) in values.iter().enumerate() {
        let distance = (value - value.round()).abs();
        if distance > most {
            (most, found) = (distance, Some((at, value)));
        }
    }
    found
}
