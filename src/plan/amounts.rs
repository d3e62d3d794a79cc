//! What an instance takes and a node has: GPUs, CPU, memory.

use super::site::Site;
use crate::cluster::{Cluster, InstanceId, JobId, NodeId, Request, UNLIMITED, Within};

/// GPUs, milli-cores, MiB.
pub(super) type Amounts = [i64; 3];

/// What is free on a node; what is not limited is very much.
pub(super) fn free(cluster: &Cluster, node: NodeId) -> Amounts {
    let node = cluster.node(node);
    let amount = |all: u32, used: u64| match all {
        UNLIMITED => i64::MAX / 2,
        all => i64::from(all) - i64::try_from(used).unwrap_or(i64::MAX / 2),
    };
    let cpu = amount(node.cpu_milli(), node.cpu_used());
    [i64::from(node.free_gpus()), cpu, amount(node.memory_mib(), node.memory_used())]
}

/// What an instance of this request takes.
pub(super) fn takes(request: &Request) -> Amounts {
    [i64::from(request.gpus), i64::from(request.cpu_milli), i64::from(request.memory_mib)]
}

/// Whether so much fits; what asks for nothing does not mind what is overcommitted.
pub(super) fn fits(take: Amounts, room: Amounts) -> bool {
    take.iter().zip(room).all(|(&take, room)| take == 0 || take <= room)
}

/// Adds, or with a sign of -1 takes off.
pub(super) fn change(room: &mut Amounts, take: Amounts, sign: i64) {
    room.iter_mut().zip(take).for_each(|(room, take)| *room += sign * take);
}

/// Both together.
pub(super) fn sum(mut room: Amounts, take: Amounts) -> Amounts {
    change(&mut room, take, 1);
    room
}

/// Where an instance may be because of `within` of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Home {
    /// Anywhere.
    Free,
    /// In some region of the kind.
    Some(Within),
    /// In this region.
    One(Within, u32),
}

impl Home {
    /// That of the instances of a running job: a gang that is together stays where it is.
    pub(super) fn of(cluster: &Cluster, job: JobId) -> Self {
        let Some(within) = cluster.request_of(job).within else { return Self::Free };
        let mut regions = cluster
            .instances_of(job)
            .filter_map(|instance| cluster.instance(instance).node())
            .map(|node| cluster.node(node).region(within));
        match regions.next().flatten() {
            Some(_) if cluster.job(job).instances() == 1 => Self::Some(within),
            Some(first) if regions.all(|region| region == Some(first)) => Self::One(within, first),
            _ => Self::Free,
        }
    }

    /// Whether a node is in it.
    pub(super) fn holds(self, cluster: &Cluster, node: NodeId) -> bool {
        match self {
            Self::Free => true,
            Self::Some(within) => cluster.node(node).region(within).is_some(),
            Self::One(within, region) => cluster.node(node).region(within) == Some(region),
        }
    }
}

impl Site<'_> {
    /// The instances that may move, with their nodes.
    pub(super) fn movers(&self) -> impl Iterator<Item = (InstanceId, NodeId)> + '_ {
        let cluster = self.cluster;
        let may_move =
            |&job: &JobId| cluster.job(job).runs() && self.movable[job.index()] && !cluster.request_of(job).is_share();
        let instances = cluster.job_ids().filter(may_move).flat_map(move |job| cluster.instances_of(job));
        instances
            .filter_map(move |instance| cluster.instance(instance).node().map(|node| (instance, node)))
            .filter(move |&(_, node)| cluster.node(node).schedulable())
    }
}
