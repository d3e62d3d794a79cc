//! Placements that are tried on the state and taken back: those of a pod's gang, once what others lack has been placed.

use std::time::Instant;

use super::Offer;
use crate::anchor::{State, Trigger};
use crate::cluster::{Cluster, JobId, JobMark, JobSpec, NodeId, Within};
use crate::decide::{CommitLoop, PlaceOptions, Policy, Status, Why};
use crate::serve::live::{Asks, Gang};
use crate::workload::QueueEntry;

/// Times that a node which is not offered is taken out one by one; then all of them are.
const TRIES: usize = 4;

/// Steps of a search for a place of unlike members together: some milliseconds.
const GROUP_STEPS: u32 = 1 << 13;

/// Of parties that come first and may go anywhere, no more than so many are searched for: each search looks at all nodes.
const MOST_SEARCHES: usize = 16;

/// What binds the members of a gang that wait to each other, and to those that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bond {
    None,
    /// They must be in one domain or rack.
    Within(Within),
    /// They must be in this one, where the others run.
    There(Within, usize),
}

impl Bond {
    /// How much choice is left: in how many nodes, as a rank.
    pub(super) fn freedom(self, state: &State) -> usize {
        match self {
            Self::There(within, number) => state.regions(within)[number].len(),
            Self::Within(_) => usize::MAX - 1,
            Self::None => usize::MAX,
        }
    }

    /// A wish that those that run do not keep binds nobody any more.
    pub(super) fn of(gang: &Gang, cluster: &Cluster) -> Self {
        let Some(within) = gang.within else { return Self::None };
        let region = |node: NodeId| match within {
            Within::Domain => cluster.node(node).domain().map(|domain| domain.index()),
            Within::Rack => cluster.node(node).rack().map(|rack| rack.index()),
        };
        let running = gang.running.iter().filter_map(|name| cluster.find_job(name));
        let seats = running.flat_map(|job| cluster.instances_of(job));
        let mut regions = seats.filter_map(|instance| cluster.instance(instance).node()).map(region);
        match regions.next() {
            None => Self::Within(within),
            Some(Some(one)) if regions.all(|other| other == Some(one)) => Self::There(within, one),
            Some(_) => Self::None,
        }
    }
}

/// Pods that are placed together, all or none.
#[derive(Debug)]
pub(super) struct Party {
    /// What each asks for, equal ones next to each other.
    pub(super) asks: Vec<Asks>,
    pub(super) bond: Bond,
}

