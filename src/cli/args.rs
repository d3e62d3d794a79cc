//! What may be written on the command line. Nothing happens here.

mod generate;
mod import;
mod plan;
mod replay;
mod serve;
mod simulate;
mod sweep;

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, Args as ClapArgs, Command as Program, CommandFactory, Parser, Subcommand, ValueEnum};

use super::help;
use crate::anchor::Trigger;
use crate::decide::{Policy, Threshold};
use crate::evaluate::{Choice, Crossover};
use crate::formats::{GpusPerProc, TopologyKeys};
use crate::workload::synthetic::Mix;

pub(super) use generate::{GenerateClusterArgs, GenerateCommand, GenerateQueueArgs, GenerateTraceArgs};
pub(super) use import::ImportCommand;
pub(super) use plan::{ExplainArgs, PlanArgs, PlanHow};
pub(super) use replay::ReplayArgs;
pub(super) use serve::{LogFormat, ServeArgs, Watch};
pub(super) use simulate::SimulateArgs;
pub(super) use sweep::{Days, MergeArgs, SweepArgs};

/// Decides where the jobs of a GPU cluster go, and says how well a cluster is packed.
#[derive(Debug, Parser)]
#[command(name = "slotwise", version, max_term_width = 100, after_long_help = help::PROGRAM)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

impl Args {
    /// The program, with every argument and command.
    pub(super) fn program() -> Program {
        take_negative_numbers(Self::command())
    }
}

/// Lets every option have `-1` for a value, so that the option itself refuses it.
fn take_negative_numbers(program: Program) -> Program {
    let takes = |arg: Arg| match arg.get_action() {
        ArgAction::Set | ArgAction::Append => arg.allow_negative_numbers(true),
        _ => arg,
    };
    program.mut_args(takes).mut_subcommands(take_negative_numbers)
}

/// Options of every command.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Options of every command")]
pub(super) struct Global {
    /// A table for people, or JSON: one document, or one object a line [default: table on a terminal, else json]
    #[arg(long, global = true, value_enum)]
    pub(super) format: Option<Format>,
    /// Write the result to a file, which appears whole or not at all
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Threads to use; 0 is one a core. Never changes a result
    #[arg(long, global = true, value_name = "N", default_value_t = 0, value_parser = integer::<u16>(0..=1024))]
    pub(super) threads: u16,
    /// No notes and no progress bar
    #[arg(long, short, global = true)]
    pub(super) quiet: bool,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    Table,
    /// For machines.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Score candidate placements of queued jobs
    #[command(after_long_help = help::SCORE)]
    Score(ScoreArgs),
    /// Decide where the jobs of a queue go
    #[command(after_long_help = help::PLACE)]
    Place(PlaceArgs),
    /// Make room for a job with the fewest moves of what runs
    #[command(after_long_help = help::PLAN)]
    Plan(PlanArgs),
    /// Say why a job waits, where it nearly fits, and what would let it start
    #[command(after_long_help = help::EXPLAIN)]
    Explain(ExplainArgs),
    /// Say how fragmented a cluster is, and what that costs
    #[command(after_long_help = help::AUDIT)]
    Audit(AuditArgs),
    /// The fewest partial nodes that a demand can be packed with
    #[command(after_long_help = help::PHI_STAR)]
    PhiStar(PhiStarArgs),
    /// Every backend, and whether it can be used here
    #[command(after_long_help = help::DEVICES)]
    Devices,
    /// Make a snapshot, and a queue, of what another scheduler dumped
    #[command(subcommand)]
    Import(ImportCommand),
    /// Make a cluster, a queue or a trace from a seed
    #[command(subcommand)]
    Generate(GenerateCommand),
    /// Run a long stream of jobs and check every invariant
    #[command(after_long_help = help::STRESS)]
    Stress(StressArgs),
    /// Play a trace against a cluster under several schedulers, and compare them
    #[command(after_long_help = help::SIMULATE)]
    Simulate(SimulateArgs),
    /// Play a trace under every combination of policies, sizes, costs, seeds and days
    #[command(after_long_help = help::SWEEP)]
    Sweep(SweepArgs),
    /// Put the rows of a sweep together, and say who ranks first on how many days
    #[command(after_long_help = help::MERGE)]
    Merge(MergeArgs),
    /// Answer schedulers: keep a cluster, and score, place and plan on it
    #[command(after_long_help = help::SERVE)]
    Serve(ServeArgs),
    /// Hold a backend against the reference
    #[command(after_long_help = help::VERIFY)]
    Verify(VerifyArgs),
    /// Measure, beside the limits of this machine
    #[command(after_long_help = help::BENCH)]
    Bench(BenchArgs),
}

