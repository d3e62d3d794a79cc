//! Plans that keep to disruption budgets.
//!
//! A plan without them is a bound on those with them, and often keeps to them. Where it does not, a part of the jobs is
//! pinned, so that whatever the rest does is allowed; what is found then is proved by that bound or not at all.

use super::find::plan_freely;
use super::question::{Goal, Plan, PlanOptions};
use super::steps::{Mode, Step};
use super::ways::Way;
use crate::cluster::{Cluster, JobId};

/// Makes a plan. The jobs of the cluster must not be more than `options.movable` has entries.
pub fn plan(cluster: &Cluster, goal: Goal, options: &PlanOptions) -> Plan {
    if options.budgets.is_empty() {
        return plan_freely(cluster, goal, options);
    }
    let mut options = options.clone();
    for budget in options.budgets.iter().filter(|budget| budget.allowed == 0) {
        budget.jobs.iter().for_each(|job| options.movable[job.index()] = false);
    }
    let mut free = plan_freely(cluster, goal, &options);
    // One after another, a budget that allows one instance allows any number.
    if options.mode == Mode::Hitless {
        return free;
    }
    let keeps = |way: &Way| keeps_to_budgets(&way.steps, &options);
    if free.feasible != Some(true) || free.ways.iter().any(keeps) {
        let first = free.ways.first().is_none_or(keeps);
        free.ways.retain(keeps);
        if first || free.take_way(cluster, goal, options.mode, 0) {
            return free;
        }
    }
    pin_beyond_budgets(cluster, &free.steps, &mut options);
    bounded(plan_freely(cluster, goal, &options), &free, goal)
}

/// Whether so many may stop at once.
fn keeps_to_budgets(steps: &[Step], options: &PlanOptions) -> bool {
    options.budgets.iter().all(|budget| {
        let stopped = steps.iter().filter(|step| budget.covers(step.job)).count();
        stopped as u64 <= budget.allowed
    })
}

/// Leaves only as many jobs movable as all budgets allow to move as a whole: first those that `steps` move, then by number.
fn pin_beyond_budgets(cluster: &Cluster, steps: &[Step], options: &mut PlanOptions) {
    let mut left: Vec<u64> = options.budgets.iter().map(|budget| budget.allowed).collect();
    let mut seen = vec![false; options.movable.len()];
    let mut jobs: Vec<JobId> = steps.iter().map(|step| step.job).collect();
    jobs.extend(cluster.job_ids());
    for job in jobs {
        if !options.movable[job.index()] || std::mem::replace(&mut seen[job.index()], true) {
            continue;
        }
        let instances = u64::from(cluster.job(job).instances());
        let own = |at: &usize| options.budgets[*at].covers(job);
        let budgets: Vec<usize> = (0..left.len()).filter(own).collect();
        if budgets.iter().all(|&at| left[at] >= instances) {
            budgets.iter().for_each(|&at| left[at] -= instances);
        } else {
            options.movable[job.index()] = false;
        }
    }
}

/// A plan under pins that were chosen here, with what the plan without them proves.
fn bounded(mut plan: Plan, free: &Plan, goal: Goal) -> Plan {
    plan.lower_bound = free.lower_bound;
    (plan.second_optimal, plan.jobs_optimal) = (false, false);
    plan.by_clock |= free.by_clock;
    if plan.feasible != Some(true) {
        // With other pins there may be one.
        (plan.feasible, plan.optimal, plan.why) = (None, false, None);
        plan.relax.clear();
        return plan;
    }
    let partial = |plan: &Plan| {
        let nodes = plan.after.iter().flat_map(Cluster::nodes);
        nodes.filter(|node| node.free_gpus() > 0 && node.free_gpus() < node.capacity()).count()
    };
    let few = goal != Goal::LeastPartial || partial(&plan) == partial(free);
    plan.fewest_partial = goal == Goal::LeastPartial && few && free.fewest_partial;
    if !few {
        // More partial nodes may take fewer moves.
        plan.lower_bound = Some(0);
    }
    let as_few = goal != Goal::LeastPartial || plan.fewest_partial;
    plan.optimal = as_few && plan.lower_bound.is_some_and(|bound| plan.cost <= bound);
    plan
}
