//! The group relaxation (Gomory 1969, "Some polyhedra related to combinatorial problems").
//!
//! Fix an optimal basis `B` of the linear relaxation with determinant `D`. A packing of `n` consists of patterns of the
//! basis, which cost nothing beyond the dual value, and of a multiset `N` of other patterns; it exists exactly if
//! `B⁻¹(n - ΣN)` is a vector of non-negative integers. *Integer* means that `ΣN` and `n` lie in the same class of the
//! finite group `Zᵐ / BZᵐ`, and its cost is the dual value plus the reduced costs of `N`. So the least reduced cost
//! that reaches the class of `n` (a shortest path) is a lower bound, whatever the counts are; and listing all `N`
//! within a budget, guided by those distances, decides whether the budget suffices.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::reduce::MAX_SIZES;
use super::simplex::{Basis, Row, Table};

/// A class of the group: `D·B⁻¹·v mod D`.
type Class = [u32; MAX_SIZES];

/// What the enumeration found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A packing within the budget exists.
    Packs,
    /// None exists.
    Impossible,
    /// The steps ran out.
    Unknown,
}

/// The group of one basis, with distances up to a limit.
pub(super) struct Group<'a> {
    table: &'a Table,
    basis: &'a Basis,
    /// Patterns outside the basis that may be used: position, reduced cost, class; cheapest first.
    steps: Vec<(usize, i64, Class)>,
    /// The least reduced cost to reach a class from the class of 0, where it is at most the limit.
    distance: FxHashMap<Class, i64>,
    /// The fewest patterns to reach a class.
    hops: FxHashMap<Class, i64>,
}

impl<'a> Group<'a> {
    /// The shortest paths of length at most `limit` (in units of `1 / D`); `None` if the group is too large.
    pub(super) fn new(table: &'a Table, basis: &'a Basis, limit: i64) -> Option<Self> {
        let mut steps: Vec<(usize, i64, Class)> = table
            .patterns
            .iter()
            .enumerate()
            .filter(|(at, _)| !basis.patterns.contains(at))
            .map(|(at, pattern)| (at, basis.reduced_cost(pattern), class(basis, &pattern.counts)))
            .filter(|&(_, cost, _)| cost <= limit)
            .collect();
        steps.sort_by_key(|&(at, cost, _)| (cost, at));
        // Of patterns of one class the cheapest is enough for distances.
        let mut cheapest: Vec<(i64, Class)> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        for &(_, cost, class) in &steps {
            if class != Class::default() && seen.insert(class) {
                cheapest.push((cost, class));
            }
        }
        if cheapest.len().saturating_mul(basis.determinant as usize) > 1 << 26 {
            return None;
        }
        let distance = shortest(&cheapest, basis.determinant, limit, |cost| cost);
        let hops = shortest(&cheapest, basis.determinant, i64::MAX, |_| 1);
        Some(Self { table, basis, steps, distance, hops })
    }

    /// The least cost over all packings that may use patterns of the basis negatively often: a lower bound for `row`,
    /// and a whole number. `None` if it is beyond the limit.
    pub(super) fn bound(&self, row: &Row) -> Option<i64> {
        let distance = *self.distance.get(&class(self.basis, row))?;
        let value = self.basis.value(row) + i128::from(distance);
        let determinant = i128::from(self.basis.determinant);
        debug_assert_eq!(value % determinant, 0, "the cost of a packing is a whole number");
        Some((value / determinant) as i64)
    }

    /// Whether `row` can be packed at a cost of at most `budget`, trying at most `tries` multisets `N`.
    pub(super) fn decide(&self, row: &Row, budget: i64, tries: u64) -> Verdict {
        // Small multisets first: a plain depth-first walk loses itself among patterns without reduced cost.
        let mut walk = Walk { group: self, tries, cut: false };
        let start = class(self.basis, row);
        for depth in [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64, 128] {
            walk.cut = false;
            match walk.descend(*row, start, budget, 0, depth) {
                Verdict::Impossible if walk.cut => {}
                verdict => return verdict,
            }
        }
        Verdict::Unknown
    }
}

