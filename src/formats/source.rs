//! Opens an input: a file or standard input, gzip'd or plain.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::error::FormatError;

/// Read at a time.
const CHUNK: usize = 128 << 10;

/// An open input, its bytes unpacked.
pub struct Source {
    name: String,
    empty: bool,
    reader: BufReader<Box<dyn Read>>,
}

impl Source {
    /// Opens the file at `path`, or standard input for `-`. What starts as gzip is unpacked, all its members.
    ///
    /// # Errors
    /// If there is no such file, it is a directory, or it cannot be read.
    pub fn open(path: &str) -> Result<Self, FormatError> {
        if path == "-" {
            return Self::new("standard input", io::stdin().lock());
        }
        if path.is_empty() {
            return Err(FormatError::new("\"\"", "found an empty path, expected a file or - for standard input"));
        }
        if Path::new(path).is_dir() {
            return Err(FormatError::new(path, "found a directory, expected a file"));
        }
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FormatError::new(path, "found no such file, expected one to read"),
            _ => FormatError::unreadable(path, error),
        })?;
        Self::new(path, file)
    }

    /// An input from any reader; `name` stands in errors.
    ///
    /// # Errors
    /// If its first bytes cannot be read.
    pub fn new(name: &str, reader: impl Read + 'static) -> Result<Self, FormatError> {
        let mut reader = reader;
        // Two bytes tell gzip; a pipe may give them one by one.
        let mut magic = Vec::with_capacity(2);
        let read = reader.by_ref().take(2).read_to_end(&mut magic);
        read.map_err(|error| FormatError::unreadable(name, error))?;
        let (empty, packed) = (magic.is_empty(), magic == [0x1f, 0x8b]);
        let whole = Cursor::new(magic).chain(reader);
        let mut source = if packed {
            let unpacked = Unpacked(MultiGzDecoder::new(BufReader::with_capacity(CHUNK, whole)));
            Self { name: name.to_owned(), empty, reader: BufReader::with_capacity(CHUNK, Box::new(unpacked)) }
        } else {
            Self { name: name.to_owned(), empty, reader: BufReader::with_capacity(CHUNK, Box::new(whole)) }
        };
        if packed {
            source.empty = source.reader.fill_buf().map_err(|error| FormatError::unreadable(name, error))?.is_empty();
        }
        Ok(source)
    }

    /// Its name for errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if there is not one byte.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// Itself, unless there is not one byte.
    ///
    /// # Errors
    /// If it is empty; the error says what was expected.
    pub fn not_empty(self, expected: &str) -> Result<Self, FormatError> {
        match self.empty {
            true => Err(FormatError::new(&self.name, format_args!("found an empty file, expected {expected}"))),
            false => Ok(self),
        }
    }

    /// Itself, unless it starts as no JSON object does: then it is likely to be of another program.
    ///
    /// # Errors
    /// If its first byte is neither a brace nor blank; the error says what was expected, and how others are named.
    pub fn of_objects(mut self, expected: &str) -> Result<Self, FormatError> {
        let start = self.reader.fill_buf().map_err(|error| FormatError::unreadable(&self.name, error))?;
        let Some(&byte) = start.first().filter(|byte| !b"{ \t\r\n".contains(byte)) else { return Ok(self) };
        let found = byte.escape_ascii();
        let text = format!(
            "found a file that starts with '{found}', expected {expected}; a file of another program is named with its \
             format, such as alibaba-2026:FILE"
        );
        Err(FormatError::new(&self.name, text).at_line(1))
    }

    /// Its bytes.
    pub fn reader(&mut self) -> &mut BufReader<Box<dyn Read>> {
        &mut self.reader
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name).field("empty", &self.empty).finish_non_exhaustive()
    }
}

/// Says in plain words what is wrong with gzip data.
struct Unpacked<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                io::Error::new(io::ErrorKind::InvalidData, "found gzip data that is cut short, expected its end")
            }
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                let text = format!("found gzip data that is damaged ({error}), expected sound gzip data");
                io::Error::new(io::ErrorKind::InvalidData, text)
            }
            _ => error,
        })
    }
}
