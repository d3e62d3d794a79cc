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
//! of that solution: not at all, or at least once. Where few partial bins are affordable, one of those in the solution is
//! that pattern: without it there is mostly no solution at all, and with it the budget is nearly spent.
//!
//! Every step shrinks the demand or bans a pattern, so the search ends. The relaxation does without a banned lone instance
//! by paying for one that no bin holds.
//!
//! **Depth.** The stack holds what waits below the path that is being followed: at most two questions for each ban on it,
//! of which there are at most 914, and 914 for each instance of a rare size, of which the eight sizes have at most two
//! each. So it stays below 17,000 questions of 200 bytes, however large the counts are.
//!
//! **Length.** Exponential in the worst case, as for any exact method here; what was measured is in the test module
//! `effort`, which also holds the steps of the hardest demands found to a limit.

use super::group::{COUNTED, Group};
use super::search::Search;
use super::simplex::{Basis, Row};

/// Steps of the exact search for what rounding leaves at one step.
const SEARCH_STEPS: u64 = 50;

/// How many patterns are taken for sure, one after the other, before the branching goes on without such probes.
const CHAIN: u32 = 24;

/// Up to how many instances of a size are placed bin by bin.
const RARE: i64 = 2;

/// The integer program of one table.
pub(super) struct Program<'a> {
    search: &'a mut Search,
    table: usize,
}

/// Patterns that may not be used, as bits: there are 914 at most.
type Banned = [u64; 15];

/// Can this demand be packed within this budget, without the banned patterns?
#[derive(Clone, Copy)]
struct Question {
    row: Row,
    budget: i64,
    banned: Banned,
    /// How many patterns were taken for sure since the last branch.
    chain: u32,
}

/// What is still to be asked; one "yes" answers all.
enum Open {
    Whole(Question),
    /// The same with the pattern exactly so often, or less often.
    AtMost(Question, usize, i64),
}

impl<'a> Program<'a> {
    /// The program of the search's table at position `table`.
    pub(super) fn new(search: &'a mut Search, table: usize) -> Self {
        Self { search, table }
    }

    /// Whether `row` can be packed at a cost of at most `budget`.
    ///
    /// Depth first, on a stack of its own: see the module for how deep.
    pub(super) fn packs(&mut self, row: &Row, budget: i64) -> bool {
        let mut open = vec![Open::Whole(Question { row: *row, budget, banned: Banned::default(), chain: 0 })];
        while let Some(next) = open.pop() {
            let packs = match next {
                Open::Whole(question) => {
                    self.search.program_steps += 1;
                    self.step(&question, &mut open)
                }
                Open::AtMost(question, pattern, times) => {
                    self.at_most(&question, pattern, times, &mut open);
                    false
                }
            };
            if packs {
                return true;
            }
        }
        false
    }

    /// True if the answer is yes; else what is left to ask is put on the stack, what is to be asked first on top.
    fn step(&mut self, question: &Question, open: &mut Vec<Open>) -> bool {
        let &Question { ref row, budget, .. } = question;
        let Some(basis) = self.relax(question, row) else { return false };
        let table = self.search.table(self.table);
        let determinant = i128::from(basis.determinant);
        // What the relaxation uses a fractional number of times: how far from a whole number, which, how often.
        let mut fractional: Vec<(i128, usize, i64)> = Vec::new();
        let mut whole: Vec<(usize, i64)> = Vec::with_capacity(basis.patterns.len());
        for (&at, x) in basis.patterns.iter().zip(basis.solution(row)) {
            let (times, part) = ((x / determinant) as i64, x % determinant);
            whole.push((at, times));
            // Lone instances follow from the others: they are whole once those are.
            if part > 0 && !table.is_lone(at) {
                fractional.push((part.min(determinant - part), at, times));
            }
        }
        if fractional.is_empty() {
            return true;
        }
        let slack: &[i64] = if question.chain == 0 { &[0, 1, 3] } else { &[0] };
        if slack.iter().any(|&slack| self.completes(question, &whole, slack)) {
            return true;
        }
        fractional.sort_unstable_by_key(|&(balance, at, _)| (-balance, at));
        let table = self.search.table(self.table);
        let spare = i128::from(budget) * determinant - basis.value(row);
        let allowed = |at: usize| self.allowed(question, at);
        let group = i64::try_from(spare).ok().and_then(|spare| Group::new(table, &basis, spare, budget, allowed));
        let paid = |at: usize| budget <= COUNTED && table.patterns[at].cost > 0;
        let mut branch = None;
        if let Some(group) = group {
            let Some(path) = group.path(row) else { return false };
            let mut rest = *row;
            for &pattern in &path {
                take(&mut rest, &table.patterns[pattern].counts, 1);
            }
            let solution = basis.solution(&rest);
            let short = (0..basis.patterns.len()).min_by_key(|&at| solution[at]);
            let Some(short) = short.filter(|&at| solution[at] < 0) else { return true };
            if question.chain == 0 && group.packs(row) {
                return true;
            }
            // Bins that cost decide most where there are few; then what draws most on the pattern that runs short.
            let draw = |at: usize| basis.solution(&table.patterns[at].counts)[short];
            let may_branch = |&at: &usize| paid(at) || !table.is_lone(at);
            branch = path.into_iter().filter(may_branch).max_by_key(|&at| (paid(at), draw(at)));
        }
        let rare = (0..row.len()).find(|&size| (1..=RARE).contains(&row[size]));
        if let Some(size) = rare.filter(|_| !branch.is_some_and(paid)) {
            self.place_rare(size, &basis, question, open);
            return false;
        }
        let probed = if question.chain < CHAIN { &fractional[..] } else { &[] };
        for &(_, pattern, times) in probed {
            // Where one side is too dear at once, there is nothing to branch on.
            let more = self.with(question, pattern, times + 1);
            let less = banning(self.with(question, pattern, times), pattern);
            match (self.relax(&less, row).is_some(), self.relax(&more, row).is_some()) {
                (false, false) => return false,
                (false, true) => {
                    open.push(Open::Whole(Question { chain: question.chain + 1, ..more }));
                    return false;
                }
                (true, false) if times == 0 => {
                    open.push(Open::Whole(banning(*question, pattern)));
                    return false;
                }
                _ => {}
            }
        }
        // What bans comes first: only so many patterns can be banned, so only so much is left waiting below it.
        let (pattern, times) = branch.map_or((fractional[0].1, fractional[0].2), |pattern| (pattern, 0));
        open.push(Open::Whole(Question { chain: 0, ..self.with(question, pattern, times + 1) }));
        open.push(Open::AtMost(*question, pattern, times));
        false
    }

