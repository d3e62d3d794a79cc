//! `bench`: how fast things go here, beside the limits of this machine.

mod formats;
mod numpy;
mod place;
mod plan;
mod score;
mod solver;

use std::time::Instant;

use super::super::args::{BenchArgs, Format};
use super::{Failure, Options, Talk, write_all};
use crate::cluster::Cluster;
use crate::evaluate::{Backend, Choice, Cpu, Crossovers, EvalError, NodeRows, open, synthetic};
use crate::report::{BenchRow, append_line, bench_table, compare_with_cpu};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// GPUs of the clusters.
    gpus: &'static [u64],
    /// Touches of a batch.
    touches: usize,
    /// Classes that nodes are ranked for.
    classes: usize,
    /// Jobs of a stream.
    jobs: u64,
    /// Passes, of which the best counts.
    passes: usize,
}

/// A batch is 128 MB: more than the caches of a processor or a GPU hold.
const FULL: Size =
    Size { gpus: &[1000, 10_000, 100_000, 1_000_000], touches: 8_000_000, classes: 256, jobs: 50_000, passes: 5 };
const QUICK: Size = Size { gpus: &[1000], touches: 20_000, classes: 8, jobs: 500, passes: 1 };

/// The GPUs of the cluster on which what does not depend on its size is measured.
const USUAL_GPUS: u64 = 100_000;

/// The seed of everything that is measured.
const SEED: u64 = 1;

/// A backend that is measured. If its device fails, so does the command: no other takes its place.
struct Measured {
    source: Source,
    threads: usize,
    backend: Box<dyn Backend>,
}

/// Where a backend comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The processor, with so many threads.
    Cpu(usize),
    /// The device of this number among those of a choice.
    Device(Choice, usize),
}

impl Source {
    fn open(self) -> Result<Box<dyn Backend>, EvalError> {
        match self {
            Self::Cpu(threads) => open(Choice::Cpu, threads),
            Self::Device(choice, number) => match choice.devices().into_iter().nth(number) {
                Some(opener) => opener.open(),
                None => Err(EvalError::Absent { backend: choice.name(), why: "there is no such device".to_owned() }),
            },
        }
    }
}

impl Measured {
    /// Opens it.
    fn new(source: Source) -> Result<Self, EvalError> {
        let threads = match source {
            Source::Cpu(threads) => threads,
            Source::Device(..) => 1,
        };
        Ok(Self { source, threads, backend: source.open()? })
    }

    fn row(&self, what: &str, variant: &str, value: f64, unit: &'static str) -> BenchRow {
        BenchRow { backend: self.backend.name().to_owned(), ..row(what, variant, self.threads, value, unit) }
    }
}

pub(super) fn run(args: &BenchArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let size = if args.quick { QUICK } else { FULL };
    let mut backends = backends(args.backend.backend, options.threads, talk)?;
    talk.note(format_args!("seed {SEED}"));
    let bar = talk.progress(size.gpus.len() as u64 + 4, "measuring");
    let mut rows = Vec::new();
    for &gpus in size.gpus {
        let cluster = cluster(gpus)?;
        let nodes = NodeRows::of(&cluster)?;
        backends.iter_mut().try_for_each(|measured| measured.backend.load(&nodes))?;
        let mut of_size = score::measure(&size, &cluster, &mut backends)?;
        crossovers(&nodes, &mut backends, &mut of_size)?;
        of_size.iter_mut().for_each(|row| row.gpus = Some(gpus));
        rows.append(&mut of_size);
        bar.inc(1);
    }
    numpy::measure(&size, options.threads, talk, &mut rows)?;
    bar.inc(1);
    place::measure(&size, options.threads, &mut rows)?;
    place::measure_backends(&size, &backends, &mut rows)?;
    bar.inc(1);
    plan::measure(&size, &mut rows)?;
    solver::measure(&size, &mut rows);
    bar.inc(1);
    formats::measure(&size, &mut rows)?;
    bar.finish_and_clear();
    compare_with_cpu(&mut rows);
    let mut bytes = Vec::new();
    match options.format {
        Format::Json => rows.iter().try_for_each(|row| append_line(&mut bytes, row))?,
        Format::Table => bytes.extend(bench_table(&rows).bytes()),
    }
    write_all(options, &bytes)
}

/// The processor with one thread and with all, and the devices of this choice: the one that is named, or all that
/// `auto` could take.
fn backends(choice: Choice, threads: usize, talk: &Talk) -> Result<Vec<Measured>, Failure> {
    let all = Cpu::new(threads)?.threads();
    let mut backends = vec![Measured::new(Source::Cpu(1))?];
    if all > 1 {
        backends.push(Measured::new(Source::Cpu(all))?);
    }
    if choice != Choice::Auto {
        // What stands behind a named device is for when it fails.
        if choice != Choice::Cpu {
            backends.push(Measured::new(Source::Device(choice, 0))?);
        }
        return Ok(backends);
    }
    for number in 0..choice.devices().len() {
        match Measured::new(Source::Device(choice, number)) {
            Ok(measured) => backends.push(measured),
            Err(EvalError::Absent { .. }) => {}
            Err(error) => talk.warn(error),
        }
    }
    Ok(backends)
}

/// From how much work on each device is faster than the processor with all threads.
fn crossovers(nodes: &NodeRows, backends: &mut [Measured], rows: &mut Vec<BenchRow>) -> Result<(), Failure> {
    let (processors, devices): (Vec<_>, Vec<_>) =
        backends.iter_mut().partition(|measured| measured.backend.name() == Choice::Cpu.name());
    let Some(processor) = processors.into_iter().next_back() else { return Ok(()) };
    for device in devices {
        let (device_backend, processor) = (device.backend.as_mut(), processor.backend.as_mut());
        let found = Crossovers::measure(device_backend, processor, nodes.len(), nodes.pools)?;
        for (unit, at) in [("touches", found.touches), ("nodes", found.nodes)] {
            rows.push(device.row("crossover", "", at.map_or(f64::INFINITY, |at| at as f64), unit));
        }
    }
    Ok(())
}

fn cluster(gpus: u64) -> Result<Cluster, Failure> {
    synthetic::cluster((gpus / 8) as usize, SEED).map_err(|error| Failure::Failed(error.into()))
}

fn row(what: &str, variant: &str, threads: usize, value: f64, unit: &'static str) -> BenchRow {
    let variant = (!variant.is_empty()).then(|| variant.to_owned());
    let backend = Choice::Cpu.name().to_owned();
    BenchRow { what: what.to_owned(), variant, backend, threads, value, unit, ..BenchRow::default() }
}

/// The shortest time that `work` took in some passes, in seconds.
fn best<E>(passes: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut best = f64::INFINITY;
    for _ in 0..passes.max(1) {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best.max(1e-9))
}
