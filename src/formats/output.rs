//! An output file that appears whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, NamedTempFile};

/// The files that are being written, under the names that they have until they are whole.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of paths is whole whatever a thread that held it died of.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes every file that is not whole, for a process that is about to end without returning from what it does. No
/// file can be started, finished or dropped until `end`, which is called last, returns.
pub fn discard_unfinished(end: impl FnOnce()) {
    let unfinished = unfinished();
    for path in unfinished.iter() {
        // It may have got its name a moment ago.
        let _ = std::fs::remove_file(path);
    }
    end();
}

/// The entry of a file in the list of unfinished ones; it goes when this is dropped.
#[derive(Debug)]
struct Entry(PathBuf);

impl Drop for Entry {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.0);
    }
}

/// A file in the making. It takes its name with [`AtomicFile::commit`]; dropped before, it leaves nothing.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    file: Making,
}

#[derive(Debug)]
enum Making {
    Beside(BufWriter<NamedTempFile>, Entry),
    /// A device or a pipe, such as /dev/null: it must never be replaced by a file.
    Straight(File),
}

impl AtomicFile {
    /// Starts a file that will be at `path`. Its bytes go to a file beside it until then, so that taking the name is one
    /// step. A link is followed, and a file that is there already keeps its permissions.
    ///
    /// # Errors
    /// If the path is a directory, or no file can be made in its directory.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let target = follow(path)?;
        if target.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "found a directory, expected a file to write"));
        }
        if target.metadata().is_ok_and(|there| !there.is_file()) {
            let file = OpenOptions::new().write(true).open(&target)?;
            return Ok(Self { target, file: Making::Straight(file) });
        }
        let directory = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let mut builder = Builder::new();
        builder.prefix(".slotwise-");
        #[cfg(unix)]
        let builder = {
            use std::os::unix::fs::PermissionsExt;
            // What any program gives a new file; the process's umask takes its part away.
            builder.permissions(std::fs::Permissions::from_mode(0o666))
        };
        let (file, entry) = {
            // Between being made and being listed nobody may end the process.
            let mut unfinished = unfinished();
            let file = builder.tempfile_in(directory)?;
            unfinished.push(file.path().to_owned());
            let entry = Entry(file.path().to_owned());
            (file, entry)
        };
        if let Ok(there) = target.metadata() {
            file.as_file().set_permissions(there.permissions())?;
        }
        Ok(Self { target, file: Making::Beside(BufWriter::with_capacity(64 << 10, file), entry) })
    }

    /// Writes what is left, makes it durable, and gives the file its name.
    ///
    /// # Errors
    /// If that fails, for instance because the disk is full; nothing is left then, and a file that was there is as before.
    pub fn commit(self) -> io::Result<()> {
        let Making::Beside(file, _entry) = self.file else { return Ok(()) };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(&self.target).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Where the links of a path lead; the last of them may lead to a file that is not there yet.
fn follow(path: &Path) -> io::Result<PathBuf> {
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let Ok(next) = path.read_link() else { return Ok(path) };
        // A relative link starts where it lies; an absolute one replaces what it is joined to.
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(io::Error::other("found a link that leads through too many others, expected a file to write"))
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Making::Beside(file, _) => file.write(bytes),
            Making::Straight(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Making::Beside(file, _) => file.flush(),
            Making::Straight(file) => file.flush(),
        }
    }
}

/// Writes a whole file with `write`: it appears if that succeeds, and nothing is left if it does not.
///
/// # Errors
/// What `write` returns, or what kept the file from being made.
pub fn write_file<E: From<io::Error>>(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut file = AtomicFile::create(path)?;
    write(&mut file)?;
    Ok(file.commit()?)
}
