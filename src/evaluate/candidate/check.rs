//! The checks of a candidate that look at no node's load.

use super::CandidateSet;
use super::Place;
use crate::cluster::{Cluster, NodeId, Request, Within};
use crate::evaluate::reason::Reason;

/// The first of the reasons after which nothing else can be looked at.
pub(super) fn unresolvable(cluster: &Cluster, set: &CandidateSet) -> Option<Reason> {
    let mut places = set.place.iter().chain(set.moves.iter().map(|one| &one.to));
    if cluster.jobs().get(set.job.index()).is_none_or(|job| job.runs()) {
        Some(Reason::UnknownJob)
    } else if places.any(|place| place.node.index() >= cluster.nodes().len()) {
        Some(Reason::UnknownNode)
    } else if set.moves.iter().any(|one| cluster.instance(one.instance).node().is_none()) {
        Some(Reason::NotRunning)
    } else {
        None
    }
}

/// What speaks against one instance at a place, whatever the node holds. `new`: it is not on this node already.
pub(super) fn check_place(cluster: &Cluster, place: &Place, request: &Request, new: bool) -> Option<Reason> {
    let node = cluster.node(place.node);
    let gpus = place.gpus.unwrap_or(0);
    let named = place.gpus.is_some();
    if named && gpus.count_ones() != u32::from(request.gpus) {
        Some(Reason::WrongCount)
    } else if u32::from(gpus) >> node.devices() != 0 {
        Some(Reason::BadIndex)
    } else if gpus & !node.usable() != 0 {
        Some(Reason::UnavailableGpu)
    } else if new && !node.schedulable() {
        Some(Reason::Unschedulable)
    } else if new && !cluster.pool_admits(node.pool(), request) {
        Some(Reason::WrongModel)
    } else {
        None
    }
}

/// Whether all nodes lie in one rack or domain, as `within` says.
pub(super) fn within(cluster: &Cluster, within: Option<Within>, nodes: impl Iterator<Item = NodeId>) -> bool {
    let Some(within) = within else { return true };
    let mut places = nodes.map(|node| cluster.node(node).region(within));
    match places.next() {
        None => true,
        Some(first) => first.is_some() && places.all(|place| place == first),
    }
}

/// The first of two reasons, of which each may be absent.
pub(super) trait MinSome {
    fn min_some(self, other: Self) -> Self;
}

impl MinSome for Option<Reason> {
    fn min_some(self, other: Self) -> Self {
        match (self, other) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}
