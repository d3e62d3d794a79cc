//! What every reader of a trace hands back: the jobs, and what became of each row.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::workload::{Outcome, TraceJob};

use super::error::{FormatError, Note};

/// A trace: its jobs, sorted by submission, ties in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The jobs that were kept. Submission counts from the earliest of them.
    pub jobs: Vec<TraceJob>,
    /// What became of the rows.
    pub report: TraceReport,
}

/// What became of the rows of a trace, and what its reader had to assume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceReport {
    /// The input as the user named it.
    pub input: String,
    /// Its rows.
    pub rows: u64,
    /// Rows that were left out, by reason.
    pub left_out: BTreeMap<LeftOut, u64>,
    /// What was assumed, a sentence each.
    pub assumed: Vec<String>,
    /// When the first job that was kept was submitted, on the trace's own clock: seconds from 1970 (in local time, where
    /// the trace states no zone) or from wherever it counts.
    pub start_s: i64,
}

impl TraceReport {
    /// The report as notes for the user.
    pub fn notes(&self) -> Vec<Note> {
        let note = |text| Note { place: self.input.clone(), text };
        let left_out = self.left_out.iter().map(|(why, n)| format!("{n} of {} jobs are left out: {why}", self.rows));
        left_out.chain(self.assumed.iter().cloned()).map(note).collect()
    }
}

/// Why a row of a trace is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOut {
    /// It has no id.
    NoId,
    /// A row before it has the same id.
    Twice,
    /// The job was requeued, and a later row has the run that counts.
    EarlierRun,
    /// It is a part of a job that has a row of its own.
    Step,
    /// It is a burst of a job that was swapped out, and that has a row of its own.
    Burst,
    /// It says no number of GPUs.
    NoCount,
    /// It asks for no GPU in a trace of GPU jobs.
    NoGpus,
    /// It asks for no worker.
    NoWorkers,
    /// It asks for a share of a GPU, in a trace that does not say how much each worker has.
    Share,
    /// A total that [`TraceJob`] cannot be made of without a guess.
    Indivisible,
    /// Processors that are no whole number of GPUs.
    OddProcessors,
    /// More GPUs a worker than any node has.
    TooWide,
    /// Some GPUs of one model and some of another.
    Mixed,
    /// A number below 0 that should not be.
    BelowZero,
    /// An amount beyond what can be counted.
    TooMuch,
    /// It does not say when it was submitted.
    NoSubmission,
    /// It never started.
    NeverStarted,
    /// It does not say how long it ran.
    NoDuration,
    /// It ends before it starts.
    NegativeDuration,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LeftOut::NoId => "no id",
            LeftOut::Twice => "an id that a row before has",
            LeftOut::EarlierRun => "earlier runs of requeued jobs",
            LeftOut::Step => "steps of jobs",
            LeftOut::Burst => "bursts of jobs that were swapped out",
            LeftOut::NoCount => "no number of GPUs",
            LeftOut::NoGpus => "no GPUs",
            LeftOut::NoWorkers => "no workers",
            LeftOut::Share => "a number of GPUs that is not whole",
            LeftOut::Indivisible => "more than 8 GPUs, but no multiple of 8",
            LeftOut::OddProcessors => "processors that are no whole number of GPUs",
            LeftOut::TooWide => "more than 16 GPUs a worker",
            LeftOut::Mixed => "GPUs of several models in one job",
            LeftOut::BelowZero => "a number below 0",
            LeftOut::TooMuch => "an amount beyond what can be counted",
            LeftOut::NoSubmission => "no time of submission",
            LeftOut::NeverStarted => "never started",
            LeftOut::NoDuration => "no duration",
            LeftOut::NegativeDuration => "a negative duration",
        })
    }
}

/// Why a row gives no job: it is malformed, and so is the input; or it is left out, and counted.
#[derive(Debug)]
pub(super) enum Unread {
    Malformed(FormatError),
    LeftOut(LeftOut),
}

