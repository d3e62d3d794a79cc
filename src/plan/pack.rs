//! As few partial nodes as can be, with as few moves.
//!
//! First the fewest partial nodes, then of the plans that reach them the fewest moves, then GPUs. Unlike room for guests,
//! this asks for what becomes of every node, so all that has left is placed exactly.

use super::columns::{Asked, Columns, Objective};
use super::detour::cost;
use super::find::{Found, second_measure};
use super::integer::Effort;
use super::layout::Rules;
use super::manner::Manner;
use super::question::Cost;
use super::realise::Rough;
use super::site::{Site, Spot};
use super::ways::Point;
use crate::cluster::Cluster;

/// One of so many parts of the work is for a bound on the partial nodes.
const SHARE_FOR_BOUND: u64 = 20;

/// Steps for each number of partial nodes: what is near is found soon or late.
const STEPS_FOR_EACH: u64 = 400_000;

/// Numbers of partial nodes that are tried from below.
const MOST_TRIES: i64 = 3;

/// The best plan by the rules in which all movers stop first. With `apart`, nodes that lose instances receive none.
pub(super) fn pack(site: &Site<'_>, rules: Rules, apart: bool, max_moves: Option<u64>, effort: &mut Effort) -> Found {
    let unknown = Found { lower_bound: Some(0), ..Found::default() };
    let rules = Rules { by_capacity: true, ..rules };
    let Ok(layout) = site.layout(rules, None) else { return unknown };
    let spot = Spot { inside: None, count: 0 };
    let now = partial_nodes(site.cluster);
    let limit = layout.n_movers.iter().zip(&layout.items).map(|(n, item)| n * item.cost).sum::<i64>() + 1;
    // A budget is of moves, whatever counts; where moves are not what costs, it is looked at afterwards.
    let budget = max_moves.filter(|_| site.cost == Cost::Moves).and_then(|most| i64::try_from(most).ok());
    let few = Asked { apart, objective: Objective::Partial, most_cost: budget, ..Asked::of(&spot) };
    let Ok(columns) = Columns::new(&layout, &few) else { return unknown };
    let realised = |point: &Point| point.realised(site, &layout, Manner::PLAIN);
    let point_of = |columns: Columns, values: Vec<i64>| Point { columns, inside: None, guests: 0, values };
    // A rough answer: what is few, and what reaches it somehow.
    let given = effort.left() / SHARE_FOR_BOUND;
    let fewest = with_part(effort, given, |part| columns.program.solve(0, now, part));
    let most = fewest.best.as_ref().map_or(now, |(partial, _)| *partial);
    let bound_on_partial = fewest.lower_bound;
    let mut point = fewest.best.map(|(_, values)| point_of(columns, values));
    let mut best = match &point {
        None => Some((0, Rough::default())),
        Some(point) => realised(point).map(|rough| (cost(site, &rough.moves), rough)),
    };
    let mut partial_proved = true;
    let some_is_partial = i64::from(only_partial_holds(site).is_some_and(|busy| busy > 0));
    let floor = bound_on_partial.unwrap_or(now).max(some_is_partial).min(most);
    let mut least = floor;
    // Then from below: the moves lead the search to what is near.
    let (partial, lower_bound) = loop {
        let partial_busy = only_partial_holds(site).filter(|_| least == 1);
        let partial = Some((floor, least));
        let asked = Asked { apart, most_cost: budget, partial, partial_busy, ..Asked::of(&spot) };
        let Ok(columns) = Columns::new(&layout, &asked) else { return unknown };
        let (limit, given) = match &best {
            Some((cost, _)) if least == most => (*cost, effort.left()),
            _ => (limit, STEPS_FOR_EACH.min(effort.left() / 2)),
        };
        let solution = with_part(effort, given, |part| columns.program.solve(0, limit, part));
        let is_solved = solution.best.is_some();
        if let Some((cost, values)) = solution.best {
            let here = point_of(columns, values);
            best = realised(&here).map(|rough| (cost, rough)).or(best);
            point = Some(here);
        }
        if is_solved || least == most {
            let cost = best.as_ref().map(|(cost, _)| *cost);
            break (least, solution.lower_bound.into_iter().chain(cost).min());
        }
        partial_proved &= solution.lower_bound.is_none();
        // What was not settled for a few is left for the many that are known to do.
        least = if least - floor < MOST_TRIES { least + 1 } else { most };
    };
    partial_proved &= partial - floor <= MOST_TRIES || bound_on_partial.is_none_or(|bound| bound >= partial);
    let mut second = false;
    let least_cost = best.as_ref().map(|(cost, _)| *cost);
    if let Some(cost) = least_cost.filter(|&cost| Some(cost) == lower_bound && cost > 0) {
        let asked = Asked {
            apart,
            objective: site.second(),
            most_cost: Some(cost),
            partial: Some((floor, partial)),
            partial_busy: only_partial_holds(site).filter(|_| partial == 1),
            ..Asked::of(&spot)
        };
        if let Some((better, proved)) = second_measure(site, &layout, &asked, i64::MAX >> 1, effort) {
            second = proved;
            if let Some((_, rough, here)) = better {
                best = Some((cost, rough));
                point = Some(here);
            }
        }
    }
    let ways = match (&best, &point) {
        (Some((_, rough)), Some(point)) => point.ways(site, &layout, rough),
        _ => Vec::new(),
    };
    Found { best, ways, lower_bound, second, least_partial: Some(partial), partial_proved }
}

/// Schedulable nodes that are partial.
pub(super) fn partial_nodes(cluster: &Cluster) -> i64 {
    let nodes = cluster.nodes().iter().filter(|node| node.schedulable());
    nodes.filter(|node| node.free_gpus() > 0 && node.free_gpus() < node.capacity()).count() as i64
}

/// What the only partial node must hold, if there is but one and all nodes have as many GPUs: the rest of a division.
fn only_partial_holds(site: &Site<'_>) -> Option<u8> {
    let mut nodes = site.cluster.nodes().iter().filter(|node| node.schedulable() && node.capacity() > 0);
    let capacity = nodes.clone().next()?.capacity();
    let busy: u64 = nodes.clone().map(|node| u64::from(node.capacity() - node.free_gpus())).sum();
    nodes.all(|node| node.capacity() == capacity).then_some((busy % u64::from(capacity)) as u8)
}

/// Does something with a part of the work.
fn with_part<T>(effort: &mut Effort, given: u64, work: impl FnOnce(&mut Effort) -> T) -> T {
    let mut part = effort.part(given);
    let result = work(&mut part);
    effort.settle(given, &part);
    result
}
