//! The fewest moves one after another, by a search of all states of a small cluster.
//!
//! A state says how many movers of each item each node holds; nodes that are alike are interchangeable. Best first, by the
//! moves made and a bound on those still needed: what must leave the cheapest nodes for the guests to fit, wherever it
//! goes. When nothing is left to look at, no order of whatever moves makes room.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::hosting::{cheapest, host_costs, hosted};
use super::integer::Effort;
use super::layout::{Counts, GUEST, Item, Layout, Mover, UNBOUND};
use super::realise::{Move, Rough};
use crate::cluster::NodeId;

/// States that are kept, times nodes.
const MOST_STATES: usize = 6_400_000;

/// How a search ended.
#[derive(Clone, Debug)]
pub(super) enum Exhausted {
    /// With the cheapest order of moves.
    Found(i64, Rough),
    /// No order of moves costs less than the limit; so many states were looked at.
    Nothing { states: u64 },
    /// It was given up; no order of moves costs less than this.
    GivenUp(i64),
}

/// Where guests may go: the nodes of each region, or all nodes at once.
pub(super) type Regions = [Option<Vec<NodeId>>];

/// The cheapest order of hitless moves after which `count` guests fit in one of the regions, if it costs less than `limit`.
pub(super) fn exhaust(layout: &Layout, regions: &Regions, count: i64, limit: i64, effort: &mut Effort) -> Exhausted {
    Exhaust::new(layout, regions, count).run(limit, effort)
}

/// What does not change about a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fixed {
    kind: u32,
    homes: Vec<u32>,
    /// The regions for guests that it lies in.
    regions: Vec<u32>,
    /// What would be free without movers.
    clear: u8,
    whole: bool,
    cpu: i64,
    memory: i64,
}

struct Known {
    content: Counts,
    gpus: u8,
    cpu: i64,
    memory: i64,
}

struct Exhaust<'a> {
    layout: &'a Layout,
    regions: &'a Regions,
    count: i64,
    nodes: Vec<NodeId>,
    /// The number of the fixed part of each node; nodes are sorted by it.
    fixed_of: Vec<u32>,
    fixed: Vec<Fixed>,
    contents: Vec<Known>,
    content_numbers: FxHashMap<Counts, u32>,
    /// For a fixed part and a content, what must leave for 0, 1, … guests to fit.
    host_costs: FxHashMap<(u32, u32), Vec<i64>>,
}

/// The contents of the nodes, sorted where nodes are alike.
type State = Box<[u32]>;

/// How a state was reached.
#[derive(Clone, Copy)]
struct Reached {
    cost: i64,
    from: u32,
    /// The fixed parts and contents of the nodes that an item left and went to.
    item: u16,
    source: (u32, u32),
    target: (u32, u32),
}

impl<'a> Exhaust<'a> {
    fn new(layout: &'a Layout, regions: &'a Regions, count: i64) -> Self {
        let mut in_regions: FxHashMap<NodeId, Vec<u32>> = FxHashMap::default();
        for (number, nodes) in (0..).zip(regions) {
            for &node in nodes.iter().flatten() {
                in_regions.entry(node).or_default().push(number);
            }
        }
        let mut fixed: Vec<Fixed> = Vec::new();
        let mut nodes: Vec<(u32, NodeId)> = Vec::new();
        for (class, members) in layout.classes.iter().zip(&layout.members) {
            let gone = |each: &dyn Fn(&Item) -> i64| {
                class.movers.iter().map(|&(item, n)| each(&layout.items[usize::from(item)]) * i64::from(n)).sum::<i64>()
            };
            let clear = |free: i64, held: i64| if free == UNBOUND { UNBOUND } else { free + held };
            for &node in members {
                let part = Fixed {
                    kind: class.kind,
                    homes: class.homes.clone(),
                    regions: in_regions.get(&node).cloned().unwrap_or_default(),
                    clear: class.clear,
                    whole: class.whole,
                    cpu: clear(class.cpu, gone(&|item| item.cpu)),
                    memory: clear(class.memory, gone(&|item| item.memory)),
                };
                let at = fixed.iter().position(|other| *other == part).unwrap_or_else(|| {
                    fixed.push(part);
                    fixed.len() - 1
                });
                nodes.push((at as u32, node));
            }
        }
        nodes.sort_unstable();
        let (fixed_of, nodes) = nodes.into_iter().unzip();
        Self {
            layout,
            regions,
            count,
            nodes,
            fixed_of,
            fixed,
            contents: Vec::new(),
            content_numbers: FxHashMap::default(),
            host_costs: FxHashMap::default(),
        }
    }

