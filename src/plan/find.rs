//! Finds a plan: the programs, searches and proofs put together.

use super::columns::{Asked, Columns, Objective};
use super::integer::Effort;
use super::layout::{Layout, Rules};
use super::limits::keep_limits;
use super::manner::Manner;
use super::order::hitless_order;
use super::pack::pack;
use super::question::{Cost, Goal, Plan, PlanOptions};
use super::realise::Rough;
use super::shares::plan_without_moves;
use super::site::{Site, Spot, WHOLE_JOB};
use super::steps::{Done, Mode, Step, carry_out};
use super::verdict::{NoPlan, verdict};
use super::ways::{Point, as_good};
use crate::cluster::Cluster;

/// Steps to look for a plan that is as good and leaves the nodes in better shape.
const STEPS_FOR_SHAPES: u64 = 1_000;

/// Makes a plan, whatever budgets there are.
pub(super) fn plan_freely(cluster: &Cluster, goal: Goal, options: &PlanOptions) -> Plan {
    let mut effort = options.effort.clone();
    let site = Site { cluster, goal, movable: &options.movable, cost: options.cost, ways: options.ways };
    if let Some(fits) = plan_without_moves(&site) {
        return fits;
    }
    let max_moves = options.max_moves.filter(|_| goal == Goal::LeastPartial);
    let mut answer = Finder { site, mode: options.mode, max_moves, effort: &mut effort }.find();
    if answer.feasible.is_none() && matches!(options.cost, Cost::Gpus | Cost::Seconds) {
        // Many kinds of costs make many kinds of nodes. By moves they are alike: some plan is better than none.
        let site = Site { cost: Cost::Moves, ..site };
        let by_moves = Finder { site, mode: options.mode, max_moves, effort: &mut effort }.find();
        answer = match by_moves.feasible {
            Some(true) => {
                let mut by_moves = by_moves;
                by_moves.retell(cluster, options.cost, answer.lower_bound);
                by_moves
            }
            Some(false) => by_moves,
            None => answer,
        };
    }
    if answer.feasible == Some(false) {
        (answer.why, answer.relax) = verdict(&Site { ways: false, ..site }, answer.why, &mut effort);
    }
    keep_limits(&mut answer, cluster, goal, options, |cost, max_moves| {
        let site = Site { cost, ..site };
        Finder { site, mode: options.mode, max_moves, effort: &mut effort }.find()
    });
    answer.by_clock = effort.by_clock();
    answer
}

/// The best that is known, and what is proved.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What it costs, where the guests come, and how.
    pub(super) best: Option<(i64, Rough)>,
    /// Other ways to do the same, at the same cost.
    pub(super) ways: Vec<Rough>,
    /// No plan costs less; `None` if there is no plan.
    pub(super) lower_bound: Option<i64>,
    /// Whether the second measure of the best is proved.
    pub(super) second: bool,
    /// Partial schedulable nodes after the best, where they are to be few, and whether fewer are proved not to be.
    pub(super) least_partial: Option<i64>,
    pub(super) partial_proved: bool,
}

/// A search for a plan: of what, how, and with how much effort.
pub(super) struct Finder<'a> {
    pub(super) site: Site<'a>,
    pub(super) mode: Mode,
    pub(super) max_moves: Option<u64>,
    pub(super) effort: &'a mut Effort,
}

