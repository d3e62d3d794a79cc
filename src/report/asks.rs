//! What a job asks for and why it does not get it, in a few words.

use super::number::{asked, grouped};
use crate::cluster::{Cluster, JobId};

/// What a job asks for, as in `4 × 8`, or `1 × 0 + 4 × 8` of one of several groups.
pub fn asks(cluster: &Cluster, job: JobId) -> String {
    let group = |id: JobId| {
        let (instances, request) = (cluster.job(id).instances(), cluster.request_of(id));
        format!("{} × {}", grouped(instances), asked(request.gpus, request.gpu_milli))
    };
    cluster.whole_job(job).map(group).collect::<Vec<_>>().join(" + ")
}

/// A reason, and that it is not proved where somebody has looked for a proof.
pub fn refusal_text(why: &str, proven: Option<bool>) -> String {
    if proven == Some(false) { format!("{why} (not proven)") } else { why.to_owned() }
}