/// The cluster to work on.
#[derive(Debug, ClapArgs)]
pub(super) struct ClusterArg {
    /// A snapshot (JSON, - for standard input, may be gzip'd), kubernetes:FILE[,FILE…], slurm:FILE[,FILE…],
    /// alibaba-2026:FILE, openb:FILE, or synthetic:GPUS[:SEED]
    #[arg(long, value_name = "CLUSTER")]
    pub(super) cluster: String,
    /// For kubernetes:FILE: the labels that say where a node is, outermost first, or topograph, nvidia, cloud or none
    /// [default: the first of these sets that a node has a label of]
    #[arg(long, value_name = "LABEL,…")]
    pub(super) topology_keys: Option<TopologyKeys>,
}

impl ClusterArg {
    /// The labels that say where a node is, if any are given.
    pub(super) fn keys(&self) -> Option<&TopologyKeys> {
        self.topology_keys.as_ref()
    }
}

/// The backend to evaluate on.
#[derive(Debug, ClapArgs)]
pub(super) struct BackendArg {
    /// Where to evaluate; results are the same everywhere
    #[arg(long, default_value = "auto", value_parser = backend())]
    pub(super) backend: Choice,
}

/// How a trace becomes a queue.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
pub(super) struct TraceArgs {
    /// Press a trace together until the free GPUs are loaded to this share
    #[arg(long, value_name = "PERCENT", value_parser = integer::<u32>(1..=1000))]
    pub(super) load: Option<u32>,
    #[command(flatten)]
    pub(super) processors: ProcessorsArg,
}

/// What a trace of processors is a trace of.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
pub(super) struct ProcessorsArg {
    /// The GPUs that a processor of swf:FILE stands for, such as 1 or 1/8
    #[arg(long, value_name = "N[/M]")]
    pub(super) gpus_per_proc: Option<GpusPerProc>,
}

/// What `fgd`, and what is built on it, take for typical.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct TypicalArg {
    /// For fgd, ca-fgd and mcg: the trace whose jobs are typical, such as openb:FILE [default: the jobs that are to be placed]
    #[arg(long, value_name = "TRACE")]
    pub(super) typical: Option<String>,
}

/// The backend to evaluate on, and how small a call is not worth the way to it.
#[derive(Debug, ClapArgs)]
pub(super) struct EvaluateArgs {
    #[command(flatten)]
    pub(super) backend: BackendArg,
    /// Smaller calls stay on the cpu, in touches scored or nodes ranked; auto measures, 0 sends all. Never changes a
    /// result [default: auto; 0 if --backend names a device]
    #[arg(long, value_name = "N|auto", value_parser = crossover)]
    pub(super) crossover: Option<Crossover>,
}

/// `score`.
#[derive(Debug, ClapArgs)]
pub(super) struct ScoreArgs {
    #[command(flatten)]
    pub(super) cluster: ClusterArg,
    /// The queue that holds the jobs (JSONL, - for standard input, may be gzip'd)
    #[arg(long, value_name = "QUEUE")]
    pub(super) queue: String,
    /// The candidates (JSONL, - for standard input, may be gzip'd)
    #[arg(long, value_name = "CANDIDATES")]
    pub(super) candidates: String,
    #[command(flatten)]
    pub(super) evaluate: EvaluateArgs,
}

/// `place`.
#[derive(Debug, ClapArgs)]
pub(super) struct PlaceArgs {
    #[command(flatten)]
    pub(super) cluster: ClusterArg,
    /// The queue (JSONL, - for standard input, may be gzip'd), synthetic:JOBS[:SEED],
    /// the waiting jobs of kubernetes:FILE[,FILE…] or slurm:FILE[,FILE…], or a trace such as philly:FILE
    #[arg(long, value_name = "QUEUE")]
    pub(super) queue: String,
    /// Who decides
    #[arg(long, default_value = Policy::Compass.name(), value_parser = policy())]
    pub(super) policy: Policy,
    #[command(flatten)]
    pub(super) evaluate: EvaluateArgs,
    /// The seed of the policy `random`
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = integer::<u64>(0..))]
    pub(super) seed: u64,
    /// When the compass policies compact by moving running instances
    #[arg(long, default_value = Trigger::EveryEvent.name(), value_parser = trigger())]
    pub(super) compact: Trigger,
    /// The most instances that an event may move; 0 moves nothing [default: no limit]
    #[arg(long, value_name = "K", value_parser = integer::<u32>(0..))]
    pub(super) migration_budget: Option<u32>,
    /// Write the cluster as it is afterwards, once everything else went well
    #[arg(long, value_name = "FILE", conflicts_with = "explain")]
    pub(super) snapshot_out: Option<PathBuf>,
    /// Jobs that are ranked together; never changes a result
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = integer::<u32>(1..=1 << 20))]
    pub(super) window: u32,
    #[command(flatten)]
    pub(super) trace: TraceArgs,
    /// Say which nodes this job could have had, or without a name every blocked job
    #[arg(long, value_name = "JOB", num_args = 0..=1)]
    pub(super) explain: Option<Option<String>>,
    #[command(flatten)]
    pub(super) typical: TypicalArg,
    /// Stop after this many lines of the queue, to look at the cluster in the middle of a trace
    #[arg(long, value_name = "N", value_parser = integer::<usize>(0..))]
    pub(super) first: Option<usize>,
}

