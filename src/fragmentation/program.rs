//! Branch and bound on the integer program over patterns: what decides when nothing cheaper does.
//!
//! Every bound is an exact linear relaxation, so "no" is proved. A branch on a pattern that the relaxation uses `x`
//! times, `x` no whole number, is: more than `x` times, or exactly `j` times for some `j < x`. The value of the
//! relaxation with `x = j`, over one and the same set of patterns, is convex in `j` and least at `x`; so going down
//! from `⌊x⌋`, the first `j` whose relaxation is too dear ends the branch.
//!
//! The relaxation alone is blind to divisibility (as when only even sizes are left for an odd total), and could walk
//! through a million values of `j` there. So each step asks the group relaxation too. Where that has a solution that is
//! no packing, because it would use a pattern of the basis a negative number of times, the branch is on a pattern
//! of that solution: not at all, or at least once.
//!
//! Every step shrinks the demand or bans a pattern, so the search ends. Lone instances are never banned: the number of
//! them follows from the other patterns.

use super::group::Group;
use super::search::Search;
use super::simplex::{Basis, Pattern, Row};

/// Steps of the exact search for what rounding leaves at one node.
const SEARCH_STEPS: u64 = 50;

/// How many patterns are taken for sure, one after the other, before the branching goes on without such probes.
const CHAIN: u32 = 24;

/// Up to how many instances of a size are placed bin by bin.
const RARE: i64 = 2;

/// The integer program of one table.
pub(super) struct Program<'a> {
    search: &'a mut Search,
    table: usize,
    banned: Vec<usize>,
}

/// What follows for a demand.
enum Step {
    /// The answer.
    Decided(bool),
    /// Some packing, if there is one, uses this pattern at least so often.
    Take(usize, i64),
    /// Some packing, if there is one, does without this pattern.
    Ban(usize),
}

impl<'a> Program<'a> {
    /// The program of the search's table at position `table`.
    pub(super) fn new(search: &'a mut Search, table: usize) -> Self {
        Self { search, table, banned: Vec::new() }
    }

    /// Whether `row` can be packed at a cost of at most `budget` without the banned patterns.
    pub(super) fn packs(&mut self, row: &Row, budget: i64) -> bool {
        let banned = self.banned.len();
        let mut state = (*row, budget);
        let mut takes = 0;
        let packs = loop {
            match self.step(&state.0, state.1, takes < CHAIN) {
                Step::Decided(packs) => break packs,
                Step::Take(pattern, times) => {
                    let taken = self.search.table(self.table).patterns[pattern];
                    state = without(&state.0, state.1, &taken, times);
                    takes += 1;
                }
                Step::Ban(pattern) => self.banned.push(pattern),
            }
        };
        self.banned.truncate(banned);
        packs
    }

    /// What follows for a demand: an answer, or a smaller question with the same answer.
    fn step(&mut self, row: &Row, budget: i64, probe: bool) -> Step {
        let Some(basis) = self.relax(row, budget, row) else { return Step::Decided(false) };
        let table = self.search.table(self.table);
        let determinant = i128::from(basis.determinant);
        let mut rest = *row;
        let mut left = budget;
        // What the relaxation uses a fractional number of times: how far from a whole number, which, how often.
        let mut fractional: Vec<(i128, usize, i64)> = Vec::new();
        for (&at, x) in basis.patterns.iter().zip(basis.solution(row)) {
            let (times, part) = ((x / determinant) as i64, x % determinant);
            let pattern = &table.patterns[at];
            take(&mut rest, &pattern.counts, times);
            left -= times * pattern.cost;
            // Lone instances follow from the others: they are whole once those are.
            if part > 0 && !table.is_lone(at) {
                fractional.push((part.min(determinant - part), at, times));
            }
        }
        if fractional.is_empty() {
            return Step::Decided(true);
        }
        let rest = table.counts(&rest);
        self.search.steps_left = SEARCH_STEPS;
        if left >= 0 && self.search.fits(rest, left as u64) == Some(true) {
            return Step::Decided(true);
        }
        fractional.sort_unstable_by_key(|&(balance, at, _)| (-balance, at));
        let table = self.search.table(self.table);
        let spare = i128::from(budget) * determinant - basis.value(row);
        let allowed = |at: usize| self.allowed(row, at);
        let group = i64::try_from(spare).ok().and_then(|spare| Group::new(table, &basis, spare, allowed));
        let mut branch = None;
        if let Some(group) = group {
            let Some(path) = group.path(row) else { return Step::Decided(false) };
            let mut rest = *row;
            for &pattern in &path {
                take(&mut rest, &table.patterns[pattern].counts, 1);
            }
            let solution = basis.solution(&rest);
            let Some(short) = (0..basis.patterns.len()).min_by_key(|&at| solution[at]) else {
                return Step::Decided(true);
            };
            if solution[short] >= 0 {
                return Step::Decided(true);
            }
            // What draws most on the pattern that runs short.
            let draw = |at: &usize| basis.solution(&table.patterns[*at].counts)[short];
            branch = path.into_iter().filter(|&at| !table.is_lone(at)).max_by_key(draw);
        }
        if let Some(size) = (0..row.len()).find(|&size| (1..=RARE).contains(&row[size])) {
            return Step::Decided(self.place_rare(size, &basis, row, budget));
        }
        for &(_, pattern, times) in fractional.iter().filter(|_| probe) {
            // Where one side is too dear at once, there is nothing to branch on.
            let taken = self.search.table(self.table).patterns[pattern];
            let (more, more_budget) = without(row, budget, &taken, times + 1);
            let (less, less_budget) = without(row, budget, &taken, times);
            self.banned.push(pattern);
            let less_fits = self.relax(&less, less_budget, row).is_some();
            self.banned.pop();
            let more_fits = self.relax(&more, more_budget, row).is_some();
            match (less_fits, more_fits) {
                (false, false) => return Step::Decided(false),
                (false, true) => return Step::Take(pattern, times + 1),
                (true, false) if times == 0 => return Step::Ban(pattern),
                _ => {}
            }
        }
        let Some(pattern) = branch else {
            return Step::Decided(self.branch(fractional[0].1, fractional[0].2, row, budget));
        };
        self.banned.push(pattern);
        let packs = self.packs(row, budget);
        self.banned.pop();
        if packs { Step::Decided(true) } else { Step::Take(pattern, 1) }
    }

