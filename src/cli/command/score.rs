//! `score`: candidate placements of queued jobs, each judged on the cluster as it is.

mod resolve;

use super::super::args::{Format, ScoreArgs, TraceArgs};
use super::super::input;
use super::{Failure, Options, Output, Talk, open_backend, write_all};
use crate::cluster::Cluster;
use crate::evaluate::{Batch, BatchBuilder, NodeRows, PhiChanges, Scores};
use crate::formats::read_candidates;
use crate::fragmentation::{NodeKind, node_kind};
use crate::report::ScoreRows;

/// Written at a time.
const CHUNK: usize = 64 << 10;

pub(super) fn run(args: &ScoreArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let mut cluster = input::cluster(&args.cluster.cluster, talk)?.cluster;
    let queue = input::queue(&args.queue, &mut cluster, TraceArgs::default(), talk)?;
    let specs = read_candidates(&args.candidates)?;
    let mut backend = open_backend(&args.evaluate, options, talk)?;
    let sets = resolve::candidates(&cluster, &queue, &specs);
    let mut phi = PhiChanges::new(&cluster);
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

fn empty_nodes(cluster: &Cluster) -> u64 {
    let kinds = cluster.nodes().iter().map(|node| node_kind(node.composition().busy(), node.capacity()));
    kinds.filter(|&kind| kind == NodeKind::Empty).count() as u64
}
