//! Jobs of several groups: where all of them fit together, and why they do not.
//!
//! The instances of one group are alike, so whether they fit is a sum (see `placer.rs`). Groups that are unlike compete,
//! and whether they fit together is a packing of vectors, which no known method answers fast in every case. So there are
//! three answers: a placement, a proof that there is none, or that it is not known.

mod pack;

use std::cmp::Reverse;
use std::ops::Range;

use self::pack::{Bin, Kind, Packing, pack};
use super::need::{Need, Needs};
use super::why::{self, Why};
use crate::anchor::State;
use crate::cluster::{Cluster, GroupedJob, JobId, NodeId, RequestId, UNLIMITED, Within};

/// Steps of the search for a packing, for one question: a tenth of a second.
pub(super) const STEPS: u32 = 1 << 18;

/// The orders of the groups that are tried.
const MOST_ORDERS: usize = 6;

/// Why a job of several groups is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Refusal {
    /// In the words for every job. Where it is not proved that GPUs alone forbid the job, [`Why::Constraint`] stands for
    /// what has CPU, memory, models or topology to ask for, and [`Why::Fragmentation`] for what has not.
    pub why: Why,
    /// Whether it is proved that the groups do not fit together on the nodes as they are. Never with [`Why::Space`].
    pub proven: bool,
}

/// Why a job of several groups does not fit on this state, whatever a policy may think of it; `None` if it does.
pub fn why_groups_blocked(state: &State, job: GroupedJob) -> Option<Refusal> {
    let mut needs = Needs::default();
    needs.resolve_groups(state.cluster(), job);
    Groups::new(state.cluster(), &needs, job, STEPS).blocked(state)
}

/// Where the instances of each group go.
pub(super) type Hosts = Vec<(JobId, Vec<NodeId>)>;

/// What is known of a place for all groups together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Found(Hosts),
    Impossible,
    Unknown,
}

/// A job of several groups, with what each asks of a node.
#[derive(Debug)]
pub(super) struct Groups<'n> {
    groups: Vec<Group<'n>>,
    pub(super) within: Option<Within>,
    /// The only region that they may go to, by its number.
    region: Option<usize>,
    /// The most steps of a search. With none nothing is looked into: not even what is settled before the first.
    steps: u32,
}

#[derive(Clone, Copy, Debug)]
struct Group<'n> {
    job: JobId,
    request: RequestId,
    need: &'n Need,
    instances: u32,
}

impl<'n> Groups<'n> {
    /// With at most so many steps of each search. Needs must have the requests of all groups.
    pub(super) fn new(cluster: &Cluster, needs: &'n Needs, job: GroupedJob, steps: u32) -> Self {
        let group = |id: JobId| {
            let job = cluster.job(id);
            Group { job: id, request: job.request(), need: needs.of(job.request()), instances: job.instances() }
        };
        let within = cluster.request_of(job.first()).within;
        Self { groups: job.jobs().map(group).collect(), within, region: None, steps }
    }

    /// The same where all groups may go to one region alone, if one is given.
    pub(super) fn only_in(self, region: Option<(Within, usize)>) -> Self {
        match region {
            None => self,
            Some((within, number)) => Self { within: Some(within), region: Some(number), ..self },
        }
    }

    /// The numbers of the regions that they may go to.
    fn numbers(&self, state: &State, within: Within) -> Range<usize> {
        self.region.map_or(0..state.regions(within).len(), |number| number..number + 1)
    }

    /// The orders in which the groups are placed one after the other: first those that leave the others most choice, the
    /// largest instances first; of up to three groups, every other order too.
    pub(super) fn orders(&self) -> Vec<Vec<JobId>> {
        let mut groups: Vec<&Group<'_>> = self.groups.iter().collect();
        groups.sort_by_key(|group| {
            let need = group.need;
            (
                Reverse((need.gpus, need.gpu_milli)),
                need.pools.len(),
                Reverse((need.cpu_milli, need.memory_mib)),
                group.job,
            )
        });
        let first: Vec<JobId> = groups.iter().map(|group| group.job).collect();
        if first.len() <= 3 {
            return permutations(&first);
        }
        let to_front = |at: usize| {
            let mut order = first.clone();
            order[..=at].rotate_right(1);
            order
        };
        (0..first.len().min(MOST_ORDERS)).map(to_front).collect()
    }

