//! The exact search: can this demand be packed at a cost of at most `k`?
//!
//! Some bin holds an instance of the largest size, so `cost(n) = min over patterns p with that size of
//! cost(p) + cost(n - p)`. The recursion reduces (see [`super::reduce`]) and prunes with dual bounds at every step, and
//! remembers what it proved about a reduced demand, whatever question led there.

use rustc_hash::FxHashMap;

use super::Objective;
use super::reduce::{self, Counts, MAX_SIZES};
use super::simplex::{Row, Table};

/// A reduced demand in 128 bits: which sizes, and 14 bits for each count.
pub(super) type Key = u128;

/// What is proved about a reduced demand: its optimum lies in `low..=high`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) low: u64,
    pub(super) high: u64,
}

/// How many reduced demands are remembered before the memory is cleared.
const MEMORY: usize = 1 << 17;

/// How many tables are kept from one question to the next.
const MAX_TABLES: usize = 512;

/// The tables of one capacity and objective, and what was proved so far.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) capacity: usize,
    pub(super) objective: Objective,
    tables: Vec<Table>,
    table_of: FxHashMap<u32, usize>,
    memory: FxHashMap<Key, Range>,
    /// Steps left before the search gives up.
    pub(super) steps_left: u64,
    /// Steps that branch and bound took so far.
    pub(super) program_steps: u64,
}

impl Search {
    pub(super) fn new(capacity: usize, objective: Objective) -> Self {
        Self {
            capacity,
            objective,
            tables: Vec::new(),
            table_of: FxHashMap::default(),
            memory: FxHashMap::default(),
            steps_left: 0,
            program_steps: 0,
        }
    }

    /// The table for the sizes of a reduced demand.
    pub(super) fn table_of(&mut self, counts: &Counts) -> usize {
        let signature = reduce::signature(counts);
        if let Some(&at) = self.table_of.get(&signature) {
            return at;
        }
        self.tables.push(Table::new(self.capacity, self.objective, signature));
        self.table_of.insert(signature, self.tables.len() - 1);
        self.tables.len() - 1
    }

    pub(super) fn table(&self, at: usize) -> &Table {
        &self.tables[at]
    }

    /// Forgets tables if there are very many. Not to be called while a position of a table is in use.
    pub(super) fn tidy(&mut self) {
        if self.tables.len() > MAX_TABLES {
            self.tables.clear();
            self.table_of.clear();
        }
    }

    /// What is proved about a reduced demand, if anything is remembered.
    fn recall(&self, counts: &Counts) -> Option<Range> {
        self.memory.get(&key(counts)?).copied()
    }

    /// Remembers that the optimum of a reduced demand lies in `low..=high`.
    fn remember(&mut self, counts: &Counts, low: u64, high: u64) {
        let Some(key) = key(counts) else { return };
        if self.memory.len() >= MEMORY {
            self.memory.clear();
        }
        let range = self.memory.entry(key).or_insert(Range { low: 0, high: u64::MAX });
        range.low = range.low.max(low);
        range.high = range.high.min(high);
    }

    /// The optimum of a reduced demand where a formula gives it.
    pub(super) fn closed_form(&self, counts: &Counts) -> Option<u64> {
        let total = reduce::total(counts);
        if total <= self.capacity as u64 {
            return Some(match self.objective {
                Objective::Partial => u64::from(!total.is_multiple_of(self.capacity as u64)),
                Objective::Bins => u64::from(total > 0),
            });
        }
        // With fillers for every slot, slots of powers of two and then single GPUs fill bin after bin.
        let fillers = super::wcc::fillers_needed(self.capacity, counts)?;
        (counts[1] >= fillers).then(|| match self.objective {
            Objective::Partial => u64::from(!total.is_multiple_of(self.capacity as u64)),
            Objective::Bins => total.div_ceil(self.capacity as u64),
        })
    }

    /// Raises a lower bound by what the total says about partial bins.
    ///
    /// A total that is no multiple of the capacity needs a partial bin; with a multiple, one partial bin cannot be the
    /// only one, as the full bins leave it a multiple of the capacity.
    pub(super) fn round_by_total(&self, total: u64, bound: i64) -> u64 {
        let bound = bound.max(0) as u64;
        match (self.objective, total.is_multiple_of(self.capacity as u64)) {
            (Objective::Partial, true) if bound == 1 => 2,
            (Objective::Partial, false) => bound.max(1),
            _ => bound,
        }
    }