/// `audit`.
#[derive(Debug, ClapArgs)]
pub(super) struct AuditArgs {
    #[command(flatten)]
    pub(super) cluster: ClusterArg,
    /// The jobs that wait (JSONL, - for standard input, may be gzip'd), or kubernetes:FILE[,FILE…], slurm:FILE[,FILE…]
    #[arg(long, value_name = "QUEUE")]
    pub(super) queue: Option<String>,
    /// Exit with 3 if a measure is above this: SIF, as in 0.05, or another as in n-sif=10; may be given again
    #[arg(long, value_name = "[MEASURE=]NUMBER")]
    pub(super) fail_above: Vec<Threshold>,
    /// The same as --fail-above n-sif=N
    #[arg(long, value_name = "N", value_parser = integer::<u64>(0..))]
    pub(super) max_sif_nodes: Option<u64>,
}

/// `phi-star`.
#[derive(Debug, ClapArgs)]
pub(super) struct PhiStarArgs {
    /// GPUs a node, 1 to 16
    #[arg(long, value_name = "GPUS", default_value_t = 8, value_parser = integer::<u8>(1..=16))]
    pub(super) capacity: u8,
    /// How many instances of each size, as in 1:10,3:4,5:2; may be empty
    #[arg(long, value_name = "SIZE:COUNT,…")]
    pub(super) demand: String,
}

/// What everything that is made has.
#[derive(Debug, ClapArgs)]
pub(super) struct SeedArgs {
    /// The same seed makes the same
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer::<u64>(0..))]
    pub(super) seed: u64,
    /// How common instances of each size are
    #[arg(long, default_value = Mix::Gfs.name(), value_parser = mix())]
    pub(super) mix: Mix,
}

/// `stress`.
#[derive(Debug, ClapArgs)]
pub(super) struct StressArgs {
    /// GPUs of the cluster
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = integer::<u64>(1..=help::MOST))]
    pub(super) gpus: u64,
    /// Jobs of the stream; each arrives, and leaves again
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = integer::<u64>(1..=help::MOST))]
    pub(super) jobs: u64,
    #[command(flatten)]
    pub(super) seed: SeedArgs,
    /// Who decides
    #[arg(long, default_value = Policy::Compass.name(), value_parser = policy())]
    pub(super) policy: Policy,
    #[command(flatten)]
    pub(super) evaluate: EvaluateArgs,
    /// The share of the GPUs that the jobs ask for at a time
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = integer::<u32>(1..=1000))]
    pub(super) load: u32,
}

/// `verify`.
#[derive(Debug, ClapArgs)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    pub(super) backend: BackendArg,
    /// The seed of the clusters and candidates
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer::<u64>(0..))]
    pub(super) seed: u64,
    /// How many seeds are tried, this one and those after it [default: 20; 1 with --quick]
    #[arg(long, value_name = "N", value_parser = integer::<u32>(1..=1_000_000))]
    pub(super) rounds: Option<u32>,
    /// Small clusters and fewer sizes
    #[arg(long)]
    pub(super) quick: bool,
}

/// `bench`.
#[derive(Debug, ClapArgs)]
pub(super) struct BenchArgs {
    #[command(flatten)]
    pub(super) backend: BackendArg,
    /// Small sizes and few passes: does it run, not how fast
    #[arg(long)]
    pub(super) quick: bool,
}

/// An integer in this range, whose bounds are told where it is refused.
fn integer<T>(range: impl RangeBounds<T>) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
    move |text| {
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        number.ok_or_else(|| match bounds {
            (Bound::Included(from), Bound::Included(to)) => format!("expected an integer from {from} to {to}"),
            (Bound::Included(from), _) => format!("expected an integer from {from}"),
            _ => "expected an integer".to_owned(),
        })
    }
}

fn policy() -> impl TypedValueParser<Value = Policy> {
    PossibleValuesParser::new(Policy::ALL.map(Policy::name)).try_map(|word| word.parse::<Policy>())
}

fn backend() -> impl TypedValueParser<Value = Choice> {
    let find = |word: String| Choice::ALL.into_iter().find(|choice| choice.name() == word);
    PossibleValuesParser::new(Choice::ALL.map(Choice::name)).map(move |word| find(word).unwrap_or_default())
}

fn crossover(word: &str) -> Result<Crossover, String> {
    match word {
        "auto" => Ok(Crossover::Measured),
        number => number.parse().map(Crossover::At).map_err(|_| "expected an integer from 0, or auto".to_owned()),
    }
}

fn mix() -> impl TypedValueParser<Value = Mix> {
    PossibleValuesParser::new(Mix::ALL.map(Mix::name)).map(|word| Mix::from_name(&word).unwrap_or_default())
}

fn trigger() -> impl TypedValueParser<Value = Trigger> {
    PossibleValuesParser::new(Trigger::ALL.map(Trigger::name)).map(|word| Trigger::from_name(&word).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declarations_are_sound() {
        Args::program().debug_assert();
    }
}
