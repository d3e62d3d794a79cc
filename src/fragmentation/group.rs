//! The group relaxation (Gomory 1969, "Some polyhedra related to combinatorial problems").
//!
//! Fix an optimal basis `B` of the linear relaxation with determinant `D`. A packing of `n` consists of patterns of the
//! basis, which cost nothing beyond the dual value, and of a multiset `N` of other patterns; it exists exactly if
//! `B⁻¹(n - ΣN)` is a vector of non-negative integers. *Integer* means that `ΣN` and `n` lie in the same class of the
//! finite group `Zᵐ / BZᵐ`, and its cost is the dual value plus the reduced costs of `N`. So the least reduced cost
//! that reaches the class of `n` (a shortest path) is a lower bound, whatever the counts are; and if the `N` of such a
//! path leaves a non-negative vector, as it does wherever the counts are large against `D`, it is a packing and optimal.
//!
//! **Few bins that cost.** The relaxation lets the basis pay with negative bins: two partial bins outside it and minus
//! one inside make "one partial bin" whose GPUs no single bin could hold. So a path also counts the bins of cost 1
//! that it uses: in a packing of cost at most `k` they are at most `k`, whatever else it holds. Where `k` is large the
//! basis has enough of such bins to never run short of them, and counting would only multiply the classes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::reduce::MAX_SIZES;
use super::simplex::{Basis, Row, Table};

/// A class of the group: `D·B⁻¹·v mod D`.
type Class = [u32; MAX_SIZES];

/// A class, and how many bins of cost 1 led there.
type Place = (Class, u8);

/// The largest budget for which bins that cost are counted.
pub(super) const COUNTED: i64 = 12;

/// The most steps for the distances of one group; beyond that, branching alone must do.
const LARGEST: usize = 1 << 22;

/// The most looks at what completes some patterns to a packing.
const MOST_LOOKS: usize = 1 << 17;

/// The group of one basis, with distances up to a limit.
pub(super) struct Group<'a> {
    table: &'a Table,
    basis: &'a Basis,
    /// The least reduced cost to reach a place from the class of 0, where it is at most the limit, and the last pattern
    /// on the way.
    distance: FxHashMap<Place, (i64, usize)>,
    /// Whether bins that cost are counted, and up to how many.
    most: Option<u8>,
    /// What may be part of a path: pattern, reduced cost, class; the cheapest first.
    steps: Vec<(usize, i64, Class)>,
    limit: i64,
}

impl<'a> Group<'a> {
    /// The shortest paths of length at most `limit` (in units of `1 / D`) over the allowed patterns, with at most
    /// `budget` bins that cost; `None` if the group is too large.
    pub(super) fn new(
        table: &'a Table,
        basis: &'a Basis,
        limit: i64,
        budget: i64,
        allowed: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        // Where every bin costs, the count follows from the class and the cost.
        let counts = (0..=COUNTED).contains(&budget) && table.bins().any(|(_, pattern)| pattern.cost == 0);
        let most = counts.then_some(budget as u8);
        let mut steps: Vec<(usize, i64, Class)> = table
            .bins()
            .filter(|&(at, _)| allowed(at) && !basis.patterns.contains(&at))
            .map(|(at, pattern)| (at, basis.reduced_cost(pattern), class(basis, &pattern.counts)))
            .filter(|&(_, cost, _)| cost <= limit)
            .collect();
        steps.sort_by_key(|&(at, cost, _)| (cost, at));
        // Of patterns of one class the cheapest is enough for distances.
        let mut cheapest: Vec<(i64, Place, usize)> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        for &(pattern, cost, class) in &steps {
            let place = (class, paid(table, pattern, most));
            if class != Class::default() && seen.insert(place) {
                cheapest.push((cost, place, pattern));
            }
        }
        let places = basis.determinant as usize * (usize::from(most.unwrap_or(0)) + 1);
        if cheapest.len().saturating_mul(places) > LARGEST {
            return None;
        }
        let distance = shortest(&cheapest, basis.determinant, limit, most.unwrap_or(0));
        Some(Self { table, basis, distance, most, steps, limit })
    }

