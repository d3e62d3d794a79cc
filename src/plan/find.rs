//! Finds a plan: the question in, the moves and what is proved of them out.

use super::columns::{Asked, Columns, Second};
use super::exhaust::{Exhausted, exhaust};
use super::integer::Effort;
use super::layout::{Guest, Layout, Rules};
use super::order::hitless_order;
use super::realise::{Rough, realise};
use super::site::{Site, Spot};
use super::steps::{Mode, Step, carry_out};
use super::verdict::{NoPlan, Relaxation, verdict};
use crate::cluster::{Cluster, GpuMask, JobId, NodeId, Within};

/// What room is to be made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// All instances of a job that does not run yet.
    Job(JobId),
    /// So many schedulable nodes on which no GPU is held.
    FreeNodes(u32),
    /// All nodes of one domain or rack schedulable and free.
    FreeRegion(Within),
}

/// What a plan is to have the least of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cost {
    /// Moves of an instance; then moved GPUs.
    #[default]
    Moves,
    /// Moved GPUs; then moves.
    Gpus,
    /// Seconds that the moves cost, by what is known of each job; then moves.
    Seconds,
}

impl Cost {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Moves, Self::Gpus, Self::Seconds];

    /// The word on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cost::Moves => "moves",
            Cost::Gpus => "gpus",
            Cost::Seconds => "seconds",
        }
    }
}

/// How to plan.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// How moves are carried out.
    pub mode: Mode,
    /// Whether each job may be moved, by its number.
    pub movable: Vec<bool>,
    /// What is to be the least.
    pub cost: Cost,
    /// No plan of more moves.
    pub max_moves: Option<u64>,
    /// No plan that moves instances of more jobs.
    pub max_jobs_disturbed: Option<u64>,
    /// How much may be tried.
    pub effort: Effort,
}

impl PlanOptions {
    /// Everything that is migratable may be moved, and the fewest moves are wanted.
    pub fn new(cluster: &Cluster, mode: Mode, effort: Effort) -> Self {
        let movable = cluster.job_ids().map(|job| cluster.job(job).migratable()).collect();
        Self { mode, movable, cost: Cost::Moves, max_moves: None, max_jobs_disturbed: None, effort }
    }
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whether there is a plan; `None` if that was not settled.
    pub feasible: Option<bool>,
    /// Whether it is proved that no plan costs less, or that there is none.
    pub optimal: bool,
    /// Whether it is proved that of the plans of that cost none moves fewer GPUs (for `Cost::Moves`), or has fewer moves.
    pub second_optimal: bool,
    /// Whether it is proved that no such plan disturbs fewer jobs.
    pub jobs_optimal: bool,
    /// What the plan costs, by the measure that was asked for.
    pub cost: u64,
    /// No plan costs less; `None` if there is none at all.
    pub lower_bound: Option<u64>,
    /// The moves, in the order to carry them out.
    pub steps: Vec<Step>,
    /// Where the instances of the job come, or which nodes are free.
    pub place: Vec<(NodeId, GpuMask)>,
    /// The cluster afterwards, if there is a plan.
    pub after: Option<Cluster>,
    /// Why there is no plan.
    pub why: Option<NoPlan>,
    /// What little more would allow one.
    pub relax: Vec<Relaxation>,
    /// Whether the clock ended the search.
    pub by_clock: bool,
}

impl Plan {
    /// The GPUs that are moved.
    pub fn moved_gpus(&self) -> u64 {
        self.steps.iter().map(|step| u64::from(step.gpus.count_ones())).sum()
    }

    /// The seconds that the moves cost, if they are known of each job that moves.
    pub fn seconds(&self, cluster: &Cluster) -> Option<u64> {
        self.steps.iter().map(|step| move_seconds(cluster, step.job)).sum()
    }