    fn run(mut self, limit: i64, effort: &mut Effort) -> Exhausted {
        let start: Vec<u32> = self
            .nodes
            .clone()
            .into_iter()
            .map(|node| {
                let class = self.layout.class_of[node.index()] as usize;
                self.content(self.layout.classes[class].movers.clone())
            })
            .collect();
        let first = self.canonical(start);
        let mut numbers: FxHashMap<State, u32> = FxHashMap::default();
        let mut states: Vec<State> = Vec::new();
        let mut reached: Vec<Reached> = Vec::new();
        let mut queue: BinaryHeap<Reverse<(i64, i64, u32)>> = BinaryHeap::new();
        let Some(bound) = self.bound(&first) else { return Exhausted::Nothing { states: 1 } };
        numbers.insert(first.clone(), 0);
        states.push(first);
        reached.push(Reached { cost: 0, from: 0, item: 0, source: (0, 0), target: (0, 0) });
        queue.push(Reverse((bound, 0, 0)));
        let mut next: Vec<(State, Reached)> = Vec::new();
        while let Some(Reverse((bound, minus_cost, at))) = queue.pop() {
            if bound >= limit {
                return Exhausted::Nothing { states: states.len() as u64 };
            }
            let cost = reached[at as usize].cost;
            if cost != -minus_cost {
                continue;
            }
            // What costs nothing must leave all the same.
            if bound == cost && self.is_goal(&states[at as usize]) {
                return Exhausted::Found(cost, self.replay(&states, &reached, at));
            }
            self.neighbours(&states[at as usize].clone(), cost, at, &mut next);
            if (states.len() + next.len()) * self.nodes.len() > MOST_STATES || !effort.spend(1 + next.len() as u64) {
                return Exhausted::GivenUp(bound);
            }
            for (state, how) in next.drain(..) {
                let number = match numbers.get(&state) {
                    Some(&known) if reached[known as usize].cost <= how.cost => continue,
                    Some(&known) => {
                        reached[known as usize] = how;
                        known
                    }
                    None => {
                        numbers.insert(state.clone(), states.len() as u32);
                        states.push(state);
                        reached.push(how);
                        states.len() as u32 - 1
                    }
                };
                let state = states[number as usize].clone();
                if let Some(bound) = self.bound(&state) {
                    queue.push(Reverse((how.cost + bound, -how.cost, number)));
                }
            }
        }
        Exhausted::Nothing { states: states.len() as u64 }
    }

    fn content(&mut self, content: Counts) -> u32 {
        if let Some(&number) = self.content_numbers.get(&content) {
            return number;
        }
        let sum = |each: &dyn Fn(&Item) -> i64| {
            content.iter().map(|&(item, n)| each(&self.layout.items[usize::from(item)]) * i64::from(n)).sum::<i64>()
        };
        let known = Known {
            gpus: sum(&|item| i64::from(item.gpus)) as u8,
            cpu: sum(&|item| item.cpu),
            memory: sum(&|item| item.memory),
            content: content.clone(),
        };
        self.contents.push(known);
        let number = self.contents.len() as u32 - 1;
        self.content_numbers.insert(content, number);
        number
    }

    fn canonical(&self, mut contents: Vec<u32>) -> State {
        let mut at = 0;
        while at < contents.len() {
            let end = at + self.fixed_of[at..].iter().take_while(|&&fixed| fixed == self.fixed_of[at]).count();
            contents[at..end].sort_unstable();
            at = end;
        }
        contents.into()
    }

