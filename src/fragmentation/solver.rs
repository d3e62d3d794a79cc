//! The exact optimum for any counts: reduce, bound, round, and prove.

use super::Objective;
use super::group::{Group, Verdict};
use super::phi_star::Method;
use super::program::Program;
use super::reduce::{self, Counts};
use super::search::Search;
use super::simplex::Row;

/// Steps of the exact search for one question.
const SEARCH_STEPS: u64 = 20_000;
/// Steps of the enumeration within the group relaxation.
const GROUP_STEPS: u64 = 100_000;

/// The solver of one capacity and objective.
#[derive(Clone, Debug)]
pub(super) struct Solver {
    search: Search,
}

impl Solver {
    pub(super) fn new(capacity: usize, objective: Objective) -> Self {
        Self { search: Search::new(capacity, objective) }
    }

    /// A lower bound on the optimum, from the linear relaxation.
    pub(super) fn lower_bound(&mut self, counts: &Counts) -> u64 {
        self.search.lower_bound(*counts)
    }

    /// The optimum, and what proved it.
    pub(super) fn solve(&mut self, counts: &Counts) -> (u64, Method) {
        let mut rest = *counts;
        let settled = reduce::reduce(self.search.capacity, self.search.objective, &mut rest);
        if let Some(cost) = self.search.closed_form(&rest) {
            return (settled + cost, Method::Matching);
        }
        let known = self.search.recall(&rest).filter(|range| range.low == range.high);
        if let Some(range) = known {
            return (settled + range.low, Method::Memory);
        }
        let (cost, method) = self.solve_reduced(&rest);
        self.search.remember(&rest, cost, cost);
        (settled + cost, method)
    }

    fn solve_reduced(&mut self, rest: &Counts) -> (u64, Method) {
        let mut low = self.search.lower_bound(*rest);
        let at = self.search.table_of(rest);
        let row = self.search.table(at).row(rest);
        // Round the relaxation down and pack what is left exactly: a packing, so an upper bound.
        let high = self.round(at, &row, 0, None);
        if high == Some(low) {
            return (low, Method::DualBound);
        }
        let mut method = Method::Search;
        loop {
            match self.decide(at, &row, low) {
                (Some(true), by) => return (low, method.max(by)),
                (Some(false), by) => {
                    method = method.max(by);
                    low = self.search.round_by_total(reduce::total(rest), low as i64 + 1);
                    if high == Some(low) {
                        return (low, method);
                    }
                }
                (None, _) => unreachable!("branch and bound ends with an answer"),
            }
        }
    }

    /// The cost of a packing that uses each pattern of the optimal basis as often as the relaxation says, rounded down
    /// and less `keep`, and packs the rest exactly. With a budget, any packing of the rest that keeps the whole within
    /// it will do, and `None` says that there is none (or that it was not found in time).
    fn round(&mut self, at: usize, row: &Row, keep: i64, budget: Option<u64>) -> Option<u64> {
        let (rest, used) = self.core(at, row, keep);
        self.search.steps_left = SEARCH_STEPS;
        match budget {
            None => Some(used + self.search.optimum(&rest)?),
            Some(budget) => {
                let left = budget.checked_sub(used)?;
                (self.search.fits(rest, left) == Some(true)).then_some(budget)
            }
        }
    }

    /// What is left to pack, and the cost of what is not.
    fn core(&self, at: usize, row: &Row, keep: i64) -> (Counts, u64) {
        let table = self.search.table(at);
        let basis = &table.bases[0];
        let mut rest = *row;
        let mut used = 0;
        for (&pattern, x) in basis.patterns.iter().zip(basis.solution(row)) {
            let times = ((x / i128::from(basis.determinant)) as i64 - keep).max(0);
            let pattern = &table.patterns[pattern];
            used += (times * pattern.cost) as u64;
            for (n, taken) in rest.iter_mut().zip(&pattern.counts) {
                *n -= times * taken;
            }
        }
        (table.counts(&rest), used)
    }

    /// Whether `row` can be packed at a cost of at most `budget`, and what proved it.
    fn decide(&mut self, at: usize, row: &Row, budget: u64) -> (Option<bool>, Method) {
        // The searches below may learn better bases for this table; the optimal one is in front again afterwards.
        for keep in [1, 2] {
            if self.round(at, row, keep, Some(budget)).is_some() {
                return (Some(true), Method::Search);
            }
            self.search.table_mut(at).optimise(row);
        }
        let counts = self.search.table(at).counts(row);
        let whole = row.iter().sum::<i64>() <= 64;
        if whole {
            self.search.steps_left = 20 * SEARCH_STEPS;
            if let Some(answer) = self.search.fits(counts, budget) {
                return (Some(answer), Method::Search);
            }
            self.search.table_mut(at).optimise(row);
        }
        let table = self.search.table(at);
        let basis = &table.bases[0];
        let spare = i128::from(budget) * i128::from(basis.determinant) - basis.value(row);
        let spare = i64::try_from(spare).unwrap_or(i64::MAX);
        if let Some(group) = Group::new(table, basis, spare) {
            match group.decide(row, budget as i64, GROUP_STEPS) {
                Verdict::Packs => return (Some(true), Method::GroupRelaxation),
                Verdict::Impossible => return (Some(false), Method::GroupRelaxation),
                Verdict::Unknown => {}
            }
        }
        if std::env::var("TRACE").is_ok() {
            eprintln!("UNKNOWN {counts:?} budget {budget} D {}", basis.determinant);
        }
        let t = std::time::Instant::now();
        let packs = Program::new(&mut self.search, at).packs(row, budget as i64);
        if std::env::var("TRACE").is_ok() {
            eprintln!("  => {packs} {:?}", t.elapsed());
        }
        (Some(packs), Method::BranchAndBound)
    }
}
