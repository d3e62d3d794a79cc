//! What holds for every trace, whatever it was read from.

use slotwise::cluster::Cluster;
use slotwise::formats::{FormatError, Trace};
use slotwise::workload::{natural, replay, trace_to_queue};

/// Holds a trace that was read against the laws; a fault must have a line.
pub fn check(read: Result<Trace, FormatError>) {
    let trace = match read {
        Ok(trace) => trace,
        Err(error) => return assert!(error.line().is_some(), "{error}"),
    };
    let left_out = trace.report.left_out.values().sum::<u64>();
    assert_eq!(trace.report.rows, trace.jobs.len() as u64 + left_out);
    assert!(trace.jobs.is_sorted_by_key(|job| job.submit_s));
    let jobs = trace.jobs;
    let events = natural(&jobs);
    assert_eq!(events.len(), jobs.len() + jobs.iter().filter(|job| job.leaves()).count());
    assert!(replay(&jobs, 100, 95).len() <= events.len());
    // Names that are there twice, or amounts that cannot be, would be refused here.
    trace_to_queue(&jobs, &events, &mut Cluster::default()).unwrap();
}

/// A small cluster on which something runs, for what needs one.
pub fn cluster() -> Cluster {
    let text = include_bytes!("../../tests/golden/cluster.json");
    slotwise::formats::read_cluster_from("cluster.json", &text[..]).unwrap().cluster
}
