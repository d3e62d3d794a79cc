//! A file that grows by a line at a time and survives being cut off anywhere.
//!
//! The exception to "a file appears whole or not at all": work that takes hours must not be lost with its process. A
//! journal lies beside the file that it will become, under a name that says so.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What the name of a journal ends in.
const SUFFIX: &str = ".partial";

/// A journal that only this process writes.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// The journal of a file.
    pub fn path_for(target: &Path) -> PathBuf {
        let mut name = OsString::from(target);
        name.push(SUFFIX);
        PathBuf::from(name)
    }

    /// Whether a file has the name of a journal.
    pub(super) fn is_one(path: &Path) -> bool {
        path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes())
    }

    /// Opens a journal, which need not be there yet, and returns the lines that it has. What follows the last end of a line
    /// is a line that was cut off, and is removed.
    ///
    /// # Errors
    /// If it cannot be made or read, or another process writes it ([`io::ErrorKind::WouldBlock`]).
    pub fn open(path: &Path) -> io::Result<(Self, Vec<u8>)> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::new(io::ErrorKind::WouldBlock, "another process writes it"),
            TryLockError::Error(error) => error,
        })?;
        let mut lines = Vec::new();
        file.read_to_end(&mut lines)?;
        let whole = whole_lines(&lines);
        if whole < lines.len() {
            lines.truncate(whole);
            file.set_len(whole as u64)?;
        }
        file.seek(SeekFrom::Start(whole as u64))?;
        Ok((Self { path: path.to_owned(), file }, lines))
    }

    /// Appends a line, with its end, in one write: another process that looks sees it whole, or without its end.
    ///
    /// # Errors
    /// If it cannot be written, for instance because the disk is full; the journal then ends in a line that is cut off.
    pub fn append(&mut self, line: &[u8]) -> io::Result<()> {
        debug_assert!(line.ends_with(b"\n") && !line[..line.len() - 1].contains(&b'\n'));
        self.file.write_all(line)
    }

    /// Removes it, once what it was kept for is there.
    ///
    /// # Errors
    /// If that fails.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

/// How many bytes the lines take that have their end.
pub(super) fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_after_being_cut_off_anywhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = Journal::path_for(&folder.path().join("rows.jsonl"));
        assert!(path.ends_with("rows.jsonl.partial"));
        let whole = b"one\ntwo\nthree\n";
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (mut journal, lines) = Journal::open(&path).unwrap();
            assert!(whole.starts_with(&lines) && (lines.is_empty() || lines.ends_with(b"\n")));
            // Nobody else may write it now.
            assert_eq!(Journal::open(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            let rest = &whole[lines.len()..];
            if let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                journal.append(&rest[..=end]).unwrap();
            }
            drop(journal);
            let now = std::fs::read(&path).unwrap();
            assert!(whole.starts_with(&now) && (now.len() > lines.len() || cut == whole.len()));
            let (journal, lines) = Journal::open(&path).unwrap();
            assert_eq!(lines, now);
            journal.remove().unwrap();
            assert!(!path.exists());
        }
    }
}
