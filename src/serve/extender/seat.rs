//! Where a pod goes: a pure function of the state, the pod and the nodes that are offered. Nothing is reserved by asking.
//!
//! The pods of a gang start one by one, but they are placed together: the place of each is its own in a placement of all of
//! them, so the members of one gang do not get in each other's way, and none starts unless all can. Gangs of which some run
//! already come first: what they still need is not given to others.

use std::sync::Arc;

use super::Offer;
use super::memo::Memo;
use crate::anchor::{State, Trigger};
use crate::cluster::{JobId, JobMark, JobSpec, NodeId};
use crate::decide::{CommitLoop, PlaceOptions, Policy, Status, Why};
use crate::serve::fault::ServeError;
use crate::serve::live::{Gang, Gangs, Live};
use crate::workload::QueueEntry;

/// A pod that is to be placed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::serve) struct PodAsk {
    /// Namespace and name.
    pub(in crate::serve) name: Arc<str>,
    /// Its GPUs, 1 to 16.
    pub(in crate::serve) gpus: u8,
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
    let rehearsal = Rehearsal { policy, first: first(gangs, pod), members: &members };
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
fn members(gang: Option<&Gang>, pod: &PodAsk) -> Result<Vec<(Arc<str>, u8)>, Nowhere> {
    let mut members: Vec<(Arc<str>, u8)> = Vec::new();
    if let Some(gang) = gang {
        members
            .extend(gang.waiting.iter().filter(|(_, gpus)| **gpus > 0).map(|(name, &gpus)| (Arc::clone(name), gpus)));
    }
    if members.iter().all(|(name, _)| *name != pod.name) {
        members.push((Arc::clone(&pod.name), pod.gpus));
    }
    if let Some(size) = pod.gang_size.or(gang.and_then(|gang| gang.size)) {
        let waiting = gang.map_or(1, |gang| {
            gang.waiting.len() + usize::from(!gang.waiting.contains_key(&pod.name) && !gang.running.contains(&pod.name))
        });
        let known = (gang.map_or(0, |gang| gang.running.len()) + waiting) as u32;
        if known < size {
            return Err(Nowhere::Incomplete { known, size });
        }
    }
    members.sort_by(|(a, a_gpus), (b, b_gpus)| b_gpus.cmp(a_gpus).then_with(|| a.cmp(b)));
    Ok(members)
}

/// The GPUs of the parts that other gangs lack of which some parts run, gang by gang.
fn first(gangs: &Gangs, pod: &PodAsk) -> Vec<Vec<u8>> {
    let mut left = MOST_FIRST;
    let mut first = Vec::new();
    for (_, gang) in gangs.started().filter(|(name, _)| pod.gang.as_deref() != Some(name)) {
        if gang.waiting.len() > left {
            break;
        }
        left -= gang.waiting.len();
        let mut gpus: Vec<u8> = gang.waiting.values().copied().filter(|&gpus| gpus > 0).collect();
        gpus.sort_unstable_by(|a, b| b.cmp(a));
        first.push(gpus);
    }
    first
}

/// A placement that is tried and taken back.
struct Rehearsal<'a> {
    policy: Policy,
    /// Who comes first: the GPUs of the members of gangs.
    first: Vec<Vec<u8>>,
    members: &'a [(Arc<str>, u8)],
}

impl Rehearsal<'_> {
    /// Where the members would go if nothing went to the closed nodes. All is as it was afterwards.
    fn run(&self, state: &mut State, closed: &[NodeId]) -> Result<Vec<NodeId>, Why> {
        let mark = state.cluster().mark_jobs();
        let closed: Vec<NodeId> =
            closed.iter().copied().filter(|&node| state.cluster().node(node).schedulable()).collect();
        let mut transaction = state.begin();
        for &node in &closed {
            // It is schedulable: that was just looked up.
            let _ = transaction.cordon(node);
        }
        transaction.commit();
        let placed = self.place(state);
        take_back(state, mark, &closed);
        placed
    }

    fn place(&self, state: &mut State) -> Result<Vec<NodeId>, Why> {
        for gang in &self.first {
            // Who cannot start holds nothing back.
            let _ = place_members(state, self.policy, gang.iter().copied());
        }
        place_members(state, self.policy, self.members.iter().map(|&(_, gpus)| gpus))
    }
}

/// Places instances of these sizes, equal ones next to each other, all or none.
fn place_members(state: &mut State, policy: Policy, sizes: impl Iterator<Item = u8>) -> Result<Vec<NodeId>, Why> {
    let mut runs: Vec<(u8, u32)> = Vec::new();
    for gpus in sizes {
        match runs.last_mut() {
            Some((size, count)) if *size == gpus => *count += 1,
            _ => runs.push((gpus, 1)),
        }
    }
    let mut nodes = Vec::new();
    let mut jobs: Vec<JobId> = Vec::new();
    for (gpus, count) in runs {
        let name = format!("\0{}", state.cluster().n_known().0);
        let spec = JobSpec { name: &name, gpus, ..JobSpec::default() };
        let job = state.enqueue(|cluster| cluster.register(&spec, count)).map_err(|_| Why::Constraint)?;
        let placed = place_job(state, policy, job).or_else(|why| match why {
            // The space of the policy must not keep a pod waiting that has room.
            Why::Space => place_job(state, Policy::BestFit, job),
            why => Err(why),
        });
        match placed {
            Ok(placed) => {
                nodes.extend(placed);
                jobs.push(job);
            }
            Err(why) => {
                free(state, &jobs);
                return Err(why);
            }
        }
    }
    Ok(nodes)
}

fn place_job(state: &mut State, policy: Policy, job: JobId) -> Result<Vec<NodeId>, Why> {
    let options = PlaceOptions {
        policy,
        trigger: Trigger::Never,
        migration_budget: Some(0),
        threads: 1,
        ..PlaceOptions::default()
    };
    let mut commit_loop = CommitLoop::new(state, options);
    let decision = commit_loop.decide(QueueEntry::Submit(job), 0);
    match decision.status {
        Status::Placed => Ok(decision.placements.iter().map(|&(node, _)| node).collect()),
        Status::Blocked(why) => Err(why),
        Status::Removed | Status::Absent => Err(Why::Constraint),
    }
}

fn free(state: &mut State, jobs: &[JobId]) {
    let mut transaction = state.begin();
    for &job in jobs {
        for instance in transaction.cluster().instances_of(job) {
            // One that does not run is freed already.
            let _ = transaction.free(instance);
        }
    }
    transaction.commit();
}

/// Frees what was placed since the mark, forgets it, and opens the closed nodes again.
fn take_back(state: &mut State, mark: JobMark, closed: &[NodeId]) {
    let placed: Vec<JobId> = state.cluster().jobs_since(mark).filter(|&job| state.cluster().job(job).runs()).collect();
    free(state, &placed);
    let mut transaction = state.begin();
    for &node in closed {
        let _ = transaction.uncordon(node);
    }
    transaction.commit();
    state.forget_since(mark);
}
