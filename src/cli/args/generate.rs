//! What may be written after `generate`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Subcommand};

use super::{SeedArgs, help, integer};
use crate::workload::synthetic::Arrivals;

/// `generate`.
#[derive(Debug, Subcommand)]
pub(in super::super) enum GenerateCommand {
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

/// `generate cluster`.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct GenerateClusterArgs {
    /// All its GPUs, 8 a node
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = integer::<u64>(1..=help::MOST))]
    pub(in super::super) gpus: u64,
    #[command(flatten)]
    pub(in super::super) seed: SeedArgs,
    /// The share of GPUs that running jobs hold
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = integer::<u32>(0..=100))]
    pub(in super::super) busy: u32,
    /// Running jobs lie at random, instead of one size a node
    #[arg(long)]
    pub(in super::super) scattered: bool,
    /// Nodes in an NVLink domain
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = integer::<u32>(1..))]
    pub(in super::super) domain_nodes: u32,
    /// Nodes in a rack
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = integer::<u32>(1..))]
    pub(in super::super) rack_nodes: u32,
}

/// `generate queue`.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct GenerateQueueArgs {
    /// The jobs of a trace (such as openb:FILE), in random order and repeated, instead of synthetic ones; none leaves
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["jobs", "load", "no_removals", "mix", "largest_gang", "within_rack", "cpu_milli", "memory_mib"])]
    pub(in super::super) from: Option<String>,
    /// The share of --gpus that they ask for in the end
    #[arg(long, value_name = "PERCENT", requires = "from", default_value_t = 100, value_parser = integer::<u32>(1..=1000))]
    pub(in super::super) inflate: u32,
    /// The number of jobs
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = integer::<u64>(1..=help::MOST))]
    pub(in super::super) jobs: u64,
    /// The GPUs that the jobs are to load
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = integer::<u64>(1..=help::MOST))]
    pub(in super::super) gpus: u64,
    /// The share of them that the jobs ask for at a time
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = integer::<u32>(1..=1000))]
    pub(in super::super) load: u32,
    /// Jobs never leave
    #[arg(long)]
    pub(in super::super) no_removals: bool,
    #[command(flatten)]
    pub(in super::super) seed: SeedArgs,
    /// The most instances of a job; also at most a quarter of the GPUs
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = integer::<u32>(1..))]
    pub(in super::super) largest_gang: u32,
    /// The share of gangs that must lie in one rack
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = integer::<u32>(0..=100))]
    pub(in super::super) within_rack: u32,
    /// Milli-cores that a job asks for each GPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = integer::<u32>(0..=1_000_000))]
    pub(in super::super) cpu_milli: u32,
    /// MiB that a job asks for each GPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = integer::<u32>(0..=16_000_000))]
    pub(in super::super) memory_mib: u32,
}

/// `generate trace`.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct GenerateTraceArgs {
    /// The number of jobs
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = integer::<u64>(1..=help::MOST))]
    pub(in super::super) jobs: u64,
    /// The GPUs that the jobs are to load
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = integer::<u64>(1..=help::MOST))]
    pub(in super::super) gpus: u64,
    /// The share of them that the jobs ask for on average
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = integer::<u32>(1..=1000))]
    pub(in super::super) load: u32,
    /// How the rate of arrivals varies
    #[arg(long, default_value = Arrivals::Poisson.name(), value_parser = arrivals())]
    pub(in super::super) arrivals: Arrivals,
    #[command(flatten)]
    pub(in super::super) seed: SeedArgs,
    /// The most instances of a job; also at most a quarter of the GPUs
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = integer::<u32>(1..))]
    pub(in super::super) largest_gang: u32,
}

fn arrivals() -> impl TypedValueParser<Value = Arrivals> {
    PossibleValuesParser::new(Arrivals::ALL.map(Arrivals::name))
        .map(|word| Arrivals::from_name(&word).unwrap_or_default())
}