    /// The jobs of which an instance is moved.
    pub fn jobs_disturbed(&self) -> u64 {
        let mut jobs: Vec<JobId> = self.steps.iter().map(|step| step.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs.len() as u64
    }
}

/// Clusters of more nodes are not searched state by state.
const MOST_NODES_TO_EXHAUST: usize = 64;

/// Makes a plan. The jobs of the cluster must not be more than `options.movable` has entries.
pub fn plan(cluster: &Cluster, goal: Goal, options: &PlanOptions) -> Plan {
    let mut effort = options.effort.clone();
    let site = Site { cluster, goal, movable: &options.movable, cost: options.cost };
    let mut answer = Finder { site, mode: options.mode, effort: &mut effort }.find();
    if answer.feasible == Some(false) {
        (answer.why, answer.relax) = verdict(&site, answer.why, &mut effort);
    }
    keep_limits(&mut answer, options);
    answer.by_clock = effort.by_clock();
    answer
}

/// Takes back a plan that exceeds what the user allows.
fn keep_limits(answer: &mut Plan, options: &PlanOptions) {
    let (moves, jobs) = (answer.steps.len() as u64, answer.jobs_disturbed());
    let too_many = options.max_moves.is_some_and(|most| moves > most);
    let too_many_jobs = options.max_jobs_disturbed.is_some_and(|most| jobs > most);
    if !too_many && !too_many_jobs {
        return;
    }
    // Whether every plan exceeds it, as far as is proved. Where something must move, a job is disturbed.
    let fewest = if options.cost == Cost::Moves { answer.lower_bound.unwrap_or(0) } else { 0 };
    let none = options.max_moves.is_some_and(|most| fewest > most);
    let none_by_jobs =
        options.max_jobs_disturbed.is_some_and(|most| most == 0 && fewest > 0 || answer.jobs_optimal && jobs > most);
    answer.why = match (none, none_by_jobs) {
        (true, _) => Some(NoPlan::MaxMoves),
        (false, true) => Some(NoPlan::MaxJobsDisturbed),
        (false, false) => None,
    };
    answer.feasible = answer.why.map(|_| false);
    answer.optimal = answer.why.is_some();
    (answer.second_optimal, answer.jobs_optimal) = (false, false);
    (answer.steps, answer.place, answer.after) = (Vec::new(), Vec::new(), None);
}

/// What moving an instance of a job costs, in seconds, as far as is known: a job that ends before has nothing to lose.
pub(super) fn move_seconds(cluster: &Cluster, job: JobId) -> Option<u64> {
    let times = cluster.job_times(job);
    times.move_cost_s.into_iter().chain(times.remaining_s).min()
}

/// The best that is known, and what is proved.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What it costs, where the guests come, and how.
    pub(super) best: Option<(i64, Rough)>,
    /// No plan costs less; `None` if there is no plan.
    pub(super) lower_bound: Option<i64>,
    /// Whether the second measure of the best is proved.
    pub(super) second: bool,
}

struct Finder<'a> {
    site: Site<'a>,
    mode: Mode,
    effort: &'a mut Effort,
}

