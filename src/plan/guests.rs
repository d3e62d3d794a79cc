//! How many guests what is free would hold, node by node.

use super::amounts::{Amounts, takes};
use super::question::Goal;
use super::site::Site;
use crate::cluster::{NodeId, Request, Within};

/// The guests of a plan, and where they may come.
pub(super) struct Guests<'a> {
    site: Site<'a>,
    /// What a guest asks; `None` for whole nodes.
    request: Option<&'a Request>,
    /// The region that all of them come to.
    inside: Option<(Within, Option<u32>)>,
    pub(super) count: i64,
}

impl<'a> Guests<'a> {
    /// So many guests of a goal, wherever they come.
    pub(super) fn new(site: Site<'a>, count: i64) -> Self {
        Self { site, request: site.job().map(|job| site.cluster.request_of(job)), inside: None, count }
    }

    /// The guests of a plan, in the region in which it has them; `None` if its goal has none.
    pub(super) fn of(site: Site<'a>, hosts: &[NodeId]) -> Option<Self> {
        let within = match site.goal {
            Goal::Job(job) => site.cluster.request_of(job).within,
            Goal::FreeNodes(_) => None,
            Goal::FreeRegion(within) => Some(within),
            Goal::LeastPartial => return None,
        };
        let first = hosts.first()?;
        let inside = within.map(|within| (within, site.cluster.node(*first).region(within)));
        Some(Self { inside, ..Self::new(site, hosts.len() as i64) })
    }

    /// How many guests a node with so much room holds.
    pub(super) fn on(&self, node: NodeId, room: Amounts) -> i64 {
        let (cluster, here) = (self.site.cluster, self.site.cluster.node(node));
        if self.inside.is_some_and(|(within, region)| here.region(within) != region) {
            return 0;
        }
        let Some(request) = self.request else {
            let whole = here.schedulable() && here.capacity() > 0 && room[0] == i64::from(here.capacity());
            return i64::from(whole);
        };
        if !cluster.admits(node, request) {
            return 0;
        }
        let fit = takes(request).into_iter().zip(room).filter(|(take, _)| *take > 0);
        fit.map(|(take, room)| room.max(0) / take).min().unwrap_or(self.count).min(self.count)
    }

    /// A node for each guest, those of `wanted` first; `None` if they do not all fit.
    pub(super) fn hosts(&self, wanted: &[NodeId], room: &[Amounts]) -> Option<Vec<NodeId>> {
        let mut left: Vec<i64> = self.site.cluster.node_ids().map(|node| self.on(node, room[node.index()])).collect();
        let mut hosts = Vec::with_capacity(wanted.len());
        for &node in wanted {
            if left[node.index()] > 0 {
                left[node.index()] -= 1;
                hosts.push(node);
            }
        }
        for node in self.site.cluster.node_ids() {
            let more = left[node.index()].min(self.count - hosts.len() as i64);
            hosts.extend(std::iter::repeat_n(node, more.max(0) as usize));
        }
        (hosts.len() as i64 == self.count).then_some(hosts)
    }
}

/// How many guests a whole cluster holds now and in the end, kept while instances move.
pub(super) struct Tally {
    pub(super) now: i64,
    pub(super) last: i64,
}

impl Tally {
    pub(super) fn new(guests: &Guests<'_>, room: &[Amounts], last: &[Amounts]) -> Self {
        let all =
            |room: &[Amounts]| guests.site.cluster.node_ids().map(|node| guests.on(node, room[node.index()])).sum();
        Self { now: all(room), last: all(last) }
    }
}