    /// Whether `row` can be packed, by trying every bin for one instance of a rare size. The relaxations spread such an
    /// instance over many bins, in fractions or by negative uses; in one bin it stops misleading them.
    fn place_rare(&mut self, size: usize, basis: &Basis, row: &Row, budget: i64) -> bool {
        let spare = i128::from(budget) * i128::from(basis.determinant) - basis.value(row);
        let mut bins: Vec<(i64, usize)> = self
            .search
            .table(self.table)
            .patterns
            .iter()
            .enumerate()
            .filter(|&(at, p)| p.counts[size] > 0 && self.allowed(row, at))
            .map(|(at, p)| (basis.reduced_cost(p), at))
            .filter(|&(cost, _)| i128::from(cost) <= spare)
            .collect();
        bins.sort_unstable();
        bins.into_iter().any(|(_, at)| {
            let taken = self.search.table(self.table).patterns[at];
            let (rest, budget) = without(row, budget, &taken, 1);
            self.packs(&rest, budget)
        })
    }

    /// More than `times`, or exactly so often, or less.
    fn branch(&mut self, pattern: usize, times: i64, row: &Row, budget: i64) -> bool {
        let taken = self.search.table(self.table).patterns[pattern];
        let (more, more_budget) = without(row, budget, &taken, times + 1);
        if self.packs(&more, more_budget) {
            return true;
        }
        self.banned.push(pattern);
        let mut packs = false;
        for times in (0..=times).rev() {
            let (rest, budget) = without(row, budget, &taken, times);
            if self.relax(&rest, budget, row).is_none() {
                break;
            }
            packs = self.packs(&rest, budget);
            if packs {
                break;
            }
        }
        self.banned.pop();
        packs
    }

    /// An optimal basis of the relaxation, if it is cheap enough, over the patterns that may be part of a packing of
    /// `whole`, of which `row` is a part.
    fn relax(&self, row: &Row, budget: i64, whole: &Row) -> Option<Basis> {
        if budget < 0 || row.iter().any(|&n| n < 0) {
            return None;
        }
        let table = self.search.table(self.table);
        let basis = table.solve(row, |at| table.is_lone(at) || self.allowed(whole, at));
        (basis.bound(row) <= budget).then_some(basis)
    }

    /// Whether a pattern is not banned and can be filled from `row`.
    fn allowed(&self, row: &Row, at: usize) -> bool {
        let pattern = &self.search.table(self.table).patterns[at];
        !self.banned.contains(&at) && pattern.counts.iter().zip(row).all(|(n, have)| n <= have)
    }
}

/// What is left of a demand and of its budget.
fn without(row: &Row, budget: i64, pattern: &Pattern, times: i64) -> (Row, i64) {
    let mut rest = *row;
    take(&mut rest, &pattern.counts, times);
    (rest, budget - times * pattern.cost)
}

/// Takes `times` patterns out of `row`.
fn take(row: &mut Row, pattern: &Row, times: i64) {
    for (n, taken) in row.iter_mut().zip(pattern) {
        *n -= times * taken;
    }
}
