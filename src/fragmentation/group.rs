//! The group relaxation (Gomory 1969, "Some polyhedra related to combinatorial problems").
//!
//! Fix an optimal basis `B` of the linear relaxation with determinant `D`. A packing of `n` consists of patterns of the
//! basis, which cost nothing beyond the dual value, and of a multiset `N` of other patterns; it exists exactly if
//! `B⁻¹(n - ΣN)` is a vector of non-negative integers. *Integer* means that `ΣN` and `n` lie in the same class of the
//! finite group `Zᵐ / BZᵐ`, and its cost is the dual value plus the reduced costs of `N`. So the least reduced cost
//! that reaches the class of `n` (a shortest path) is a lower bound, whatever the counts are; and if the `N` of such a
//! path leaves a non-negative vector, as it does wherever the counts are large against `D`, it is a packing and optimal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::reduce::MAX_SIZES;
use super::simplex::{Basis, Row, Table};

/// A class of the group: `D·B⁻¹·v mod D`.
type Class = [u32; MAX_SIZES];

/// The most steps for the distances of one group; beyond that, branching alone must do.
const LARGEST: usize = 1 << 22;

/// The group of one basis, with distances up to a limit.
pub(super) struct Group<'a> {
    table: &'a Table,
    basis: &'a Basis,
    /// The least reduced cost to reach a class from the class of 0, where it is at most the limit, and the last pattern
    /// on the way.
    distance: FxHashMap<Class, (i64, usize)>,
}

impl<'a> Group<'a> {
    /// The shortest paths of length at most `limit` (in units of `1 / D`) over the allowed patterns; `None` if the group
    /// is too large.
    pub(super) fn new(table: &'a Table, basis: &'a Basis, limit: i64, allowed: impl Fn(usize) -> bool) -> Option<Self> {
        let mut steps: Vec<(usize, i64, Class)> = table
            .patterns
            .iter()
            .enumerate()
            .filter(|&(at, _)| allowed(at) && !basis.patterns.contains(&at))
            .map(|(at, pattern)| (at, basis.reduced_cost(pattern), class(basis, &pattern.counts)))
            .filter(|&(_, cost, _)| cost <= limit)
            .collect();
        steps.sort_by_key(|&(at, cost, _)| (cost, at));
        // Of patterns of one class the cheapest is enough for distances.
        let mut cheapest: Vec<(i64, Class, usize)> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        for &(pattern, cost, class) in &steps {
            if class != Class::default() && seen.insert(class) {
                cheapest.push((cost, class, pattern));
            }
        }
        if cheapest.len().saturating_mul(basis.determinant as usize) > LARGEST {
            return None;
        }
        let distance = shortest(&cheapest, basis.determinant, limit);
        Some(Self { table, basis, distance })
    }

    /// The patterns outside the basis on a shortest path to the class of `row`; `None` if no path is short enough.
    pub(super) fn path(&self, row: &Row) -> Option<Vec<usize>> {
        let mut path = Vec::new();
        let mut at = class(self.basis, row);
        loop {
            let &(_, pattern) = self.distance.get(&at)?;
            if at == Class::default() {
                return Some(path);
            }
            path.push(pattern);
            let step = class(self.basis, &self.table.patterns[pattern].counts);
            at = combine(&at, &step, self.basis.determinant, true);
        }
    }
}

/// The shortest paths of length at most `limit` from the class of 0 (Dijkstra 1959).
fn shortest(steps: &[(i64, Class, usize)], determinant: i64, limit: i64) -> FxHashMap<Class, (i64, usize)> {
    let mut distance = FxHashMap::default();
    let mut heap = BinaryHeap::from([Reverse((0_i64, Class::default()))]);
    distance.insert(Class::default(), (0, usize::MAX));
    while let Some(Reverse((so_far, at))) = heap.pop() {
        if distance.get(&at).is_some_and(|&(best, _)| best < so_far) {
            continue;
        }
        for &(cost, ref step, pattern) in steps {
            let to = so_far + cost;
            if to > limit {
                break;
            }
            let next = combine(&at, step, determinant, false);
            let best = distance.entry(next).or_insert((i64::MAX, pattern));
            if to < best.0 {
                *best = (to, pattern);
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
