//! What the arguments mean here: the step between parsing and doing.

use std::path::{Path, PathBuf};

use super::args::{Command, Format, GenerateCommand, Global, PhiStarArgs, ReplayArgs};
use super::failure::Failure;
use super::output::same_file;
use crate::workload::Demand;

/// The settings of a run, checked against each other.
#[derive(Debug)]
pub(super) struct Options {
    /// How results are written.
    pub(super) format: Format,
    /// Where to; `None` is standard output.
    pub(super) out: Option<PathBuf>,
    /// 0 is one a core.
    pub(super) threads: usize,
    /// What to do.
    pub(super) command: Command,
}

impl Options {
    /// Resolves what was written.
    ///
    /// # Errors
    /// If arguments contradict each other.
    pub(super) fn resolve(global: Global, command: Command, terminal: bool) -> Result<Self, Failure> {
        let out = global.out.filter(|path| path != Path::new("-"));
        let on_terminal = terminal && out.is_none();
        let format = global.format.unwrap_or(if on_terminal { Format::Table } else { Format::Json });
        if inputs(&command).iter().filter(|&&input| is_stdin(input)).count() > 1 {
            return Err(Failure::input("found - for more than one input, expected it for one at most"));
        }
        let mut written: Vec<(&str, &Path)> = out.as_deref().map(|path| ("--out", path)).into_iter().collect();
        for (option, path) in other_outputs(&command) {
            if path == Path::new("-") {
                return Err(Failure::input(format_args!("found - as {option}, expected the name of a file")));
            }
            if let Some((first, _)) = written.iter().find(|(_, first)| same_file(first, path) && !is_device(path)) {
                let path = path.display();
                return Err(Failure::input(format_args!("found {path} as {first} and {option}, expected two files")));
            }
            written.push((option, path));
        }
        Ok(Self { format, out, threads: usize::from(global.threads), command })
    }
}

fn inputs(command: &Command) -> Vec<&str> {
    match command {
        Command::Score(args) => vec![&args.cluster.cluster, &args.queue, &args.candidates],
        Command::Place(args) => {
            [&args.cluster.cluster, &args.queue].into_iter().chain(&args.typical.typical).map(String::as_str).collect()
        }
        Command::Generate(GenerateCommand::Queue(args)) => args.from.as_deref().into_iter().collect(),
        Command::Plan(args) => std::iter::once(&args.cluster.cluster[..]).chain(args.queue.as_deref()).collect(),
        Command::Serve(args) => args.cluster.as_deref().into_iter().collect(),
        Command::Explain(args) => vec![&args.cluster.cluster, &args.queue],
        Command::Audit(args) => std::iter::once(&args.cluster.cluster[..]).chain(args.queue.as_deref()).collect(),
        Command::Simulate(args) => replayed(&args.replay).chain(args.typical.typical.as_deref()).collect(),
        Command::Sweep(args) => replayed(&args.replay).collect(),
        Command::Merge(args) => args.files.iter().map(String::as_str).collect(),
        Command::Import(import) => import.files().iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

fn replayed(args: &ReplayArgs) -> impl Iterator<Item = &str> {
    [Some(&args.trace), args.cluster.as_ref(), args.events.as_ref()].into_iter().flatten().map(String::as_str)
}

/// The files that are written beside the results, with their options.
fn other_outputs(command: &Command) -> Vec<(&'static str, &Path)> {
    let outputs = match command {
        Command::Place(args) => vec![("--snapshot-out", args.snapshot_out.as_deref())],
        Command::Simulate(args) => vec![
            ("--series", args.series.as_deref()),
            ("--minutes", args.minutes.as_deref()),
            ("--jobset", args.jobset.as_deref()),
            ("--html", args.html.as_deref()),
            ("--svg", args.svg.as_deref()),
        ],
        Command::Plan(args) => vec![("--svg", args.svg.as_deref())],
        Command::Import(import) => vec![("--queue-out", import.queue_out().map(PathBuf::as_path))],
        _ => Vec::new(),
    };
    outputs.into_iter().filter_map(|(option, path)| Some((option, path?))).collect()
}

/// `-`, also behind the name of a format, and among the files of a dump.
fn is_stdin(input: &str) -> bool {
    input.split_once(':').map_or(input == "-", |(_, files)| files.split(',').any(|file| file == "-"))
}

fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|there| !there.is_file())
}

impl PhiStarArgs {
    /// The demand that was written.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn demand(&self) -> Result<Demand, Failure> {
        let wrong = |item: &str, expected: &str| {
            Failure::input(format_args!("--demand: found {item:?} in {:?}, expected {expected}", self.demand))
        };
        let mut demand = Demand::new();
        let mut seen = Vec::new();
        if self.demand.trim().is_empty() {
            return Ok(demand);
        }
        for item in self.demand.split(',').map(str::trim) {
            let parts = item.split_once(':').and_then(|(size, count)| Some((number(size)?, number(count)?)));
            let (size, count) = parts.ok_or_else(|| wrong(item, "SIZE:COUNT, two integers"))?;
            let fits = u8::try_from(size).ok().filter(|size| (1..=self.capacity).contains(size));
            let size = fits.ok_or_else(|| wrong(item, &format!("a size from 1 to the capacity, {}", self.capacity)))?;
            if seen.contains(&size) {
                return Err(wrong(item, "each size once"));
            }
            if count > crate::fragmentation::MAX_COUNT {
                return Err(wrong(item, &format!("a count of at most {}", crate::fragmentation::MAX_COUNT)));
            }
            seen.push(size);
            demand.add(size, count);
        }
        Ok(demand)
    }
}

/// Digits alone: no sign, no blank inside.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_are_read_or_refused() {
        let read = |capacity, demand: &str| PhiStarArgs { capacity, demand: demand.to_owned() }.demand();
        assert_eq!(read(8, "").unwrap(), Demand::new());
        assert_eq!(read(8, "1:10, 3:4").unwrap(), [(1, 10), (3, 4)].into_iter().collect());
        for bad in
            ["1", "1:", ":1", "1:-1", "0:1", "9:1", "1:1,1:2", "1:1,", "x:1", "1:1.5", "300:1", "1:9999999999999"]
        {
            let text = read(8, bad).unwrap_err().to_string();
            assert!(text.contains("--demand: found") && text.contains("expected"), "{bad}: {text}");
        }
    }
}
