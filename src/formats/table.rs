//! CSV by the names of its columns, with the line and column in every error.

use std::fmt::Display;
use std::io::Read;

use super::clock;
use super::error::FormatError;
use super::gather::{LeftOut, Unread, is_missing};

/// The largest number that a table may state: what a float keeps exact.
const LARGEST: f64 = (1u64 << 53) as f64;

/// A CSV input, a row at a time.
pub(super) struct Table<'a, R> {
    name: &'a str,
    reader: csv::Reader<R>,
    header: csv::StringRecord,
    row: csv::StringRecord,
}

/// A column of a table, which an optional one may not have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    at: Option<usize>,
}

impl Column {
    /// True if the table has it.
    pub(super) fn is_there(self) -> bool {
        self.at.is_some()
    }
}

impl<'a, R: Read> Table<'a, R> {
    /// Reads the header of fields between commas.
    pub(super) fn new(name: &'a str, reader: R) -> Result<Self, FormatError> {
        Self::from(name, csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(reader))
    }

    /// Reads the header of fields between bars, where quotes mean nothing.
    pub(super) fn with_bars(name: &'a str, reader: R) -> Result<Self, FormatError> {
        let mut builder = csv::ReaderBuilder::new();
        Self::from(name, builder.delimiter(b'|').quoting(false).trim(csv::Trim::All).from_reader(reader))
    }

    fn from(name: &'a str, mut reader: csv::Reader<R>) -> Result<Self, FormatError> {
        let header = reader.headers().map_err(|error| csv_fault(name, error))?.clone();
        Ok(Self { name, reader, header, row: csv::StringRecord::new() })
    }

    /// A column that must be there.
    pub(super) fn needed(&self, column: &'static str) -> Result<Column, FormatError> {
        let found = self.optional(column)?;
        if found.is_there() { Ok(found) } else { Err(self.lacks(&format!("a column `{column}`"))) }
    }

    /// A column that may be there, once.
    pub(super) fn optional(&self, column: &'static str) -> Result<Column, FormatError> {
        let mut places = self.header.iter().enumerate().filter(|&(_, found)| found == column).map(|(at, _)| at);
        let at = places.next();
        if places.next().is_some() {
            let text = format!("found the column `{column}` twice, expected it once");
            return Err(FormatError::new(self.name, text).at_line(1));
        }
        Ok(Column { name: column, at })
    }

    /// The fault of a header without what was expected.
    pub(super) fn lacks(&self, expected: &str) -> FormatError {
        let found: Vec<&str> = self.header.iter().collect();
        FormatError::new(self.name, format!("found the columns {}, expected {expected}", found.join(","))).at_line(1)
    }

    /// Goes to the next row; false at the end.
    pub(super) fn next(&mut self) -> Result<bool, FormatError> {
        self.reader.read_record(&mut self.row).map_err(|error| csv_fault(self.name, error))
    }

    /// The text in a column of this row; empty where there is none.
    pub(super) fn text(&self, column: Column) -> &str {
        column.at.and_then(|at| self.row.get(at)).unwrap_or("")
    }

    /// The integer in a column of this row, at most `most`.
    pub(super) fn int(&self, column: Column, most: u64) -> Result<u64, FormatError> {
        let text = self.text(column);
        let number = text.parse().ok().filter(|&number: &u64| number <= most);
        number.ok_or_else(|| self.fault(column, format_args!("found {text:?}, expected an integer from 0 to {most}")))
    }

    /// The number in a column of this row, unless it is missing.
    pub(super) fn number(&self, column: Column) -> Result<Option<f64>, FormatError> {
        let text = self.text(column);
        if is_missing(text) {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|number: &f64| (-LARGEST..=LARGEST).contains(number));
        let fault = || self.fault(column, format_args!("found {text:?}, expected a number of at most {LARGEST}"));
        number.map(Some).ok_or_else(fault)
    }

    /// The seconds in a column of this row, to the nearest, a half up.
    pub(super) fn seconds(&self, column: Column) -> Result<Option<i64>, FormatError> {
        Ok(self.number(column)?.map(|seconds| (seconds + 0.5).floor() as i64))
    }

    /// The time in a column of this row.
    pub(super) fn time(&self, column: Column) -> Result<Option<i64>, FormatError> {
        let text = self.text(column);
        if is_missing(text) {
            return Ok(None);
        }
        let fault = || self.fault(column, format_args!("found {text:?}, expected {}", clock::EXAMPLE));
        clock::seconds(text).map(Some).ok_or_else(fault)
    }

    /// The count in a column of this row: a whole number, also as a float.
    pub(super) fn count(&self, column: Column) -> Result<Option<u64>, Unread> {
        match self.number(column)? {
            None => Ok(None),
            Some(number) if number < 0.0 => Err(LeftOut::BelowZero.into()),
            Some(number) if number.fract() == 0.0 => Ok(Some(number as u64)),
            Some(number) => Err(self.fault(column, format_args!("found {number}, expected a whole number")).into()),
        }
    }

    /// The GPUs in a column of this row, whole ones.
    pub(super) fn gpus(&self, column: Column) -> Result<u64, Unread> {
        match self.number(column)? {
            Some(number) if number > 0.0 && number.fract() != 0.0 => Err(LeftOut::Share.into()),
            _ => Ok(self.count(column)?.ok_or(LeftOut::NoCount)?),
        }
    }

    /// The milli-cores of the cores in a column of this row, 0 where it says none.
    pub(super) fn cores(&self, column: Column) -> Result<u64, Unread> {
        let cores = self.number(column)?.unwrap_or(0.0);
        if cores < 0.0 { Err(LeftOut::BelowZero.into()) } else { Ok((cores * 1000.0).ceil() as u64) }
    }

    /// A fault in a column of this row.
    pub(super) fn fault(&self, column: Column, text: impl Display) -> FormatError {
        let line = self.row.position().map_or(0, csv::Position::line);
        FormatError::new(self.name, text).at_line(line).at_place(column.name)
    }
}

fn csv_fault(name: &str, error: csv::Error) -> FormatError {
    let line = error.position().map(csv::Position::line);
    let text = match error.into_kind() {
        csv::ErrorKind::Io(cause) => return FormatError::unreadable(name, cause),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("found {len} fields, expected {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "found bytes that are not UTF-8, expected text".to_owned(),
        other => format!("found a malformed row ({other:?}), expected CSV"),
    };
    let fault = FormatError::new(name, text);
    match line {
        Some(line) => fault.at_line(line),
        None => fault,
    }
}
