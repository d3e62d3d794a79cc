//! Which nodes a job could have, by kind: what explains a decision.

use std::collections::BTreeMap;

use super::need::Need;
use super::policy::{Method, Policy};
use crate::anchor::{self, Kind, Shape, State};
use crate::cluster::{Cluster, JobId, NodeId, WHOLE_GPU};

/// Names that are kept of each kind.
const FIRST: usize = 5;

/// What a node is to somebody who looks for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OfferKind {
    /// It holds nothing.
    Empty,
    /// Slots with room or vacancy, or without: it holds anchors, inside Σ.
    Slotted,
    /// It holds 1-GPU instances alone, and has room.
    Pool,
    /// It is outside Σ.
    Outside,
    /// No GPU of it is free, but shares leave something of one, which is of use to another share.
    Shared,
    /// No GPU of it is free.
    Full,
    /// Nothing is placed there.
    Cordoned,
    /// It is of a model that the job does not allow, or too small for an instance even when it is empty.
    Unfit,
}

impl OfferKind {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Slotted => "slotted",
            Self::Pool => "pool",
            Self::Outside => "outside",
            Self::Shared => "shared",
            Self::Full => "full",
            Self::Cordoned => "cordoned",
            Self::Unfit => "unfit",
        }
    }
}

/// Nodes of one kind with equally many free GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What they are.
    pub kind: OfferKind,
    /// Free GPUs of each.
    pub free: u8,
    /// Thousandths of GPUs left on all of them together, those of shared devices included.
    pub left_milli: u64,
    /// How many they are.
    pub nodes: u64,
    /// Those of them that can take an instance as they are: GPUs, CPU, memory and model.
    pub fit: u64,
    /// Those of them where the policy would put one, without a move.
    pub allowed: u64,
    /// The first few of those that the policy allows; where it allows none, of those that fit.
    pub first: Vec<NodeId>,
}

/// The nodes as one instance of a job sees them under a policy, by kind and free GPUs. That all instances must lie in one
/// domain or rack is not asked, but a node without one takes none of them. O(nodes).
pub fn offers(state: &State, policy: Policy, job: JobId) -> Vec<Offer> {
    let cluster = state.cluster();
    let request = cluster.request_of(job);
    let need = Need::new(cluster, request);
    let mut offers: BTreeMap<(OfferKind, u8), Offer> = BTreeMap::new();
    for id in cluster.node_ids() {
        let node = cluster.node(id);
        let kind = match Shape::of(node.capacity(), node.composition()).kind {
            _ if !node.schedulable() => OfferKind::Cordoned,
            _ if !need.pools.contains(&node.pool()) => OfferKind::Unfit,
            _ if node.free_gpus() == 0 && need.is_share() && left_of_shared(cluster, id) > 0 => OfferKind::Shared,
            _ if node.free_gpus() == 0 && node.capacity() > 0 => OfferKind::Full,
            Kind::Empty => OfferKind::Empty,
            Kind::Slotted => OfferKind::Slotted,
            Kind::Pool => OfferKind::Pool,
            Kind::Outside(_) => OfferKind::Outside,
        };
        let free = node.free_gpus();
        let new = || Offer { kind, free, left_milli: 0, nodes: 0, fit: 0, allowed: 0, first: Vec::new() };
        let offer = offers.entry((kind, free)).or_insert_with(new);
        let somewhere = need.within.is_none_or(|within| node.region(within).is_some());
        let fits = somewhere && need.room(cluster, id) > 0;
        let allowed = fits
            && match policy.method() {
                Method::Anchor(_) => {
                    let beside = need.is_share() && cluster.room_on_shared(id, request.gpu_milli) > 0;
                    request.gpus == 0 || beside || anchor::takes(state, id, request)
                }
                Method::Ordered(_) | Method::Random | Method::Scored(..) => true,
            };
        if allowed && offer.allowed == 0 {
            offer.first.clear();
        }
        offer.left_milli += u64::from(free) * u64::from(WHOLE_GPU) + left_of_shared(cluster, id);
        offer.nodes += 1;
        offer.fit += u64::from(fits);
        offer.allowed += u64::from(allowed);
        if offer.first.len() < FIRST && (allowed || (fits && offer.allowed == 0)) {
            offer.first.push(id);
        }
    }
    offers.into_values().collect()
}

/// The thousandths that shares leave of the devices of a node that they lie on.
fn left_of_shared(cluster: &Cluster, id: NodeId) -> u64 {
    cluster.shared_left(id).map(|(_, left)| u64::from(left)).sum()
}
