//! Why there is no plan, and what little more would allow one.

use std::collections::BTreeMap;

use super::columns::{Asked, Columns, Meaning, Objective};
use super::find::solve;
use super::integer::Effort;
use super::layout::{GUEST, Layout, Rules};
use super::manner::Manner;
use super::question::Goal;
use super::realise::realise;
use super::site::{Site, guest_of};
use crate::cluster::{Cluster, JobId, NodeId, Within};

/// Why there is no plan; the first that is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlan {
    /// Fewer GPUs are free on schedulable nodes than are asked for.
    Capacity,
    /// There is a plan if all movers stop first, and no order in which each finds its target free.
    HitlessOrder,
    /// There would be a plan if no job were pinned.
    Pinned,
    /// There would be a plan by GPUs alone; CPU, memory, model or topology forbids it.
    Constraint,
    /// Enough GPUs are free, and no packing of what runs leaves room, wherever it is moved.
    Fragmentation,
    /// There is a plan, with more moves than the user allows.
    MaxMoves,
    /// There is a plan, that disturbs more jobs than the user allows.
    MaxJobsDisturbed,
}

impl NoPlan {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            NoPlan::Capacity => "capacity",
            NoPlan::HitlessOrder => "hitless-order",
            NoPlan::Pinned => "pinned",
            NoPlan::Constraint => "constraint",
            NoPlan::Fragmentation => "fragmentation",
            NoPlan::MaxMoves => "max-moves",
            NoPlan::MaxJobsDisturbed => "max-jobs-disturbed",
        }
    }
}

/// A change that would allow a plan. Each is proved to, and to be the least of its kind unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relaxation {
    /// So many GPUs more at least; no plan does with fewer, wherever they become free.
    Capacity(u64),
    /// So many GPUs more on these nodes, one entry each.
    FreeGpus(Vec<NodeId>),
    /// These jobs allowed to move; it takes so many moves of their instances.
    Unpin {
        /// The jobs, ascending.
        jobs: Vec<JobId>,
        /// Moves of their instances, the fewest.
        moves: u64,
    },
    /// No limits of CPU and memory.
    WithoutCpuAndMemory,
    /// No wishes of models and topology.
    WithoutModelsAndTopology,
    /// All movers stopped at once.
    StopFirst,
}

/// Says why a site that has no plan has none.
pub(super) fn verdict(
    site: &Site<'_>,
    known: Option<NoPlan>,
    effort: &mut Effort,
) -> (Option<NoPlan>, Vec<Relaxation>) {
    if known == Some(NoPlan::HitlessOrder) {
        return (known, vec![Relaxation::StopFirst]);
    }
    if let Goal::FreeNodes(count) = site.goal
        && site.cluster.nodes().iter().filter(|node| node.schedulable()).count() < count as usize
    {
        return (Some(NoPlan::Capacity), Vec::new());
    }
    let missing = missing_gpus(site);
    if missing > 0 {
        let missing = missing.max(missing_where_allowed(site));
        return (Some(NoPlan::Capacity), vec![Relaxation::Capacity(missing)]);
    }
    let mut has_plan = |rules: Rules| solve(site, rules, false, false, effort).best.is_some();
    let pins = has_plan(Rules { pins: false, ..Rules::ALL });
    let resources = has_plan(Rules { resources: false, ..Rules::ALL });
    let wishes = has_plan(Rules { wishes: false, ..Rules::ALL });
    let constraint = resources || wishes || has_plan(Rules::GPUS) || has_plan(Rules { pins: false, ..Rules::GPUS });
    let mut relax = Vec::new();
    if pins {
        relax.extend(unpin(site, effort));
    }
    if resources {
        relax.push(Relaxation::WithoutCpuAndMemory);
    }
    if wishes {
        relax.push(Relaxation::WithoutModelsAndTopology);
    }
    relax.extend(gifts(site, effort));
    let why = if pins {
        NoPlan::Pinned
    } else if constraint {
        NoPlan::Constraint
    } else {
        NoPlan::Fragmentation
    };
    (Some(why), relax)
}

/// GPUs that are asked for beyond those free on schedulable nodes.
fn missing_gpus(site: &Site<'_>) -> u64 {
    let nodes = site.cluster.nodes().iter().filter(|node| node.schedulable());
    let free: u64 = nodes.clone().map(|node| u64::from(node.free_gpus())).sum();
    let asked = match site.goal {
        Goal::Job(job) => asked_gpus(site, job),
        Goal::FreeNodes(count) => {
            let mut sizes: Vec<u64> = nodes.map(|node| u64::from(node.capacity())).filter(|&size| size > 0).collect();
            sizes.sort_unstable();
            if sizes.len() < count as usize {
                return 0;
            }
            sizes[..count as usize].iter().sum()
        }
        Goal::FreeRegion(within) => smallest_region(site.cluster, within),
        Goal::LeastPartial => 0,
    };
    asked.saturating_sub(free)
}

