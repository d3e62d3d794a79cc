//! Jobs of several groups, for the planner, which knows jobs of one.

use crate::cluster::{BuildError, Cluster, GroupedJob, JobId, JobSpec, Request};

/// Registers a job that is at least as hard to place as the groups with GPUs together, if they ask for the same
/// GPUs: one group, with the most CPU and memory of each. Groups without GPUs are left out.
///
/// # Errors
/// If its name, `NAME (as one group)`, is taken, or there are too many names.
pub fn as_one_group(cluster: &mut Cluster, groups: GroupedJob) -> Result<Option<JobId>, BuildError> {
    let with_gpus: Vec<JobId> = groups.jobs().filter(|&job| cluster.request_of(job).gpus > 0).collect();
    let Some(&first) = with_gpus.first() else { return Ok(None) };
    let request = cluster.request_of(first).clone();
    let requests = || with_gpus.iter().map(|&job| cluster.request_of(job));
    let alike = |other: &Request| {
        (other.gpus, other.gpu_milli, &other.models) == (request.gpus, request.gpu_milli, &request.models)
    };
    if !requests().all(alike) {
        return Ok(None);
    }
    let name = cluster.whole_job_name(first);
    let name = format!("{name} (as one group)");
    let instances = with_gpus.iter().map(|&job| cluster.job(job).instances()).fold(0, u32::saturating_add);
    let models: Vec<String> =
        request.models.iter().flatten().map(|&model| cluster.model_name(model).to_owned()).collect();
    let models: Vec<&str> = models.iter().map(String::as_str).collect();
    let spec = JobSpec {
        name: &name,
        gpus: request.gpus,
        gpu_milli: request.gpu_milli,
        cpu_milli: requests().map(|request| request.cpu_milli).max().unwrap_or(0),
        memory_mib: requests().map(|request| request.memory_mib).max().unwrap_or(0),
        models: &models,
        within: request.within,
        ..JobSpec::default()
    };
    cluster.register(&spec, instances).map(Some)
}
