//! What is wrong with an input, and where: one line of text.

use std::fmt;
use std::io;

/// The longest part of an input that an error repeats.
const LONGEST: usize = 300;

/// A fault of an input. Its text is one line: the file, the line and column or the path in the document, what was found
/// and what was expected.
#[derive(Debug, thiserror::Error)]
pub struct FormatError {
    input: String,
    line: Option<u64>,
    column: Option<u64>,
    place: String,
    text: String,
    #[source]
    cause: Option<io::Error>,
}

impl FormatError {
    /// A fault of the input as a whole. `text` says what was found and what was expected.
    pub fn new(input: &str, text: impl fmt::Display) -> Self {
        let text = one_line(&text.to_string());
        Self { input: input.to_owned(), line: None, column: None, place: String::new(), text, cause: None }
    }

    /// An input that cannot be read.
    pub(crate) fn unreadable(input: &str, cause: io::Error) -> Self {
        Self { cause: Some(cause), ..Self::new(input, "cannot be read") }
    }

    /// At a line, from 1.
    #[must_use]
    pub(crate) fn at_line(self, line: u64) -> Self {
        Self { line: Some(line), ..self }
    }

    /// At a path in the document, such as `running[3].instances[0].gpus[1]`.
    #[must_use]
    pub(crate) fn at_place(self, place: impl fmt::Display) -> Self {
        Self { place: one_line(&place.to_string()), ..self }
    }

    /// What a JSON reader found. `lines_before` lines of the input were not part of what it read; without it, its
    /// position says nothing about the input.
    pub(crate) fn json(input: &str, lines_before: Option<u64>, place: &str, error: serde_json::Error) -> Self {
        let (line, column) = (error.line() as u64, error.column() as u64);
        if error.is_io() {
            return Self::unreadable(input, error.into());
        }
        let text = json_text(&error);
        let text = match text.strip_prefix("invalid type: ").or_else(|| text.strip_prefix("invalid value: ")) {
            Some(rest) => format!("found {rest}"),
            None => text,
        };
        let lines_before = lines_before.filter(|_| line > 0);
        // Where the text ends or breaks within a key, the last step of the path is not known.
        let place = place.strip_suffix('?').map_or(place, |known| known.strip_suffix('.').unwrap_or(known));
        let place = if place == "." { "" } else { place };
        Self {
            line: lines_before.map(|before| before + line),
            column: lines_before.map(|_| column),
            ..Self::new(input, text).at_place(place)
        }
    }

    /// At a line and column, in place of those that it had, if it had any.
    #[must_use]
    pub(super) fn moved(self, to: impl FnOnce(u64, u64) -> (u64, u64)) -> Self {
        let (Some(line), Some(column)) = (self.line, self.column) else { return self };
        let (line, column) = to(line, column);
        Self { line: Some(line), column: Some(column), ..self }
    }

    /// The input as the user named it.
    pub fn input(&self) -> &str {
        &self.input
    }

    /// The line, from 1, where one is known.
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// The path in the document, such as `nodes[3].gpus`; empty where there is none.
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.input)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        if !self.place.is_empty() {
            write!(f, ": {}", self.place)?;
        }
        write!(f, ": {}", self.text)?;
        match &self.cause {
            Some(cause) => write!(f, ": {}", one_line(&cause.to_string())),
            None => Ok(()),
        }
    }
}

/// The text of an error without the position that the reader appends.
pub(super) fn json_text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).map_or(text.clone(), str::to_owned)
}

/// Text with control characters escaped, and cut where it is very long.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(LONGEST));
    for c in text.chars() {
        if line.len() >= LONGEST {
            line.push('…');
            break;
        }
        if c.is_control() { line.extend(c.escape_debug()) } else { line.push(c) }
    }
    line
}

/// Something that a reader accepted, but that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where: a file and line, or a path in the document.
    pub place: String,
    /// What.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}
