//! The files that `simulate` writes beside its results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::{Failure, Output};
use crate::cli::args::SimulateArgs;
use crate::formats::Note;
use crate::report::{
    MINUTES_HEADER, Page, PageError, PageSource, Run, SERIES_HEADER, Setting, append_minute_row, append_series_row,
    jobset_header, jobset_rows, picture_names,
};
use crate::simulate::{Keep, Overview, Recorder, Scenario, Scheduler, minutes, n_minutes};

/// Written at a time.
const CHUNK: usize = 64 << 10;

/// The most minutes that one run may have: 190 years.
const MOST_MINUTES: u64 = 100_000_000;

/// Files in the making.
pub(super) struct Files {
    series: Option<Output>,
    minutes: Option<Output>,
    jobset: Option<Output>,
    html: Option<Output>,
    /// By name. Those of what there is no picture of are dropped, and never appear.
    pictures: BTreeMap<String, Output>,
}

impl Files {
    /// Begins all files that were asked for.
    ///
    /// # Errors
    /// If one cannot be made.
    pub(super) fn begin(args: &SimulateArgs, schedulers: &[Scheduler]) -> Result<Self, Failure> {
        let begin = |path: &Option<PathBuf>| path.as_deref().map(|path| Output::open(Some(path))).transpose();
        let pictures = args.svg.as_deref().map(|folder| begin_pictures(folder, schedulers)).transpose()?;
        Ok(Self {
            series: begin(&args.series)?,
            minutes: begin(&args.minutes)?,
            jobset: begin(&args.jobset)?,
            html: begin(&args.html)?,
            pictures: pictures.unwrap_or_default(),
        })
    }

    /// What they need of each run.
    pub(super) fn keep(&self) -> Keep {
        Keep {
            intervals: self.series.is_some() || self.minutes.is_some(),
            overview: self.html.is_some() || !self.pictures.is_empty(),
            allocations: self.jobset.is_some(),
        }
    }

    /// Writes all of them; they get their names when they are finished.
    ///
    /// # Errors
    /// If one cannot be written, or a run is too long for it.
    pub(super) fn write(
        mut self,
        setting: &Setting<'_>,
        scenario: &Scenario,
        notes: &[Note],
        runs: &[Run],
        recorders: &[Recorder],
    ) -> Result<Vec<Output>, Failure> {
        let mut written = Vec::new();
        if let Some(mut series) = self.series.take() {
            write_series(&mut series, runs, recorders)?;
            written.push(series);
        }
        if let Some(mut minutes) = self.minutes.take() {
            write_minutes(&mut minutes, scenario, runs, recorders)?;
            written.push(minutes);
        }
        if let Some(mut jobset) = self.jobset.take() {
            jobset.pass(|out| {
                jobset_header(out)?;
                let mut runs = runs.iter().zip(recorders);
                runs.try_for_each(|(run, recorder)| jobset_rows(out, scenario, run, recorder.allocations.as_ref()))
            })?;
            written.push(jobset);
        }
        if self.keep().overview {
            let overviews: Vec<&Overview> =
                recorders.iter().filter_map(|recorder| recorder.overview.as_ref()).collect();
            let notes: Vec<String> = notes.iter().map(Note::to_string).collect();
            let command = command_line()?;
            let source =
                PageSource { setting, scenario, runs, overviews: &overviews, command: &command, notes: &notes };
            self.write_page(source, &mut written)?;
        }
        Ok(written)
    }

    fn write_page(self, source: PageSource<'_>, written: &mut Vec<Output>) -> Result<(), Failure> {
        let failed = |error: PageError| Failure::Failed(error.into());
        let page = Page::new(source).map_err(failed)?;
        if let Some(mut html) = self.html {
            html.write(page.html().map_err(failed)?.as_bytes())?;
            written.push(html);
        }
        let mut outputs = self.pictures;
        if outputs.is_empty() {
            return Ok(());
        }
        for (name, svg) in page.pictures().map_err(failed)? {
            if let Some(mut output) = outputs.remove(&name) {
                output.write(svg.as_bytes())?;
                written.push(output);
            }
        }
        Ok(())
    }
}

fn begin_pictures(folder: &Path, schedulers: &[Scheduler]) -> Result<BTreeMap<String, Output>, Failure> {
    let made = std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()));
    made.map_err(Failure::Failed)?;
    let begin = |name: String| {
        let output = Output::open(Some(&folder.join(format!("{name}.svg"))))?;
        Ok((name, output))
    };
    picture_names(schedulers).into_iter().map(begin).collect()
}

/// The command that was given, as a shell reads it.
fn command_line() -> Result<String, Failure> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = std::iter::once("slotwise".to_owned()).chain(words).collect();
    // No argument of a program holds what a shell cannot quote.
    shlex::try_join(words.iter().map(String::as_str)).map_err(Failure::failed)
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