impl Finder<'_> {
    fn find(mut self) -> Plan {
        let gangs_stay = self.site.some_gang_stays();
        let mut found = solve(&self.site, Rules::ALL, false, true, self.effort);
        if gangs_stay {
            // What holds where gangs may be torn apart holds where a gang may move as a whole.
            let torn = solve(&self.site, Rules { stay: false, ..Rules::ALL }, false, false, self.effort);
            found.lower_bound = torn.lower_bound;
            found.second = false;
        }
        let mut why = None;
        if self.mode == Mode::Hitless && found.lower_bound.is_some() {
            let order = found.best.as_mut().and_then(|(_, rough)| {
                rough.moves = hitless_order(self.site.cluster, &rough.moves)?;
                Some(())
            });
            if order.is_none() {
                found = self.one_by_one(found, gangs_stay);
                why = found.lower_bound.is_none().then_some(NoPlan::HitlessOrder);
            }
        }
        let mut answer = Plan {
            feasible: None,
            optimal: false,
            second_optimal: false,
            jobs_optimal: false,
            cost: 0,
            lower_bound: found.lower_bound.map(|bound| bound.max(0) as u64),
            steps: Vec::new(),
            place: Vec::new(),
            after: None,
            why,
            relax: Vec::new(),
            by_clock: false,
        };
        match found.best {
            Some((cost, mut rough)) => {
                if self.mode == Mode::StopFirst
                    && let Some(order) = hitless_order(self.site.cluster, &rough.moves)
                {
                    // Whoever carries it out without stopping all at once may like that.
                    rough.moves = order;
                }
                let done = carry_out(self.site.cluster, self.site.job(), &rough, self.mode);
                debug_assert!(done.is_ok(), "{done:?}");
                if let Ok(done) = done {
                    answer.feasible = Some(true);
                    answer.cost = cost as u64;
                    answer.optimal = answer.lower_bound.is_some_and(|bound| answer.cost <= bound);
                    (answer.steps, answer.place, answer.after) = (done.steps, done.hosts, Some(done.after));
                    answer.second_optimal = answer.steps.is_empty() || answer.optimal && found.second;
                    let fewest_moves = answer.optimal && (self.site.cost == Cost::Moves || answer.second_optimal);
                    answer.jobs_optimal = fewest_moves && answer.jobs_disturbed() <= self.fewest_jobs(&answer);
                }
            }
            None if found.lower_bound.is_none() => {
                (answer.feasible, answer.optimal) = (Some(false), true);
            }
            None => {}
        }
        answer
    }

    /// Moves one after another, where no order of the best plan is one.
    fn one_by_one(&mut self, stop_first: Found, gangs_stay: bool) -> Found {
        // Nodes that either lose or receive: any order will do.
        let mut found = solve(&self.site, Rules::ALL, true, true, self.effort);
        found.lower_bound = stop_first.lower_bound;
        let mut best = found.best.as_ref().map_or(i64::MAX, |(cost, _)| *cost);
        if Some(best) == found.lower_bound {
            return found;
        }
        let spots = self.site.spots(Rules::ALL);
        let small = self.site.cluster.nodes().len() <= MOST_NODES_TO_EXHAUST;
        let count = spots.first().map_or(0, |spot| spot.count);
        if !small || spots.iter().any(|spot| spot.count != count) {
            return found;
        }
        let Ok(layout) = self.site.layout(Rules::ALL, None) else { return found };
        let regions: Vec<Option<Vec<NodeId>>> = spots.into_iter().map(|spot| spot.inside).collect();
        match exhaust(&layout, &regions, count, best, self.effort) {
            Exhausted::Found(cost, rough) => {
                best = cost;
                found.best = Some((cost, rough));
                found.second = false;
                if !gangs_stay {
                    found.lower_bound = Some(best);
                }
            }
            Exhausted::Nothing if gangs_stay => {}
            Exhausted::Nothing => found.lower_bound = found.best.is_some().then_some(best),
            Exhausted::GivenUp(bound) if !gangs_stay => found.lower_bound = found.lower_bound.max(Some(bound)),
            Exhausted::GivenUp(_) => {}
        }
        found
    }

    /// No plan with so many moves disturbs fewer jobs.
    fn fewest_jobs(&self, answer: &Plan) -> u64 {
        let cluster = self.site.cluster;
        let movable = cluster.job_ids().filter(|&job| cluster.job(job).runs() && self.site.movable[job.index()]);
        let largest = movable.map(|job| u64::from(cluster.job(job).instances())).max().unwrap_or(1);
        (answer.steps.len() as u64).div_ceil(largest.max(1))
    }
}

/// The best plan by the rules in which all movers stop first. With `apart`, nodes that lose instances receive none.
pub(super) fn solve(site: &Site<'_>, rules: Rules, apart: bool, second: bool, effort: &mut Effort) -> Found {
    let layout = site.layout(rules, None);
    if let Ok(layout) = &layout
        && let Some(found) = solve_layout(site, layout, rules, apart, second, effort)
    {
        return found;
    }
    // Too many classes: the bound comes from GPUs alone, the plan from a part of the nodes.
    let looser = Rules { resources: false, stay: false, ..rules };
    let bound = match site.layout(looser, None) {
        Ok(looser_layout) => solve_layout(site, &looser_layout, looser, apart, second, effort),
        Err(_) => None,
    };
    let Some(mut found) = bound else { return Found { lower_bound: Some(0), ..Found::default() } };
    let fits =
        |rough: &Rough| site.keeps_gangs(rough) && carry_out(site.cluster, site.job(), rough, Mode::StopFirst).is_ok();
    if found.best.as_ref().is_some_and(|(_, rough)| fits(rough)) {
        return found;
    }
    let touched = found.best.take().map(|(_, rough)| rough).unwrap_or_default();
    found.second = false;
    for most in [160, 80, 40] {
        let part = site.part(&touched, most);
        if let Ok(layout) = site.layout(rules, Some(&part))
            && let Some(restricted) = solve_layout(site, &layout, rules, apart, false, effort)
        {
            found.best = restricted.best;
            break;
        }
    }
    found
}