impl From<FormatError> for Unread {
    fn from(error: FormatError) -> Self {
        Self::Malformed(error)
    }
}

impl From<LeftOut> for Unread {
    fn from(why: LeftOut) -> Self {
        Self::LeftOut(why)
    }
}

/// When a job ran, on the trace's own clock.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    /// From then to then.
    Between(i64, i64),
    /// From then to then, and longer if that is the last moment of the trace.
    Seen(i64, i64),
    /// From then on: it had not ended.
    Since(i64),
    /// For so many seconds.
    For(i64),
    /// The trace does not know times.
    Forever,
}

/// A row that became a job; times of `job` follow from the others.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) job: TraceJob,
    pub(super) submit: i64,
    pub(super) run: Run,
}

/// Which row counts where several have one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SameId {
    /// The first.
    First,
    /// The last, submitted when the first was: the job was requeued.
    Last,
}

/// Gathers rows to a trace.
#[derive(Debug)]
pub(super) struct Gather {
    same_id: SameId,
    report: TraceReport,
    rows: Vec<Row>,
    /// Positions in `rows` by the job's name.
    by_name: HashTable<usize>,
    texts: FxHashSet<Arc<str>>,
    /// The last moment that the trace knows of.
    latest: i64,
    oddities: BTreeMap<&'static str, u64>,
}

impl Gather {
    pub(super) fn new(input: &str, same_id: SameId) -> Self {
        Self {
            same_id,
            report: TraceReport { input: input.to_owned(), ..TraceReport::default() },
            rows: Vec::new(),
            by_name: HashTable::new(),
            texts: FxHashSet::default(),
            latest: i64::MIN,
            oddities: BTreeMap::new(),
        }
    }

    /// Rows so far, the one that is being read not counted.
    pub(super) fn rows(&self) -> u64 {
        self.report.rows
    }

