//! What may be written after `simulate`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::{ProcessorsArg, TypicalArg, help, mix, trigger};
use crate::anchor::Trigger;
use crate::simulate::{Discipline, ROUND_S, Share, Until};
use crate::workload::synthetic::Mix;

/// `simulate`.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct SimulateArgs {
    /// A trace (JSONL, - for standard input, may be gzip'd), synthetic:JOBS[:SEED], or a trace such as philly:FILE
    #[arg(long, value_name = "TRACE")]
    pub(in super::super) trace: String,
    #[command(flatten)]
    pub(in super::super) processors: ProcessorsArg,
    /// Who schedules, one run each: a policy of place, compass:TRIGGER[:BUDGET], compass-paper:TRIGGER[:BUDGET], make-room[:PRICE[:BUDGET]], fft[:ROUND], drr[:ROUND], or sif-opt
    #[arg(long, value_name = "P,P,…", value_delimiter = ',', default_value = "compass,best-fit")]
    pub(in super::super) policy: Vec<String>,
    /// When the compass policies compact, where the policy names no trigger
    #[arg(long, default_value = Trigger::EveryEvent.name(), value_parser = trigger())]
    pub(in super::super) compact: Trigger,
    /// The most instances that an event may move; 0 moves nothing [default: no limit]
    #[arg(long, value_name = "K")]
    pub(in super::super) migration_budget: Option<u32>,
    /// Seconds of a round, where the policy names none (fft, drr)
    #[arg(long, value_name = "SECONDS", default_value_t = ROUND_S, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub(in super::super) round: u64,
    /// As many 8-GPU nodes as hold the trace's own demand for this share of its time [default: 0.90]
    #[arg(long, value_name = "SHARE", group = "size")]
    pub(in super::super) eta: Option<Share>,
    /// This many 8-GPU nodes
    #[arg(long, value_name = "N", group = "size", value_parser = clap::value_parser!(u64).range(1..=help::MOST / 8))]
    pub(in super::super) nodes: Option<u64>,
    /// A snapshot, alibaba-2026:FILE, openb:FILE, or synthetic:GPUS[:SEED]; what runs there leaves after its remaining_s, or never
    #[arg(long, value_name = "CLUSTER", group = "size")]
    pub(in super::super) cluster: Option<String>,
    /// Where the time ends that --eta looks at: with the last job that would end, or at the last submission
    #[arg(long, default_value = "last-end", value_parser = until())]
    pub(in super::super) until: Until,
    /// Only the jobs that are submitted in this day of the trace, from 0
    #[arg(long, value_name = "K", conflicts_with = "window")]
    pub(in super::super) day: Option<u32>,
    /// Only the jobs that are submitted in these seconds of the trace, the last excluded
    #[arg(long, value_name = "FROM..TO", value_parser = seconds_range)]
    pub(in super::super) window: Option<(u64, u64)>,
    /// Seconds for which a running job pauses when an event moves it
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(0..=1 << 32))]
    pub(in super::super) move_cost: u64,
    /// Nodes that fail, drain and return (JSONL, may be gzip'd)
    #[arg(long, value_name = "FILE")]
    pub(in super::super) events: Option<String>,
    /// Tell why this job of the trace waited and which nodes it could have had, under each policy, instead of comparing them
    #[arg(long, value_name = "JOB", conflicts_with_all = ["series", "minutes", "jobset", "html", "svg"])]
    pub(in super::super) explain: Option<String>,
    /// In which order jobs start
    #[arg(long, default_value = Discipline::Fifo.name(), value_parser = discipline())]
    pub(in super::super) discipline: Discipline,
    /// The seed of the policy `random`
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in super::super) seed: u64,
    /// The share of the cluster's GPUs (with --eta, of 1,000) that a synthetic trace asks for on average
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(in super::super) load: u32,
    /// How common instances of each size are in a synthetic trace
    #[arg(long, default_value = Mix::Gfs.name(), value_parser = mix())]
    pub(in super::super) mix: Mix,
    #[command(flatten)]
    pub(in super::super) typical: TypicalArg,
    /// Write how things stood at every time (CSV, a row for each interval in which nothing happened)
    #[arg(long, value_name = "FILE")]
    pub(in super::super) series: Option<PathBuf>,
    /// Write the same by minutes (CSV, a row for each minute and policy)
    #[arg(long, value_name = "FILE")]
    pub(in super::super) minutes: Option<PathBuf>,
    /// Write the jobs, and which GPUs each held, as a JobSet that evalys reads (CSV)
    #[arg(long, value_name = "FILE")]
    pub(in super::super) jobset: Option<PathBuf>,
    /// Write the comparison as one page that needs no other file and no network (HTML)
    #[arg(long, value_name = "FILE")]
    pub(in super::super) html: Option<PathBuf>,
    /// Write each picture of that page into this folder, which is made if it is not there (SVG)
    #[arg(long, value_name = "DIR")]
    pub(in super::super) svg: Option<PathBuf>,
}

pub(super) fn discipline() -> impl TypedValueParser<Value = Discipline> {
    PossibleValuesParser::new(Discipline::ALL.map(Discipline::name))
        .map(|word| Discipline::from_name(&word).unwrap_or_default())
}

pub(super) fn until() -> impl TypedValueParser<Value = Until> {
    PossibleValuesParser::new(["last-end", "last-submit"]).map(|word| match word.as_str() {
        "last-submit" => Until::LastSubmit,
        _ => Until::LastEnd,
    })
}

/// `FROM..TO`, two integers, the first below the second.
fn seconds_range(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    parts.filter(|(from, to)| from < to).ok_or_else(|| "expected FROM..TO, two integers, FROM below TO".to_owned())
}