/// The best plan of a layout; `None` if it is too large.
fn solve_layout(
    site: &Site<'_>,
    layout: &Layout,
    rules: Rules,
    apart: bool,
    second: bool,
    effort: &mut Effort,
) -> Option<Found> {
    let mut spots = site.ranked_spots(layout, rules);
    let mut found = Found::default();
    let mut limit = layout.n_movers.iter().zip(&layout.items).map(|(n, item)| n * item.cost).sum::<i64>() + 1;
    let mut tried: Vec<(i64, Spot)> = Vec::new();
    while let Some((floor, spot)) = spots.pop_if(|(floor, _)| *floor < limit) {
        let columns = Columns::new(layout, &Asked { apart, ..Asked::of(&spot) }).ok()?;
        let solution = columns.program.solve(floor, limit, effort);
        if let Some((cost, values)) = &solution.best {
            let rough = realise(site.cluster, layout, &columns, spot.inside.as_deref(), spot.count, values);
            debug_assert!(rough.is_some());
            limit = *cost;
            found.best = rough.map(|rough| (limit, rough));
        }
        let bound = solution.lower_bound;
        found.lower_bound = found.lower_bound.into_iter().chain(bound).min();
        tried.push((bound.unwrap_or(limit), spot));
    }
    if let Some((cost, _)) = found.best {
        found.lower_bound = found.lower_bound.into_iter().chain([cost]).min();
    }
    if second && found.best.is_some() && found.lower_bound == Some(limit) && limit > 0 {
        found.second = true;
        let mut least = i64::MAX >> 1;
        for (_, spot) in tried.iter().chain(&spots).filter(|(bound, _)| *bound <= limit) {
            let measure = Second { most_cost: limit, gpus: site.cost != Cost::Gpus };
            let (better, proved) = second_measure(site, layout, apart, spot, measure, least, effort)?;
            found.second &= proved;
            if let Some((cost, rough)) = better {
                least = cost;
                found.best = Some((limit, rough));
            }
        }
    }
    Some(found)
}

/// Of the plans at a spot that are best by the first measure, one with the least of the second, if less than `limit`; and
/// whether that is proved.
fn second_measure(
    site: &Site<'_>,
    layout: &Layout,
    apart: bool,
    spot: &Spot,
    measure: Second,
    limit: i64,
    effort: &mut Effort,
) -> Option<(Option<(i64, Rough)>, bool)> {
    let asked = Asked { apart, second: Some(measure), ..Asked::of(spot) };
    let columns = Columns::new(layout, &asked).ok()?;
    // It is worth less than the first measure, and must not eat up what the rest needs.
    let given = effort.left() / 4;
    let mut part = effort.part(given);
    let solution = columns.program.solve(0, limit, &mut part);
    effort.settle(given, &part);
    let proved =
        solution.lower_bound.is_none_or(|bound| solution.best.as_ref().is_some_and(|(cost, _)| *cost <= bound));
    let better = solution.best.and_then(|(cost, values)| {
        let rough = realise(site.cluster, layout, &columns, spot.inside.as_deref(), spot.count, &values)?;
        Some((cost, rough))
    });
    Some((better, proved))
}

/// The guest of a goal.
pub(super) fn guest<'a>(cluster: &'a Cluster, goal: Goal) -> Guest<'a> {
    match goal {
        Goal::Job(job) => Guest::Job(cluster.request_of(job)),
        Goal::FreeNodes(_) | Goal::FreeRegion(_) => Guest::WholeNode,
    }
}