    /// Whether `counts` can be packed at a cost of at most `budget`; `None` if the steps ran out.
    pub(super) fn fits(&mut self, mut counts: Counts, budget: u64) -> Option<bool> {
        let settled = reduce::reduce(self.capacity, self.objective, &mut counts);
        let Some(budget) = budget.checked_sub(settled) else { return Some(false) };
        if let Some(cost) = self.closed_form(&counts) {
            return Some(cost <= budget);
        }
        if let Some(range) = self.recall(&counts) {
            if range.high <= budget {
                return Some(true);
            }
            if range.low > budget {
                return Some(false);
            }
        }
        self.steps_left = self.steps_left.checked_sub(1)?;
        let at = self.table_of(&counts);
        let row = self.tables[at].row(&counts);
        if self.tables[at].bases.is_empty() {
            self.tables[at].optimise(&row);
        }
        let total = reduce::total(&counts);
        let mut bound = self.tables[at].bound(&row);
        let mut low = self.round_by_total(total, bound.0);
        if low <= budget {
            self.tables[at].optimise(&row);
            bound = self.tables[at].bound(&row);
            low = self.round_by_total(total, bound.0);
        }
        if low > budget {
            self.remember(&counts, low, u64::MAX);
            return Some(false);
        }
        for child in self.children(at, &row, bound.1, budget) {
            let pattern = self.tables[at].patterns[child];
            let mut rest = row;
            for (n, taken) in rest.iter_mut().zip(&pattern.counts) {
                *n -= taken;
            }
            let rest = self.tables[at].counts(&rest);
            if self.fits(rest, budget - pattern.cost as u64)? {
                self.remember(&counts, low, budget);
                return Some(true);
            }
        }
        self.remember(&counts, budget + 1, u64::MAX);
        Some(false)
    }

    /// The optimum of `counts`, by the search alone; `None` if the steps ran out.
    pub(super) fn optimum(&mut self, counts: &Counts) -> Option<u64> {
        let mut budget = self.lower_bound(*counts);
        while !self.fits(*counts, budget)? {
            budget += 1;
        }
        Some(budget)
    }

    /// The best lower bound known without a search.
    pub(super) fn lower_bound(&mut self, mut counts: Counts) -> u64 {
        let settled = reduce::reduce(self.capacity, self.objective, &mut counts);
        if let Some(cost) = self.closed_form(&counts) {
            return settled + cost;
        }
        let remembered = self.recall(&counts).map_or(0, |range| range.low);
        let at = self.table_of(&counts);
        let row = self.tables[at].row(&counts);
        self.tables[at].optimise(&row);
        let bound = self.tables[at].bound(&row).0;
        settled + self.round_by_total(reduce::total(&counts), bound).max(remembered)
    }

    /// The patterns with the largest size that are worth a try, the most promising first.
    fn children(&self, at: usize, row: &Row, basis: usize, budget: u64) -> Vec<usize> {
        let table = &self.tables[at];
        let basis = &table.bases[basis];
        let largest = table.sizes.len() - 1;
        // A bin of reduced cost above what the budget leaves over the bound cannot be part of a good enough packing.
        let spare = i128::from(basis.determinant) * i128::from(budget) - basis.value(row);
        let mut children: Vec<(i64, usize)> = table
            .bins()
            .filter(|(_, p)| p.counts[largest] > 0 && p.cost <= budget as i64)
            .filter(|(_, p)| p.counts.iter().zip(row).all(|(n, have)| n <= have))
            .map(|(child, p)| (basis.reduced_cost(p), child))
            .filter(|&(cost, _)| i128::from(cost) <= spare)
            .collect();
        children.sort_unstable();
        children.into_iter().map(|(_, child)| child).collect()
    }
}

/// The key of a reduced demand, if its counts are small enough for one.
pub(super) fn key(counts: &Counts) -> Option<Key> {
    let mut key = u128::from(reduce::signature(counts) >> 1 & 0xffff);
    let mut shift = 16;
    for &n in counts.iter().filter(|&&n| n > 0) {
        if n >= 1 << 14 || shift >= 16 + 14 * MAX_SIZES {
            return None;
        }
        key |= u128::from(n) << shift;
        shift += 14;
    }
    Some(key)
}
