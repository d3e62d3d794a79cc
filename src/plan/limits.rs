//! Plans within what the user allows: so many moves, so many jobs disturbed.

use super::pack::partial_nodes;
use super::question::{Cost, Goal, Plan, PlanOptions};
use super::verdict::NoPlan;
use crate::cluster::Cluster;

impl PlanOptions {
    /// Whether a plan exceeds what is allowed.
    fn forbids(&self, plan: &Plan) -> bool {
        self.max_moves.is_some_and(|most| plan.steps.len() as u64 > most)
            || self.max_jobs_disturbed.is_some_and(|most| plan.jobs_disturbed() > most)
    }

    /// Which of the limits no plan keeps to, as far as an answer by the measure `cost` proves it.
    fn unattainable(&self, answer: &Plan, cost: Cost) -> Option<NoPlan> {
        let bound = answer.lower_bound.unwrap_or(0);
        // Where something costs anything, an instance moves and a job is disturbed. Plans of the fewest moves bound the jobs
        // of all plans: more moves are of no fewer jobs.
        let anything = u64::from(bound > 0);
        let moves = if cost == Cost::Moves { bound } else { anything };
        let jobs = match cost {
            Cost::Jobs => bound,
            Cost::Moves if answer.jobs_optimal => answer.jobs_disturbed(),
            _ => anything,
        };
        if self.max_moves.is_some_and(|most| moves > most) {
            Some(NoPlan::MaxMoves)
        } else if self.max_jobs_disturbed.is_some_and(|most| jobs > most) {
            Some(NoPlan::MaxJobsDisturbed)
        } else {
            None
        }
    }
}

/// Replaces a plan that exceeds what the user allows by one that does not, if what is limited leads to one; takes it back
/// otherwise. `find` answers by another measure; for few partial nodes, with so many moves at most.
pub(super) fn keep_limits(
    answer: &mut Plan,
    cluster: &Cluster,
    goal: Goal,
    options: &PlanOptions,
    mut find: impl FnMut(Cost, Option<u64>) -> Plan,
) {
    if answer.feasible != Some(true) || !options.forbids(answer) {
        return;
    }
    if goal == Goal::LeastPartial {
        return keep_few(answer, cluster, options, find);
    }
    let mut why = options.unattainable(answer, options.cost);
    let limits = [(options.max_moves, Cost::Moves), (options.max_jobs_disturbed, Cost::Jobs)];
    for (_, cost) in limits.into_iter().filter(|&(limit, cost)| limit.is_some() && cost != options.cost) {
        if why.is_some() {
            break;
        }
        let mut other = find(cost, None);
        why = options.unattainable(&other, cost);
        if other.feasible == Some(true) && !options.forbids(&other) {
            other.retell(cluster, options.cost, answer.lower_bound);
            *answer = other;
            return;
        }
    }
    answer.why = why;
    answer.feasible = why.map(|_| false);
    answer.optimal = why.is_some();
    (answer.second_optimal, answer.jobs_optimal, answer.fewest_partial) = (false, false, false);
    (answer.steps, answer.place, answer.after) = (Vec::new(), Vec::new(), None);
    answer.ways.clear();
}

/// The same for few partial nodes: with limits there may be more of them, and doing nothing keeps to any limit. That none
/// within the limits leaves fewer is not proved.
fn keep_few(
    answer: &mut Plan,
    cluster: &Cluster,
    options: &PlanOptions,
    mut find: impl FnMut(Cost, Option<u64>) -> Plan,
) {
    // So many moves disturb no more jobs.
    let few = options.max_moves.into_iter().chain(options.max_jobs_disturbed).min();
    let asked = [(Cost::Jobs, options.max_moves), (Cost::Moves, few), (Cost::Moves, Some(0))];
    let plans = asked.into_iter().map(|(cost, max_moves)| find(cost, max_moves));
    let mut kept: Vec<Plan> = plans.filter(|plan| plan.feasible == Some(true) && !options.forbids(plan)).collect();
    let partial = |plan: &Plan| plan.after.as_ref().map_or(i64::MAX, partial_nodes);
    kept.sort_by_key(|plan| (partial(plan), plan.costs(cluster, options.cost)));
    match kept.into_iter().next() {
        Some(other) => *answer = other,
        None => (answer.feasible, answer.steps, answer.place, answer.after) = (None, Vec::new(), Vec::new(), None),
    }
    answer.retell(cluster, options.cost, Some(0));
    (answer.optimal, answer.fewest_partial) = (false, false);
}

impl Plan {
    /// Tells a plan that was made by another measure by this one, of which the bound is known.
    pub(super) fn retell(&mut self, cluster: &Cluster, cost: Cost, lower_bound: Option<u64>) {
        self.cost = self.costs(cluster, cost);
        self.lower_bound = lower_bound;
        self.optimal = lower_bound.is_some_and(|bound| self.cost <= bound);
        (self.second_optimal, self.jobs_optimal) = (false, false);
        // Others may cost more by this measure.
        self.ways.truncate(1);
    }
}