    /// Instances without GPUs, which nothing but CPU and memory bounds.
    pub(super) fn cpu_only_instances(&self) -> u64 {
        self.groups.iter().filter(|group| group.need.gpus == 0).map(|group| u64::from(group.instances)).sum()
    }

    /// Whether fewer GPUs are left on schedulable nodes than all groups ask for together.
    pub(super) fn lacks_capacity(&self, state: &State) -> bool {
        let milli = |group: &Group<'_>| {
            u64::from(group.instances) * u64::from(group.need.gpus) * u64::from(group.need.gpu_milli)
        };
        self.groups.iter().map(milli).fold(0u64, u64::saturating_add) > state.free_gpu_milli()
    }

    /// Why one group alone does not fit, the first reason of all; with groups that ask GPUs, or without.
    pub(super) fn one_alone(&self, state: &State, with_gpus: bool) -> Option<Why> {
        let asked = self.groups.iter().filter(|group| with_gpus || group.need.gpus == 0);
        let region = self.within.zip(self.region);
        let alone = asked.map(|group| why::why_in(state, group.need, group.instances, region));
        alone.filter(|&why| why != Why::Space).min()
    }

    /// What counts alone rule out.
    pub(super) fn refused_at_once(&self, state: &State) -> Option<Refusal> {
        let proven = |why| Refusal { why, proven: true };
        if self.lacks_capacity(state) {
            return Some(proven(Why::Capacity));
        }
        match self.one_alone(state, true)? {
            Why::Constraint if self.region.is_none() && self.gpus_fit(state) == Fit::Impossible => {
                Some(proven(Why::Fragmentation))
            }
            why => Some(proven(why)),
        }
    }

    /// Why the job is blocked, given what is known of a place for it; `None` if there is one.
    pub(super) fn refusal(&self, state: &State, fit: &Fit) -> Option<Refusal> {
        if matches!(fit, Fit::Found(_)) {
            return None;
        }
        let more = |group: &Group<'_>| group.need.limited || group.need.pools.len() < state.pools().len();
        let asks_more = self.within.is_some() || self.groups.iter().any(more);
        let by_gpus = match self.region {
            Some(_) => Fit::Unknown,
            None if asks_more => self.gpus_fit(state),
            None => fit.clone(),
        };
        let why = match by_gpus {
            Fit::Impossible => Why::Fragmentation,
            Fit::Unknown if !asks_more => Why::Fragmentation,
            Fit::Found(_) | Fit::Unknown => Why::Constraint,
        };
        Some(Refusal { why, proven: by_gpus == Fit::Impossible || *fit == Fit::Impossible })
    }

    /// Why the job is blocked on nodes as they are, whoever decides; `None` if there is a place for it.
    pub(super) fn blocked(&self, state: &State) -> Option<Refusal> {
        self.refused_at_once(state).or_else(|| {
            let fit = match self.within {
                None => self.fit_anywhere(state),
                Some(within) => self.fit_in(state, within, self.numbers(state, within)),
            };
            self.refusal(state, &fit)
        })
    }

    /// Where all groups fit together, on whatever nodes.
    pub(super) fn fit_anywhere(&self, state: &State) -> Fit {
        self.fit_on(state, state.cluster().node_ids(), &mut { self.steps })
    }

    /// Where they fit together in the first of some regions that takes them; all others cannot.
    pub(super) fn fit_in(&self, state: &State, within: Within, regions: impl IntoIterator<Item = usize>) -> Fit {
        let (mut steps, mut all) = (self.steps, Fit::Impossible);
        for number in regions {
            match self.fit_on(state, state.regions(within)[number].iter().copied(), &mut steps) {
                Fit::Found(hosts) => return Fit::Found(hosts),
                Fit::Unknown => all = Fit::Unknown,
                Fit::Impossible => {}
            }
        }
        all
    }

    /// The regions that could take each group alone.
    pub(super) fn able_regions(&self, state: &State, within: Within) -> Vec<usize> {
        let could_hold = |&number: &usize| {
            let nodes = || state.regions(within)[number].iter().copied();
            self.groups.iter().all(|group| group.need.fit_on(state.cluster(), nodes(), u64::from(group.instances)))
        };
        self.numbers(state, within).filter(could_hold).collect()
    }

    /// Where all groups fit together on these nodes, as they are.
    fn fit_on(&self, state: &State, nodes: impl Iterator<Item = NodeId>, steps: &mut u32) -> Fit {
        if self.steps == 0 {
            return Fit::Unknown;
        }
        let cluster = state.cluster();
        let (kinds, members) = self.kinds(|_| true);
        let bin = |id: NodeId| {
            let node = cluster.node(id);
            let open = members.iter().enumerate().filter(|(_, alike)| alike[0].need.fits(node));
            let amount = |free: u32| if free == UNLIMITED { u64::MAX } else { u64::from(free) };
            Bin {
                node: id,
                gpus: node.free_gpus(),
                cpu_milli: amount(node.cpu_free()),
                memory_mib: amount(node.memory_free()),
                open: mask(open.map(|(place, _)| place)),
            }
        };
        self.packed(&members, pack(&kinds, nodes.map(bin).collect(), steps))
    }

    /// The same on all schedulable nodes, GPUs alone.
    fn gpus_fit(&self, state: &State) -> Fit {
        if self.steps == 0 {
            return Fit::Unknown;
        }
        let cluster = state.cluster();
        let (mut kinds, members) = self.kinds(|need| need.gpus > 0);
        kinds.iter_mut().for_each(|kind| (kind.cpu_milli, kind.memory_mib) = (0, 0));
        let bin = |id: NodeId| {
            let gpus = cluster.node(id).free_gpus();
            let open = kinds.iter().enumerate().filter(|(_, kind)| kind.gpus <= gpus);
            Bin { node: id, gpus, cpu_milli: 0, memory_mib: 0, open: mask(open.map(|(place, _)| place)) }
        };
        let nodes = cluster.node_ids().filter(|&id| cluster.node(id).schedulable());
        self.packed(&members, pack(&kinds, nodes.map(bin).collect(), &mut { self.steps }))
    }

    /// The groups of whole GPUs as kinds of instances, those of equal requests as one. Shares are left out: what they
    /// find room on is no whole GPU.
    fn kinds(&self, which: impl Fn(&Need) -> bool) -> (Vec<Kind>, Vec<Vec<Group<'n>>>) {
        let mut members: Vec<Vec<Group<'n>>> = Vec::new();
        for &group in self.groups.iter().filter(|group| !group.need.is_share() && which(group.need)) {
            match members.iter_mut().find(|alike| alike[0].request == group.request) {
                Some(alike) => alike.push(group),
                None => members.push(vec![group]),
            }
        }
        let kind = |alike: &Vec<Group<'_>>| {
            let &Need { gpus, cpu_milli, memory_mib, .. } = alike[0].need;
            let wanted = alike.iter().fold(0u32, |sum, group| sum.saturating_add(group.instances));
            Kind { gpus, cpu_milli, memory_mib, wanted }
        };
        (members.iter().map(kind).collect(), members)
    }

    fn packed(&self, members: &[Vec<Group<'_>>], packing: Packing) -> Fit {
        match packing {
            Packing::Impossible => Fit::Impossible,
            // Room for all others says nothing of the shares.
            Packing::Found(_) if self.groups.iter().any(|group| group.need.is_share()) => Fit::Unknown,
            Packing::Unknown => Fit::Unknown,
            Packing::Found(by_kind) => {
                let mut hosts = Hosts::new();
                for (alike, nodes) in members.iter().zip(by_kind) {
                    let mut nodes = nodes.into_iter();
                    let own = |group: &Group<'_>| (group.job, nodes.by_ref().take(group.instances as usize).collect());
                    hosts.extend(alike.iter().map(own));
                }
                Fit::Found(hosts)
            }
        }
    }
}

fn mask(places: impl Iterator<Item = usize>) -> u32 {
    places.filter(|&place| place < pack::MOST_KINDS).fold(0, |mask, place| mask | 1 << place)
}

/// All orders of a few jobs, the given one first.
fn permutations(jobs: &[JobId]) -> Vec<Vec<JobId>> {
    if jobs.len() <= 1 {
        return vec![jobs.to_vec()];
    }
    let mut all = Vec::new();
    for (at, &first) in jobs.iter().enumerate() {
        let others: Vec<JobId> =
            jobs.iter().copied().enumerate().filter(|&(i, _)| i != at).map(|(_, job)| job).collect();
        all.extend(permutations(&others).into_iter().map(|rest| [vec![first], rest].concat()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_of_three_begin_with_the_given_one() {
        let orders = permutations(&[JobId(4), JobId(7), JobId(5)]);
        assert_eq!(orders[0], [JobId(4), JobId(7), JobId(5)]);
        let distinct: std::collections::BTreeSet<_> = orders.iter().collect();
        assert_eq!((orders.len(), distinct.len()), (6, 6));
    }
}