    /// A text that is stored once however many jobs share it; `None` if it says nothing.
    pub(super) fn text(&mut self, text: &str) -> Option<Arc<str>> {
        if is_missing(text) {
            return None;
        }
        if let Some(known) = self.texts.get(text) {
            return Some(Arc::clone(known));
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        Some(text)
    }

    /// The models of a list such as `A|B|A`, sorted, each once.
    pub(super) fn models(&mut self, list: &str) -> Vec<Arc<str>> {
        let mut models: Vec<_> = list.split('|').filter_map(|model| self.text(model.trim())).collect();
        models.sort_unstable();
        models.dedup();
        models
    }

    /// Counts a job of which the reader assumed something, or that is odd: "… of … jobs " and then `what`.
    pub(super) fn odd(&mut self, what: &'static str) {
        *self.oddities.entry(what).or_default() += 1;
    }

    /// Takes one row: keeps it, or counts why not.
    pub(super) fn take(&mut self, row: Result<Row, Unread>) -> Result<(), FormatError> {
        self.report.rows += 1;
        match row.and_then(|row| Ok(self.keep(row)?)) {
            Ok(()) => {}
            Err(Unread::LeftOut(why)) => self.leave_out(why),
            Err(Unread::Malformed(error)) => return Err(error),
        }
        Ok(())
    }

    fn leave_out(&mut self, why: LeftOut) {
        *self.report.left_out.entry(why).or_default() += 1;
    }

    fn keep(&mut self, mut row: Row) -> Result<(), LeftOut> {
        if is_missing(&row.job.name) {
            return Err(LeftOut::NoId);
        }
        row.job.duration_s = match row.run {
            Run::Between(start, end) | Run::Seen(start, end) => seconds(end.saturating_sub(start))?,
            Run::For(run) => seconds(run)?,
            Run::Since(_) => 0,
            Run::Forever => TraceJob::FOREVER,
        };
        let last = match row.run {
            Run::Between(_, end) | Run::Seen(_, end) => end,
            Run::Since(start) => start,
            Run::For(_) | Run::Forever => row.submit,
        };
        if matches!(row.run, Run::Between(start, _) | Run::Seen(start, _) | Run::Since(start) if start < row.submit) {
            self.odd("start before they are submitted; the submission stands");
        }
        let hash = |name: &str| FxBuildHasher.hash_one(name);
        let Self { rows, by_name, same_id, .. } = self;
        let entry =
            by_name.entry(hash(&row.job.name), |&at| rows[at].job.name == row.job.name, |&at| hash(&rows[at].job.name));
        match entry {
            Entry::Vacant(free) => {
                free.insert(rows.len());
                rows.push(row);
            }
            Entry::Occupied(_) if *same_id == SameId::First => return Err(LeftOut::Twice),
            Entry::Occupied(known) => {
                let before = &mut rows[*known.get()];
                row.submit = row.submit.min(before.submit);
                *before = row;
                self.leave_out(LeftOut::EarlierRun);
            }
        }
        self.latest = self.latest.max(last);
        Ok(())
    }

    /// The trace, and `assumed` by its reader beside what was counted.
    pub(super) fn finish(mut self, assumed: &[&str]) -> Trace {
        for row in &mut self.rows {
            match row.run {
                Run::Since(start) => {
                    row.job.duration_s = self.latest.abs_diff(start).min(TraceJob::FOREVER - 1);
                    row.job.censored = true;
                    row.job.outcome = Outcome::Running;
                }
                Run::Seen(_, end) if end >= self.latest => row.job.censored = true,
                _ => {}
            }
        }
        // Stable: ties stay in the order of the file.
        self.rows.sort_by_key(|row| row.submit);
        let mut report = self.report;
        report.start_s = self.rows.first().map_or(0, |row| row.submit);
        let start = report.start_s;
        let at = |row: Row| TraceJob { submit_s: row.submit.abs_diff(start), ..row.job };
        let jobs: Vec<_> = self.rows.into_iter().map(at).collect();
        let rows = report.rows;
        report.assumed.extend(self.oddities.iter().map(|(what, n)| format!("{n} of {rows} jobs {what}")));
        let censored = jobs.iter().filter(|job| job.censored).count();
        if censored > 0 {
            let text = format!("{censored} of {rows} jobs are censored: nobody knows how long they would have run");
            report.assumed.push(text);
        }
        report.assumed.extend(assumed.iter().map(|&text| text.to_owned()));
        Trace { jobs, report }
    }
}

fn seconds(seconds: i64) -> Result<u64, LeftOut> {
    let seconds = u64::try_from(seconds).map_err(|_| LeftOut::NegativeDuration)?;
    if seconds < TraceJob::FOREVER { Ok(seconds) } else { Err(LeftOut::TooMuch) }
}

/// True for the words that traces have for a value that is not there.
pub(super) fn is_missing(text: &str) -> bool {
    const WORDS: [&str; 10] = ["", "None", "NULL", "null", "NaN", "nan", "NaT", "N/A", "Unknown", "None assigned"];
    WORDS.contains(&text)
}

/// What a state of Slurm says of a job, also in lower case, and `CANCELLED by 1000`.
pub(super) fn slurm_outcome(state: &str) -> Outcome {
    let word = state.split_whitespace().next().unwrap_or_default().trim_end_matches('+');
    match word.to_ascii_uppercase().as_str() {
        "COMPLETED" => Outcome::Completed,
        "FAILED" | "OUT_OF_MEMORY" => Outcome::Failed,
        "CANCELLED" | "REVOKED" => Outcome::Cancelled,
        "TIMEOUT" | "DEADLINE" => Outcome::TimedOut,
        "NODE_FAIL" | "BOOT_FAIL" | "LAUNCH_FAILED" => Outcome::NodeFailed,
        "PREEMPTED" | "REQUEUED" => Outcome::Preempted,
        "RUNNING" | "SUSPENDED" | "COMPLETING" | "RESIZING" | "STOPPED" => Outcome::Running,
        "PENDING" => Outcome::Pending,
        _ => Outcome::Unknown,
    }
}
