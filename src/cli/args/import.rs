//! What may be written after `import`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::help;
use crate::formats::TopologyKeys;

/// `import`.
#[derive(Debug, Subcommand)]
pub(in super::super) enum ImportCommand {
    /// What kubectl get nodes,pods -A prints, JSON or YAML
    #[command(after_long_help = help::IMPORT_KUBERNETES)]
    Kubernetes(ImportKubernetesArgs),
    /// What scontrol, squeue and sinfo print
    #[command(after_long_help = help::IMPORT_SLURM)]
    Slurm(ImportSlurmArgs),
}

impl ImportCommand {
    /// The files of the dump.
    pub(in super::super) fn files(&self) -> &[String] {
        match self {
            ImportCommand::Kubernetes(args) => &args.files,
            ImportCommand::Slurm(args) => &args.files,
        }
    }

    /// Where the waiting jobs go.
    pub(in super::super) fn queue_out(&self) -> Option<&PathBuf> {
        match self {
            ImportCommand::Kubernetes(args) => args.queue.queue_out.as_ref(),
            ImportCommand::Slurm(args) => args.queue.queue_out.as_ref(),
        }
    }
}

/// Where the waiting jobs of a dump go.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct QueueOutArg {
    /// Write the waiting jobs as a queue, as --queue reads it
    #[arg(long, value_name = "FILE")]
    pub(in super::super) queue_out: Option<PathBuf>,
}

/// `import kubernetes`.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct ImportKubernetesArgs {
    /// The files of one dump, in any order (- for standard input, may be gzip'd)
    #[arg(required = true, value_name = "FILE")]
    pub(in super::super) files: Vec<String>,
    #[command(flatten)]
    pub(in super::super) queue: QueueOutArg,
    /// The labels that say where a node is, outermost first, or topograph, nvidia, cloud or none [default: the first of
    /// these sets that a node has a label of]
    #[arg(long, value_name = "LABEL,…")]
    pub(in super::super) topology_keys: Option<TopologyKeys>,
}

/// `import slurm`.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct ImportSlurmArgs {
    /// The files of one dump, in any order (- for standard input, may be gzip'd)
    #[arg(required = true, value_name = "FILE")]
    pub(in super::super) files: Vec<String>,
    #[command(flatten)]
    pub(in super::super) queue: QueueOutArg,
}
