//! A decision of the commit loop as a line of JSON. Written straight from the decision: a queue has millions of them.

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::explain::OffersOut;
use super::json::append_line;
use crate::anchor::Migration;
use crate::cluster::{Cluster, GpuMask, GroupedJob, JobId, NodeId, gpu_indices};
use crate::decide::{Decision, Status};

/// Appends the line of a decision, as the contract of `place` has it.
///
/// # Errors
/// As [`append_line`].
pub fn decision_json(out: &mut Vec<u8>, cluster: &Cluster, decision: &Decision) -> Result<(), serde_json::Error> {
    explained_decision_json(out, cluster, decision, None)
}

/// The same with the nodes that the job could have had.
///
/// # Errors
/// As [`append_line`].
pub fn explained_decision_json(
    out: &mut Vec<u8>,
    cluster: &Cluster,
    decision: &Decision,
    explain: Option<&OffersOut<'_>>,
) -> Result<(), serde_json::Error> {
    let job = cluster.whole_job_name(decision.job);
    let migrations = Migrations { cluster, migrations: &decision.migrations };
    let (status, why) = match decision.status {
        Status::Removed => return append_line(out, &RemoveLine { job, status: "removed", migrations }),
        Status::Absent => return append_line(out, &RemoveLine { job, status: "absent", migrations }),
        Status::Placed => ("placed", None),
        Status::Blocked(why) => ("blocked", Some(why.name())),
    };
    let groups = cluster.grouped_job_of(decision.job).map(|job| groups(cluster, job, &decision.placements));
    let alone = Instances { cluster, placements: &decision.placements, gpu_milli: share_of(cluster, decision.job) };
    let instances = AllInstances { alone, groups: groups.as_deref() };
    let &Decision { delta_sif_nodes, in_abs, proven, .. } = decision;
    let groups = groups.as_deref();
    let line = SubmitLine { job, status, why, proven, instances, groups, migrations, delta_sif_nodes, in_abs, explain };
    append_line(out, &line)
}

#[derive(Serialize)]
struct SubmitLine<'a> {
    job: &'a str,
    status: &'static str,
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proven: Option<bool>,
    instances: AllInstances<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<&'a [GroupOut<'a>]>,
    migrations: Migrations<'a>,
    delta_sif_nodes: Option<i64>,
    in_abs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<&'a OffersOut<'a>>,
}

/// The thousandths of a device that each instance has, where it shares one.
fn share_of(cluster: &Cluster, job: JobId) -> Option<u16> {
    let request = cluster.request_of(job);
    request.is_share().then_some(request.gpu_milli)
}

#[derive(Serialize)]
struct GroupOut<'a> {
    instances: Instances<'a>,
}

/// The instances of each group, of a job that is blocked none.
fn groups<'a>(cluster: &'a Cluster, job: GroupedJob, placements: &'a [(NodeId, GpuMask)]) -> Vec<GroupOut<'a>> {
    let mut rest = placements;
    let group = |id| {
        let (own, others) = rest.split_at(rest.len().min(cluster.job(id).instances() as usize));
        rest = others;
        GroupOut { instances: Instances { cluster, placements: own, gpu_milli: share_of(cluster, id) } }
    };
    job.jobs().map(group).collect()
}

#[derive(Serialize)]
struct RemoveLine<'a> {
    job: &'a str,
    status: &'static str,
    migrations: Migrations<'a>,
}

struct Instances<'a> {
    cluster: &'a Cluster,
    placements: &'a [(NodeId, GpuMask)],
    /// The thousandths that each got of its device, if that is not all of it.
    gpu_milli: Option<u16>,
}

/// All instances of a job: of several groups those of one after another.
struct AllInstances<'a> {
    alone: Instances<'a>,
    groups: Option<&'a [GroupOut<'a>]>,
}

impl Instances<'_> {
    fn list<L: SerializeSeq>(&self, list: &mut L) -> Result<(), L::Error> {
        #[derive(Serialize)]
        struct Instance<'a> {
            node: &'a str,
            gpus: Mask,
            #[serde(skip_serializing_if = "Option::is_none")]
            gpu_milli: Option<u16>,
        }
        self.placements.iter().try_for_each(|&(node, gpus)| {
            let (node, gpus) = (self.cluster.node_name(node), Mask(gpus));
            list.serialize_element(&Instance { node, gpus, gpu_milli: self.gpu_milli })
        })
    }
}

impl Serialize for Instances<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.placements.len()))?;
        self.list(&mut list)?;
        list.end()
    }
}

impl Serialize for AllInstances<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.alone.placements.len()))?;
        match self.groups {
            None => self.alone.list(&mut list)?,
            Some(groups) => groups.iter().try_for_each(|group| group.instances.list(&mut list))?,
        }
        list.end()
    }
}

struct Migrations<'a> {
    cluster: &'a Cluster,
    migrations: &'a [Migration],
}

impl Serialize for Migrations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Move<'a> {
            job: &'a str,
            instance: u32,
            from: &'a str,
            to: &'a str,
            gpus: Mask,
        }
        let mut list = serializer.serialize_seq(Some(self.migrations.len()))?;
        for &Migration { job, instance, from, to, gpus } in self.migrations {
            list.serialize_element(&Move {
                job: self.cluster.job_name(job),
                instance: self.cluster.position(instance),
                from: self.cluster.node_name(from),
                to: self.cluster.node_name(to),
                gpus: Mask(gpus),
            })?;
        }
        list.end()
    }
}

/// A set of devices, written as a list of indices.
pub(super) struct Mask(pub(super) GpuMask);

impl Serialize for Mask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(gpu_indices(self.0))
    }
}