impl Party {
    /// Enters the party as a job that waits.
    fn enter(&self, state: &mut State) -> Option<QueueEntry> {
        let within = match self.bond {
            Bond::None => None,
            Bond::Within(within) | Bond::There(within, _) => Some(within),
        };
        let mut name = format!("\0{}", state.cluster().n_known().0);
        while state.cluster().find_job(&name).is_some() || state.cluster().find_grouped_job(&name).is_some() {
            name.push('\0');
        }
        let spec = |&Asks { gpus, cpu_milli, memory_mib }: &Asks| JobSpec {
            name: &name,
            gpus,
            cpu_milli,
            memory_mib,
            within,
            ..JobSpec::default()
        };
        let alike = self.asks.chunk_by(|a, b| a == b);
        let groups: Vec<(JobSpec<'_>, u32)> = alike.map(|alike| (spec(&alike[0]), alike.len() as u32)).collect();
        let entry = state.enqueue(|cluster| match &groups[..] {
            [(spec, instances)] => cluster.register(spec, *instances).map(QueueEntry::Submit),
            several => cluster.register_groups(&name, several).map(QueueEntry::SubmitGroups),
        });
        entry.ok()
    }

    /// Whether a search for it may look at all nodes: its members are unlike, and not bound to where others run.
    fn may_look_anywhere(&self) -> bool {
        self.asks.first() != self.asks.last() && !matches!(self.bond, Bond::There(..))
    }

    /// How often a node of its region is looked at if the party has no room there: for each kind of its members, in each
    /// order of the kinds that is tried.
    pub(super) fn looks(&self, state: &State) -> usize {
        let Bond::There(within, number) = self.bond else { return 0 };
        let kinds = self.asks.chunk_by(|a, b| a == b).count();
        let orders = match kinds {
            1 => 1,
            2 => 2,
            _ => 6,
        };
        state.regions(within)[number].len().saturating_mul(kinds * orders)
    }

    /// Places the party, which has entered as this, and says on which nodes, in the order of what it asks for.
    fn place(&self, commit_loop: &mut CommitLoop<'_>, entry: QueueEntry, steps: u32) -> Result<Vec<NodeId>, Why> {
        commit_loop.set_group_steps(steps);
        let decision = match self.bond {
            Bond::There(within, number) => commit_loop.decide_in((within, number), entry, 0),
            Bond::None | Bond::Within(_) => commit_loop.decide(entry, 0),
        };
        match decision.status {
            Status::Placed => Ok(decision.placements.iter().map(|&(node, _)| node).collect()),
            Status::Blocked(why) => Err(why),
            Status::Removed | Status::Absent => Err(Why::Constraint),
        }
    }
}

/// Places parties one after the other, with at most so many steps of a search for each.
fn place_all(
    state: &mut State,
    policy: Policy,
    parties: &[&Party],
    steps: &dyn Fn(&Party) -> u32,
) -> Vec<Result<Vec<NodeId>, Why>> {
    // All of them before the first is placed: while a loop decides nobody enters.
    let entries: Vec<Option<QueueEntry>> = parties.iter().map(|party| party.enter(state)).collect();
    let mut entered = parties.iter().zip(entries).peekable();
    let mut placed = Vec::with_capacity(parties.len());
    while entered.peek().is_some() {
        let mut commit_loop = commit_loop(state, policy);
        for (party, entry) in entered.by_ref() {
            let Some(entry) = entry else {
                placed.push(Err(Why::Constraint));
                continue;
            };
            match party.place(&mut commit_loop, entry, steps(party)) {
                // The space of the policy must not keep a pod waiting that has room.
                Err(Why::Space) => {
                    drop(commit_loop);
                    let mut best_fit = self::commit_loop(state, Policy::BestFit);
                    placed.push(party.place(&mut best_fit, entry, steps(party)));
                    break;
                }
                decided => placed.push(decided),
            }
        }
    }
    placed
}

fn commit_loop(state: &mut State, policy: Policy) -> CommitLoop<'_> {
    let options = PlaceOptions {
        policy,
        trigger: Trigger::Never,
        migration_budget: Some(0),
        threads: 1,
        ..PlaceOptions::default()
    };
    CommitLoop::new(state, options)
}

/// A placement of the parties that is tried and taken back: of what gangs lack that have begun, and of the pod's gang.
pub(super) struct Rehearsal {
    pub(super) policy: Policy,
    /// All of them, in the order in which they are placed.
    pub(super) parties: Vec<Party>,
    /// Which of them is the pod's.
    pub(super) own: usize,
    /// Which of its members is the pod.
    pub(super) member: usize,
    /// Its gang has begun; otherwise it comes after all that have, in any order.
    pub(super) has_begun: bool,
    /// When nobody waits for the answer any more.
    pub(super) deadline: Option<Instant>,
}

/// Where the pod goes, and where all members of its party go, unless that is so for one offer alone.
pub(super) type Place = (NodeId, Option<Vec<NodeId>>);

/// Why a pod gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It, or its gang, has no room.
    Blocked(Why),
    /// The time for an answer was up before it was known.
    Late,
}

/// What came of one order of the parties.
struct Tried {
    place: Result<Place, Why>,
    /// Those that had no room, but for a party that has not begun.
    failed: Vec<usize>,
    /// Whether it would have been the same if all nodes had been offered.
    is_for_all: bool,
}

impl Rehearsal {
    /// Where the pod goes, of the nodes that are offered, or why it goes nowhere. All is as it was afterwards.
    ///
    /// Parties take room from each other, so those that find none come first in a second order, which counts if it leaves
    /// fewer without. Which order counts is the same for all pods of gangs that have begun.
    pub(super) fn run(&self, state: &mut State, offer: &Offer) -> Result<Place, Refused> {
        let mut order: Vec<usize> = (0..self.parties.len()).collect();
        let first = self.attempt(state, &order, offer)?;
        if first.failed.is_empty() || first.failed.len() == self.parties.len() {
            return first.place.map_err(Refused::Blocked);
        }
        order.sort_by_key(|party| !first.failed.contains(party));
        let second = self.attempt(state, &order, offer)?;
        // Which of the orders counts is a matter of both, and so is for whom.
        let is_for_all = first.is_for_all && second.is_for_all;
        let better = if second.failed.len() < first.failed.len() { second } else { first };
        let (node, nodes) = better.place.map_err(Refused::Blocked)?;
        Ok((node, nodes.filter(|_| is_for_all)))
    }

