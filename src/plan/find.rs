//! Finds a plan: the programs, searches and proofs put together.

use super::columns::{Asked, Columns};
use super::exhaust::{Exhausted, exhaust};
use super::hosting::has_too_many_ways;
use super::integer::Effort;
use super::layout::{Layout, Rules};
use super::order::hitless_order;
use super::pack::pack;
use super::question::{Cost, Goal, Plan, PlanOptions, keep_limits};
use super::realise::{Rough, realise};
use super::shares::plan_without_moves;
use super::site::{Site, Spot, WHOLE_JOB};
use super::steps::{Mode, carry_out};
use super::verdict::{NoPlan, verdict};
use crate::cluster::{Cluster, NodeId};

/// Clusters of more nodes are not searched state by state.
const MOST_NODES_TO_EXHAUST: usize = 64;

/// Makes a plan, whatever budgets there are.
pub(super) fn plan_freely(cluster: &Cluster, goal: Goal, options: &PlanOptions) -> Plan {
    let mut effort = options.effort.clone();
    let site = Site { cluster, goal, movable: &options.movable, cost: options.cost };
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
                let seconds = by_moves.seconds(cluster).unwrap_or(u64::MAX);
                let cost = if options.cost == Cost::Gpus { by_moves.moved_gpus() } else { seconds };
                let optimal = answer.lower_bound.is_some_and(|bound| cost <= bound);
                let lower_bound = answer.lower_bound;
                Plan { cost, optimal, lower_bound, second_optimal: false, jobs_optimal: false, ..by_moves }
            }
            Some(false) => by_moves,
            None => answer,
        };
    }
    if answer.feasible == Some(false) {
        (answer.why, answer.relax) = verdict(&site, answer.why, &mut effort);
    }
    keep_limits(&mut answer, options);
    answer.by_clock = effort.by_clock();
    answer
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
    /// Partial schedulable nodes after the best, where they are to be few, and whether fewer are proved not to be.
    pub(super) least_partial: Option<i64>,
    pub(super) partial_proved: bool,
}

struct Finder<'a> {
    site: Site<'a>,
    mode: Mode,
    max_moves: Option<u64>,
    effort: &'a mut Effort,
}

