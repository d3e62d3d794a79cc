//! The exact optimum for any counts: reduce, bound, round, and prove.

use rustc_hash::FxHashMap;

use super::Objective;
use super::phi_star::Method;
use super::program::Program;
use super::reduce::{self, Counts};
use super::search::{self, Search};
use super::simplex::Row;

/// How many answers are remembered before the memory is cleared.
const MEMORY: usize = 1 << 16;
/// Steps of the exact search for what rounding leaves.
const SEARCH_STEPS: u64 = 2_000;
/// The solver of one capacity and objective.
#[derive(Clone, Debug)]
pub(super) struct Solver {
    search: Search,
    answers: FxHashMap<search::Key, (u64, Method)>,
}

impl Solver {
    pub(super) fn new(capacity: usize, objective: Objective) -> Self {
        Self { search: Search::new(capacity, objective), answers: FxHashMap::default() }
    }

    /// Steps that branch and bound took so far.
    pub(super) fn steps(&self) -> u64 {
        self.search.program_steps
    }

    /// A lower bound on the optimum, from the linear relaxation.
    pub(super) fn lower_bound(&mut self, counts: &Counts) -> u64 {
        self.search.lower_bound(*counts)
    }

    /// The optimum, and what proved it.
    pub(super) fn solve(&mut self, counts: &Counts) -> (u64, Method) {
        if reduce::signature(counts) == 0 {
            // Also what a node without any usable GPU holds.
            return (0, Method::Matching);
        }
        self.search.tidy();
        let mut rest = *counts;
        let settled = reduce::reduce(self.search.capacity, self.search.objective, &mut rest);
        if let Some(cost) = self.search.closed_form(&rest) {
            return (settled + cost, Method::Matching);
        }
        let key = search::key(&rest);
        if let Some(&(cost, method)) = key.and_then(|key| self.answers.get(&key)) {
            return (settled + cost, method);
        }
        let (cost, method) = self.solve_reduced(&rest);
        if let Some(key) = key {
            if self.answers.len() >= MEMORY {
                self.answers.clear();
            }
            self.answers.insert(key, (cost, method));
        }
        (settled + cost, method)
    }

    /// The optimum of a reduced demand that no closed form covers.
    fn solve_reduced(&mut self, rest: &Counts) -> (u64, Method) {
        let mut low = self.search.lower_bound(*rest);
        let at = self.search.table_of(rest);
        let row = self.search.table(at).row(rest);
        let high = self.round(at, &row);
        if high == Some(low) {
            return (low, Method::DualBound);
        }
        // Rounding and the bound differ by a few at most, nearly always by one.
        while !Program::new(&mut self.search, at).packs(&row, low as i64) {
            low = self.search.round_by_total(reduce::total(rest), low as i64 + 1);
            if high == Some(low) {
                break;
            }
        }
        (low, Method::IntegerProgram)
    }

    /// The cost of the packing that uses each pattern of the optimal basis as often as the relaxation says, rounded
    /// down, and packs what is left as well as can be: an upper bound. `None` if that took too long.
    fn round(&mut self, at: usize, row: &Row) -> Option<u64> {
        let table = self.search.table(at);
        let basis = &table.bases[0];
        let mut rest = *row;
        let mut used = 0;
        for (&pattern, x) in basis.patterns.iter().zip(basis.solution(row)) {
            let times = (x / i128::from(basis.determinant)) as i64;
            let pattern = &table.patterns[pattern];
            used += (times * pattern.cost) as u64;
            for (n, taken) in rest.iter_mut().zip(&pattern.counts) {
                *n -= times * taken;
            }
        }
        let rest = table.counts(&rest);
        self.search.steps_left = SEARCH_STEPS;
        Some(used + self.search.optimum(&rest)?)
    }
}
