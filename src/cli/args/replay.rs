//! What may be written after whatever plays a trace: `simulate`, and `sweep` for each of its cells.

use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::{ProcessorsArg, integer, mix, trigger};
use crate::anchor::Trigger;
use crate::simulate::{Discipline, ROUND_S, Until};
use crate::workload::synthetic::Mix;

/// A trace, who schedules it where, and what happens there.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct ReplayArgs {
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
    #[arg(long, value_name = "K", value_parser = integer::<u32>(0..))]
    pub(in super::super) migration_budget: Option<u32>,
    /// Seconds of a round, where the policy names none (fft, drr)
    #[arg(long, value_name = "SECONDS", default_value_t = ROUND_S, value_parser = integer::<u64>(1..=1 << 32))]
    pub(in super::super) round: u64,
    /// A snapshot, alibaba-2026:FILE, openb:FILE, or synthetic:GPUS[:SEED]; what runs there leaves after its remaining_s, or never
    #[arg(long, value_name = "CLUSTER", group = "size")]
    pub(in super::super) cluster: Option<String>,
    /// Where the time ends that --eta looks at: with the last job that would end, or at the last submission
    #[arg(long, default_value = "last-end", value_parser = until())]
    pub(in super::super) until: Until,
    /// Nodes that fail, drain and return (JSONL, may be gzip'd)
    #[arg(long, value_name = "FILE")]
    pub(in super::super) events: Option<String>,
    /// In which order jobs start
    #[arg(long, default_value = Discipline::Fifo.name(), value_parser = discipline())]
    pub(in super::super) discipline: Discipline,
    /// The share of the GPUs (of --cluster, or of --nodes if that is one number; else of 1,000) that a synthetic trace asks for
    /// on average
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = integer::<u32>(1..=1000))]
    pub(in super::super) load: u32,
    /// How common instances of each size are in a synthetic trace
    #[arg(long, default_value = Mix::Gfs.name(), value_parser = mix())]
    pub(in super::super) mix: Mix,
}

fn discipline() -> impl TypedValueParser<Value = Discipline> {
    PossibleValuesParser::new(Discipline::ALL.map(Discipline::name))
        .map(|word| Discipline::from_name(&word).unwrap_or_default())
}

fn until() -> impl TypedValueParser<Value = Until> {
    PossibleValuesParser::new(["last-end", "last-submit"]).map(|word| match word.as_str() {
        "last-submit" => Until::LastSubmit,
        _ => Until::LastEnd,
    })
}
