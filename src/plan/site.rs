//! The question as the programs see it: where guests may go, how many, and what they compete with.

use rustc_hash::{FxHashMap, FxHashSet};

use super::columns::Objective;
use super::hosting::cheapest;
use super::layout::{Guest, Layout, Rules, TooManyItems};
use super::question::{Cost, Goal, guest, move_seconds};
use super::realise::Rough;
use crate::cluster::{Cluster, JobId, NodeId, Within};

/// A cluster, and what is asked of it.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) goal: Goal,
    pub(super) movable: &'a [bool],
    pub(super) cost: Cost,
    /// Whether several ways to carry out a solution are wanted.
    pub(super) ways: bool,
}

/// A part of the cluster in which all guests may come, and how many they are.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// Its nodes; `None` for all.
    pub(super) inside: Option<Vec<NodeId>>,
    pub(super) count: i64,
}

impl Site<'_> {
    /// The job that waits, if it is for one.
    pub(super) fn job(&self) -> Option<JobId> {
        match self.goal {
            Goal::Job(job) => Some(job),
            Goal::FreeNodes(_) | Goal::FreeRegion(_) | Goal::LeastPartial => None,
        }
    }

    /// What counts among plans that cost the same.
    pub(super) fn second(&self) -> Objective {
        if self.cost == Cost::Moves { Objective::Gpus } else { Objective::Moves }
    }

    /// The classes of the cluster, or of a part of its nodes.
    pub(super) fn layout(&self, rules: Rules, part: Option<&[bool]>) -> Result<Layout, TooManyItems> {
        let cost = |job: JobId| self.move_cost(job);
        Layout::new(self.cluster, guest(self.cluster, self.goal), rules, self.movable, part, &cost)
    }

    /// What moving an instance of a job costs.
    pub(super) fn move_cost(&self, job: JobId) -> i64 {
        match self.cost {
            Cost::Moves => 1,
            Cost::Gpus => i64::from(self.cluster.request_of(job).gpus),
            // No more than its share of the job that it disturbs, so that the sum is a bound on the jobs.
            Cost::Jobs => WHOLE_JOB / i64::from(self.cluster.job(job).instances()),
            Cost::Seconds => seconds(self.cluster, job),
        }
    }

    /// Where the guests may go.
    pub(super) fn spots(&self, rules: Rules) -> Vec<Spot> {
        match self.goal {
            Goal::Job(job) => {
                let count = i64::from(self.cluster.job(job).instances());
                match self.cluster.request_of(job).within.filter(|_| rules.wishes) {
                    None => vec![Spot { inside: None, count }],
                    Some(within) => {
                        let regions = self.regions(within).into_values();
                        regions.map(|nodes| Spot { inside: Some(self.schedulable(nodes)), count }).collect()
                    }
                }
            }
            Goal::FreeNodes(count) => vec![Spot { inside: None, count: i64::from(count) }],
            Goal::LeastPartial => vec![Spot { inside: None, count: 0 }],
            Goal::FreeRegion(within) => {
                let whole = |nodes: &Vec<NodeId>| nodes.iter().all(|&node| self.cluster.node(node).schedulable());
                let regions = self.regions(within).into_values().filter(whole);
                regions.map(|nodes| Spot { count: nodes.len() as i64, inside: Some(nodes) }).collect()
            }
        }
    }

    fn schedulable(&self, mut nodes: Vec<NodeId>) -> Vec<NodeId> {
        nodes.retain(|&node| self.cluster.node(node).schedulable());
        nodes
    }

    fn regions(&self, within: Within) -> std::collections::BTreeMap<u32, Vec<NodeId>> {
        let mut regions: std::collections::BTreeMap<u32, Vec<NodeId>> = std::collections::BTreeMap::new();
        for node in self.cluster.node_ids() {
            if let Some(region) = self.cluster.node(node).region(within) {
                regions.entry(region).or_default().push(node);
            }
        }
        regions
    }

    /// One of each kind of spot with the least that must leave it, the dearest first; not those that never do.
    pub(super) fn ranked_spots(&self, layout: &Layout, rules: Rules) -> Vec<(i64, Spot)> {
        let mut seen = FxHashSet::default();
        let mut costs: FxHashMap<(u32, i64), Vec<i64>> = FxHashMap::default();
        let mut ranked = Vec::new();
        for spot in self.spots(rules) {
            let Some(nodes) = &spot.inside else {
                ranked.push((0, spot));
                continue;
            };
            let classes = nodes.iter().map(|node| layout.class_of[node.index()]);
            let mut classes: Vec<u32> = classes.filter(|&class| class != u32::MAX).collect();
            classes.sort_unstable();
            if seen.contains(&classes) {
                continue;
            }
            for &number in &classes {
                costs.entry((number, spot.count)).or_insert_with(|| layout.host_costs(number, spot.count));
            }
            let hosts = classes.iter().map(|&class| &costs[&(class, spot.count)][..]);
            if let Some(least) = cheapest(hosts, spot.count as usize) {
                ranked.push((least, spot));
            }
            seen.insert(classes);
        }
        // The last is taken first; of equals the first in the file.
        ranked.reverse();
        ranked.sort_by_key(|&(least, _)| std::cmp::Reverse(least));
        ranked
    }

    /// Whether the job asks for less than a whole GPU.
    pub(super) fn guest_is_share(&self) -> bool {
        self.job().is_some_and(|job| self.cluster.request_of(job).is_share())
    }

    /// Whether an instance that has GPUs may leave a cordoned node.
    pub(super) fn some_may_leave_a_cordoned_node(&self) -> bool {
        let cluster = self.cluster;
        let movable = cluster.job_ids().filter(|&job| cluster.job(job).runs() && self.movable[job.index()]);
        let with_gpus = movable.filter(|&job| cluster.request_of(job).gpus > 0);
        let mut nodes =
            with_gpus.flat_map(|job| cluster.instances_of(job)).filter_map(|id| cluster.instance(id).node());
        nodes.any(|node| !cluster.node(node).schedulable())
    }

    /// Whether some running job must stay together while its instances may be moved.
    pub(super) fn some_gang_stays(&self) -> bool {
        self.cluster.job_ids().any(|job| {
            self.cluster.job(job).runs()
                && self.movable[job.index()]
                && !self.cluster.stands_alone(job)
                && self.cluster.request_of(job).within.is_some()
        })
    }

    /// Whether moves leave gangs together that are.
    pub(super) fn keeps_gangs(&self, rough: &Rough) -> bool {
        let to: FxHashMap<_, _> = rough.moves.iter().map(|one| (one.instance, one.to)).collect();
        rough.moves.iter().all(|one| {
            let cluster = self.cluster;
            let job = cluster.instance(one.instance).job();
            let Some(within) = cluster.request_of(job).within else { return true };
            let together = |moved: bool| {
                let instances = cluster.whole_job(job).flat_map(|group| cluster.instances_of(group));
                let mut regions = instances.map(|instance| {
                    let to = if moved { to.get(&instance).copied() } else { None };
                    cluster.node(to.or(cluster.instance(instance).node())?).region(within)
                });
                let first = regions.next().flatten();
                first.is_some() && regions.all(|region| region == first)
            };
            !together(false) || together(true)
        })
    }

    /// The nodes that a rough plan touches, and those that have most room, `most` in all.
    pub(super) fn part(&self, rough: &Rough, most: usize) -> Vec<bool> {
        let mut part = vec![false; self.cluster.nodes().len()];
        let touched = rough.moves.iter().flat_map(|one| [one.from, one.to]).chain(rough.hosts.iter().copied());
        touched.for_each(|node| part[node.index()] = true);
        let mut rest: Vec<NodeId> =
            self.cluster.node_ids().filter(|&node| self.cluster.node(node).schedulable()).collect();
        rest.sort_by_key(|&node| {
            let here = self.cluster.node(node);
            (std::cmp::Reverse((here.free_gpus(), here.cpu_free(), here.memory_free())), node)
        });
        let mut n = part.iter().filter(|&&inside| inside).count();
        for node in rest {
            if n >= most {
                break;
            }
            n += usize::from(!std::mem::replace(&mut part[node.index()], true));
        }
        part
    }
}

/// [`move_seconds`], 1 where nothing is known, which whoever asks for seconds rules out.
fn seconds(cluster: &Cluster, job: JobId) -> i64 {
    move_seconds(cluster, job).map_or(1, |seconds| i64::try_from(seconds).unwrap_or(i64::MAX).min(MOST_SECONDS))
}

/// What a whole job costs where jobs are counted; small sizes of gangs divide it.
pub(super) const WHOLE_JOB: i64 = 5_040;

/// A move that costs more is not told apart: sums must stay small.
const MOST_SECONDS: i64 = 1 << 24;

/// The guest of a site, for those who build layouts of their own.
pub(super) fn guest_of<'a>(site: &Site<'a>) -> Guest<'a> {
    guest(site.cluster, site.goal)
}
