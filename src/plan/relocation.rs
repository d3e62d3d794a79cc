//! Gangs that must stay in one domain or rack, and what it costs to take one to another as a whole.
//!
//! What is best where gangs may be torn apart, and happens to tear none, is best. Else the programs leave each such gang
//! where it is: its instances may move inside their region alone. A plan that takes a gang elsewhere moves all of its
//! instances, so what is best without costs no more than any that does, if it costs no more than the cheapest gang.

use rustc_hash::FxHashMap;

use super::find::{Finder, Found};
use super::layout::Rules;
use super::question::Goal;
use super::site::Site;
use crate::cluster::{Cluster, InstanceId, JobId, Within};

impl Finder<'_> {
    /// What is best if all movers stop first, where gangs must stay together.
    pub(super) fn with_gangs(&mut self) -> Found {
        // Half the effort is for plans that keep to it.
        let given = self.effort.left() / 2;
        let mut part = self.effort.part(given);
        let mut torn = Finder { site: self.site, mode: self.mode, max_moves: self.max_moves, effort: &mut part }.solve(
            Rules { stay: false, ..Rules::ALL },
            false,
            true,
        );
        self.effort.settle(given, &part);
        torn.ways.retain(|way| self.site.keeps_gangs(way));
        if torn.best.as_ref().map_or(torn.lower_bound.is_none(), |(_, rough)| self.site.keeps_gangs(rough)) {
            return torn;
        }
        let mut found = self.solve(Rules::ALL, false, true);
        let Some(least) = self.site.least_relocation() else { return found };
        let cost = found.best.as_ref().map(|&(cost, _)| cost);
        if self.site.goal == Goal::LeastPartial {
            found.lower_bound = torn.lower_bound;
            found.second = false;
            found.partial_proved &= torn.partial_proved;
            if torn.least_partial < found.least_partial {
                // Nobody knows whether that many could be had with the gangs together.
                (found.lower_bound, found.partial_proved) = (Some(0), false);
            }
            return found;
        }
        // Without a bound nothing is found with every gang in its region.
        let either = found.lower_bound.map_or(least, |bound| bound.min(least));
        found.lower_bound = torn.lower_bound.max(Some(either));
        found.second &= found.lower_bound == cost && cost < Some(least);
        found
    }
}

/// What an instance must share with others, if there are any.
pub(super) fn bond(cluster: &Cluster, instance: InstanceId) -> Option<Within> {
    let job = cluster.instance(instance).job();
    cluster.request_of(job).within.filter(|_| !cluster.stands_alone(job))
}

impl Site<'_> {
    /// What it costs at least to take one of the gangs that are together to another region; `None` if none can go.
    /// O(nodes + instances).
    pub(super) fn least_relocation(&self) -> Option<i64> {
        let mut rooms: Vec<(Within, Rooms)> = Vec::new();
        let mut least: Option<i64> = None;
        for (gang, within, here) in self.gangs() {
            let rooms = match rooms.iter().position(|(known, _)| *known == within) {
                Some(at) => &rooms[at].1,
                None => {
                    rooms.push((within, Rooms::new(self.cluster, self.movable, within)));
                    &rooms[rooms.len() - 1].1
                }
            };
            let instances = |job: JobId| i64::from(self.cluster.job(job).instances());
            let gpus = |job: JobId| instances(job) * i64::from(self.cluster.request_of(job).gpus);
            if rooms.most_outside(here) < gang.clone().map(gpus).sum() {
                continue;
            }
            let cost = gang.map(|job| instances(job) * self.move_cost(job)).sum();
            least = Some(least.map_or(cost, |least: i64| least.min(cost)));
        }
        least
    }

    /// The gangs that may be moved as a whole, each with the region that all of its instances are in.
    fn gangs(&self) -> impl Iterator<Item = (impl Iterator<Item = JobId> + Clone, Within, u32)> {
        let cluster = self.cluster;
        cluster.job_ids().filter_map(move |job| {
            let within = cluster.request_of(job).within?;
            let mut gang = cluster.whole_job(job);
            let is_first = gang.clone().next() == Some(job) && !cluster.stands_alone(job);
            let may_move = |job: JobId| cluster.job(job).runs() && self.movable[job.index()];
            let here = (is_first && gang.all(may_move)).then(|| home(cluster, job, within))??;
            Some((cluster.whole_job(job), within, here))
        })
    }
}

/// The region that holds all instances of a job and of those that are one with it, if one does.
pub(super) fn home(cluster: &Cluster, job: JobId, within: Within) -> Option<u32> {
    let instances = cluster.whole_job(job).flat_map(|group| cluster.instances_of(group));
    let nodes = instances.filter_map(|instance| cluster.instance(instance).node());
    let mut regions = nodes.map(|node| cluster.node(node).region(within));
    regions.next().flatten().filter(|first| regions.all(|other| other == Some(*first)))
}

/// The GPUs of regions that are free or can be made free, at most.
struct Rooms {
    /// The two largest, with their regions.
    largest: [(Option<u32>, i64); 2],
}

impl Rooms {
    fn new(cluster: &Cluster, movable: &[bool], within: Within) -> Self {
        let mut of: FxHashMap<u32, i64> = FxHashMap::default();
        for node in cluster.node_ids().map(|id| cluster.node(id)).filter(|node| node.schedulable()) {
            if let Some(region) = node.region(within) {
                *of.entry(region).or_default() += i64::from(node.free_gpus());
            }
        }
        for job in cluster.job_ids().filter(|&job| cluster.job(job).runs() && movable[job.index()]) {
            for instance in cluster.instances_of(job).map(|instance| cluster.instance(instance)) {
                let node = instance.node().map(|node| cluster.node(node)).filter(|node| node.schedulable());
                if let Some(region) = node.and_then(|node| node.region(within)) {
                    *of.entry(region).or_default() += i64::from(cluster.request_of(job).gpus);
                }
            }
        }
        let mut largest = [(None, -1); 2];
        for (&region, &room) in &of {
            // Which of equals comes first does not matter: only the sizes are told.
            if room > largest[0].1 {
                largest = [(Some(region), room), largest[0]];
            } else if room > largest[1].1 {
                largest[1] = (Some(region), room);
            }
        }
        Self { largest }
    }

    /// The most that another region has; -1 if there is none.
    fn most_outside(&self, here: u32) -> i64 {
        let [first, second] = self.largest;
        if first.0 == Some(here) { second.1 } else { first.1 }
    }
}
