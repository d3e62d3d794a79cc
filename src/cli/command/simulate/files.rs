//! The files that `simulate` writes beside its results.

use super::{Failure, Output};
use crate::cli::args::SimulateArgs;
use crate::report::{
    MINUTES_HEADER, Run, SERIES_HEADER, append_minute_row, append_series_row, jobset_header, jobset_rows,
};
use crate::simulate::{Keep, Recorder, Scenario, minutes, n_minutes};

/// Written at a time.
const CHUNK: usize = 64 << 10;

/// The most minutes that one run may have: 190 years.
const MOST_MINUTES: u64 = 100_000_000;

/// Files in the making.
pub(super) struct Files {
    series: Option<Output>,
    minutes: Option<Output>,
    jobset: Option<Output>,
}

impl Files {
    /// Begins all files that were asked for.
    ///
    /// # Errors
    /// If one cannot be made.
    pub(super) fn begin(args: &SimulateArgs) -> Result<Self, Failure> {
        let begin =
            |path: &Option<std::path::PathBuf>| path.as_deref().map(|path| Output::open(Some(path))).transpose();
        Ok(Self { series: begin(&args.series)?, minutes: begin(&args.minutes)?, jobset: begin(&args.jobset)? })
    }

    /// What they need of each run.
    pub(super) fn keep(&self) -> Keep {
        Keep {
            intervals: self.series.is_some() || self.minutes.is_some(),
            overview: false,
            allocations: self.jobset.is_some(),
        }
    }

    /// Writes all of them; they get their names when they are finished.
    ///
    /// # Errors
    /// If one cannot be written, or a run is too long for it.
    pub(super) fn write(
        self,
        scenario: &Scenario,
        runs: &[Run],
        recorders: &[Recorder],
    ) -> Result<Vec<Output>, Failure> {
        let mut written = Vec::new();
        if let Some(mut series) = self.series {
            write_series(&mut series, runs, recorders)?;
            written.push(series);
        }
        if let Some(mut minutes) = self.minutes {
            write_minutes(&mut minutes, scenario, runs, recorders)?;
            written.push(minutes);
        }
        if let Some(mut jobset) = self.jobset {
            jobset.pass(|out| {
                jobset_header(out)?;
                let mut runs = runs.iter().zip(recorders);
                runs.try_for_each(|(run, recorder)| jobset_rows(out, scenario, run, recorder.allocations.as_ref()))
            })?;
            written.push(jobset);
        }
        Ok(written)
    }
}

/// Rows that are written a chunk at a time.
struct Rows<'a> {
    output: &'a mut Output,
    bytes: Vec<u8>,
}

impl<'a> Rows<'a> {
    fn new(output: &'a mut Output, header: &str) -> Self {
        Self { output, bytes: header.as_bytes().to_vec() }
    }

    fn push(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        append(&mut self.bytes);
        if self.bytes.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.output.write(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

fn write_series(output: &mut Output, runs: &[Run], recorders: &[Recorder]) -> Result<(), Failure> {
    let mut rows = Rows::new(output, SERIES_HEADER);
    for (run, recorder) in runs.iter().zip(recorders) {
        let name = run.outcome.scheduler.to_string();
        for interval in &recorder.intervals {
            rows.push(|out| append_series_row(out, &name, interval))?;
        }
    }
    rows.flush()
}

fn write_minutes(
    output: &mut Output,
    scenario: &Scenario,
    runs: &[Run],
    recorders: &[Recorder],
) -> Result<(), Failure> {
    let gpus = scenario.cluster().gpus();
    let mut rows = Rows::new(output, MINUTES_HEADER);
    for (run, recorder) in runs.iter().zip(recorders) {
        let name = run.outcome.scheduler.to_string();
        let n = n_minutes(&recorder.intervals);
        if n > MOST_MINUTES {
            let text = format!("--minutes: found a run of {n} minutes, expected at most {MOST_MINUTES}");
            return Err(Failure::input(text));
        }
        for minute in minutes(&recorder.intervals) {
            rows.push(|out| append_minute_row(out, &name, gpus, &minute))?;
        }
    }
    rows.flush()
}
