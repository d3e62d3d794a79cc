//! Branch and bound on the integer program over patterns: what decides when nothing cheaper does.
//!
//! Every bound is an exact linear relaxation, so "no" is proved. A branch on a pattern that the relaxation uses `x`
//! times, `x` no whole number, is: more than `x` times, or exactly `j` times for some `j < x`. The value of the
//! relaxation with `x = j` is convex in `j` and least at `x`; so going down from `⌊x⌋`, the first `j` whose relaxation
//! is too dear ends the branch. Every branch shrinks the demand or bans a pattern, so the search ends.

use super::search::Search;
use super::simplex::Row;

/// Steps of the exact search for what rounding leaves at one node.
const SEARCH_STEPS: u64 = 50;

/// The integer program of one table.
pub(super) struct Program<'a> {
    search: &'a mut Search,
    table: usize,
    banned: Vec<usize>,
}

/// What a node of the branching came to.
enum Node {
    Packs,
    /// Even the relaxation does not fit.
    TooDear,
    /// The relaxation fits, no packing does.
    Exhausted,
}

impl<'a> Program<'a> {
    /// The program of the search's table at position `table`.
    pub(super) fn new(search: &'a mut Search, table: usize) -> Self {
        Self { search, table, banned: Vec::new() }
    }

    /// Whether `row` can be packed at a cost of at most `budget`.
    pub(super) fn packs(&mut self, row: &Row, budget: i64) -> bool {
        matches!(self.node(row, budget), Node::Packs)
    }

    fn node(&mut self, row: &Row, budget: i64) -> Node {
        if budget < 0 || row.iter().any(|&n| n < 0) {
            return Node::TooDear;
        }
        let table = self.search.table(self.table);
        let basis = table.solve(row, &self.banned);
        if basis.bound(row) > budget {
            return Node::TooDear;
        }
        let determinant = i128::from(basis.determinant);
        let mut rest = *row;
        let mut left = budget;
        let mut branch: Option<(i128, usize, i64)> = None;
        for (&at, x) in basis.patterns.iter().zip(basis.solution(row)) {
            let (times, part) = ((x / determinant) as i64, x % determinant);
            let pattern = &table.patterns[at];
            take(&mut rest, &pattern.counts, times);
            left -= times * pattern.cost;
            // The most fractional one. Lone instances follow from the others: they are whole once those are.
            let balance = part.min(determinant - part);
            if balance > 0 && !table.is_lone(at) && branch.is_none_or(|(best, _, _)| balance > best) {
                branch = Some((balance, at, times));
            }
        }
        let Some((_, pattern, times)) = branch else { return Node::Packs };
        let rest = table.counts(&rest);
        self.search.steps_left = SEARCH_STEPS;
        if left >= 0 && self.search.fits(rest, left as u64) == Some(true) {
            return Node::Packs;
        }
        let taken = self.search.table(self.table).patterns[pattern];
        let mut more = *row;
        take(&mut more, &taken.counts, times + 1);
        if matches!(self.node(&more, budget - (times + 1) * taken.cost), Node::Packs) {
            return Node::Packs;
        }
        self.banned.push(pattern);
        let mut outcome = Node::Exhausted;
        for times in (0..=times).rev() {
            let mut rest = *row;
            take(&mut rest, &taken.counts, times);
            match self.node(&rest, budget - times * taken.cost) {
                Node::Packs => {
                    outcome = Node::Packs;
                    break;
                }
                Node::TooDear => break,
                Node::Exhausted => {}
            }
        }
        self.banned.pop();
        outcome
    }
}

/// Takes `times` patterns out of `row`.
fn take(row: &mut Row, pattern: &Row, times: i64) {
    for (n, taken) in row.iter_mut().zip(pattern) {
        *n -= times * taken;
    }
}