    /// The patterns outside the basis on a shortest path to the class of `row`; `None` if no path is short enough.
    pub(super) fn path(&self, row: &Row) -> Option<Vec<usize>> {
        let mut path = Vec::new();
        let class_of_row = class(self.basis, row);
        let places = (0..=self.most.unwrap_or(0)).map(|paid| (class_of_row, paid));
        let reached = places.filter_map(|place| self.distance.get(&place).map(|&(length, _)| (length, place)));
        let (_, mut at) = reached.min_by_key(|&(length, _)| length)?;
        while at != Place::default() {
            let &(_, pattern) = self.distance.get(&at)?;
            path.push(pattern);
            let step = class(self.basis, &self.table.patterns[pattern].counts);
            at.0 = combine(&at.0, &step, self.basis.determinant, true);
            at.1 -= paid(self.table, pattern, self.most);
        }
        Some(path)
    }
}

impl Group<'_> {
    /// Whether up to three patterns outside the basis, and bins of the basis, are a packing of `row`. Shortest paths leave
    /// many patterns of one class untried; where the counts are not tiny, one of those mostly does. "No" may only mean
    /// that looking took too long.
    pub(super) fn packs(&self, row: &Row) -> bool {
        let target = class(self.basis, row);
        let have = self.basis.solution(row);
        let mut of_class: FxHashMap<Class, Vec<usize>> = FxHashMap::default();
        for (at, step) in self.steps.iter().enumerate() {
            of_class.entry(step.2).or_default().push(at);
        }
        let uses: Vec<_> =
            self.steps.iter().map(|step| self.basis.solution(&self.table.patterns[step.0].counts)).collect();
        let mut looks = MOST_LOOKS;
        // Whether these patterns and one more of the class that is missing do.
        let mut completed = |chosen: &[usize]| {
            let missing = chosen
                .iter()
                .fold(target, |class, &at| combine(&class, &self.steps[at].2, self.basis.determinant, true));
            let cost: i64 = chosen.iter().map(|&at| self.steps[at].1).sum();
            let last = of_class.get(&missing).map_or(&[][..], Vec::as_slice);
            looks = looks.saturating_sub(1 + last.len());
            last.iter().any(|&last| {
                cost + self.steps[last].1 <= self.limit
                    && (0..have.len()).all(|row| {
                        let used: i128 = chosen.iter().map(|&at| uses[at][row]).sum();
                        have[row] >= used + uses[last][row]
                    })
            }) || looks == 0
        };
        let n = self.steps.len();
        let found = completed(&[])
            || (0..n).any(|one| completed(&[one]))
            || (0..n).any(|one| (one..n).any(|two| completed(&[one, two])));
        found && looks > 0
    }
}

/// How many bins of cost 1 a pattern is, where they are counted.
fn paid(table: &Table, pattern: usize, most: Option<u8>) -> u8 {
    u8::from(most.is_some() && table.patterns[pattern].cost > 0)
}

/// The shortest paths of length at most `limit` from the class of 0 (Dijkstra 1959).
fn shortest(steps: &[(i64, Place, usize)], determinant: i64, limit: i64, most: u8) -> FxHashMap<Place, (i64, usize)> {
    let mut distance = FxHashMap::default();
    let mut heap = BinaryHeap::from([Reverse((0_i64, Place::default()))]);
    distance.insert(Place::default(), (0, usize::MAX));
    while let Some(Reverse((so_far, at))) = heap.pop() {
        if distance.get(&at).is_some_and(|&(best, _)| best < so_far) {
            continue;
        }
        for &(cost, ref step, pattern) in steps {
            let to = so_far + cost;
            if to > limit {
                break;
            }
            let paid = at.1 + step.1;
            if paid > most {
                continue;
            }
            let next = (combine(&at.0, &step.0, determinant, false), paid);
            // Whoever got to the class at no more cost with fewer bins that cost has the better of it.
            if (0..paid).any(|fewer| distance.get(&(next.0, fewer)).is_some_and(|&(best, _)| best <= to)) {
                continue;
            }
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
