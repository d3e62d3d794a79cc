//! What may be written on the command line. Nothing happens here.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use super::help;
use crate::anchor::Trigger;
use crate::decide::Policy;
use crate::evaluate::Choice;
use crate::simulate::{Discipline, Share, Until};
use crate::workload::synthetic::Mix;

/// Decides where the jobs of a GPU cluster go, and says how well a cluster is packed.
#[derive(Debug, Parser)]
#[command(name = "slotwise", version, max_term_width = 100, after_long_help = help::PROGRAM)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Option<Command>,
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
    #[arg(long, global = true, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
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
    /// Say how fragmented a cluster is, and what that costs
    #[command(after_long_help = help::AUDIT)]
    Audit(AuditArgs),
    /// The fewest partial nodes that a demand can be packed with
    #[command(after_long_help = help::PHI_STAR)]
    PhiStar(PhiStarArgs),
    /// Every backend, and whether it can be used here
    #[command(after_long_help = help::DEVICES)]
    Devices,
    /// Make a cluster, a queue or a trace from a seed
    #[command(subcommand)]
    Generate(GenerateCommand),
    /// Run a long stream of jobs and check every invariant
    #[command(after_long_help = help::STRESS)]
    Stress(StressArgs),
    /// Play a trace against a cluster under several schedulers, and compare them
    #[command(after_long_help = help::SIMULATE)]
    Simulate(SimulateArgs),
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
    /// A snapshot (JSON, - for standard input, may be gzip'd), alibaba-2026:FILE, or synthetic:GPUS[:SEED]
    #[arg(long, value_name = "CLUSTER")]
    pub(super) cluster: String,
}

/// The backend to evaluate on.
#[derive(Debug, ClapArgs)]
pub(super) struct BackendArg {
    /// Where to evaluate; results are the same everywhere
    #[arg(long, default_value = "auto", value_parser = backend())]
    pub(super) backend: Choice,
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
    pub(super) backend: BackendArg,
}

/// `place`.
#[derive(Debug, ClapArgs)]
pub(super) struct PlaceArgs {
    #[command(flatten)]
    pub(super) cluster: ClusterArg,
    /// The queue (JSONL, - for standard input, may be gzip'd), philly:FILE, or synthetic:JOBS[:SEED]
    #[arg(long, value_name = "QUEUE")]
    pub(super) queue: String,
    /// Who decides
    #[arg(long, default_value = Policy::Compass.name(), value_parser = policy())]
    pub(super) policy: Policy,
    #[command(flatten)]
    pub(super) backend: BackendArg,
    /// The seed of the policy `random`
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// When the compass policies compact by moving running instances
    #[arg(long, default_value = Trigger::EveryEvent.name(), value_parser = trigger())]
    pub(super) compact: Trigger,
    /// The most instances that an event may move; 0 moves nothing [default: no limit]
    #[arg(long, value_name = "K")]
    pub(super) migration_budget: Option<u32>,
    /// Write the cluster as it is afterwards, once everything else went well
    #[arg(long, value_name = "FILE")]
    pub(super) snapshot_out: Option<PathBuf>,
    /// Jobs that are ranked together; never changes a result
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) window: u32,
    /// Press a trace together until the free GPUs are loaded to this share
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) load: Option<u32>,
    /// Stop after this many lines of the queue, to look at the cluster in the middle of a trace
    #[arg(long, value_name = "N")]
    pub(super) first: Option<usize>,
}

/// `audit`.
#[derive(Debug, ClapArgs)]
pub(super) struct AuditArgs {
    #[command(flatten)]
    pub(super) cluster: ClusterArg,
    /// Exit with 3 if there are more avoidable partial nodes than this
    #[arg(long, value_name = "N")]
    pub(super) max_sif_nodes: Option<u64>,
}

/// `phi-star`.
#[derive(Debug, ClapArgs)]
pub(super) struct PhiStarArgs {
    /// GPUs a node, 1 to 16
    #[arg(long, value_name = "GPUS", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(super) capacity: u8,
    /// How many instances of each size, as in 1:10,3:4,5:2; may be empty
    #[arg(long, value_name = "SIZE:COUNT,…")]
    pub(super) demand: String,
}

