//! Where a pod goes: a pure function of the state, the pod and the nodes that are offered. Nothing is reserved by asking.
//!
//! The pods of a gang start one by one, but they are placed together: the place of each is its own in a placement of all of
//! them, so the members of one gang do not get in each other's way, and none starts unless all can. Gangs of which some run
//! already come first: what they still need is not given to others. A gang that must be within one domain or rack stays where
//! its first members run.
//!
//! How many members a gang has is what was told of it, else what the pod says itself. Where nobody says so, the gang is
//! whoever is known of it, and a member that is asked about before any other was told of is placed as if it were alone.

use std::sync::Arc;

use super::Offer;
use super::memo::Memo;
use crate::anchor::{State, Trigger};
use crate::cluster::{Cluster, JobId, JobMark, JobSpec, NodeId, Within};
use crate::decide::{CommitLoop, PlaceOptions, Policy, Status, Why};
use crate::serve::fault::ServeError;
use crate::serve::live::{Asks, Gang, Gangs, Live};
use crate::workload::QueueEntry;

/// A pod that is to be placed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::serve) struct PodAsk {
    /// Namespace and name.
    pub(in crate::serve) name: Arc<str>,
    /// What it asks for: 1 to 16 GPUs, CPU and memory.
    pub(in crate::serve) asks: Asks,
    /// Its gang.
    pub(in crate::serve) gang: Option<Arc<str>>,
    /// How many parts the gang needs, if the pod says so.
    pub(in crate::serve) gang_size: Option<u32>,
}

/// What is decided of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) enum Seat {
    /// It goes there.
    Node(NodeId),
    /// It goes nowhere now.
    Nowhere(Nowhere),
}

/// Why a pod goes nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) enum Nowhere {
    /// The gang lacks parts that are not there yet.
    Incomplete {
        /// Parts that run or wait.
        known: u32,
        /// Parts that it needs.
        size: u32,
    },
    /// It, or its gang, has no room.
    Blocked(Why),
}

impl std::fmt::Display for Nowhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Incomplete { known, size } => write!(f, "slotwise: the gang has {known} of {size} pods"),
            Self::Blocked(Why::Capacity) => f.write_str("slotwise: not enough free GPUs"),
            Self::Blocked(why) => {
                write!(f, "slotwise: enough free GPUs, but no placement of all pods ({})", why.name())
            }
        }
    }
}

/// Times that a node which is not offered is taken out one by one; then all of them are.
const TRIES: usize = 4;

/// Steps of a search for a place of unlike members together: some milliseconds.
const GROUP_STEPS: u32 = 1 << 13;

/// The most members of other gangs that are placed first.
const MOST_FIRST: usize = 1024;

/// Decides where a pod goes, of the nodes that are offered.
pub(in crate::serve) fn seat(
    live: &mut Live,
    memo: &mut Memo,
    policy: Policy,
    pod: &PodAsk,
    offer: &Offer,
) -> Result<Seat, ServeError> {
    let version = live.version();
    if let Some(seat) = memo.find(version, pod)
        && matches!(seat, Seat::Node(node) if offer.has(node))
    {
        return Ok(seat);
    }
    let (state, gangs) = live.parts_mut()?;
    let gang = pod.gang.as_deref().and_then(|gang| gangs.find(gang));
    let members = match members(gang, pod) {
        Ok(members) => members,
        Err(incomplete) => return Ok(Seat::Nowhere(incomplete)),
    };
    let own = members.iter().position(|(name, _)| *name == pod.name).unwrap_or(0);
    let bond = gang.map_or(Bond::None, |gang| Bond::of(gang, state.cluster()));
    let party = Party { asks: members.iter().map(|&(_, asks)| asks).collect(), bond };
    let has_begun = gang.is_some_and(|gang| !gang.running.is_empty());
    let first = first(gangs, pod, state.cluster(), if has_begun { bond.freedom() } else { u8::MAX });
    let rehearsal = Rehearsal { policy, first, party };
    let mut closed: Vec<NodeId> = Vec::new();
    for round in 0..=TRIES {
        if round == TRIES {
            closed = state.cluster().node_ids().filter(|&node| !offer.has(node)).collect();
        }
        match rehearsal.run(state, &closed) {
            Err(why) => return Ok(Seat::Nowhere(Nowhere::Blocked(why))),
            Ok(nodes) if offer.has(nodes[own]) => {
                // A member that nobody has told of is none of the gang's placement.
                let is_known = gangs.waits(&pod.name);
                if closed.is_empty() && is_known {
                    memo.keep(version, pod, &members, &nodes);
                }
                return Ok(Seat::Node(nodes[own]));
            }
            Ok(nodes) => closed.push(nodes[own]),
        }
    }
    // With all others closed the chosen node is one that is offered.
    Ok(Seat::Nowhere(Nowhere::Blocked(Why::Constraint)))
}

/// The members of a pod's gang that are to be placed, the largest first, then by name; the pod alone without a gang.
fn members(gang: Option<&Gang>, pod: &PodAsk) -> Result<Vec<(Arc<str>, Asks)>, Nowhere> {
    let mut members: Vec<(Arc<str>, Asks)> = Vec::new();
    if let Some(gang) = gang {
        let placed_here = gang.waiting.iter().filter(|(_, asks)| asks.gpus > 0);
        members.extend(placed_here.map(|(name, &asks)| (Arc::clone(name), asks)));
    }
    if members.iter().all(|(name, _)| *name != pod.name) {
        members.push((Arc::clone(&pod.name), pod.asks));
    }
    let told = gang.filter(|gang| gang.is_told).and_then(|gang| gang.size);
    if let Some(size) = told.or(pod.gang_size).or(gang.and_then(|gang| gang.size)) {
        let waiting = gang.map_or(1, |gang| {
            gang.waiting.len() + usize::from(!gang.waiting.contains_key(&pod.name) && !gang.running.contains(&pod.name))
        });
        let known = (gang.map_or(0, |gang| gang.running.len()) + waiting) as u32;
        if known < size {
            return Err(Nowhere::Incomplete { known, size });
        }
    }
    members.sort_by(|(a, a_asks), (b, b_asks)| b_asks.cmp(a_asks).then_with(|| a.cmp(b)));
    Ok(members)
}

