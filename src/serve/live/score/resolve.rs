//! From names to numbers. What cannot be resolved is a reason why a candidate is infeasible, never an error.

use crate::cluster::{Cluster, InstanceId, JobId, NodeId};
use crate::evaluate::{CandidateSet, Move, Place, Reason};
use crate::formats::{CandidateSpec, MoveSpec, devices};
use crate::workload::QueueEntry;

/// A number that no job and no node has.
const NOBODY: u32 = u32::MAX;

/// The candidates of the jobs of a queue, in their order.
pub fn resolve_candidates(cluster: &Cluster, queue: &[QueueEntry], specs: &[CandidateSpec]) -> Vec<CandidateSet> {
    let mut queued = vec![false; cluster.jobs().len()];
    for entry in queue {
        if let QueueEntry::Submit(job) = entry {
            queued[job.index()] = true;
        }
    }
    specs.iter().map(|spec| candidate(cluster, &queued, spec)).collect()
}

fn candidate(cluster: &Cluster, queued: &[bool], spec: &CandidateSpec) -> CandidateSet {
    let mut given = First(None);
    let job = cluster.find_job(&spec.job).filter(|job| queued[job.index()]);
    given.add(job.is_none(), Reason::UnknownJob);
    let size = job.map(|job| cluster.request_of(job).gpus);
    let place = spec.place.iter().map(|seat| given.place(cluster, &seat.node, seat.gpus.as_deref(), size)).collect();
    let moves = spec.migrate.iter().filter_map(|one| migration(cluster, one, &mut given)).collect();
    CandidateSet { job: job.unwrap_or(JobId(NOBODY)), place, moves, given: given.0 }
}

fn migration(cluster: &Cluster, spec: &MoveSpec, given: &mut First) -> Option<Move> {
    let instance = running_instance(cluster, spec);
    given.add(instance.is_none(), Reason::NotRunning);
    let size = instance.map(|instance| cluster.request_of(cluster.instance(instance).job()).gpus);
    let to = given.place(cluster, &spec.node, spec.gpus.as_deref(), size);
    Some(Move { instance: instance?, to })
}

fn running_instance(cluster: &Cluster, spec: &MoveSpec) -> Option<InstanceId> {
    let job = cluster.find_job(&spec.job).filter(|&job| cluster.job(job).runs())?;
    let instance = cluster.instances_of(job).nth(usize::try_from(spec.instance).ok()?)?;
    let is_there = |from: &String| cluster.instance(instance).node().is_some_and(|at| cluster.node_name(at) == from);
    spec.from.as_ref().is_none_or(is_there).then_some(instance)
}

/// The first reason by the documented order.
struct First(Option<Reason>);

impl First {
    fn add(&mut self, applies: bool, reason: Reason) {
        if applies && self.0.is_none_or(|first| reason < first) {
            self.0 = Some(reason);
        }
    }

    /// A place of an instance of `size` GPUs, if that is known.
    fn place(&mut self, cluster: &Cluster, node: &str, gpus: Option<&[u64]>, size: Option<u8>) -> Place {
        let node = cluster.find_node(node);
        self.add(node.is_none(), Reason::UnknownNode);
        let node = node.unwrap_or(NodeId(NOBODY));
        let Some(indices) = gpus else { return Place { node, gpus: None } };
        self.add(size.is_some_and(|size| indices.len() != usize::from(size)), Reason::WrongCount);
        let mask = devices(indices).ok();
        self.add(mask.is_none(), Reason::BadIndex);
        Place { node, gpus: mask }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClusterBuilder, JobSpec, NodeSpec};
    use crate::formats::SeatSpec;

    #[test]
    fn what_is_unknown_is_a_reason() {
        let mut builder = ClusterBuilder::new();
        builder.add_node(&NodeSpec { name: "n", gpus: 8, ..NodeSpec::default() }).unwrap();
        let mut cluster = builder.finish().unwrap();
        let job = cluster.register(&JobSpec { name: "j", gpus: 2, ..JobSpec::default() }, 1).unwrap();
        let reason = |job: &str, node: &str, gpus: &[u64], migrate: &[&str]| {
            let moved =
                |&job: &&str| MoveSpec { job: job.into(), instance: 0, node: "n".into(), from: None, gpus: None };
            let spec = CandidateSpec {
                line: 1,
                job: job.into(),
                candidate: "c".into(),
                place: vec![SeatSpec { node: node.into(), gpus: Some(gpus.to_vec()) }],
                migrate: migrate.iter().map(moved).collect(),
            };
            resolve_candidates(&cluster, &[QueueEntry::Submit(JobId(0))], &[spec])[0].given
        };
        assert_eq!(job, JobId(0));
        assert_eq!(reason("j", "n", &[0, 1], &[]), None);
        assert_eq!(reason("x", "m", &[0, 0], &["j"]), Some(Reason::UnknownJob));
        assert_eq!(reason("j", "m", &[0, 0], &["j"]), Some(Reason::UnknownNode));
        assert_eq!(reason("j", "n", &[0, 0, 1], &["j"]), Some(Reason::NotRunning));
        assert_eq!(reason("j", "n", &[0, 0, 1], &[]), Some(Reason::WrongCount));
        assert_eq!(reason("j", "n", &[0, 0], &[]), Some(Reason::BadIndex));
        assert_eq!(reason("j", "n", &[0, 16], &[]), Some(Reason::BadIndex));
        assert_eq!(reason("j", "n", &[0, u64::MAX], &[]), Some(Reason::BadIndex));
    }
}
