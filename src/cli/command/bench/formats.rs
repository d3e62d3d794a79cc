//! Bytes a second of the readers and writers, beside a plain copy of the same bytes.

use std::hint::black_box;
use std::io::Cursor;

use super::super::Failure;
use super::{BenchRow, SEED, Size, USUAL_GPUS, best, row};
use crate::anchor::State;
use crate::decide::{CommitLoop, PlaceOptions};
use crate::formats::{read_cluster_from, read_queue_from, write_cluster, write_queue};
use crate::report::decision_json;
use crate::workload::synthetic::{ClusterOptions, StreamOptions, synthetic_cluster, synthetic_queue};

pub(super) fn measure(size: &Size, rows: &mut Vec<BenchRow>) -> Result<(), Failure> {
    let gpus = size.gpus.iter().copied().filter(|&gpus| gpus <= USUAL_GPUS).max().unwrap_or(USUAL_GPUS);
    let bad = |error: crate::cluster::BuildError| Failure::Failed(error.into());
    let cluster = synthetic_cluster(&ClusterOptions { gpus, seed: SEED, ..ClusterOptions::default() }).map_err(bad)?;
    let mut with_jobs = cluster.clone();
    let stream = StreamOptions { jobs: size.jobs, seed: SEED, gpus, ..StreamOptions::default() };
    let queue = synthetic_queue(&mut with_jobs, &stream).map_err(bad)?;

    let (mut snapshot, mut lines) = (Vec::new(), Vec::new());
    let write = best(size.passes, || {
        snapshot.clear();
        write_cluster(&cluster, None, &mut snapshot)
    });
    push(rows, "write_cluster", gpus, &snapshot, write.map_err(|error| Failure::Failed(error.into()))?);
    let read =
        best(size.passes, || read_cluster_from("bench", Cursor::new(&snapshot)).map(|read| drop(black_box(read))));
    push(rows, "read_cluster", gpus, &snapshot, read?);
    let write = best(size.passes, || {
        lines.clear();
        write_queue(&with_jobs, &queue, &mut lines)
    });
    push(rows, "write_queue", gpus, &lines, write.map_err(|error| Failure::Failed(error.into()))?);
    let read = best(size.passes, || {
        let mut cluster = cluster.clone();
        read_queue_from("bench", Cursor::new(&lines), &mut cluster).map(|read| drop(black_box(read)))
    });
    push(rows, "read_queue", gpus, &lines, read?);

    let mut state = State::new(with_jobs);
    let mut decisions = Vec::new();
    let mut commit_loop = CommitLoop::new(&mut state, PlaceOptions::default());
    commit_loop.run(&queue, &mut |decision| decisions.push(decision.clone()));
    drop(commit_loop);
    lines.clear();
    let write = best(size.passes, || {
        lines.clear();
        decisions.iter().try_for_each(|decision| decision_json(&mut lines, state.cluster(), decision))
    });
    push(rows, "write_decisions", gpus, &lines, write?);
    Ok(())
}

fn push(rows: &mut Vec<BenchRow>, what: &str, gpus: u64, bytes: &[u8], seconds: f64) {
    let mut copy = vec![0; bytes.len()];
    let copying: Result<f64, std::convert::Infallible> = best(3, || {
        copy.copy_from_slice(black_box(bytes));
        black_box(&copy);
        Ok(())
    });
    let (speed, Ok(copying)) = (bytes.len() as f64 / seconds, copying);
    let limit = bytes.len() as f64 / copying;
    rows.push(BenchRow {
        gpus: Some(gpus),
        bytes_per_s: Some(speed),
        limit_bytes_per_s: Some(limit),
        of_limit: Some(speed / limit),
        ..row(what, "", 1, speed / 1e6, "MB/s")
    });
}
