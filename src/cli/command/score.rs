//! `score`: candidate placements of queued jobs, each judged on the cluster as it is.

use super::super::args::{Format, ScoreArgs, TraceArgs};
use super::super::input;
use super::{Failure, Options, Output, Talk, open_backend, write_all};
use crate::anchor::State;
use crate::evaluate::{Batch, BatchBuilder, NodeRows, PhiChanges, Scores, empty_nodes};
use crate::formats::{FormatError, read_candidates};
use crate::report::ScoreRows;
use crate::serve::resolve_candidates;

/// Written at a time.
const CHUNK: usize = 64 << 10;

pub(super) fn run(args: &ScoreArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let mut cluster = input::cluster(&args.cluster.cluster, args.cluster.keys(), talk)?.cluster;
    let queue = input::queue(&args.queue, args.cluster.keys(), &mut cluster, TraceArgs::default(), talk)?;
    let specs = read_candidates(&args.candidates)?;
    if let Some(spec) = specs.iter().find(|spec| cluster.find_grouped_job(&spec.job).is_some()) {
        let text = format!(
            "found a candidate for the job \"{}\" of several groups, which are not scored, expected a job of one",
            spec.job
        );
        return Err(FormatError::new(&args.candidates, text).at_line(spec.line).at_place("job").into());
    }
    let mut backend = open_backend(&args.evaluate, options, talk)?;
    let sets = resolve_candidates(&cluster, &queue, &specs);
    let mut phi = PhiChanges::new(&State::new(cluster.clone()));
    let mut batch = Batch::default();
    BatchBuilder::new().build(&cluster, &sets, &mut |changes| phi.delta(changes), &mut batch)?;
    drop(sets);
    backend.load(&NodeRows::of(&cluster)?)?;
    let mut scores = Scores::default();
    backend.evaluate(&batch, &mut scores)?;
    let rows = ScoreRows::new(&specs, &batch, &scores, empty_nodes(&cluster));
    if options.format == Format::Table {
        return write_all(options, rows.table().as_bytes());
    }
    let mut output = Output::open(options.out.as_deref())?;
    let mut bytes = Vec::with_capacity(CHUNK * 2);
    for index in 0..rows.len() {
        rows.append_json(&mut bytes, index)?;
        if bytes.len() >= CHUNK {
            output.write(&bytes)?;
            bytes.clear();
        }
        if output.is_closed() {
            break;
        }
    }
    output.write(&bytes)?;
    output.finish()
}
