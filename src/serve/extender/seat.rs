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
use std::time::Instant;

use super::Offer;
use super::memo::Memo;
use super::rehearsal::{Bond, Party, Refused, Rehearsal};
use crate::anchor::State;
use crate::cluster::NodeId;
use crate::decide::{Policy, Why};
use crate::serve::fault::ServeError;
use crate::serve::live::{Asks, Gang, Gangs, Live};

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

/// The most members of other gangs that are placed with a pod.
const MOST_OTHERS: usize = 1024;

/// How often nodes are looked at for them, at the most: some tens of milliseconds. Only regions of thousands of nodes come
/// near it.
const MOST_LOOKS: usize = 1 << 22;

/// Decides where a pod goes, of the nodes that are offered.
pub(in crate::serve) fn seat(
    live: &mut Live,
    memo: &mut Memo,
    policy: Policy,
    pod: &PodAsk,
    offer: &Offer,
    deadline: Option<Instant>,
) -> Result<Seat, ServeError> {
    let version = live.version();
    let (state, gangs) = live.parts_mut()?;
    let gang = pod.gang.as_deref().and_then(|gang| gangs.find(gang));
    let members = match members(gang, pod) {
        Ok(members) => members,
        Err(incomplete) => return Ok(Seat::Nowhere(incomplete)),
    };
    if let Some(seat) = memo.find(version, pod)
        && matches!(seat, Seat::Node(node) if offer.has(node))
    {
        return Ok(seat);
    }
    let member = members.iter().position(|(name, _)| *name == pod.name).unwrap_or(0);
    let bond = gang.map_or(Bond::None, |gang| Bond::of(gang, state.cluster()));
    let party = Party { asks: members.iter().map(|&(_, asks)| asks).collect(), bond };
    let has_begun = gang.is_some_and(|gang| !gang.running.is_empty());
    let others = others(gangs, pod, state);
    let own = match pod.gang.as_deref().filter(|_| has_begun) {
        Some(name) => others.partition_point(|(rank, _)| *rank < (bond.freedom(state), name)),
        None => others.len(),
    };
    let mut parties: Vec<Party> = others.into_iter().map(|(_, party)| party).collect();
    parties.insert(own, party);
    let rehearsal = Rehearsal { policy, parties, own, member, has_begun, deadline };
    match rehearsal.run(state, offer) {
        Err(Refused::Blocked(why)) => Ok(Seat::Nowhere(Nowhere::Blocked(why))),
        Err(Refused::Late) => Err(ServeError::Late),
        Ok((node, nodes)) => {
            // A member that nobody has told of is none of the gang's placement.
            if let Some(nodes) = nodes
                && gangs.waits(&pod.name)
            {
                memo.keep(version, pod, &members, &nodes);
            }
            Ok(Seat::Node(node))
        }
    }
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

/// The place of a gang that has begun in the order of all of them: those with the least choice first, so that nobody with
/// more takes their room, then by name.
type Rank<'g> = (usize, &'g str);

/// The parts that other gangs lack of which some parts run, gang by gang, in their order.
fn others<'g>(gangs: &'g Gangs, pod: &PodAsk, state: &State) -> Vec<(Rank<'g>, Party)> {
    let mut left = MOST_OTHERS;
    let mut others: Vec<(Rank<'g>, Party)> = Vec::new();
    for (name, gang) in gangs.started().filter(|(name, _)| pod.gang.as_deref() != Some(name)) {
        if gang.waiting.len() > left {
            continue;
        }
        left -= gang.waiting.len();
        let mut asks: Vec<Asks> = gang.waiting.values().copied().filter(|asks| asks.gpus > 0).collect();
        asks.sort_unstable_by(|a, b| b.cmp(a));
        let bond = Bond::of(gang, state.cluster());
        if !asks.is_empty() {
            others.push(((bond.freedom(state), name), Party { asks, bond }));
        }
    }
    others.sort_unstable_by_key(|&(rank, _)| rank);
    let mut looks = 0usize;
    others.retain(|(_, party)| {
        let sum = looks.saturating_add(party.looks(state));
        looks = if sum <= MOST_LOOKS { sum } else { looks };
        sum <= MOST_LOOKS
    });
    others
}
