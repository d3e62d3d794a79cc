//! A decision of the commit loop as a line of JSON. Written straight from the decision: a queue has millions of them.

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::explain::OffersOut;
use super::json::append_line;
use crate::anchor::Migration;
use crate::cluster::{Cluster, GpuMask, NodeId, gpu_indices};
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
    let job = cluster.job_name(decision.job);
    let migrations = Migrations { cluster, migrations: &decision.migrations };
    let (status, why) = match decision.status {
        Status::Removed => return append_line(out, &RemoveLine { job, status: "removed", migrations }),
        Status::Absent => return append_line(out, &RemoveLine { job, status: "absent", migrations }),
        Status::Placed => ("placed", None),
        Status::Blocked(why) => ("blocked", Some(why.name())),
    };
    let request = cluster.request_of(decision.job);
    let gpu_milli = request.is_share().then_some(request.gpu_milli);
    let instances = Instances { cluster, placements: &decision.placements, gpu_milli };
    let &Decision { delta_sif_nodes, in_abs, .. } = decision;
    append_line(out, &SubmitLine { job, status, why, instances, migrations, delta_sif_nodes, in_abs, explain })
}

#[derive(Serialize)]
struct SubmitLine<'a> {
    job: &'a str,
    status: &'static str,
    why: Option<&'static str>,
    instances: Instances<'a>,
    migrations: Migrations<'a>,
    delta_sif_nodes: Option<i64>,
    in_abs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<&'a OffersOut<'a>>,
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

impl Serialize for Instances<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Instance<'a> {
            node: &'a str,
            gpus: Mask,
            #[serde(skip_serializing_if = "Option::is_none")]
            gpu_milli: Option<u16>,
        }
        let mut list = serializer.serialize_seq(Some(self.placements.len()))?;
        for &(node, gpus) in self.placements {
            let (node, gpus) = (self.cluster.node_name(node), Mask(gpus));
            list.serialize_element(&Instance { node, gpus, gpu_milli: self.gpu_milli })?;
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
