//! The linear relaxation of an integer program, by the dual simplex method with bounded variables.
//!
//! Its numbers are floats, and they decide nothing: a solution proposes prices and a point, `integer.rs` judges both in
//! integers. Starting from the slacks with non-negative costs, the basis is dual feasible, and stays so when bounds change,
//! so branch and bound goes on from wherever the last question ended.

use super::integer::{Program, Sense};

/// What a bound may be missed by.
const PRIMAL_TOLERANCE: f64 = 1e-7;

/// What is too small to pivot on.
const PIVOT_TOLERANCE: f64 = 1e-7;

/// A small cost of its own for each column, so that few choices tie. The bound that the prices give is worth a little
/// less for it: this much for each unit of the solution.
const PERTURBATION: f64 = 1e-7;

/// How a question to the relaxation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With an optimum.
    Optimal,
    /// The bounds contradict each other; [`Relaxation::prices`] are the weights of the rows that show it.
    Infeasible,
    /// Too many steps, or numbers that cannot be trusted.
    GivenUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Basic,
    Lower,
    Upper,
}

/// The relaxation, with the basis where the last question ended. Variables: the columns, then a slack a row.
#[derive(Clone, Debug)]
pub(super) struct Relaxation<'p> {
    program: &'p Program,
    n_rows: usize,
    n_columns: usize,
    cost: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    at: Vec<At>,
    basis: Vec<usize>,
    /// The inverse of the basis, row by row.
    inverse: Vec<f64>,
    value: Vec<f64>,
    reduced: Vec<f64>,
    /// Weights of the rows at the end of the last question.
    prices: Vec<f64>,
    since_inversion: usize,
    /// What a pivot counts.
    pivot_steps: u64,
    row: Vec<f64>,
    pivot_column: Vec<f64>,
}

