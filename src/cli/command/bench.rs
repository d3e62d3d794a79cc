//! `bench`: how fast things go here, beside the limits of this machine.

mod formats;
mod place;
mod solver;

use super::super::args::{BenchArgs, Format};
use super::{Failure, Options, Talk, write_all};
use crate::evaluate::{Backend, Choice, Cpu, NodeRows, open, synthetic};
use crate::report::{BenchRow, append_line, bench_table};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// GPUs of the clusters.
    gpus: &'static [u64],
    /// Touches of a batch.
    touches: usize,
    /// Jobs of a stream.
    jobs: u64,
    /// Passes, of which the best counts.
    passes: usize,
}

const FULL: Size = Size { gpus: &[10_000, 100_000], touches: 4_000_000, jobs: 50_000, passes: 5 };
const QUICK: Size = Size { gpus: &[1000], touches: 20_000, jobs: 500, passes: 1 };

/// The seed of everything that is measured.
const SEED: u64 = 1;

pub(super) fn run(args: &BenchArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let size = if args.quick { QUICK } else { FULL };
    let backend = open(args.backend.backend, options.threads)?.name();
    talk.note(format_args!("seed {SEED}"));
    let bar = talk.progress(4, "measuring");
    let mut rows = Vec::new();
    if backend == Choice::Cpu.name() {
        scores(&size, options.threads, &mut rows)?;
    }
    bar.inc(1);
    place::measure(&size, options.threads, &mut rows)?;
    bar.inc(1);
    solver::measure(&size, &mut rows);
    bar.inc(1);
    formats::measure(&size, &mut rows)?;
    bar.finish_and_clear();
    let mut bytes = Vec::new();
    match options.format {
        Format::Json => rows.iter().try_for_each(|row| append_line(&mut bytes, row))?,
        Format::Table => bytes.extend(bench_table(&rows).bytes()),
    }
    write_all(options, &bytes)
}

/// `score_candidates` on one thread and on all, beside a plain read of the same touches.
fn scores(size: &Size, threads: usize, rows: &mut Vec<BenchRow>) -> Result<(), Failure> {
    let all = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    for &gpus in size.gpus {
        let cluster = synthetic::cluster((gpus / 8) as usize, SEED).map_err(|error| Failure::Failed(error.into()))?;
        let batch = synthetic::batch(&cluster, size.touches, 4, 8, SEED)?;
        for threads in if all > 1 { vec![1, all] } else { vec![1] } {
            let mut cpu = Cpu::new(threads)?;
            cpu.load(&NodeRows::of(&cluster)?)?;
            let speed = cpu.measure(&batch, size.passes)?;
            rows.push(BenchRow {
                gpus: Some(gpus),
                bytes_per_s: Some(speed.bytes_per_s),
                limit_bytes_per_s: Some(speed.limit_bytes_per_s),
                of_limit: Some(speed.of_limit()),
                ..row("score_candidates", threads, speed.touches_per_s, "touches/s")
            });
        }
    }
    Ok(())
}

fn row(what: &str, threads: usize, value: f64, unit: &'static str) -> BenchRow {
    let backend = Choice::Cpu.name().to_owned();
    BenchRow { what: what.to_owned(), backend, threads, value, unit, ..BenchRow::default() }
}

/// The shortest time that `work` took in some passes, in seconds.
fn best<E>(passes: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut best = f64::INFINITY;
    for _ in 0..passes.max(1) {
        let start = std::time::Instant::now();
        work()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best.max(1e-9))
}
