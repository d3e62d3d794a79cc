//! `generate`: clusters, queues and traces from a seed.

use super::super::args::{GenerateClusterArgs, GenerateQueueArgs, GenerateTraceArgs, ProcessorsArg};
use super::super::input;
use super::{Failure, Options, Output, Talk};
use crate::cluster::Cluster;
use crate::formats::{FormatError, write_cluster, write_queue, write_trace};
use crate::workload::synthetic::{ClusterOptions, StreamOptions, synthetic_cluster, synthetic_queue, synthetic_trace};
use crate::workload::{Inflation, Queue, QueueEntry, inflate};

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
    if let Some(origin) = &args.from {
        return inflated_queue(args, origin, options, talk);
    }
    let made = StreamOptions {
        jobs: args.jobs,
        seed: args.seed.seed,
        mix: args.seed.mix,
        gpus: args.gpus,
        load_percent: args.load,
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

/// The jobs of a trace until they ask for a share of the GPUs.
fn inflated_queue(args: &GenerateQueueArgs, origin: &str, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let jobs = input::jobs(origin, args.gpus, ProcessorsArg::default(), talk)?;
    let inflation = Inflation { gpus: args.gpus, percent: args.inflate, seed: args.seed.seed };
    let mut cluster = Cluster::default();
    let mut queue = Queue::new();
    for job in inflate(&jobs, &inflation) {
        let id = job.register(&mut cluster).map_err(|error| Failure::from(FormatError::new(origin, error)))?;
        queue.push(QueueEntry::Submit(id));
    }
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
