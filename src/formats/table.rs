//! CSV by the names of its columns, with the line and column in every error.

use std::fmt::Display;
use std::io::Read;

use super::error::FormatError;

/// A CSV input, a row at a time.
pub(super) struct Table<'a, R> {
    name: &'a str,
    reader: csv::Reader<R>,
    columns: &'static [&'static str],
    /// Where each column is in the file.
    at: Vec<usize>,
    row: csv::StringRecord,
}

impl<'a, R: Read> Table<'a, R> {
    /// Reads the header, which must have these columns.
    pub(super) fn new(name: &'a str, reader: R, columns: &'static [&'static str]) -> Result<Self, FormatError> {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(reader);
        let header = reader.headers().map_err(|error| csv_fault(name, error))?;
        let mut at = Vec::with_capacity(columns.len());
        for column in columns {
            let mut places = header.iter().enumerate().filter(|(_, found)| found == column).map(|(i, _)| i);
            match (places.next(), places.next()) {
                (Some(place), None) => at.push(place),
                (None, _) => {
                    let found: Vec<&str> = header.iter().collect();
                    let text = format!("found the columns {}, expected a column `{column}`", found.join(","));
                    return Err(FormatError::new(name, text).at_line(1));
                }
                (Some(_), Some(_)) => {
                    let text = format!("found the column `{column}` twice, expected it once");
                    return Err(FormatError::new(name, text).at_line(1));
                }
            }
        }
        Ok(Self { name, reader, columns, at, row: csv::StringRecord::new() })
    }

    /// Goes to the next row; false at the end.
    pub(super) fn next(&mut self) -> Result<bool, FormatError> {
        self.reader.read_record(&mut self.row).map_err(|error| csv_fault(self.name, error))
    }

    /// The text in a column of this row.
    pub(super) fn text(&self, column: usize) -> &str {
        self.at.get(column).and_then(|&at| self.row.get(at)).unwrap_or("")
    }

    /// The integer in a column of this row, at most `most`.
    pub(super) fn int(&self, column: usize, most: u64) -> Result<u64, FormatError> {
        let text = self.text(column);
        let number = text.parse().ok().filter(|&number: &u64| number <= most);
        number.ok_or_else(|| self.fault(column, format_args!("found {text:?}, expected an integer from 0 to {most}")))
    }

    /// A fault in a column of this row.
    pub(super) fn fault(&self, column: usize, text: impl Display) -> FormatError {
        let line = self.row.position().map_or(0, csv::Position::line);
        FormatError::new(self.name, text).at_line(line).at_place(self.columns[column])
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
