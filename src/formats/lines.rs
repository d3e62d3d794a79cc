//! Reads JSONL: one line at a time into one buffer.

use std::io::BufRead;

use super::error::FormatError;

/// The lines of an input that are not blank.
pub(super) struct Lines<'a, R> {
    name: &'a str,
    reader: R,
    line: u64,
    buffer: Vec<u8>,
}

impl<'a, R: BufRead> Lines<'a, R> {
    pub(super) fn new(name: &'a str, reader: R) -> Self {
        Self { name, reader, line: 0, buffer: Vec::new() }
    }

    /// The next line that is not blank, and its number, from 1.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, FormatError> {
        loop {
            self.buffer.clear();
            let read = self.reader.read_until(b'\n', &mut self.buffer);
            let read = read.map_err(|error| FormatError::unreadable(self.name, error).at_line(self.line + 1))?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            if !self.buffer.trim_ascii().is_empty() {
                // Without its end, so that an error that stands there is not one line too far.
                return Ok(Some((self.line, self.buffer.trim_ascii_end())));
            }
        }
    }
}
