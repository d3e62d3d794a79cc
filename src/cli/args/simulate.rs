//! What may be written after `simulate`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{ReplayArgs, TypicalArg, help, integer};
use crate::simulate::Share;

/// `simulate`.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct SimulateArgs {
    #[command(flatten)]
    pub(in super::super) replay: ReplayArgs,
    /// As many 8-GPU nodes as hold the trace's own demand for this share of its time [default: 0.90]
    #[arg(long, value_name = "SHARE", group = "size")]
    pub(in super::super) eta: Option<Share>,
    /// This many 8-GPU nodes
    #[arg(long, value_name = "N", group = "size", value_parser = integer::<u64>(1..=help::MOST / 8))]
    pub(in super::super) nodes: Option<u64>,
    /// Only the jobs that are submitted in this day of the trace, from 0
    #[arg(long, value_name = "K", conflicts_with = "window", value_parser = integer::<u32>(0..))]
    pub(in super::super) day: Option<u32>,
    /// Only the jobs that are submitted in these seconds of the trace, the last excluded
    #[arg(long, value_name = "FROM..TO", value_parser = seconds_range)]
    pub(in super::super) window: Option<(u64, u64)>,
    /// Seconds for which a running job pauses when an event moves it
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = integer::<u64>(0..=1 << 32))]
    pub(in super::super) move_cost: u64,
    /// Tell why this job of the trace waited and which nodes it could have had, under each policy, instead of comparing them
    #[arg(long, value_name = "JOB", conflicts_with_all = ["series", "minutes", "jobset", "html", "svg"])]
    pub(in super::super) explain: Option<String>,
    /// The seed of the policy `random`
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = integer::<u64>(0..))]
    pub(in super::super) seed: u64,
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

/// `FROM..TO`, two integers, the first below the second.
fn seconds_range(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    parts.filter(|(from, to)| from < to).ok_or_else(|| "expected FROM..TO, two integers, FROM below TO".to_owned())
}