/// `generate`.
#[derive(Debug, Subcommand)]
pub(super) enum GenerateCommand {
    /// A cluster snapshot, as --cluster reads it
    #[command(after_long_help = help::GENERATE_CLUSTER)]
    Cluster(GenerateClusterArgs),
    /// A queue, as --queue reads it
    #[command(after_long_help = help::GENERATE_QUEUE)]
    Queue(GenerateQueueArgs),
    /// A trace, as simulate --trace reads it
    #[command(after_long_help = help::GENERATE_TRACE)]
    Trace(GenerateTraceArgs),
}

/// What everything that is made has.
#[derive(Debug, ClapArgs)]
pub(super) struct SeedArgs {
    /// The same seed makes the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// How common instances of each size are
    #[arg(long, default_value = Mix::Gfs.name(), value_parser = mix())]
    pub(super) mix: Mix,
}

/// `generate cluster`.
#[derive(Debug, ClapArgs)]
pub(super) struct GenerateClusterArgs {
    /// All its GPUs, 8 a node
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=help::MOST))]
    pub(super) gpus: u64,
    #[command(flatten)]
    pub(super) seed: SeedArgs,
    /// The share of GPUs that running jobs hold
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(super) busy: u32,
    /// Running jobs lie at random, instead of one size a node
    #[arg(long)]
    pub(super) scattered: bool,
    /// Nodes in an NVLink domain
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) domain_nodes: u32,
    /// Nodes in a rack
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rack_nodes: u32,
}

/// `generate queue`.
#[derive(Debug, ClapArgs)]
pub(super) struct GenerateQueueArgs {
    /// The number of jobs
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=help::MOST))]
    pub(super) jobs: u64,
    /// The GPUs that the jobs are to load
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=help::MOST))]
    pub(super) gpus: u64,
    /// The share of them that the jobs ask for at a time
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) load: u32,
    /// Jobs never leave
    #[arg(long)]
    pub(super) no_removals: bool,
    #[command(flatten)]
    pub(super) seed: SeedArgs,
    /// The most instances of a job; also at most a quarter of the GPUs
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) largest_gang: u32,
    /// The share of gangs that must lie in one rack
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(super) within_rack: u32,
    /// Milli-cores that a job asks for each GPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(super) cpu_milli: u32,
    /// MiB that a job asks for each GPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=16_000_000))]
    pub(super) memory_mib: u32,
}

/// `generate trace`.
#[derive(Debug, ClapArgs)]
pub(super) struct GenerateTraceArgs {
    /// The number of jobs
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=help::MOST))]
    pub(super) jobs: u64,
    /// The GPUs that the jobs are to load
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=help::MOST))]
    pub(super) gpus: u64,
    /// The share of them that the jobs ask for on average
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) load: u32,
    #[command(flatten)]
    pub(super) seed: SeedArgs,
    /// The most instances of a job; also at most a quarter of the GPUs
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) largest_gang: u32,
}

/// `stress`.
#[derive(Debug, ClapArgs)]
pub(super) struct StressArgs {
    /// GPUs of the cluster
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=help::MOST))]
    pub(super) gpus: u64,
    /// Jobs of the stream; each arrives, and leaves again
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=help::MOST))]
    pub(super) jobs: u64,
    #[command(flatten)]
    pub(super) seed: SeedArgs,
    /// Who decides
    #[arg(long, default_value = Policy::Compass.name(), value_parser = policy())]
    pub(super) policy: Policy,
    #[command(flatten)]
    pub(super) backend: BackendArg,
    /// The share of the GPUs that the jobs ask for at a time
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) load: u32,
}