    /// Fails only if it is too late.
    fn in_time(&self) -> Result<(), Refused> {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late { Err(Refused::Late) } else { Ok(()) }
    }

    fn attempt(&self, state: &mut State, order: &[usize], offer: &Offer) -> Result<Tried, Refused> {
        self.in_time()?;
        let mark = state.cluster().mark_jobs();
        let at = order.iter().position(|&party| party == self.own).unwrap_or(order.len());
        let (before, after) = (&order[..at], &order[(at + 1).min(order.len())..]);
        let mut failed = self.others(state, before);
        let mut avoided = Vec::new();
        let place = self.place_own(state, offer, &mut avoided);
        if matches!(place, Err(Refused::Blocked(_))) && self.has_begun {
            failed.push(self.own);
        }
        failed.extend(self.others(state, after));
        take_back(state, mark);
        let place = match place {
            Ok(place) => Ok(place),
            Err(Refused::Blocked(why)) => Err(why),
            Err(Refused::Late) => return Err(Refused::Late),
        };
        Ok(Tried { place, failed, is_for_all: avoided.is_empty() })
    }

    /// Places some of the others, and says which had no room: those hold nothing back.
    fn others(&self, state: &mut State, which: &[usize]) -> Vec<usize> {
        if which.is_empty() {
            return Vec::new();
        }
        let each = GROUP_STEPS / self.parties.len() as u32;
        let searches = self.parties.iter().filter(|party| party.may_look_anywhere()).count();
        let steps = |party: &Party| if party.may_look_anywhere() && searches > MOST_SEARCHES { 0 } else { each };
        let parties: Vec<&Party> = which.iter().map(|&party| &self.parties[party]).collect();
        let placed = place_all(state, self.policy, &parties, &steps);
        which.iter().zip(placed).filter(|(_, placed)| placed.is_err()).map(|(&party, _)| party).collect()
    }

    /// Places the pod's party so that the pod is on a node that is offered; `avoided` is given the nodes that are not, as far
    /// as that mattered.
    fn place_own(&self, state: &mut State, offer: &Offer, avoided: &mut Vec<NodeId>) -> Result<Place, Refused> {
        for round in 0..=TRIES {
            self.in_time()?;
            if round == TRIES {
                *avoided = state.cluster().node_ids().filter(|&node| !offer.has(node)).collect();
            }
            let mark = state.cluster().mark_jobs();
            let nodes = self.own_without(state, avoided).map_err(Refused::Blocked)?;
            let node = nodes[self.member];
            if offer.has(node) {
                return Ok((node, avoided.is_empty().then_some(nodes)));
            }
            take_back(state, mark);
            avoided.push(node);
        }
        // With all others avoided the chosen node is one that is offered.
        Err(Refused::Blocked(Why::Constraint))
    }

    /// Places the pod's party on none of these nodes.
    fn own_without(&self, state: &mut State, avoided: &[NodeId]) -> Result<Vec<NodeId>, Why> {
        let closed = close(state, avoided.to_vec());
        let placed = place_all(state, self.policy, &[&self.parties[self.own]], &|_| GROUP_STEPS);
        open(state, &closed);
        placed.into_iter().next().unwrap_or(Err(Why::Constraint))
    }
}

/// Closes nodes, and returns those that were open.
fn close(state: &mut State, mut nodes: Vec<NodeId>) -> Vec<NodeId> {
    nodes.retain(|&node| state.cluster().node(node).schedulable());
    let mut transaction = state.begin();
    for &node in &nodes {
        // It is schedulable: that was just looked up.
        let _ = transaction.cordon(node);
    }
    transaction.commit();
    nodes
}

/// Opens them again.
fn open(state: &mut State, closed: &[NodeId]) {
    let mut transaction = state.begin();
    for &node in closed {
        let _ = transaction.uncordon(node);
    }
    transaction.commit();
}

/// Frees what was placed since the mark, and forgets who entered.
fn take_back(state: &mut State, mark: JobMark) {
    let placed: Vec<JobId> = state.cluster().jobs_since(mark).filter(|&job| state.cluster().job(job).runs()).collect();
    let mut transaction = state.begin();
    for job in placed {
        for instance in transaction.cluster().instances_of(job) {
            // One that does not run is freed already.
            let _ = transaction.free(instance);
        }
    }
    transaction.commit();
    state.forget_since(mark);
}
