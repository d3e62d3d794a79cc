//! `score`: candidate placements of queued jobs, each judged on the cluster as it is.

mod resolve;

use rustc_hash::FxHashMap;

use super::super::args::{Format, ScoreArgs, TraceArgs};
use super::super::input;
use super::{Failure, Options, Output, Talk, open_backend, write_all};
use crate::anchor::State;
use crate::cluster::{Cluster, PerSize};
use crate::evaluate::{Batch, BatchBuilder, NodeRows, PoolChange, Scores};
use crate::formats::{FormatError, read_candidates};
use crate::fragmentation::{NodeKind, PoolFragmentation, node_kind};
use crate::report::ScoreRows;

/// Written at a time.
const CHUNK: usize = 64 << 10;

pub(super) fn run(args: &ScoreArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let mut cluster = input::cluster(&args.cluster.cluster, talk)?.cluster;
    let queue = input::queue(&args.queue, &mut cluster, TraceArgs::default(), talk)?;
    let specs = read_candidates(&args.candidates)?;
    if let Some(spec) = specs.iter().find(|spec| cluster.find_grouped_job(&spec.job).is_some()) {
        let text = format!(
            "found a candidate for the job \"{}\" of several groups, which are not scored, expected a job of one",
            spec.job
        );
        return Err(FormatError::new(&args.candidates, text).at_line(spec.line).at_place("job").into());
    }
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

/// ΔΦ* of changes to what runs in the pools, each worked out once.
struct PhiChanges {
    pools: Vec<PoolFragmentation>,
    known: FxHashMap<(u32, PerSize<i64>), i64>,
}

impl PhiChanges {
    fn new(cluster: &Cluster) -> Self {
        let state = State::new(cluster.clone());
        let pools = state.pools().iter().map(|pool| pool.fragmentation().clone()).collect();
        Self { pools, known: FxHashMap::default() }
    }

    fn delta(&mut self, changes: &[PoolChange]) -> i64 {
        let mut sum = 0;
        for change in changes {
            let pool = &mut self.pools[change.pool.index()];
            sum += *self.known.entry((change.pool.0, change.delta)).or_insert_with(|| phi_change(pool, &change.delta));
        }
        sum
    }
}

fn phi_change(pool: &mut PoolFragmentation, delta: &PerSize<i64>) -> i64 {
    let before = pool.phi_star() as i64;
    let mut apply = |sign: i64| {
        for (gpus, &n) in (0u8..).zip(delta) {
            match n * sign {
                n if n > 0 => pool.add(gpus, n as u64),
                n if n < 0 => pool.remove(gpus, n.unsigned_abs()),
                _ => {}
            }
        }
        pool.phi_star() as i64
    };
    let after = apply(1);
    apply(-1);
    after - before
}
