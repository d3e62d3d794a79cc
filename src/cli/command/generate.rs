//! `generate`: clusters, queues and traces from a seed.

use super::super::args::{GenerateClusterArgs, GenerateQueueArgs, GenerateTraceArgs};
use super::{Failure, Options, Output, Talk};
use crate::cluster::Cluster;
use crate::formats::{write_cluster, write_queue, write_trace};
use crate::workload::synthetic::{
    Arrivals, ClusterOptions, StreamOptions, synthetic_cluster, synthetic_queue, synthetic_trace,
};

pub(super) fn cluster(args: &GenerateClusterArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let made = ClusterOptions {
        gpus: args.gpus,
        seed: args.seed.seed,
        mix: args.seed.mix,
        preload_percent: args.busy,
        tidy: !args.scattered,
        nodes_per_domain: args.domain_nodes,
        nodes_per_rack: args.rack_nodes,
    };
    let cluster = synthetic_cluster(&made).map_err(|error| Failure::Input(error.into()))?;
    talk.note(format_args!("seed {}", args.seed.seed));
    write(options, |out| write_cluster(&cluster, None, out))
}

pub(super) fn queue(args: &GenerateQueueArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let made = StreamOptions {
        jobs: args.jobs,
        seed: args.seed.seed,
        mix: args.seed.mix,
        gpus: args.gpus,
        load_percent: args.load,
        arrivals: Arrivals::Poisson,
        removals: !args.no_removals,
        largest_gang: args.largest_gang,
        within_percent: args.within_rack,
        cpu_milli_per_gpu: args.cpu_milli,
        memory_mib_per_gpu: args.memory_mib,
    };
    let mut cluster = Cluster::default();
    let queue = synthetic_queue(&mut cluster, &made).map_err(|error| Failure::Input(error.into()))?;
    talk.note(format_args!("seed {}", args.seed.seed));
    write(options, |out| write_queue(&cluster, &queue, out))
}

pub(super) fn trace(args: &GenerateTraceArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let jobs = synthetic_trace(&StreamOptions {
        jobs: args.jobs,
        seed: args.seed.seed,
        mix: args.seed.mix,
        gpus: args.gpus,
        load_percent: args.load,
        arrivals: args.arrivals,
        largest_gang: args.largest_gang,
        ..StreamOptions::default()
    });
    talk.note(format_args!("seed {}", args.seed.seed));
    write(options, |out| write_trace(&jobs, out))
}

fn write(options: &Options, write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> Result<(), Failure> {
    let mut output = Output::open(options.out.as_deref())?;
    output.pass(write)?;
    output.finish()
}
