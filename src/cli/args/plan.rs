//! What may be written after `plan`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args as ClapArgs};

use super::{ClusterArg, EvaluateArgs, integer};
use crate::plan::{Cost, Mode};

/// `plan`.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("goal").required(true).args(["job", "queue", "free_nodes", "free_domain", "free_rack", "target"]).multiple(true))]
pub(in super::super) struct PlanArgs {
    #[command(flatten)]
    pub(in super::super) cluster: ClusterArg,
    /// The queue that holds the job (JSONL, - for standard input, may be gzip'd)
    #[arg(long, value_name = "QUEUE", conflicts_with_all = ["free_nodes", "free_domain", "free_rack", "target"])]
    pub(in super::super) queue: Option<String>,
    /// Make room for this job of the queue, alone, by its name or what its owner calls it; may be left out if the queue
    /// has but one
    #[arg(long, value_name = "JOB", requires = "queue")]
    pub(in super::super) job: Option<String>,
    /// Free this many nodes of all GPU instances
    #[arg(long, value_name = "K", conflicts_with_all = ["free_domain", "free_rack", "target"], value_parser = integer::<u32>(1..))]
    pub(in super::super) free_nodes: Option<u32>,
    /// Free one NVLink domain
    #[arg(long, conflicts_with_all = ["free_rack", "target"])]
    pub(in super::super) free_domain: bool,
    /// Free one rack
    #[arg(long, conflicts_with = "target")]
    pub(in super::super) free_rack: bool,
    /// As few partial nodes as can be, with --max-moves as so many moves can do
    #[arg(long, value_name = "sif=0", value_parser = ["sif=0"])]
    pub(in super::super) target: Option<String>,
    #[command(flatten)]
    pub(in super::super) how: PlanHow,
    /// What the plan is to have the least of: moves, then GPUs; or GPUs, disturbed jobs or seconds, then moves
    #[arg(long, default_value = Cost::Moves.name(), value_parser = cost())]
    pub(in super::super) cost: Cost,
    /// No plan of more moves
    #[arg(long, value_name = "M", value_parser = integer::<u64>(0..))]
    pub(in super::super) max_moves: Option<u64>,
    /// No plan that moves instances of more jobs
    #[arg(long, value_name = "D", value_parser = integer::<u64>(0..))]
    pub(in super::super) max_jobs_disturbed: Option<u64>,
    /// With --target, also the fewest partial nodes that 0, 1, 2, … moves leave, at up to 50 numbers of moves
    #[arg(long, requires = "target", conflicts_with_all = ["commands", "max_jobs_disturbed"])]
    pub(in super::super) curve: bool,
    /// Write the curve as a chart
    #[arg(long, value_name = "FILE", requires = "curve")]
    pub(in super::super) svg: Option<PathBuf>,
    /// Instead of a table or JSON, the moves as commands of kubectl or scontrol, which are never carried out; for
    /// kubernetes: and slurm:
    #[arg(long)]
    pub(in super::super) commands: bool,
    #[command(flatten)]
    pub(in super::super) evaluate: EvaluateArgs,
}

/// How any plan is made.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct PlanHow {
    /// All movers stop, then everything is placed; or one move after another, each to a place that is free by then
    #[arg(long, default_value = Mode::StopFirst.name(), value_parser = mode())]
    pub(in super::super) mode: Mode,
    /// A running job, or several by * and ?, that must stay where it is; may be given again
    #[arg(long, value_name = "SELECTOR")]
    pub(in super::super) pin: Vec<String>,
    /// Answer with the best found so far after this long
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = integer::<u64>(1..=1 << 32))]
    pub(in super::super) time_limit: u64,
}

/// `explain`.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct ExplainArgs {
    #[command(flatten)]
    pub(in super::super) cluster: ClusterArg,
    /// The queue that holds the job (JSONL, - for standard input, may be gzip'd), or the waiting jobs of
    /// kubernetes:FILE[,FILE…] or slurm:FILE[,FILE…]
    #[arg(long, value_name = "QUEUE")]
    pub(in super::super) queue: String,
    /// The job, looked at alone, by its name or what its owner calls it; may be left out if the queue has but one
    #[arg(long, value_name = "JOB")]
    pub(in super::super) job: Option<String>,
    #[command(flatten)]
    pub(in super::super) how: PlanHow,
    #[command(flatten)]
    pub(in super::super) evaluate: EvaluateArgs,
}

fn mode() -> impl TypedValueParser<Value = Mode> {
    let find = |word: String| Mode::ALL.into_iter().find(|mode| mode.name() == word);
    PossibleValuesParser::new(Mode::ALL.map(Mode::name)).map(move |word| find(word).unwrap_or_default())
}

fn cost() -> impl TypedValueParser<Value = Cost> {
    let find = |word: String| Cost::ALL.into_iter().find(|cost| cost.name() == word);
    PossibleValuesParser::new(Cost::ALL.map(Cost::name)).map(move |word| find(word).unwrap_or_default())
}
