//! Columns that belong together: as many elements as there are rows, and every element in its range. An error names the
//! column, and the row.

use std::fmt::Display;
use std::ops::Range;

use crate::formats::FormatError;

/// What is wrong with a column, or with a row of it.
pub(super) fn bad(at: &str, name: &str, row: Option<usize>, text: impl Display) -> FormatError {
    let row = row.map(|row| format!("[{row}]")).unwrap_or_default();
    FormatError::new(&format!("{at}{name}{row}"), text)
}

/// A column that may be empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column<'a, T> {
    values: &'a [T],
    default: T,
}

impl<'a, T: Copy> Column<'a, T> {
    /// Of so many rows.
    pub(super) fn new(at: &str, name: &str, values: &'a [T], rows: usize, default: T) -> Result<Self, FormatError> {
        if !values.is_empty() {
            full(at, name, values, rows)?;
        }
        Ok(Self { values, default })
    }

    pub(super) fn get(&self, row: usize) -> T {
        if self.values.is_empty() { self.default } else { self.values[row] }
    }

    /// Checks every element that is there.
    pub(super) fn check(
        self,
        at: &str,
        name: &str,
        good: impl Fn(T) -> bool,
        expected: &str,
    ) -> Result<Self, FormatError>
    where
        T: Display,
    {
        check(at, name, self.values, good, expected)?;
        Ok(self)
    }
}

/// Expects one element a row.
pub(super) fn full<T>(at: &str, name: &str, values: &[T], rows: usize) -> Result<(), FormatError> {
    if values.len() == rows {
        return Ok(());
    }
    Err(bad(at, name, None, format_args!("found {} elements, expected {rows}, one a row", values.len())))
}

/// Checks every element.
pub(super) fn check<T: Copy + Display>(
    at: &str,
    name: &str,
    values: &[T],
    good: impl Fn(T) -> bool,
    expected: &str,
) -> Result<(), FormatError> {
    match values.iter().position(|&value| !good(value)) {
        None => Ok(()),
        Some(row) => Err(bad(at, name, Some(row), format_args!("found {}, expected {expected}", values[row]))),
    }
}

/// Takes elements of a column one after another.
#[derive(Debug)]
pub(super) struct Taker<'a> {
    at: &'a str,
    name: &'a str,
    taken: usize,
    rows: usize,
}

impl<'a> Taker<'a> {
    pub(super) fn new(at: &'a str, name: &'a str, rows: usize) -> Self {
        Self { at, name, taken: 0, rows }
    }

    /// The next `n` rows.
    pub(super) fn take(&mut self, n: u32) -> Result<Range<usize>, FormatError> {
        let first = self.taken;
        let end = first.checked_add(n as usize).filter(|&end| end <= self.rows);
        self.taken = end.ok_or_else(|| {
            let rows = self.rows;
            bad(self.at, self.name, None, format_args!("found {rows} rows, expected more: row {rows} is asked for"))
        })?;
        Ok(first..self.taken)
    }

    /// The next row.
    pub(super) fn one(&mut self) -> Result<usize, FormatError> {
        self.take(1).map(|rows| rows.start)
    }

    /// Expects that all were taken.
    pub(super) fn done(self) -> Result<(), FormatError> {
        let Self { at, name, taken, rows } = self;
        if taken == rows {
            return Ok(());
        }
        Err(bad(at, name, None, format_args!("found {rows} rows, expected {taken}, as many as the others ask for")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_column_and_the_row() {
        let text = |error: FormatError| error.to_string();
        assert_eq!(
            text(Column::new("jobs.", "gpus", &[1, 2], 3, 0).unwrap_err()),
            "jobs.gpus: found 2 elements, expected 3, one a row"
        );
        let column = Column::new("", "gpus", &[1, 20], 2, 0).unwrap();
        assert_eq!(
            text(column.check("", "gpus", |n| n <= 16, "0 to 16").unwrap_err()),
            "gpus[1]: found 20, expected 0 to 16"
        );
        assert_eq!(Column::new("", "gpus", &[], 2, 7).unwrap().get(1), 7);
        let mut taker = Taker::new("", "seats", 3);
        assert_eq!(taker.take(2).unwrap(), 0..2);
        assert_eq!(text(taker.take(2).unwrap_err()), "seats: found 3 rows, expected more: row 3 is asked for");
        assert!(taker.take(u32::MAX).is_err());
        assert_eq!(text(taker.done().unwrap_err()), "seats: found 3 rows, expected 2, as many as the others ask for");
    }
}
