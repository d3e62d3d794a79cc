//! How things stood over time, as CSV.

use crate::cluster::WHOLE_GPU;
use crate::simulate::{Interval, Minute};

/// The header of a series.
pub const SERIES_HEADER: &str =
    "policy,from_s,to_s,running,waiting,busy_gpus,n_sif,empty_nodes,wcc,fragmented,lacking,waiting_gpus\n";

/// Appends a row of a series: how things stood in one interval. `wcc`, `fragmented` and `lacking` are 1 or 0, `wcc` is
/// empty where it has no meaning. `waiting_gpus` is what the waiting jobs ask for, shares summed, and the sum rounded up.
pub fn append_series_row(out: &mut Vec<u8>, policy: &str, interval: &Interval) {
    let &Interval { from, to, running, waiting, busy_gpus, n_sif, empty_nodes, .. } = interval;
    let waiting_gpus = interval.waiting_milli.div_ceil(u64::from(WHOLE_GPU));
    let wcc = interval.wcc.map_or("", |holds| if holds { "1" } else { "0" });
    let (fragmented, lacking) = (u8::from(interval.fragmented), u8::from(interval.lacking));
    let row = format!(
        "{policy},{from},{to},{running},{waiting},{busy_gpus},{n_sif},{empty_nodes},{wcc},{fragmented},{lacking},\
         {waiting_gpus}\n"
    );
    out.extend_from_slice(row.as_bytes());
}

/// The header of a series by minutes.
pub const MINUTES_HEADER: &str =
    "policy,time_s,seconds,total_gpus,running_job_s,waiting_job_s,busy_gpu_s,n_sif_node_s,empty_node_s\n";

/// Appends a row of a series by minutes. The sums are exact; each divided by `seconds` is the mean over the minute.
pub fn append_minute_row(out: &mut Vec<u8>, policy: &str, total_gpus: u64, minute: &Minute) {
    let Minute { time, seconds, running, waiting, busy_gpus, n_sif, empty_nodes } = minute;
    let row = format!("{policy},{time},{seconds},{total_gpus},{running},{waiting},{busy_gpus},{n_sif},{empty_nodes}\n");
    out.extend_from_slice(row.as_bytes());
}
