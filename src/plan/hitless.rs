//! Plans of one move after another.

use super::detour::{cost, order_with_detours};
use super::exhaust::{Exhausted, exhaust};
use super::find::{Finder, Found};
use super::hosting::has_too_many_ways;
use super::layout::Rules;
use super::order::hitless_order;
use super::question::{Cost, Goal};
use super::reach::Reach;
use super::realise::Rough;
use super::site::Site;
use crate::cluster::NodeId;

/// Clusters with more nodes than these that a move can leave or reach are not searched state by state.
const MOST_NODES_TO_EXHAUST: usize = 64;

/// Why no order of moves makes room, where there is a plan if all movers stop first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoOrder {
    /// So many instances, of those that may move, never find a place that is free, whatever the others do; and with them
    /// where they are there is no room.
    Stuck {
        /// Instances that never find a place.
        stuck: u64,
        /// Instances that may move.
        movers: u64,
    },
    /// All states of the cluster that moves lead to were looked at.
    Searched {
        /// How many they are, nodes that are alike counted as one.
        states: u64,
    },
}

impl Finder<'_> {
    /// The best plan found that has an order, from what is best if all movers stop first; and why there is none.
    pub(super) fn one_after_another(&mut self, stop_first: Found, gangs_stay: bool) -> (Found, Option<NoOrder>) {
        let at_once = stop_first.best.as_ref().map(|(cost, _)| *cost);
        let mut found = self.in_order(stop_first);
        // As cheap as all at once; what is cheaper than that is not looked for here.
        if found.best.as_ref().is_some_and(|(cost, _)| Some(*cost) == at_once) {
            return (found, None);
        }
        if self.site.goal == Goal::LeastPartial {
            return (self.packed_one_by_one(found), None);
        }
        let reach = (!self.site.guest_is_share()).then(|| Reach::of(&self.site));
        if let Some(reach) = reach.as_ref().filter(|reach| reach.stuck > 0) {
            let none = Some(NoOrder::Stuck { stuck: reach.stuck, movers: reach.movers });
            if !reach.holds_guests(&self.site) {
                return (Found::default(), none);
            }
            let without = self.without_stuck(reach);
            if without.lower_bound.is_none() {
                return (Found::default(), none);
            }
            found = cheaper(found, without);
        }
        if found.best.as_ref().is_some_and(|(cost, _)| Some(*cost) == found.lower_bound) {
            return (found, None);
        }
        // Nodes that either lose or receive: any order will do. Its second measure is the least of such plans only.
        let apart = self.solve(Rules::ALL, true, true);
        let found = cheaper(found, Found { second: false, lower_bound: None, ..apart });
        self.searched(found, gangs_stay, reach.as_ref())
    }

    /// The cheapest plan in an order that the ways to carry out a solution lead to; with its bound.
    fn in_order(&self, found: Found) -> Found {
        let Found { best, ways, second, .. } = found;
        let Some((least, best)) = best else { return Found { best, ways, ..found } };
        let all: Vec<Rough> = std::iter::once(best).chain(ways).collect();
        let cluster = self.site.cluster;
        let ordered = |rough: &Rough| Some(Rough { moves: hitless_order(cluster, &rough.moves)?, ..rough.clone() });
        let mut orders: Vec<(i64, Rough)> = all.iter().filter_map(ordered).map(|rough| (least, rough)).collect();
        if orders.is_empty() {
            for rough in &all {
                orders
                    .extend(order_with_detours(&self.site, rough).map(|rough| (cost(&self.site, &rough.moves), rough)));
                if orders.last().is_some_and(|(cost, _)| *cost <= least) {
                    break;
                }
            }
        }
        // The first of the cheapest, and what is as cheap.
        let cheapest = orders.iter().map(|(cost, rough)| (*cost, rough.moves.len())).min();
        orders.retain(|(cost, rough)| Some((*cost, rough.moves.len())) == cheapest);
        let mut orders = orders.into_iter();
        let best = orders.next();
        let second = second && best.as_ref().is_some_and(|(cost, _)| *cost == least);
        Found { best, ways: orders.map(|(_, rough)| rough).collect(), second, ..found }
    }

    /// What there is if what cannot move at all is left where it is: a bound for every order of moves.
    fn without_stuck(&mut self, reach: &Reach) -> Found {
        let site = Site { movable: &reach.movable, ..self.site };
        let mut finder = Finder { site, mode: self.mode, max_moves: self.max_moves, effort: self.effort };
        let found = finder.all_at_once();
        if found.lower_bound.is_none() { found } else { finder.in_order(found) }
    }

    /// With few partial nodes as the goal: what can be had without an order is a bound, and no more is proved.
    fn packed_one_by_one(&mut self, found: Found) -> Found {
        let mut apart = self.solve(Rules::ALL, true, true);
        let reached = apart.least_partial.is_some() && apart.least_partial == found.least_partial;
        let within = |rough: &Rough| self.max_moves.is_none_or(|most| rough.moves.len() as u64 <= most);
        if found.best.as_ref().is_some_and(|(cost, rough)| {
            within(rough) && (!reached || apart.best.as_ref().is_none_or(|(other, _)| cost <= other))
        }) {
            return Found { second: false, ..found };
        }
        apart.second = false;
        apart.partial_proved = reached && found.partial_proved;
        apart.lower_bound = if reached { found.lower_bound } else { Some(0) };
        apart
    }

    /// What a search of all states adds, where they are not too many.
    fn searched(&mut self, mut found: Found, gangs_stay: bool, reach: Option<&Reach>) -> (Found, Option<NoOrder>) {
        let mut best = found.best.as_ref().map_or(i64::MAX, |(cost, _)| *cost);
        if Some(best) == found.lower_bound {
            return (found, None);
        }
        let spots = self.site.spots(Rules::ALL);
        let nodes = self.site.cluster.nodes().len();
        let live = reach.filter(|_| nodes > MOST_NODES_TO_EXHAUST).map(|reach| reach.live(&self.site));
        let n_live = live.as_ref().map_or(nodes, |live| live.iter().filter(|&&live| live).count());
        let count = spots.first().map_or(0, |spot| spot.count);
        if n_live > MOST_NODES_TO_EXHAUST || spots.iter().any(|spot| spot.count != count) {
            return (found, None);
        }
        let Ok(layout) = self.site.layout(Rules::ALL, live.as_deref()) else { return (found, None) };
        if layout.classes.iter().any(|class| has_too_many_ways(&class.movers)) {
            return (found, None);
        }
        let regions: Vec<Option<Vec<NodeId>>> = spots.into_iter().map(|spot| spot.inside).collect();
        // A job whose instance moves twice is disturbed once, which this search does not see.
        let by_jobs = self.site.cost == Cost::Jobs;
        let mut none = None;
        match exhaust(&layout, &regions, count, best, self.effort) {
            Exhausted::Found(cost, rough) => {
                best = cost;
                found.best = Some((cost, rough));
                found.ways.clear();
                found.second = false;
                if !gangs_stay && !by_jobs {
                    found.lower_bound = Some(best);
                }
            }
            Exhausted::Nothing { .. } if gangs_stay || by_jobs && found.best.is_some() => {}
            Exhausted::Nothing { states } => {
                found.lower_bound = found.best.is_some().then_some(best);
                none = found.best.is_none().then_some(NoOrder::Searched { states });
            }
            Exhausted::GivenUp(bound) if !gangs_stay && !by_jobs => {
                found.lower_bound = found.lower_bound.max(Some(bound))
            }
            Exhausted::GivenUp(_) => {}
        }
        (found, none)
    }
}

/// The cheaper of two plans, the first of equals, and the better of their bounds.
fn cheaper(first: Found, other: Found) -> Found {
    let lower_bound = first.lower_bound.max(other.lower_bound);
    let costs = [&first, &other].map(|found| found.best.as_ref().map_or(i64::MAX, |(cost, _)| *cost));
    let better = if costs[1] < costs[0] { other } else { first };
    Found { lower_bound, ..better }
}
