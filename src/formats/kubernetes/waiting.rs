//! Pods that wait for a node.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::cluster::MAX_GPUS;

use super::super::dump::{Tally, WaitingGroup, WaitingJob};
use super::kinds::Allowed;
use super::pod::{PodRecord, Request};
use super::running::Running;
use super::topology::TopologyKeys;

/// The jobs of the pods that wait for a node: the highest priority first, then those made first.
pub(super) fn waiting(
    pods: &[PodRecord],
    running: &mut Running,
    keys: &TopologyKeys,
    tally: &mut Tally,
) -> Vec<WaitingJob> {
    let mut groups: Vec<Vec<&PodRecord>> = Vec::new();
    let mut by_gang = FxHashMap::default();
    for pod in pods.iter().filter(|pod| pod.node.is_empty() && !pod.ends) {
        match &pod.gang {
            Some(gang) => {
                let at = *by_gang.entry(gang).or_insert_with(|| {
                    groups.push(Vec::new());
                    groups.len() - 1
                });
                groups[at].push(pod);
            }
            None => groups.push(vec![pod]),
        }
    }
    groups.sort_by_key(|group| {
        let priority = group.iter().map(|pod| pod.priority).max();
        let created = group.iter().map(|pod| pod.created.as_str()).min();
        (Reverse(priority), created, group[0].name.as_str())
    });
    let mut jobs = Vec::with_capacity(groups.len());
    for group in groups {
        let name = group[0].gang.as_ref().map_or(&group[0].name, |gang| &gang.name).clone();
        match wish(&group, running, keys, &name, tally) {
            Ok(mut wish) => {
                let by = group[0].gang.as_ref().map_or("", |gang| gang.by);
                let free = running.names.take(name.clone(), by);
                if free != name {
                    tally.met("waiting jobs of a name that others have, such as the part of a gang that runs", &name);
                }
                if !by.is_empty() {
                    tally.met(format!("waiting jobs whose pods are one by {by}"), &free);
                }
                wish.name = free;
                jobs.push(wish);
            }
            Err(why) => tally.met(format!("waiting jobs that {why}, left out"), &name),
        }
    }
    jobs
}

/// What a group of pods wants, or why it is left out.
fn wish(
    group: &[&PodRecord],
    running: &Running,
    keys: &TopologyKeys,
    name: &str,
    tally: &mut Tally,
) -> Result<WaitingJob, &'static str> {
    for (is, why) in [
        (group.iter().any(|pod| pod.gated), "are held by a scheduling gate"),
        (group.iter().any(|pod| pod.request.parts > 0 || pod.fraction), "ask for parts of GPUs"),
        (group.iter().any(|pod| pod.asks_by_claim), "ask for devices by claims"),
        (group.iter().all(|pod| pod.request.gpus == 0), "need no GPU"),
    ] {
        if is {
            return Err(why);
        }
    }
    // A launcher needs no node with GPUs: where there may be others, what it needs can be had there.
    let elsewhere = running.nodes.is_empty() || running.others;
    let is_member = |pod: &&&PodRecord| {
        let goes_here = !elsewhere && matches!(running.kinds.allowed(pod), Allowed::These(_));
        pod.request.gpus > 0 || goes_here
    };
    let members: Vec<&&PodRecord> = group.iter().filter(is_member).collect();
    if members.len() < group.len() {
        tally.met("waiting jobs with pods that need no GPU, taken without these", name);
    }
    let mut groups: Vec<(Request, WaitingGroup)> = Vec::new();
    for pod in &members {
        let models = match running.kinds.allowed(pod) {
            Allowed::Nowhere if running.nodes.is_empty() => Vec::new(),
            Allowed::Nowhere => return Err("no node could take: product, labels or taints"),
            Allowed::Certain => return Err("ask for certain nodes"),
            Allowed::These(models) => models,
        };
        if let Some((_, alike)) = groups.iter_mut().find(|(asks, one)| *asks == pod.request && one.models == models) {
            alike.instances = alike.instances.saturating_add(1);
            continue;
        }
        let Request { gpus, cpu_milli, memory_mib, .. } = pod.request;
        let gpus = u8::try_from(gpus).ok().filter(|&gpus| usize::from(gpus) <= MAX_GPUS);
        let gpus = gpus.ok_or("ask for more than 16 GPUs a pod")?;
        groups.push((pod.request, WaitingGroup { instances: 1, gpus, cpu_milli, memory_mib, models }));
    }
    if groups.len() > 1 {
        tally.met("waiting jobs whose pods are unlike: several groups, which start together", name);
    }
    if members.iter().any(|pod| pod.near_or_far) {
        tally.met("waiting jobs with wishes about other pods (affinity, spread), taken without", name);
    }
    let bond = members.iter().find_map(|pod| pod.together.as_deref()).map(|key| keys.within(key));
    if bond == Some(None) {
        tally.met("waiting jobs that must share a level that is neither domain nor rack here, taken without", name);
    }
    let groups = groups.into_iter().map(|(_, group)| group).collect();
    Ok(WaitingJob { name: String::new(), groups, within: bond.flatten() })
}