    /// Whether the demand can be packed with `slack` bins fewer of each pattern than the relaxation uses, rounded down,
    /// and what is left in the best way. "No" may only mean that the steps ran out.
    fn completes(&mut self, question: &Question, whole: &[(usize, i64)], slack: i64) -> bool {
        let mut rest = *question;
        for &(pattern, times) in whole {
            rest = self.with(&rest, pattern, (times - slack).max(0));
        }
        let counts = self.search.table(self.table).counts(&rest.row);
        self.search.steps_left = SEARCH_STEPS;
        rest.budget >= 0 && self.search.fits(counts, rest.budget as u64) == Some(true)
    }

    /// Asks for exactly `times`, then for less often. The value of the relaxation only grows on the way down, so once it
    /// is too dear nothing is left to ask.
    fn at_most(&self, question: &Question, pattern: usize, times: i64, open: &mut Vec<Open>) {
        let exactly = banning(self.with(question, pattern, times), pattern);
        if self.relax(&exactly, &question.row).is_none() {
            return;
        }
        if times > 0 {
            open.push(Open::AtMost(*question, pattern, times - 1));
        }
        open.push(Open::Whole(Question { chain: 0, ..exactly }));
    }

    /// Asks for every bin for one instance of a rare size. The relaxations spread such an instance over many bins, in
    /// fractions or by negative uses; in one bin it stops misleading them.
    fn place_rare(&self, size: usize, basis: &Basis, question: &Question, open: &mut Vec<Open>) {
        let spare = i128::from(question.budget) * i128::from(basis.determinant) - basis.value(&question.row);
        let patterns = self.search.table(self.table).bins();
        let bins = patterns.filter(|&(at, p)| p.counts[size] > 0 && self.allowed(question, at));
        let bins = bins.map(|(at, p)| (basis.reduced_cost(p), at)).filter(|&(cost, _)| i128::from(cost) <= spare);
        let mut bins: Vec<(i64, usize)> = bins.collect();
        bins.sort_unstable_by(|a, b| b.cmp(a));
        open.extend(bins.into_iter().map(|(_, at)| Open::Whole(Question { chain: 0, ..self.with(question, at, 1) })));
    }

    /// An optimal basis of the relaxation, if it is cheap enough, over the patterns that may be part of a packing of
    /// `whole`, of which the question's demand is a part.
    fn relax(&self, question: &Question, whole: &Row) -> Option<Basis> {
        let &Question { ref row, budget, .. } = question;
        if budget < 0 || row.iter().any(|&n| n < 0) {
            return None;
        }
        let table = self.search.table(self.table);
        let whole = Question { row: *whole, ..*question };
        let basis = table.solve(row, |at| self.allowed(&whole, at), |at| is_banned(question, at));
        (basis.bound(row) <= budget).then_some(basis)
    }

    /// Whether a pattern is not banned and can be filled from the question's demand.
    fn allowed(&self, question: &Question, at: usize) -> bool {
        let pattern = &self.search.table(self.table).patterns[at];
        !is_banned(question, at) && pattern.counts.iter().zip(&question.row).all(|(n, have)| n <= have)
    }

    /// What is left to ask after a pattern was used so often.
    fn with(&self, question: &Question, pattern: usize, times: i64) -> Question {
        let pattern = &self.search.table(self.table).patterns[pattern];
        let mut question = *question;
        take(&mut question.row, &pattern.counts, times);
        question.budget -= times * pattern.cost;
        question
    }
}

fn is_banned(question: &Question, at: usize) -> bool {
    question.banned[at / 64] >> (at % 64) & 1 == 1
}

/// The same question without one pattern more.
fn banning(mut question: Question, pattern: usize) -> Question {
    question.banned[pattern / 64] |= 1 << (pattern % 64);
    question
}

/// Takes `times` patterns out of `row`.
fn take(row: &mut Row, pattern: &Row, times: i64) {
    for (n, taken) in row.iter_mut().zip(pattern) {
        *n -= times * taken;
    }
}
