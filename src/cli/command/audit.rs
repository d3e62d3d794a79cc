//! `audit`: how fragmented a cluster is.

use super::super::args::{AuditArgs, Format};
use super::super::input;
use super::{Failure, Options, Talk, write_all};
use crate::anchor::State;
use crate::decide::audit;
use crate::report;

pub(super) fn run(args: &AuditArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let snapshot = input::cluster(&args.cluster.cluster, talk)?;
    let mut state = State::new(snapshot.cluster);
    let audit = audit(&mut state);
    let mut bytes = Vec::new();
    match options.format {
        Format::Json => report::audit_json(&mut bytes, state.cluster(), &audit)?,
        Format::Table => bytes.extend(report::audit_table(state.cluster(), &audit).bytes()),
    }
    write_all(options, &bytes)?;
    match args.max_sif_nodes {
        Some(most) if i128::from(audit.total.n_sif()) > i128::from(most) => Err(Failure::Threshold(anyhow::anyhow!(
            "found {} avoidable partial nodes, expected at most {most}",
            audit.total.n_sif()
        ))),
        _ => Ok(()),
    }
}