/// The GPUs of the smallest region whose nodes are all schedulable; 0 if there is none.
fn smallest_region(cluster: &Cluster, within: Within) -> u64 {
    let mut regions: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    for node in cluster.nodes() {
        let Some(region) = node.region(within) else { continue };
        let gpus = regions.entry(region).or_insert(Some(0));
        *gpus = gpus.filter(|_| node.schedulable()).map(|sum| sum + u64::from(node.capacity()));
    }
    regions.into_values().flatten().min().unwrap_or(0)
}

fn asked_gpus(site: &Site<'_>, job: JobId) -> u64 {
    u64::from(site.cluster.request_of(job).gpus) * u64::from(site.cluster.job(job).instances())
}

/// GPUs that are missing on the nodes that the job may use, even if what may move leaves them for others as far as those have
/// room: no plan does with fewer.
fn missing_where_allowed(site: &Site<'_>) -> u64 {
    let (Goal::Job(job), cluster) = (site.goal, site.cluster) else { return 0 };
    let request = cluster.request_of(job);
    let is_of_use = |node: NodeId| cluster.admits(node, request) && cluster.node(node).capacity() >= request.gpus;
    let free = |of_use: bool| -> u64 {
        let nodes = cluster.node_ids().filter(|&node| cluster.node(node).schedulable() && is_of_use(node) == of_use);
        nodes.map(|node| u64::from(cluster.node(node).free_gpus())).sum()
    };
    let movers = site.movers().filter(|&(_, node)| is_of_use(node));
    let may_leave: u64 = movers.map(|(instance, _)| u64::from(cluster.instance(instance).gpus().count_ones())).sum();
    asked_gpus(site, job).saturating_sub(free(true) + free(false).min(may_leave))
}

/// The fewest pinned instances that would have to move.
fn unpin(site: &Site<'_>, effort: &mut Effort) -> Option<Relaxation> {
    let rules = Rules { pins: false, ..Rules::ALL };
    let cost = |job: JobId| i64::from(!site.movable[job.index()]);
    let layout = Layout::new(site.cluster, guest_of(site), rules, site.movable, None, &cost).ok()?;
    let mut best: Option<(i64, Vec<JobId>)> = None;
    for (floor, spot) in site.ranked_spots(&layout, rules).into_iter().rev() {
        let limit = best.as_ref().map_or(i64::MAX >> 1, |(moves, _)| *moves);
        if floor >= limit {
            break;
        }
        let asked = Asked::of(&spot);
        let columns = Columns::new(&layout, &asked).ok()?;
        let Some((cost, values)) = columns.program.solve(floor, limit, effort).best else { continue };
        let rough =
            realise(site.cluster, &layout, &columns, spot.inside.as_deref(), spot.count, &values, Manner::PLAIN)?;
        let jobs = rough.moves.iter().map(|one| site.cluster.instance(one.instance).job());
        let mut jobs: Vec<JobId> = jobs.filter(|job| !site.movable[job.index()]).collect();
        jobs.sort_unstable();
        jobs.dedup();
        best = Some((cost, jobs));
    }
    best.map(|(moves, jobs)| Relaxation::Unpin { jobs, moves: moves as u64 })
}

/// The fewest GPUs that would have to become free besides, and where.
fn gifts(site: &Site<'_>, effort: &mut Effort) -> Option<Relaxation> {
    let rules = Rules { by_capacity: true, ..Rules::ALL };
    let layout = Layout::new(site.cluster, guest_of(site), rules, site.movable, None, &|_| 0).ok()?;
    if layout.items[GUEST].whole {
        return None;
    }
    let mut best: Option<(i64, Vec<NodeId>)> = None;
    for spot in site.spots(Rules::ALL) {
        let limit = best.as_ref().map_or(i64::MAX >> 1, |(gpus, _)| *gpus);
        let asked = Asked { objective: Objective::Gifts, ..Asked::of(&spot) };
        let columns = Columns::new(&layout, &asked).ok()?;
        let Some((cost, values)) = columns.program.solve(1, limit, effort).best else { continue };
        let mut nodes = Vec::new();
        let mut given = vec![0usize; columns.cells.len()];
        for (meaning, &value) in columns.meanings.iter().zip(&values) {
            let Meaning::Leave { cell, gift, .. } = meaning else { continue };
            if *gift == 0 {
                continue;
            }
            let Some(here) = columns.cells.get(*cell) else { continue };
            let is_inside = |node: &NodeId| spot.inside.as_ref().is_none_or(|inside| inside.contains(node));
            let members = layout.members[here.class as usize].iter().copied();
            let members = members.filter(|node| is_inside(node) == here.inside);
            for node in members.skip(given[*cell]).take(value as usize) {
                nodes.extend(std::iter::repeat_n(node, usize::from(*gift)));
            }
            given[*cell] += value as usize;
        }
        nodes.sort_unstable();
        best = Some((cost, nodes));
    }
    best.map(|(_, nodes)| Relaxation::FreeGpus(nodes))
}