impl Finder<'_> {
    /// What is best if all movers stop first.
    pub(super) fn all_at_once(&mut self) -> Found {
        let gangs_stay = self.site.some_gang_stays();
        let mut found = if gangs_stay { self.with_gangs() } else { self.solve(Rules::ALL, false, true) };
        if self.site.guest_is_share() {
            // It may fit beside another share, which is not looked at.
            found.lower_bound = Some(0);
        }
        if self.site.goal == Goal::LeastPartial && self.site.some_may_leave_a_cordoned_node() {
            // What runs there stays there in these plans; whether it would do better to leave is not looked at.
            found.lower_bound = found.lower_bound.map(|_| 0);
            found.partial_proved = false;
        }
        found
    }

    fn find(mut self) -> Plan {
        let mut found = self.all_at_once();
        let at_once = found.lower_bound;
        let mut no_order = None;
        if self.mode == Mode::Hitless && found.lower_bound.is_some() {
            let gangs_stay = self.site.some_gang_stays();
            (found, no_order) = self.one_after_another(found, gangs_stay);
        }
        let is_known = found.best.is_some() || found.lower_bound.is_none();
        let mut answer = Plan {
            lower_bound: found.lower_bound.map(|bound| self.told(bound)),
            why: no_order.map(|_| NoPlan::HitlessOrder),
            no_order,
            ..Plan::default()
        };
        if found.best.is_none() {
            (answer.feasible, answer.optimal) = (is_known.then_some(false), is_known);
            return answer;
        }
        if self.mode == Mode::StopFirst {
            // Whoever carries it out without stopping all at once may like an order.
            let roughs = found.best.iter_mut().map(|(_, rough)| rough).chain(&mut found.ways);
            for rough in roughs {
                if let Some(order) = hitless_order(self.site.cluster, &rough.moves) {
                    rough.moves = order;
                }
            }
        }
        answer.ways = as_good(&self.site, &mut found, self.mode);
        let done =
            answer.ways.first().map(|way| carry_out(self.site.cluster, self.site.job(), &way.rough(), self.mode));
        debug_assert!(matches!(done, Some(Ok(_))), "{done:?}");
        if let Some(Ok(done)) = done {
            self.tell(&mut answer, &found, at_once, done);
        }
        answer
    }

    /// Fills in a plan that was carried out, and what is proved of it; no plan in which all movers stop first costs less
    /// than `at_once`.
    fn tell(&self, answer: &mut Plan, found: &Found, at_once: Option<i64>, done: Done) {
        let by_jobs = self.site.cost == Cost::Jobs;
        let few = self.site.goal != Goal::LeastPartial || found.partial_proved;
        (answer.steps, answer.place, answer.after) = (done.steps, done.place, Some(done.after));
        answer.feasible = Some(true);
        answer.cost = if by_jobs { answer.jobs_disturbed() } else { self.cost_of(&answer.steps) };
        answer.fewest_partial = self.site.goal == Goal::LeastPartial && found.partial_proved;
        answer.optimal = few && answer.lower_bound.is_some_and(|bound| answer.cost <= bound);
        answer.second_optimal = few && answer.steps.is_empty() || answer.optimal && found.second && !by_jobs;
        let fewest_moves = answer.optimal && (self.site.cost == Cost::Moves || answer.second_optimal);
        // What moves one after another may move twice: then so many moves are of fewer instances, and so may be of fewer
        // jobs. As many as end elsewhere would have to move if all stopped first.
        let movers = match self.mode {
            Mode::StopFirst => answer.steps.len() as u64,
            Mode::Hitless if self.site.cost == Cost::Moves => at_once.map_or(0, |bound| self.told(bound)),
            Mode::Hitless => 0,
        };
        let fewest_jobs = movers.div_ceil(self.most_movers_of_a_job() as u64);
        answer.jobs_optimal = by_jobs && answer.optimal || fewest_moves && answer.jobs_disturbed() <= fewest_jobs;
    }

    fn cost_of(&self, steps: &[Step]) -> u64 {
        steps.iter().map(|step| self.site.move_cost(step.job).max(0) as u64).sum()
    }

    pub(super) fn solve(&mut self, rules: Rules, apart: bool, second: bool) -> Found {
        match self.site.goal {
            Goal::LeastPartial => pack(&self.site, rules, apart, self.max_moves, self.effort),
            _ => {
                let found = solve(&self.site, rules, apart, second, self.effort);
                let is_unknown = found.best.is_none() && found.lower_bound.is_some();
                if is_unknown && self.site.cost == Cost::Jobs { self.jobs_by_moves(rules, apart) } else { found }
            }
        }
    }

    /// Jobs of unlike sizes may make too many classes. A plan of few moves disturbs few jobs, and each job has only so many
    /// instances that may move.
    fn jobs_by_moves(&mut self, rules: Rules, apart: bool) -> Found {
        let by_moves = Site { cost: Cost::Moves, ..self.site };
        let found = solve(&by_moves, rules, apart, false, self.effort);
        let of_a_job = WHOLE_JOB / self.most_movers_of_a_job();
        Found {
            best: found.best.map(|(moves, rough)| (moves * WHOLE_JOB, rough)),
            ways: found.ways,
            lower_bound: found.lower_bound.map(|moves| moves * of_a_job),
            ..Found::default()
        }
    }

    /// The most instances of one job that may move.
    fn most_movers_of_a_job(&self) -> i64 {
        let cluster = self.site.cluster;
        let movable = cluster.job_ids().filter(|&job| cluster.job(job).runs() && self.site.movable[job.index()]);
        movable.map(|job| i64::from(cluster.job(job).instances())).max().unwrap_or(1).max(1)
    }

    /// A bound in the unit that it is told in.
    fn told(&self, bound: i64) -> u64 {
        let unit = if self.site.cost == Cost::Jobs { WHOLE_JOB as u64 } else { 1 };
        (bound.max(0) as u64).div_ceil(unit)
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
        found.ways.retain(fits);
        return found;
    }
    found.ways.clear();
    let touched = found.best.take().map(|(_, rough)| rough).unwrap_or_default();
    found.second = false;
    for most in [160, 80, 40] {
        let part = site.part(&touched, most);
        if let Ok(layout) = site.layout(rules, Some(&part))
            && let Some(restricted) = solve_layout(site, &layout, rules, apart, false, effort)
        {
            (found.best, found.ways) = (restricted.best, restricted.ways);
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
    let mut point: Option<Point> = None;
    while let Some((floor, spot)) = spots.pop_if(|(floor, _)| *floor < limit) {
        let columns = Columns::new(layout, &Asked { apart, ..Asked::of(&spot) }).ok()?;
        let solution = columns.program.solve(floor, limit, effort);
        let bound = solution.lower_bound;
        if let Some((cost, values)) = solution.best {
            let here = Point { columns, inside: spot.inside.clone(), guests: spot.count, values };
            let rough = here.realised(site, layout, Manner::PLAIN);
            debug_assert!(rough.is_some());
            limit = cost;
            found.best = rough.map(|rough| (limit, rough));
            point = Some(here);
        }
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
            let asked = Asked { apart, objective: site.second(), most_cost: Some(limit), ..Asked::of(spot) };
            let (better, proved) = second_measure(site, layout, &asked, least, effort)?;
            found.second &= proved;
            if let Some((cost, rough, here)) = better {
                least = cost;
                found.best = Some((limit, rough));
                point = Some(here);
            }
        }
    }
    if let (Some((_, rough)), Some(point)) = (&found.best, &point) {
        found.ways = point.ways(site, layout, rough);
        if site.ways && found.second {
            let second = Some((site.second(), second_of(site, rough)));
            let asked = Asked {
                apart,
                objective: Objective::Shapes,
                most_cost: Some(limit),
                most_second: second,
                shapes: Some(site.cluster),
                ..Asked::within(point.inside.as_deref(), point.guests)
            };
            let other = second_measure(site, layout, &asked, i64::MAX >> 1, effort).and_then(|(found, _)| found);
            if let Some((_, way, point)) = other {
                let more = std::iter::once(way.clone()).chain(point.ways(site, layout, &way).into_iter().take(1));
                let more: Vec<Rough> = more.filter(|way| way != rough && !found.ways.contains(way)).collect();
                found.ways.extend(more);
            }
        }
    }
    Some(found)
}