impl<'p> Relaxation<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        let (n_rows, n_columns) = (program.rows.len(), program.columns.len());
        let n = n_rows + n_columns;
        let perturbed = |(at, column): (usize, &super::integer::Column)| {
            // A fixed scatter of the numbers 1 to 2.
            let scatter = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            column.cost as f64 + PERTURBATION * (1.0 + scatter as f64 / (1u64 << 24) as f64)
        };
        let mut cost: Vec<f64> = program.columns.iter().enumerate().map(perturbed).collect();
        cost.resize(n, 0.0);
        let mut upper: Vec<f64> = program.columns.iter().map(|column| column.upper as f64).collect();
        upper.extend(program.rows.iter().map(|row| if row.sense == Sense::Equal { 0.0 } else { f64::INFINITY }));
        let mut at = vec![At::Lower; n_columns];
        at.resize(n, At::Basic);
        let mut relaxation = Self {
            program,
            n_rows,
            n_columns,
            reduced: cost.clone(),
            cost,
            lower: vec![0.0; n],
            upper,
            at,
            basis: (n_columns..n).collect(),
            inverse: vec![0.0; n_rows * n_rows],
            value: vec![0.0; n_rows],
            prices: vec![0.0; n_rows],
            since_inversion: 0,
            pivot_steps: pivot_steps(program),
            row: vec![0.0; n],
            pivot_column: vec![0.0; n_rows],
        };
        (0..n_rows).for_each(|i| relaxation.inverse[i * n_rows + i] = 1.0);
        relaxation
    }

    /// Sets the bounds of a column for the questions to come.
    pub(super) fn bound(&mut self, column: usize, (lower, upper): (i64, i64)) {
        self.lower[column] = lower as f64;
        self.upper[column] = upper as f64;
    }

    /// The value of a column at the end of the last question.
    pub(super) fn values(&self) -> Vec<f64> {
        let mut values: Vec<f64> = (0..self.n_columns).map(|j| self.resting(j)).collect();
        for (&variable, &value) in self.basis.iter().zip(&self.value) {
            if variable < self.n_columns {
                values[variable] = value;
            }
        }
        values
    }

    /// What the rows are worth at an optimum; what they are to be weighed with where there is none.
    pub(super) fn prices(&self) -> &[f64] {
        &self.prices
    }

    /// Solves it within its bounds, in at most so many steps, which are taken off, and as long as it is not too late.
    pub(super) fn solve(&mut self, steps: &mut u64, too_late: impl Fn() -> bool) -> Ended {
        self.settle();
        loop {
            if self.since_inversion >= 100.max(self.n_rows) {
                if !self.invert() {
                    return Ended::GivenUp;
                }
                self.settle();
            }
            let Some((leaving, below)) = self.most_violated() else {
                self.price();
                return Ended::Optimal;
            };
            if *steps == 0 || too_late() {
                return Ended::GivenUp;
            }
            *steps = steps.saturating_sub(self.pivot_steps);
            self.fill_row(leaving);
            let Some(entering) = self.entering(below) else {
                let row = &self.inverse[leaving * self.n_rows..][..self.n_rows];
                self.prices.copy_from_slice(row);
                return Ended::Infeasible;
            };
            if !self.pivot(leaving, entering, below) && !self.invert() {
                return Ended::GivenUp;
            }
        }
    }

    /// The value of a variable outside the basis.
    fn resting(&self, variable: usize) -> f64 {
        if self.at[variable] == At::Upper { self.upper[variable] } else { self.lower[variable] }
    }

    /// Puts each variable outside the basis on the bound that its reduced cost asks for, and works out the others.
    fn settle(&mut self) {
        let mut rest: Vec<f64> = self.program.rows.iter().map(|row| row.rhs as f64).collect();
        for variable in 0..self.n_columns + self.n_rows {
            if self.at[variable] == At::Basic {
                continue;
            }
            let high = self.reduced[variable] < 0.0 && self.upper[variable].is_finite();
            self.at[variable] = if high { At::Upper } else { At::Lower };
            let value = self.resting(variable);
            if value != 0.0 {
                self.each_entry(variable, |row, entry| rest[row] -= entry * value);
            }
        }
        for (i, value) in self.value.iter_mut().enumerate() {
            let row = &self.inverse[i * self.n_rows..][..self.n_rows];
            *value = row.iter().zip(&rest).map(|(a, b)| a * b).sum();
        }
    }

    fn each_entry(&self, variable: usize, mut each: impl FnMut(usize, f64)) {
        match variable.checked_sub(self.n_columns) {
            Some(row) => each(row, 1.0),
            None => self.program.columns[variable].entries.iter().for_each(|&(row, entry)| {
                each(row as usize, entry as f64);
            }),
        }
    }

    /// The row whose variable misses its bounds most, and whether from below.
    fn most_violated(&self) -> Option<(usize, bool)> {
        let mut most = PRIMAL_TOLERANCE;
        let mut found = None;
        for (i, (&variable, &value)) in self.basis.iter().zip(&self.value).enumerate() {
            let (under, over) = (self.lower[variable] - value, value - self.upper[variable]);
            if under > most {
                (most, found) = (under, Some((i, true)));
            }
            if over > most {
                (most, found) = (over, Some((i, false)));
            }
        }
        found
    }

    /// Works out a row of the tableau for all variables outside the basis.
    fn fill_row(&mut self, leaving: usize) {
        let inverse_row = &self.inverse[leaving * self.n_rows..][..self.n_rows];
        for (variable, column) in self.program.columns.iter().enumerate() {
            let dot = |sum, &(row, entry): &(u32, i32)| sum + inverse_row[row as usize] * f64::from(entry);
            self.row[variable] =
                if self.at[variable] == At::Basic { 0.0 } else { column.entries.iter().fold(0.0, dot) };
        }
        for (i, &entry) in inverse_row.iter().enumerate() {
            let variable = self.n_columns + i;
            self.row[variable] = if self.at[variable] == At::Basic { 0.0 } else { entry };
        }
    }

    /// The variable that enters: the one whose reduced cost is used up first; of several, the one with the largest pivot.
    fn entering(&self, below: bool) -> Option<usize> {
        let mut found: Option<(f64, f64, usize)> = None;
        for (variable, &entry) in self.row.iter().enumerate() {
            if entry.abs() <= PIVOT_TOLERANCE || self.lower[variable] == self.upper[variable] {
                continue;
            }
            let rises = self.at[variable] == At::Lower;
            if rises == ((entry > 0.0) == below) {
                continue;
            }
            let ratio = self.reduced[variable].abs() / entry.abs();
            let better = match found {
                None => true,
                Some((least, pivot, _)) => ratio < least - 1e-12 || ratio <= least + 1e-12 && entry.abs() > pivot,
            };
            if better {
                found = Some((ratio, entry.abs(), variable));
            }
        }
        found.map(|(.., variable)| variable)
    }

    /// Exchanges a variable of the basis. False if the pivot is not to be trusted; nothing has changed then.
    fn pivot(&mut self, leaving: usize, entering: usize, below: bool) -> bool {
        let n = self.n_rows;
        let mut column = std::mem::take(&mut self.pivot_column);
        column.fill(0.0);
        self.each_entry(entering, |row, entry| {
            for (i, sum) in column.iter_mut().enumerate() {
                *sum += self.inverse[i * n + row] * entry;
            }
        });
        let pivot = column[leaving];
        let trusted = pivot.abs() > PIVOT_TOLERANCE && (pivot - self.row[entering]).abs() < 1e-5 * (1.0 + pivot.abs());
        if trusted {
            let left = self.basis[leaving];
            let bound = if below { self.lower[left] } else { self.upper[left] };
            let step = (self.value[leaving] - bound) / pivot;
            self.value.iter_mut().zip(&column).for_each(|(value, entry)| *value -= step * entry);
            self.value[leaving] = self.resting(entering) + step;
            let ratio = self.reduced[entering] / pivot;
            self.reduced.iter_mut().zip(&self.row).for_each(|(reduced, entry)| *reduced -= ratio * entry);
            self.reduced[entering] = 0.0;
            self.reduced[left] = -ratio;
            self.at[left] = if below { At::Lower } else { At::Upper };
            self.at[entering] = At::Basic;
            self.basis[leaving] = entering;
            let (before, rest) = self.inverse.split_at_mut(leaving * n);
            let (pivot_row, after) = rest.split_at_mut(n);
            pivot_row.iter_mut().for_each(|entry| *entry /= pivot);
            let rows = before.chunks_exact_mut(n).chain(after.chunks_exact_mut(n));
            let others = column.iter().enumerate().filter(|&(i, _)| i != leaving).map(|(_, &entry)| entry);
            for (row, entry) in rows.zip(others) {
                if entry != 0.0 {
                    row.iter_mut().zip(pivot_row.iter()).for_each(|(a, b)| *a -= entry * b);
                }
            }
            self.since_inversion += 1;
        }
        self.pivot_column = column;
        trusted
    }

    /// Works the inverse, the prices and the reduced costs out anew. False if the basis is singular.
    fn invert(&mut self) -> bool {
        let n = self.n_rows;
        // Nothing was done since the last time, so doing it again would not help.
        if self.since_inversion == 0 {
            return false;
        }
        self.since_inversion = 0;
        let mut left = vec![0.0; n * n];
        for (at, &variable) in self.basis.iter().enumerate() {
            self.each_entry(variable, |row, entry| left[row * n + at] += entry);
        }
        let mut right = vec![0.0; n * n];
        (0..n).for_each(|i| right[i * n + i] = 1.0);
        for at in 0..n {
            let Some(best) = (at..n).max_by(|&a, &b| left[a * n + at].abs().total_cmp(&left[b * n + at].abs())) else {
                return false;
            };
            let pivot = left[best * n + at];
            if pivot.abs() < 1e-11 {
                return false;
            }
            for matrix in [&mut left, &mut right] {
                if best != at {
                    let (low, high) = matrix.split_at_mut(best * n);
                    low[at * n..][..n].swap_with_slice(&mut high[..n]);
                }
                matrix[at * n..][..n].iter_mut().for_each(|entry| *entry /= pivot);
            }
            for i in (0..n).filter(|&i| i != at) {
                let factor = left[i * n + at];
                if factor == 0.0 {
                    continue;
                }
                for matrix in [&mut left, &mut right] {
                    let (from, to) = two_rows(matrix, n, at, i);
                    to.iter_mut().zip(from).for_each(|(a, b)| *a -= factor * *b);
                }
            }
        }
        self.inverse = right;
        self.price();
        for variable in 0..self.n_columns + n {
            let mut reduced = self.cost[variable];
            self.each_entry(variable, |row, entry| reduced -= self.prices[row] * entry);
            self.reduced[variable] = if self.at[variable] == At::Basic { 0.0 } else { reduced };
        }
        true
    }

    /// The prices of the rows: the costs of the basis times its inverse.
    fn price(&mut self) {
        self.prices.fill(0.0);
        for (i, &variable) in self.basis.iter().enumerate() {
            let cost = self.cost[variable];
            if cost != 0.0 {
                let row = &self.inverse[i * self.n_rows..][..self.n_rows];
                self.prices.iter_mut().zip(row).for_each(|(price, entry)| *price += cost * entry);
            }
        }
    }
}

/// Steps for a pivot: one for each ten thousand numbers that it touches, and one.
fn pivot_steps(program: &Program) -> u64 {
    let entries: usize = program.columns.iter().map(|column| column.entries.len()).sum();
    1 + (entries + program.rows.len() * program.rows.len()) as u64 / 10_000
}

/// Two different rows of a matrix.
fn two_rows(matrix: &mut [f64], n: usize, from: usize, to: usize) -> (&[f64], &mut [f64]) {
    if from < to {
        let (low, high) = matrix.split_at_mut(to * n);
        (&low[from * n..][..n], &mut high[..n])
    } else {
        let (low, high) = matrix.split_at_mut(from * n);
        (&high[..n], &mut low[to * n..][..n])
    }
}