/// `simulate`.
#[derive(Debug, ClapArgs)]
pub(super) struct SimulateArgs {
    /// A trace (JSONL, - for standard input, may be gzip'd), philly:FILE, or synthetic:JOBS[:SEED]
    #[arg(long, value_name = "TRACE")]
    pub(super) trace: String,
    /// Who schedules, one run each: a policy of place, compass:TRIGGER, compass-paper:TRIGGER, or sif-opt
    #[arg(long, value_name = "P,P,…", value_delimiter = ',', default_value = "compass,best-fit")]
    pub(super) policy: Vec<String>,
    /// When the compass policies compact, where the policy names no trigger
    #[arg(long, default_value = Trigger::EveryEvent.name(), value_parser = trigger())]
    pub(super) compact: Trigger,
    /// The most instances that an event may move; 0 moves nothing [default: no limit]
    #[arg(long, value_name = "K")]
    pub(super) migration_budget: Option<u32>,
    /// As many 8-GPU nodes as hold the trace's own demand for this share of its time [default: 0.90]
    #[arg(long, value_name = "SHARE", group = "size")]
    pub(super) eta: Option<Share>,
    /// This many 8-GPU nodes
    #[arg(long, value_name = "N", group = "size", value_parser = clap::value_parser!(u64).range(1..=help::MOST / 8))]
    pub(super) nodes: Option<u64>,
    /// A snapshot, alibaba-2026:FILE, or synthetic:GPUS[:SEED]; what runs there leaves after its remaining_s, or never
    #[arg(long, value_name = "CLUSTER", group = "size")]
    pub(super) cluster: Option<String>,
    /// Where the time ends that --eta looks at: with the last job that would end, or at the last submission
    #[arg(long, default_value = "last-end", value_parser = until())]
    pub(super) until: Until,
    /// Only the jobs that are submitted in this day of the trace, from 0
    #[arg(long, value_name = "K", conflicts_with = "window")]
    pub(super) day: Option<u32>,
    /// Only the jobs that are submitted in these seconds of the trace, the last excluded
    #[arg(long, value_name = "FROM..TO", value_parser = seconds_range)]
    pub(super) window: Option<(u64, u64)>,
    /// Seconds for which a running job pauses when an event moves it
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(0..=1 << 32))]
    pub(super) move_cost: u64,
    /// In which order jobs start
    #[arg(long, default_value = Discipline::Fifo.name(), value_parser = discipline())]
    pub(super) discipline: Discipline,
    /// The seed of the policy `random`
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// The share of the cluster's GPUs (with --eta, of 1,000) that a synthetic trace asks for on average
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) load: u32,
    /// How common instances of each size are in a synthetic trace
    #[arg(long, default_value = Mix::Gfs.name(), value_parser = mix())]
    pub(super) mix: Mix,
    /// Write how things stood at every time (CSV, a row for each interval in which nothing happened)
    #[arg(long, value_name = "FILE")]
    pub(super) series: Option<PathBuf>,
}

/// `verify`.
#[derive(Debug, ClapArgs)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    pub(super) backend: BackendArg,
    /// The seed of the clusters and candidates
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// How many clusters are tried
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) rounds: u32,
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

fn policy() -> impl TypedValueParser<Value = Policy> {
    PossibleValuesParser::new(Policy::ALL.map(Policy::name)).try_map(|word| word.parse::<Policy>())
}

fn backend() -> impl TypedValueParser<Value = Choice> {
    let find = |word: String| Choice::ALL.into_iter().find(|choice| choice.name() == word);
    PossibleValuesParser::new(Choice::ALL.map(Choice::name)).map(move |word| find(word).unwrap_or_default())
}

fn mix() -> impl TypedValueParser<Value = Mix> {
    PossibleValuesParser::new(Mix::ALL.map(Mix::name)).map(|word| Mix::from_name(&word).unwrap_or_default())
}

fn trigger() -> impl TypedValueParser<Value = Trigger> {
    PossibleValuesParser::new(Trigger::ALL.map(Trigger::name)).map(|word| Trigger::from_name(&word).unwrap_or_default())
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

/// `FROM..TO`, two integers, the first below the second.
fn seconds_range(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    parts.filter(|(from, to)| from < to).ok_or_else(|| "expected FROM..TO, two integers, FROM below TO".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_declarations_are_sound() {
        Args::command().debug_assert();
    }
}