/// A depth-first walk over multisets.
struct Walk<'a> {
    group: &'a Group<'a>,
    tries: u64,
    /// Whether the walk left something out because of its depth.
    cut: bool,
}

impl Walk<'_> {
    /// Whether a packing of `row` within `budget` exists that uses at most `depth` patterns outside the basis, none
    /// before position `from`.
    fn descend(&mut self, row: Row, class: Class, budget: i64, from: usize, depth: i64) -> Verdict {
        let basis = self.group.basis;
        let spare = i128::from(budget) * i128::from(basis.determinant) - basis.value(&row);
        let distance = self.group.distance.get(&class);
        if distance.is_none_or(|&distance| i128::from(distance) > spare) {
            return Verdict::Impossible;
        }
        if self.group.hops.get(&class).is_none_or(|&hops| hops > depth) {
            self.cut = true;
            return Verdict::Impossible;
        }
        if self.tries == 0 {
            return Verdict::Unknown;
        }
        self.tries -= 1;
        if class == Class::default() && basis.solution(&row).iter().all(|&x| x >= 0) {
            return Verdict::Packs;
        }
        // Any dual vector bounds what is left; where the basis is no longer the best one, another prunes better.
        if self.group.table.bound(&row).0 > budget {
            return Verdict::Impossible;
        }
        for (at, &(pattern, cost, step)) in self.group.steps.iter().enumerate().skip(from) {
            if i128::from(cost) > spare {
                break;
            }
            let pattern = &self.group.table.patterns[pattern];
            if pattern.counts.iter().zip(&row).any(|(taken, have)| taken > have) {
                continue;
            }
            if depth == 0 {
                self.cut = true;
                break;
            }
            let mut rest = row;
            for (n, taken) in rest.iter_mut().zip(&pattern.counts) {
                *n -= taken;
            }
            let next = combine(&class, &step, basis.determinant, true);
            let verdict = self.descend(rest, next, budget - pattern.cost, at, depth - 1);
            if verdict != Verdict::Impossible {
                return verdict;
            }
        }
        Verdict::Impossible
    }
}

/// The shortest paths of length at most `limit` from the class of 0 (Dijkstra 1959).
fn shortest(
    steps: &[(i64, Class)],
    determinant: i64,
    limit: i64,
    length: impl Fn(i64) -> i64,
) -> FxHashMap<Class, i64> {
    let mut distance = FxHashMap::default();
    let mut heap = BinaryHeap::from([Reverse((0_i64, Class::default()))]);
    distance.insert(Class::default(), 0);
    while let Some(Reverse((so_far, at))) = heap.pop() {
        if distance.get(&at).is_some_and(|&best| best < so_far) {
            continue;
        }
        for (cost, step) in steps {
            let to = so_far + length(*cost);
            if to > limit {
                break;
            }
            let next = combine(&at, step, determinant, false);
            let best = distance.entry(next).or_insert(i64::MAX);
            if to < *best {
                *best = to;
                heap.push(Reverse((to, next)));
            }
        }
    }
    distance
}

/// The class of a vector.
fn class(basis: &Basis, row: &Row) -> Class {
    let mut class = Class::default();
    for (class, x) in class.iter_mut().zip(basis.solution(row)) {
        *class = x.rem_euclid(i128::from(basis.determinant)) as u32;
    }
    class
}

/// The class of the sum, or of the difference.
fn combine(a: &Class, b: &Class, determinant: i64, minus: bool) -> Class {
    let determinant = determinant as u32;
    let mut sum = *a;
    for (sum, &b) in sum.iter_mut().zip(b) {
        let b = if minus && b > 0 { determinant - b } else { b };
        *sum = (*sum + b) % determinant;
    }
    sum
}