    /// What is free on a node: GPUs, CPU, memory.
    fn room(&self, fixed: u32, content: u32) -> (u8, i64, i64) {
        let (fixed, content) = (&self.fixed[fixed as usize], &self.contents[content as usize]);
        let left = |all: i64, held: i64| if all == UNBOUND { UNBOUND } else { all - held };
        (fixed.clear - content.gpus, left(fixed.cpu, content.cpu), left(fixed.memory, content.memory))
    }

    fn neighbours(&mut self, state: &State, cost: i64, from: u32, next: &mut Vec<(State, Reached)>) {
        let n = state.len();
        let alike = |a: usize, b: usize| self.fixed_of[a] == self.fixed_of[b] && state[a] == state[b];
        // Equal nodes stand side by side: of each run, its first node is a source, and its first other one a target.
        let firsts: Vec<usize> = (0..n).filter(|&at| at == 0 || !alike(at - 1, at)).collect();
        for &source in &firsts {
            for at in 0..self.contents[state[source] as usize].content.len() {
                let (number, _) = self.contents[state[source] as usize].content[at];
                let item = self.layout.items[usize::from(number)].clone();
                let mut lighter = None;
                for &first in &firsts {
                    let target = if first == source { first + 1 } else { first };
                    if target >= n || first == source && !self.alike(state, source, target) {
                        continue;
                    }
                    let fixed = &self.fixed[self.fixed_of[target] as usize];
                    let (gpus, cpu, memory) = self.room(self.fixed_of[target], state[target]);
                    let fits = item.gpus <= gpus
                        && (item.cpu == 0 || item.cpu <= cpu)
                        && (item.memory == 0 || item.memory <= memory)
                        && self.layout.admits(fixed.kind, &fixed.homes, usize::from(number));
                    if !fits {
                        continue;
                    }
                    let light = match lighter {
                        Some(light) => light,
                        None => self.changed(state[source], number, false),
                    };
                    lighter = Some(light);
                    let heavy = self.changed(state[target], number, true);
                    let mut contents = state.to_vec();
                    (contents[source], contents[target]) = (light, heavy);
                    let how = Reached {
                        cost: cost + item.cost,
                        from,
                        item: number,
                        source: (self.fixed_of[source], state[source]),
                        target: (self.fixed_of[target], state[target]),
                    };
                    next.push((self.canonical(contents), how));
                }
            }
        }
    }

    fn alike(&self, state: &State, a: usize, b: usize) -> bool {
        self.fixed_of[a] == self.fixed_of[b] && state[a] == state[b]
    }

    /// A content with one item more or less.
    fn changed(&mut self, content: u32, item: u16, more: bool) -> u32 {
        let mut content = self.contents[content as usize].content.clone();
        match content.binary_search_by_key(&item, |&(item, _)| item) {
            Ok(at) if more => content[at].1 += 1,
            Ok(at) if content[at].1 > 1 => content[at].1 -= 1,
            Ok(at) => drop(content.remove(at)),
            Err(at) => content.insert(at, (item, 1)),
        }
        self.content(content)
    }

    /// What must leave for the guests to fit, at least; `None` if they never fit.
    fn bound(&mut self, state: &State) -> Option<i64> {
        let hosts: Vec<(usize, Vec<i64>)> = (0..state.len())
            .map(|at| (at, self.host_cost(self.fixed_of[at], state[at])))
            .filter(|(_, costs)| costs.len() > 1)
            .collect();
        let count = self.count as usize;
        let regions = (0u32..).zip(self.regions).filter_map(|(number, region)| {
            let lies_in =
                |at: usize| region.is_none() || self.fixed[self.fixed_of[at] as usize].regions.contains(&number);
            cheapest(hosts.iter().filter(|(at, _)| lies_in(*at)).map(|(_, costs)| &costs[..]), count)
        });
        regions.min()
    }

