//! The linear relaxation over bin patterns, solved exactly: an integer-preserving primal simplex method (Edmonds 1967,
//! Bareiss 1968). No floating point number is involved, so its dual vector is a proof.
//!
//! Rows are the sizes of a reduced demand, columns the non-empty multisets of those sizes that fit into one bin, and
//! every size must be used up exactly. For a basis `B` with determinant `D > 0` the integer matrix `D·B⁻¹` is kept.
//!
//! Size of the numbers: scale row `g` by `g / G`. Every column of a basis then has non-negative entries that sum to at
//! most 1, so the determinant is at most 1 in absolute value, and `|det B| <= Π (G / g) <= 16⁸ / 8! < 106,523`. The same
//! holds for its minors. Products with counts up to [`super::MAX_COUNT`] stay far below 2¹²⁷.

use super::Objective;
use super::reduce::{Counts, MAX_SIZES};

/// Counts in the row order of a [`Table`]; rows beyond its sizes are 0.
pub(super) type Row = [i64; MAX_SIZES];

/// What one bin holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) counts: Row,
    pub(super) cost: i64,
}

/// An optimal basis for some demand of a table's sizes; its dual vector bounds *every* demand of those sizes.
#[derive(Clone, Debug)]
pub(super) struct Basis {
    /// Positions in the table's patterns, one a row.
    pub(super) patterns: Vec<usize>,
    /// `D`, positive.
    pub(super) determinant: i64,
    /// `D·B⁻¹`, row by row.
    inverse: Vec<Row>,
    /// `D·y` where `y` is the dual vector: `y · pattern <= cost` for every pattern.
    pub(super) dual: Row,
}

/// All patterns over one set of sizes, and the bases found so far.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// The sizes, ascending.
    pub(super) sizes: Vec<usize>,
    /// The patterns, those with fewer and larger instances first, full ones before partial ones; then, for each size, one
    /// that stands for an instance that no bin holds, at a price that no packing pays.
    pub(super) patterns: Vec<Pattern>,
    /// How many of them are bins.
    n_bins: usize,
    /// The position of the bin with one lone instance of each size.
    lone: Vec<usize>,
    /// Bases that were optimal for some demand, the last used first.
    pub(super) bases: Vec<Basis>,
}

/// The cost of an instance that no bin holds: above every budget within which lone instances are banned, even for a
/// fraction of an instance as small as one part in the largest determinant.
const UNPAID: i64 = 1 << 24;

/// How many bases a table remembers.
const MAX_BASES: usize = 48;

impl Table {
    /// The table of the sizes in `signature` (bit `g` for size `g`), none of them as large as the capacity.
    pub(super) fn new(capacity: usize, objective: Objective, signature: u32) -> Self {
        let sizes: Vec<usize> = (1..capacity).filter(|gpus| signature >> gpus & 1 == 1).collect();
        debug_assert!(sizes.len() <= MAX_SIZES);
        let mut patterns = Vec::new();
        enumerate(&sizes, sizes.len(), capacity, &mut Row::default(), &mut |counts, free| {
            if free < capacity {
                let cost = match objective {
                    Objective::Bins => 1,
                    Objective::Partial => i64::from(free > 0),
                };
                patterns.push((free, Pattern { counts: *counts, cost }));
            }
        });
        // Enumeration already goes from larger instances to smaller ones; the sort is stable.
        patterns.sort_by_key(|&(free, _)| free);
        let mut patterns: Vec<Pattern> = patterns.into_iter().map(|(_, pattern)| pattern).collect();
        let n_bins = patterns.len();
        let unit = |size: usize| std::array::from_fn(|at| i64::from(at == size));
        let units = (0..sizes.len()).map(unit);
        let position = |counts: Row| patterns.iter().position(|pattern| pattern.counts == counts);
        let lone = units.clone().filter_map(position).collect();
        patterns.extend(units.map(|counts| Pattern { counts, cost: UNPAID }));
        Self { sizes, patterns, n_bins, lone, bases: Vec::new() }
    }

    /// The bins, with their positions.
    pub(super) fn bins(&self) -> impl Iterator<Item = (usize, &Pattern)> {
        self.patterns[..self.n_bins].iter().enumerate()
    }

    /// The counts of this table's sizes.
    pub(super) fn row(&self, counts: &Counts) -> Row {
        let mut row = Row::default();
        for (at, &gpus) in self.sizes.iter().enumerate() {
            row[at] = counts[gpus] as i64;
        }
        row
    }

    /// The counts by size of a row.
    pub(super) fn counts(&self, row: &Row) -> Counts {
        let mut counts = Counts::default();
        for (at, &gpus) in self.sizes.iter().enumerate() {
            counts[gpus] = row[at] as u64;
        }
        counts
    }

    /// Puts a basis that is optimal for `row` first among the known ones: a known one if one is, else a new one.
    pub(super) fn optimise(&mut self, row: &Row) {
        let known = self.bases.iter().position(|basis| basis.solution(row).iter().all(|&x| x >= 0));
        match known {
            Some(0) => {}
            Some(at) => self.bases[..=at].rotate_right(1),
            None => {
                let basis = self.solve(row, |_| true, |_| false);
                self.bases.truncate(MAX_BASES - 1);
                self.bases.insert(0, basis);
            }
        }
    }

    /// The best lower bound on the cost of `row` among the known dual vectors, rounded up, and the basis it comes from.
    pub(super) fn bound(&self, row: &Row) -> (i64, usize) {
        let mut best = (i64::MIN, 0);
        for (at, basis) in self.bases.iter().enumerate() {
            let bound = basis.bound(row);
            if bound > best.0 {
                best = (bound, at);
            }
        }
        best
    }

