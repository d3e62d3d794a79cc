//! Pods that wait for a node.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::cluster::MAX_GPUS;

use super::super::dump::{Tally, WaitingJob};
use super::kinds::Allowed;
use super::pod::PodRecord;
use super::running::{Running, within};
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
    // A launcher needs no node with GPUs; what it needs can be had elsewhere.
    let members: Vec<&&PodRecord> = group.iter().filter(|pod| pod.request.gpus > 0).collect();
    if members.len() < group.len() {
        tally.met("waiting jobs with pods that need no GPU, taken without these", name);
    }
    let first = members[0];
    if members.iter().any(|pod| pod.request.gpus != first.request.gpus) {
        return Err("have pods with unlike numbers of GPUs, which a queue has no words for yet");
    }
    if members.iter().any(|pod| pod.request != first.request) {
        tally.met("waiting jobs whose pods ask for unlike CPU and memory: the most of each for all", name);
    }
    let gpus = u8::try_from(first.request.gpus).ok().filter(|&gpus| usize::from(gpus) <= MAX_GPUS);
    let gpus = gpus.ok_or("ask for more than 16 GPUs a pod")?;
    let mut models: Option<BTreeSet<String>> = None;
    for pod in &members {
        match running.kinds.allowed(pod) {
            Allowed::Nowhere if running.nodes.is_empty() => {}
            Allowed::Nowhere => return Err("no node could take: product, labels or taints"),
            Allowed::Certain => return Err("ask for certain nodes"),
            Allowed::These(these) if these.is_empty() => {}
            Allowed::These(these) => {
                let these: BTreeSet<String> = these.into_iter().collect();
                models = Some(models.map_or(these.clone(), |known| known.intersection(&these).cloned().collect()));
            }
        }
    }
    if models.as_ref().is_some_and(BTreeSet::is_empty) {
        return Err("have pods that want unlike nodes");
    }
    if members.iter().any(|pod| pod.near_or_far) {
        tally.met("waiting jobs with wishes about other pods (affinity, spread), taken without", name);
    }
    let bond = first.together.as_deref().map(|key| within(keys, key));
    if bond == Some(None) {
        tally.met("waiting jobs that must share a level that is neither domain nor rack here, taken without", name);
    }
    Ok(WaitingJob {
        name: String::new(),
        instances: u32::try_from(members.len()).unwrap_or(u32::MAX),
        gpus,
        cpu_milli: members.iter().map(|pod| pod.request.cpu_milli).max().unwrap_or(0),
        memory_mib: members.iter().map(|pod| pod.request.memory_mib).max().unwrap_or(0),
        models: models.into_iter().flatten().collect(),
        within: bond.flatten(),
    })
}