impl Finder<'_> {
    fn find(mut self) -> Plan {
        let gangs_stay = self.site.some_gang_stays();
        let mut found = self.solve(Rules::ALL, false, true);
        if gangs_stay {
            // What holds where gangs may be torn apart holds where a gang may move as a whole.
            let torn = self.solve(Rules { stay: false, ..Rules::ALL }, false, false);
            found.lower_bound = torn.lower_bound;
            found.second = false;
            found.partial_proved &= torn.partial_proved;
            if torn.least_partial < found.least_partial {
                // Nobody knows whether that many could be had with the gangs together.
                (found.lower_bound, found.partial_proved) = (Some(0), false);
            }
        }
        if self.site.guest_is_share() {
            // It may fit beside another share, which is not looked at.
            found.lower_bound = Some(0);
        }
        if self.site.goal == Goal::LeastPartial && self.site.some_cordoned_node_is_partial() {
            // What runs there stays there in these plans; whether it would do better to leave is not looked at.
            found.lower_bound = found.lower_bound.map(|_| 0);
            found.partial_proved = false;
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
            fewest_partial: false,
            cost: 0,
            lower_bound: found.lower_bound.map(|bound| self.told(bound)),
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
                    answer.cost = cost.max(0) as u64;
                    answer.fewest_partial = self.site.goal == Goal::LeastPartial && found.partial_proved;
                    let few = self.site.goal != Goal::LeastPartial || found.partial_proved;
                    (answer.steps, answer.place, answer.after) = (done.steps, done.hosts, Some(done.after));
                    if self.site.cost == Cost::Jobs {
                        answer.cost = answer.jobs_disturbed();
                    }
                    answer.optimal = few && answer.lower_bound.is_some_and(|bound| answer.cost <= bound);
                    let by_jobs = self.site.cost == Cost::Jobs;
                    answer.second_optimal =
                        few && answer.steps.is_empty() || answer.optimal && found.second && !by_jobs;
                    let fewest_moves = answer.optimal && (self.site.cost == Cost::Moves || answer.second_optimal);
                    answer.jobs_optimal = by_jobs && answer.optimal
                        || fewest_moves && answer.jobs_disturbed() <= self.fewest_jobs(&answer);
                }
            }
            None if found.lower_bound.is_none() => {
                (answer.feasible, answer.optimal) = (Some(false), true);
            }
            None => {}
        }
        answer
    }

    fn solve(&mut self, rules: Rules, apart: bool, second: bool) -> Found {
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

    /// With few partial nodes as the goal: what can be had without an order is a bound, and no more is proved.
    fn packed_one_by_one(&self, stop_first: Found, mut apart: Found) -> Found {
        let reached = apart.least_partial.is_some() && apart.least_partial == stop_first.least_partial;
        apart.partial_proved = reached && stop_first.partial_proved;
        apart.lower_bound = if reached { stop_first.lower_bound } else { Some(0) };
        apart
    }

    /// Moves one after another, where no order of the best plan is one.
    fn one_by_one(&mut self, stop_first: Found, gangs_stay: bool) -> Found {
        // Nodes that either lose or receive: any order will do.
        let mut found = self.solve(Rules::ALL, true, true);
        // Its second measure is the least of such plans only.
        found.second = false;
        if self.site.goal == Goal::LeastPartial {
            return self.packed_one_by_one(stop_first, found);
        }
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
        if layout.classes.iter().any(|class| has_too_many_ways(&class.movers)) {
            return found;
        }
        let regions: Vec<Option<Vec<NodeId>>> = spots.into_iter().map(|spot| spot.inside).collect();
        // A job whose instance moves twice is disturbed once, which this search does not see.
        let by_jobs = self.site.cost == Cost::Jobs;
        match exhaust(&layout, &regions, count, best, self.effort) {
            Exhausted::Found(cost, rough) => {
                best = cost;
                found.best = Some((cost, rough));
                found.second = false;
                if !gangs_stay && !by_jobs {
                    found.lower_bound = Some(best);
                }
            }
            Exhausted::Nothing if gangs_stay || by_jobs && found.best.is_some() => {}
            Exhausted::Nothing => found.lower_bound = found.best.is_some().then_some(best),
            Exhausted::GivenUp(bound) if !gangs_stay && !by_jobs => {
                found.lower_bound = found.lower_bound.max(Some(bound))
            }
            Exhausted::GivenUp(_) => {}
        }
        found
    }

    /// A bound in the unit that it is told in.
    fn told(&self, bound: i64) -> u64 {
        let unit = if self.site.cost == Cost::Jobs { WHOLE_JOB as u64 } else { 1 };
        (bound.max(0) as u64).div_ceil(unit)
    }

    /// No plan with so many moves disturbs fewer jobs.
    fn fewest_jobs(&self, answer: &Plan) -> u64 {
        (answer.steps.len() as u64).div_ceil(self.most_movers_of_a_job() as u64)
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
            let asked = Asked { apart, objective: site.second(), most_cost: Some(limit), ..Asked::of(spot) };
            let (better, proved) = second_measure(site, layout, &asked, least, effort)?;
            found.second &= proved;
            if let Some((cost, rough)) = better {
                least = cost;
                found.best = Some((limit, rough));
            }
        }
    }
    Some(found)
}

/// Of the plans that are best by the first measure, one with the least of the second, if less than `limit`; and whether
/// that is proved.
pub(super) fn second_measure(
    site: &Site<'_>,
    layout: &Layout,
    asked: &Asked<'_>,
    limit: i64,
    effort: &mut Effort,
) -> Option<(Option<(i64, Rough)>, bool)> {
    let columns = Columns::new(layout, asked).ok()?;
    // It is worth less than the first measure, and must not eat up what the rest needs.
    let given = effort.left() / 4;
    let mut part = effort.part(given);
    let solution = columns.program.solve(0, limit, &mut part);
    effort.settle(given, &part);
    let proved =
        solution.lower_bound.is_none_or(|bound| solution.best.as_ref().is_some_and(|(cost, _)| *cost <= bound));
    let better = solution.best.and_then(|(cost, values)| {
        Some((cost, realise(site.cluster, layout, &columns, asked.inside, asked.count, &values)?))
    });
    Some((better, proved))
}
