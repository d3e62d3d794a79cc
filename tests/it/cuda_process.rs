//! Processes that find the test double of the CUDA driver.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use assert_cmd::Command;

use crate::cuda_build::stand_in;

/// Far beyond what any run takes on a slow machine that has other work. What runs longer hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(300);

/// Settings of the double.
pub(crate) type Settings<'a> = &'a [(&'a str, &'a str)];

/// A command that finds a driver in this folder first.
fn command(program: &Path, folder: &Path, settings: Settings) -> Command {
    let mut path = OsString::from(folder);
    if let Some(rest) = std::env::var_os("LD_LIBRARY_PATH") {
        path.push(":");
        path.push(rest);
    }
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", path).envs(settings.iter().copied()).timeout(HANGS);
    command
}

/// The program itself.
pub(crate) fn program(folder: &Path, settings: Settings, words: &str) -> Output {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut command = command(Path::new(env!("CARGO_BIN_EXE_slotwise")), folder, settings);
    command.args(words.split_whitespace()).current_dir(golden).output().unwrap()
}

/// A test, in a process of its own.
pub(crate) fn test_with(name: &str, settings: Settings) -> Output {
    let mut command = command(&std::env::current_exe().unwrap(), &stand_in(), settings);
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The calls that the double counted, by kind and by function.
pub(crate) fn calls(output: &Output) -> BTreeMap<String, u64> {
    let lines = text(&output.stderr);
    let counts = lines.lines().filter_map(|line| line.strip_prefix("stand-in: called ")?.split_once(' '));
    counts.map(|(what, n)| (what.to_owned(), n.parse().unwrap())).collect()
}