    /// Whether a pattern is one lone instance, in a bin or in none.
    pub(super) fn is_lone(&self, pattern: usize) -> bool {
        pattern >= self.n_bins || self.lone.contains(&pattern)
    }

    /// The primal simplex method over the allowed bins, from the basis of lone instances, which is feasible for every
    /// demand. Where a lone instance is banned, the basis starts without a bin for it. (Banned is less than not allowed: a
    /// lone instance of a size that does not occur harms nobody.)
    pub(super) fn solve(&self, row: &Row, allowed: impl Fn(usize) -> bool, banned: impl Fn(usize) -> bool) -> Basis {
        let m = self.sizes.len();
        let mut inverse = vec![Row::default(); m];
        for (at, row) in inverse.iter_mut().enumerate() {
            row[at] = 1;
        }
        let start = |(at, &lone): (usize, &usize)| if banned(lone) { self.n_bins + at } else { lone };
        let patterns = self.lone.iter().enumerate().map(start).collect();
        let mut basis = Basis { patterns, determinant: 1, inverse, dual: Row::default() };
        basis.price(&self.patterns);
        for step in 0_u32.. {
            // The steepest column first; after many steps the lowest index, which cannot cycle (Bland 1977).
            let costs = self.bins().map(|(at, p)| (at, basis.reduced_cost(p)));
            let costs = costs.filter(|&(at, cost)| cost < 0 && allowed(at));
            let entering = if step < 200 { costs.min_by_key(|&(_, cost)| cost) } else { { costs }.next() };
            let Some((entering, _)) = entering else { break };
            basis.pivot(entering, &self.patterns, row);
        }
        basis
    }
}

impl Basis {
    /// `D·B⁻¹·row`: how often each pattern of the basis is used, times `D`.
    pub(super) fn solution(&self, row: &Row) -> [i128; MAX_SIZES] {
        let mut x = [0; MAX_SIZES];
        for (x, inverse) in x.iter_mut().zip(&self.inverse) {
            *x = dot(inverse, row);
        }
        x
    }

    /// `D` times the value of the dual vector at `row`.
    pub(super) fn value(&self, row: &Row) -> i128 {
        dot(&self.dual, row)
    }

    /// The lower bound that the dual vector gives: its value, rounded up.
    pub(super) fn bound(&self, row: &Row) -> i64 {
        let determinant = i128::from(self.determinant);
        let value = self.value(row);
        let bound = value.div_euclid(determinant) + i128::from(value.rem_euclid(determinant) != 0);
        i64::try_from(bound).unwrap_or(i64::MAX)
    }

    /// `D` times what a bin of `pattern` costs beyond its dual value; never negative at an optimal basis.
    pub(super) fn reduced_cost(&self, pattern: &Pattern) -> i64 {
        let worth: i64 = self.dual.iter().zip(&pattern.counts).map(|(y, n)| y * n).sum();
        pattern.cost * self.determinant - worth
    }

    fn price(&mut self, patterns: &[Pattern]) {
        self.dual = Row::default();
        for (inverse, &at) in self.inverse.iter().zip(&self.patterns) {
            for (y, entry) in self.dual.iter_mut().zip(inverse) {
                *y += patterns[at].cost * entry;
            }
        }
    }

    /// Brings a pattern of negative reduced cost into the basis.
    fn pivot(&mut self, entering: usize, patterns: &[Pattern], row: &Row) {
        let x = self.solution(row);
        let mut column = [0_i64; MAX_SIZES];
        for (entry, inverse) in column.iter_mut().zip(&self.inverse) {
            *entry = inverse.iter().zip(&patterns[entering].counts).map(|(a, b)| a * b).sum();
        }
        // The least ratio x/column; of equal ones the pattern with the lowest index (Bland's rule asks for it).
        let leaving = (0..self.patterns.len()).filter(|&at| column[at] > 0).min_by(|&a, &b| {
            let (left, right) = (x[a] * i128::from(column[b]), x[b] * i128::from(column[a]));
            left.cmp(&right).then(self.patterns[a].cmp(&self.patterns[b]))
        });
        // Costs are never negative, so the relaxation is bounded and some entry is positive.
        let Some(leaving) = leaving else { unreachable!("a bounded program has a leaving pattern") };
        let pivot = column[leaving];
        let pivot_row = self.inverse[leaving];
        for (at, inverse) in self.inverse.iter_mut().enumerate() {
            if at != leaving {
                for (entry, base) in inverse.iter_mut().zip(&pivot_row) {
                    // Exact by Sylvester's identity: the result is a minor of the basis.
                    *entry = (*entry * pivot - column[at] * base) / self.determinant;
                }
            }
        }
        self.determinant = pivot;
        self.patterns[leaving] = entering;
        self.price(patterns);
    }
}

fn dot(a: &Row, b: &Row) -> i128 {
    a.iter().zip(b).map(|(&a, &b)| i128::from(a) * i128::from(b)).sum()
}

/// Calls `found` with every multiset of the first `upto` sizes that fits into `free`, and the room it leaves.
fn enumerate(sizes: &[usize], upto: usize, free: usize, counts: &mut Row, found: &mut impl FnMut(&Row, usize)) {
    let Some(at) = upto.checked_sub(1) else { return found(counts, free) };
    for n in (0..=free / sizes[at]).rev() {
        counts[at] = n as i64;
        enumerate(sizes, at, free - n * sizes[at], counts, found);
    }
    counts[at] = 0;
}