/// The parts that other gangs lack of which some parts run, gang by gang: those with the least choice first, so that nobody
/// with more takes their room, and none that has more choice than the pod's own gang if that has begun too.
fn first(gangs: &Gangs, pod: &PodAsk, cluster: &Cluster, most_freedom: u8) -> Vec<Party> {
    let mut left = MOST_FIRST;
    let mut first = Vec::new();
    for (_, gang) in gangs.started().filter(|(name, _)| pod.gang.as_deref() != Some(name)) {
        if gang.waiting.len() > left {
            break;
        }
        left -= gang.waiting.len();
        let mut asks: Vec<Asks> = gang.waiting.values().copied().filter(|asks| asks.gpus > 0).collect();
        asks.sort_unstable_by(|a, b| b.cmp(a));
        let bond = Bond::of(gang, cluster);
        if !asks.is_empty() && bond.freedom() <= most_freedom {
            first.push(Party { asks, bond });
        }
    }
    first.sort_by_key(|party| party.bond.freedom());
    first
}

/// What binds the members of a gang that wait to each other, and to those that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bond {
    None,
    /// They must be in one domain or rack.
    Within(Within),
    /// They must be in this one, where the others run.
    There(Within, usize),
}

impl Bond {
    /// How much choice is left, as a rank.
    fn freedom(self) -> u8 {
        match self {
            Self::There(..) => 0,
            Self::Within(_) => 1,
            Self::None => 2,
        }
    }

    /// A wish that those that run do not keep binds nobody any more.
    fn of(gang: &Gang, cluster: &Cluster) -> Self {
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
struct Party {
    /// What each asks for, equal ones next to each other.
    asks: Vec<Asks>,
    bond: Bond,
}

impl Party {
    /// The nodes that they go to, in their order.
    fn place(&self, state: &mut State, policy: Policy) -> Result<Vec<NodeId>, Why> {
        let Bond::There(within, number) = self.bond else {
            let within = if let Bond::Within(within) = self.bond { Some(within) } else { None };
            return self.place_within(state, policy, within);
        };
        // The policy may well choose that one by itself, which is soon asked; to close all others is not soon done.
        let mark = state.cluster().mark_jobs();
        let is_there = |state: &State, nodes: &[NodeId]| nodes.iter().all(|&node| state.is_in(node, (within, number)));
        match self.place_within(state, policy, Some(within)) {
            Ok(nodes) if is_there(state, &nodes) => return Ok(nodes),
            // In no domain or rack there is room.
            Err(why) => return Err(why),
            Ok(_) => free_since(state, mark),
        }
        let elsewhere = state.cluster().node_ids().filter(|&node| !state.is_in(node, (within, number)));
        let closed = close(state, elsewhere.collect());
        let placed = self.place_within(state, policy, None);
        open(state, &closed);
        placed
    }

    fn place_within(&self, state: &mut State, policy: Policy, within: Option<Within>) -> Result<Vec<NodeId>, Why> {
        let name = format!("\0{}", state.cluster().n_known().0);
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
        let entry = entry.map_err(|_| Why::Constraint)?;
        match decide(state, policy, entry) {
            // The space of the policy must not keep a pod waiting that has room.
            Err(Why::Space) => decide(state, Policy::BestFit, entry),
            decided => decided,
        }
    }
}

fn decide(state: &mut State, policy: Policy, entry: QueueEntry) -> Result<Vec<NodeId>, Why> {
    let options = PlaceOptions {
        policy,
        trigger: Trigger::Never,
        migration_budget: Some(0),
        threads: 1,
        ..PlaceOptions::default()
    };
    let mut commit_loop = CommitLoop::new(state, options).with_group_steps(GROUP_STEPS);
    let decision = commit_loop.decide(entry, 0);
    match decision.status {
        Status::Placed => Ok(decision.placements.iter().map(|&(node, _)| node).collect()),
        Status::Blocked(why) => Err(why),
        Status::Removed | Status::Absent => Err(Why::Constraint),
    }
}

/// A placement that is tried and taken back.
struct Rehearsal {
    policy: Policy,
    /// Who comes first: what gangs lack that have begun.
    first: Vec<Party>,
    party: Party,
}

impl Rehearsal {
    /// Where the members would go if nothing went to the closed nodes. All is as it was afterwards.
    fn run(&self, state: &mut State, closed: &[NodeId]) -> Result<Vec<NodeId>, Why> {
        let mark = state.cluster().mark_jobs();
        let closed = close(state, closed.to_vec());
        for gang in &self.first {
            // Who cannot start holds nothing back.
            let _ = gang.place(state, self.policy);
        }
        let placed = self.party.place(state, self.policy);
        free_since(state, mark);
        open(state, &closed);
        state.forget_since(mark);
        placed
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

/// Frees what was placed since the mark.
fn free_since(state: &mut State, mark: JobMark) {
    let placed: Vec<JobId> = state.cluster().jobs_since(mark).filter(|&job| state.cluster().job(job).runs()).collect();
    let mut transaction = state.begin();
    for job in placed {
        for instance in transaction.cluster().instances_of(job) {
            // One that does not run is freed already.
            let _ = transaction.free(instance);
        }
    }
    transaction.commit();
}