    /// How many guests fit on a node as it is.
    fn hosted(&self, fixed: u32, content: u32) -> usize {
        let part = &self.fixed[fixed as usize];
        if !self.layout.admits(part.kind, &part.homes, GUEST) {
            return 0;
        }
        let movers = &self.contents[content as usize].content;
        hosted(self.layout, self.room(fixed, content), part.whole, movers, self.count)
    }

    /// Whether all guests fit in one of the regions.
    fn is_goal(&self, state: &State) -> bool {
        (0u32..).zip(self.regions).any(|(number, region)| {
            let lies_in = |fixed: u32| region.is_none() || self.fixed[fixed as usize].regions.contains(&number);
            let nodes = self.fixed_of.iter().zip(state).filter(|&(&fixed, _)| lies_in(fixed));
            nodes.map(|(&fixed, &content)| self.hosted(fixed, content) as i64).sum::<i64>() >= self.count
        })
    }

    fn host_cost(&mut self, fixed: u32, content: u32) -> Vec<i64> {
        if let Some(known) = self.host_costs.get(&(fixed, content)) {
            return known.clone();
        }
        let part = &self.fixed[fixed as usize];
        let costs = if self.layout.admits(part.kind, &part.homes, GUEST) {
            host_costs(
                self.layout,
                self.room(fixed, content),
                part.whole,
                &self.contents[content as usize].content,
                self.count,
            )
        } else {
            vec![0]
        };
        self.host_costs.insert((fixed, content), costs.clone());
        costs
    }

    /// The moves on the way to a state, with real nodes and instances.
    fn replay(&self, states: &[State], reached: &[Reached], goal: u32) -> Rough {
        let mut way = vec![goal];
        while let Some(&last) = way.last()
            && last != 0
        {
            way.push(reached[last as usize].from);
        }
        let mut holds: Vec<Vec<Mover>> =
            self.nodes.iter().map(|node| self.layout.movers_on[node.index()].clone()).collect();
        let number = |holds: &[Mover]| {
            let mut content: Counts = Vec::new();
            for &(item, _) in holds {
                match content.last_mut() {
                    Some((last, n)) if *last == item => *n += 1,
                    _ => content.push((item, 1)),
                }
            }
            self.content_numbers.get(&content).copied()
        };
        let mut moves = Vec::new();
        for &at in way.iter().rev().skip(1) {
            let Reached { item, source, target, .. } = reached[at as usize];
            let find = |(fixed, content): (u32, u32), not: Option<usize>| {
                (0..self.nodes.len()).find(|&node| {
                    Some(node) != not && self.fixed_of[node] == fixed && number(&holds[node]) == Some(content)
                })
            };
            let Some(from) = find(source, None) else { break };
            let Some(to) = find(target, Some(from)) else { break };
            let Some(mover) = holds[from].iter().position(|&(other, _)| other == item) else { break };
            let mover = holds[from].remove(mover);
            holds[to].push(mover);
            holds[to].sort_unstable();
            moves.push(Move { instance: mover.1, from: self.nodes[from], to: self.nodes[to] });
        }
        Rough { moves, hosts: self.hosts(&states[goal as usize], &holds, number) }
    }

    /// Where the guests fit at the end.
    fn hosts(&self, state: &State, holds: &[Vec<Mover>], number: impl Fn(&[Mover]) -> Option<u32>) -> Vec<NodeId> {
        debug_assert_eq!(state.len(), holds.len());
        for (region, nodes) in (0u32..).zip(self.regions) {
            let mut hosts = Vec::new();
            for (at, &node) in self.nodes.iter().enumerate() {
                let fixed = &self.fixed[self.fixed_of[at] as usize];
                if nodes.is_some() && !fixed.regions.contains(&region) {
                    continue;
                }
                let Some(content) = number(&holds[at]) else { continue };
                let free = self.hosted(self.fixed_of[at], content);
                let left = (self.count as usize).saturating_sub(hosts.len());
                hosts.extend(std::iter::repeat_n(node, free.min(left)));
            }
            if hosts.len() as i64 == self.count {
                return hosts;
            }
        }
        Vec::new()
    }
}
