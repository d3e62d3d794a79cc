//! Several ways to carry out one and the same solution, all of which cost the same.

use super::columns::Columns;
use super::detour::cost;
use super::find::{Found, second_of};
use super::layout::Layout;
use super::manner::Manner;
use super::question::{Cost, Goal, Plan};
use super::realise::{Move, Rough, realise};
use super::site::Site;
use super::steps::{Mode, Step, Trial, carry_out};
use crate::cluster::{Cluster, GpuMask, JobId, NodeId};

/// A point of a program, and where its guests come.
pub(super) struct Point {
    pub(super) columns: Columns,
    pub(super) inside: Option<Vec<NodeId>>,
    pub(super) guests: i64,
    pub(super) values: Vec<i64>,
}

impl Point {
    /// A plan for it, in some manner.
    pub(super) fn realised(&self, site: &Site<'_>, layout: &Layout, manner: Manner) -> Option<Rough> {
        realise(site.cluster, layout, &self.columns, self.inside.as_deref(), self.guests, &self.values, manner)
    }

    /// Plans for it other than `best`, each once.
    pub(super) fn ways(&self, site: &Site<'_>, layout: &Layout, best: &Rough) -> Vec<Rough> {
        let mut ways: Vec<Rough> = Vec::new();
        if !site.ways {
            return ways;
        }
        for manner in Manner::OTHERS {
            let way = self.realised(site, layout, manner);
            ways.extend(way.filter(|way| way != best && !ways.contains(way)));
        }
        ways
    }
}

/// A plan that was carried out: its moves in their order, and where the guests came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) steps: Vec<Step>,
    pub(super) place: Vec<(NodeId, GpuMask)>,
}

impl Way {
    /// Without the devices.
    pub(super) fn rough(&self) -> Rough {
        let moves = self.steps.iter().map(|step| Move { instance: step.instance, from: step.from, to: step.to });
        Rough { moves: moves.collect(), hosts: self.place.iter().map(|&(node, _)| node).collect() }
    }
}

/// What counts of a plan besides its proof: the measure that is asked for, the second, and disturbed jobs.
fn key(site: &Site<'_>, rough: &Rough) -> (i64, i64, usize) {
    let jobs = rough.moves.iter().map(|one| site.cluster.instance(one.instance).job());
    let second = second_of(site, rough);
    let mut jobs: Vec<JobId> = jobs.collect();
    jobs.sort_unstable();
    jobs.dedup();
    let first = if site.cost == Cost::Jobs { jobs.len() as i64 } else { cost(site, &rough.moves) };
    (first, second, jobs.len())
}

/// The best of what was found, first, and all others that can be carried out and are as good: as cheap by every measure
/// that plans are ranked by. The first found is the first of those that are as good.
pub(super) fn as_good(site: &Site<'_>, found: &mut Found, mode: Mode) -> Vec<Way> {
    let Some((_, best)) = &mut found.best else { return Vec::new() };
    let mut all = vec![(key(site, best), std::mem::take(best))];
    all.extend(found.ways.drain(..).map(|way| (key(site, &way), way)));
    let first = all.iter().map(|(key, _)| *key).min();
    let mut trial = Trial::new(site.cluster, site.job());
    let mut ways = Vec::new();
    for (key, rough) in all {
        if Some(key) != first {
            continue;
        }
        if site.keeps_gangs(&rough)
            && let Ok(way) = trial.carry_out(&rough, mode)
        {
            ways.push(way);
        }
        trial.take_back();
    }
    ways
}

impl Plan {
    /// Replaces the plan by another one of its ways. False, with the plan as it was, if that cannot be carried out, which it was
    /// when it was found.
    pub(super) fn take_way(&mut self, cluster: &Cluster, goal: Goal, mode: Mode, at: usize) -> bool {
        let job = if let Goal::Job(job) = goal { Some(job) } else { None };
        let Some(done) = self.ways.get(at).map(|way| carry_out(cluster, job, &way.rough(), mode)) else { return false };
        debug_assert!(done.is_ok(), "it was carried out before: {done:?}");
        let Ok(done) = done else { return false };
        (self.steps, self.place, self.after) = (done.steps, done.place, Some(done.after));
        true
    }
}
