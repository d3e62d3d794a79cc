//! A job of shares that fits as things are: the one thing that the programs, which see whole devices, cannot tell.

use super::layout::Rules;
use super::question::Plan;
use super::site::Site;
use super::ways::Way;
use crate::cluster::{Cluster, Edit, GpuMask, JobId, NodeId};

/// The plan without a move for a job of shares, if it fits as things are: into the first part of the cluster that holds it,
/// beside other shares first. `None` for any other job, and where it does not fit. O(nodes + instances).
pub(super) fn plan_without_moves(site: &Site<'_>) -> Option<Plan> {
    let job = site.job().filter(|_| site.guest_is_share())?;
    site.spots(Rules::ALL).into_iter().find_map(|spot| {
        let nodes = spot.inside.unwrap_or_else(|| site.cluster.node_ids().collect());
        let (after, place) = seat(site.cluster, job, nodes)?;
        Some(Plan {
            feasible: Some(true),
            optimal: true,
            second_optimal: true,
            jobs_optimal: true,
            lower_bound: Some(0),
            ways: vec![Way { steps: Vec::new(), place: place.clone() }],
            place,
            after: Some(after),
            ..Plan::default()
        })
    })
}

/// All instances of a job of shares on these nodes. The instances are alike, so node after node each takes what it can.
fn seat(cluster: &Cluster, job: JobId, mut nodes: Vec<NodeId>) -> Option<(Cluster, Vec<(NodeId, GpuMask)>)> {
    let request = cluster.request_of(job);
    nodes.retain(|&node| cluster.admits(node, request));
    nodes.sort_by_key(|&node| (cluster.room_on_shared(node, request.gpu_milli) == 0, node));
    let mut after = cluster.clone();
    if !after.number_instances(job) {
        return None;
    }
    let mut place = Vec::new();
    let mut nodes = nodes.into_iter().peekable();
    for instance in after.instances_of(job) {
        loop {
            let node = *nodes.peek()?;
            let gpus = after.device_for_share(node, request.gpu_milli);
            if let Some(gpus) = gpus.filter(|_| after.has_cpu_and_memory(node, request))
                && after.apply_one(Edit::Take { instance, node, gpus }).is_ok()
            {
                place.push((node, gpus));
                break;
            }
            nodes.next();
        }
    }
    Some((after, place))
}
