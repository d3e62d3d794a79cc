//! The only file that prints: results to standard output or a file, everything else to standard error.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::failure::Failure;
use super::interrupt;
use crate::formats::AtomicFile;

/// Written at a time.
const CHUNK: usize = 128 << 10;

/// Whether results would go to a terminal.
pub(super) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Prints a help text.
///
/// # Errors
/// If it cannot be written.
pub(super) fn print_help(text: &str) -> Result<(), Failure> {
    let mut output = Output::open(None)?;
    output.write(text.as_bytes())?;
    output.finish()
}

/// Where results go. Without [`Output::finish`] a file does not appear.
#[derive(Debug)]
pub(super) struct Output {
    sink: Sink,
    name: String,
    closed: bool,
}

#[derive(Debug)]
enum Sink {
    Stdout(BufWriter<io::Stdout>),
    File(Box<AtomicFile>),
}

impl Output {
    /// Standard output, or a file that appears whole or not at all.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let (sink, name) = match path {
            None => (Sink::Stdout(BufWriter::with_capacity(CHUNK, io::stdout())), "standard output".to_owned()),
            Some(path) => {
                let name = path.display().to_string();
                interrupt::remove_unfinished_files();
                let file = AtomicFile::create(path).with_context(|| format!("cannot write {name}"));
                (Sink::File(Box::new(file.map_err(Failure::Failed)?)), name)
            }
        };
        Ok(Self { sink, name, closed: false })
    }

    /// Writes. If nobody reads any more, nothing happens from then on: see [`Output::is_closed`].
    ///
    /// # Errors
    /// If it cannot be written, for instance because the disk is full.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.closed {
            return Ok(());
        }
        self.pass(|out| out.write_all(bytes))
    }

    /// True once the reader of a pipe has gone away. That is no failure: it has seen what it wanted.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes what is left, and gives a file its name.
    ///
    /// # Errors
    /// If that fails; no file is left then.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let result = match &mut self.sink {
            Sink::Stdout(out) => out.flush(),
            Sink::File(out) => out.flush(),
        };
        self.check(result)?;
        match self.sink {
            // What a closed pipe left unwritten must not be tried again when the buffer is dropped.
            Sink::Stdout(out) => drop(out.into_parts()),
            Sink::File(out) if !self.closed => {
                out.commit().with_context(|| format!("cannot write {}", self.name)).map_err(Failure::Failed)?;
            }
            Sink::File(_) => {}
        }
        Ok(())
    }

    /// Lets a function write that wants a writer.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn pass(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let result = match &mut self.sink {
            Sink::Stdout(out) => write(out),
            Sink::File(out) => write(out),
        };
        self.check(result)
    }

    fn check(&mut self, result: io::Result<()>) -> Result<(), Failure> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            result => result.with_context(|| format!("cannot write {}", self.name)).map_err(Failure::Failed),
        }
    }
}

/// The user's other ear: standard error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Talk {
    quiet: bool,
}

impl Talk {
    /// `quiet` leaves out everything but failures of the command.
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Something that the user should know.
    pub(super) fn note(&self, text: impl Display) {
        if !self.quiet {
            say(format_args!("note: {text}"));
        }
    }

    /// Something that did not go as it should, though the command goes on.
    pub(super) fn warn(&self, text: impl Display) {
        if !self.quiet {
            say(format_args!("warning: {text}"));
        }
    }

    /// A bar for work of so many steps; invisible where standard error is no terminal.
    pub(super) fn progress(&self, steps: u64, what: &'static str) -> ProgressBar {
        if self.quiet || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr()).with_message(what);
        let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}");
        match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}

/// Says a line on standard error; if even that cannot be written, there is nobody left to tell.
fn say(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "slotwise: {text}");
}

/// Lets the service's log go to standard error, where nothing else has been chosen yet.
pub(super) fn log(filter: tracing_subscriber::EnvFilter, json: bool) {
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false);
    // A second one in the same process is refused, and the first goes on.
    let _ = if json { log.json().try_init() } else { log.try_init() };
}

/// Says why a command did not end well.
pub(super) fn say_failure(failure: &Failure) {
    say(format_args!("{failure}"));
}

/// Says what is wrong with the arguments, in the words of their parser; or shows its help, where a command is missing.
pub(super) fn say_usage(text: &str) {
    match text.strip_prefix("error: ") {
        Some(error) => say(format_args!("{}", error.trim_end())),
        None => drop(io::stderr().lock().write_all(text.as_bytes())),
    }
}

/// Whether two paths that are to be written are one file, which need not be there yet.
pub(super) fn same_file(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| -> PathBuf {
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let in_folder = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
    };
    whole(one) == whole(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut output = Output::open(Some(&path)).unwrap();
        output.write(b"half").unwrap();
        drop(output);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut output = Output::open(Some(&path)).unwrap();
        output.write(b"whole").unwrap();
        output.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert!(Output::open(Some(folder.path())).is_err());
    }
}