/// The second measure of a plan.
pub(super) fn second_of(site: &Site<'_>, rough: &Rough) -> i64 {
    let jobs = rough.moves.iter().map(|one| site.cluster.instance(one.instance).job());
    let gpus = |job| i64::from(site.cluster.request_of(job).gpus);
    jobs.map(|job| if site.cost == Cost::Moves { gpus(job) } else { 1 }).sum()
}

/// A plan by its second measure, and the point that it is for.
type Better = (i64, Rough, Point);

/// Of the plans that are best by the first measure, one with the least of the second, if less than `limit`; and whether
/// that is proved.
pub(super) fn second_measure(
    site: &Site<'_>,
    layout: &Layout,
    asked: &Asked<'_>,
    limit: i64,
    effort: &mut Effort,
) -> Option<(Option<Better>, bool)> {
    let columns = Columns::new(layout, asked).ok()?;
    // It is worth less than the first measure, and must not eat up what the rest needs.
    let most = if asked.objective == Objective::Shapes { STEPS_FOR_SHAPES } else { u64::MAX };
    let given = (effort.left() / 4).min(most);
    let mut part = effort.part(given);
    let solution = columns.program.solve(0, limit, &mut part);
    effort.settle(given, &part);
    let proved =
        solution.lower_bound.is_none_or(|bound| solution.best.as_ref().is_some_and(|(cost, _)| *cost <= bound));
    let better = solution.best.and_then(|(cost, values)| {
        let inside = asked.inside.map(<[_]>::to_vec);
        let point = Point { columns, inside, guests: asked.count, values };
        Some((cost, point.realised(site, layout, Manner::PLAIN)?, point))
    });
    Some((better, proved))
}
