//! `audit`: how fragmented a cluster is, and who waits for that.

use super::super::args::{AuditArgs, Format, TraceArgs};
use super::super::input;
use super::{Failure, Options, Talk, write_all};
use crate::anchor::State;
use crate::cluster::JobId;
use crate::decide::{Measure, audit};
use crate::report;
use crate::workload::submitted_jobs;

pub(super) fn run(args: &AuditArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    if args.queue.is_none()
        && let Some(threshold) = args.fail_above.iter().find(|threshold| threshold.measure == Measure::Pending)
    {
        return Err(Failure::input(format_args!("--fail-above: found {threshold} without --queue, expected both")));
    }
    let mut cluster = input::cluster(&args.cluster.cluster, args.cluster.keys(), talk)?.cluster;
    let waiting: Option<Vec<JobId>> = match &args.queue {
        None => None,
        Some(origin) => {
            let queue = input::queue(origin, args.cluster.keys(), &mut cluster, TraceArgs::default(), talk)?;
            Some(submitted_jobs(&queue, &cluster).collect())
        }
    };
    let mut state = State::new(cluster);
    let audit = audit(&mut state, waiting.as_deref());
    let mut bytes = Vec::new();
    match options.format {
        Format::Json => report::audit_json(&mut bytes, state.cluster(), &audit)?,
        Format::Table => bytes.extend(report::audit_table(state.cluster(), &audit).bytes()),
    }
    write_all(options, &bytes)?;
    if let Some(crossed) = args.fail_above.iter().find_map(|threshold| threshold.crossed(&audit)) {
        return Err(Failure::Threshold(anyhow::anyhow!(crossed)));
    }
    match args.max_sif_nodes {
        Some(most) if i128::from(audit.total.n_sif()) > i128::from(most) => Err(Failure::Threshold(anyhow::anyhow!(
            "found {} avoidable partial nodes, expected at most {most}",
            audit.total.n_sif()
        ))),
        _ => Ok(()),
    }
}
