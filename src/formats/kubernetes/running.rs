//! Nodes with GPUs, and the pods that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::cluster::{MAX_GPUS, Within};

use super::super::dump::{DumpJob, DumpLimit, DumpNode, DumpSeat, Tally};
use super::budget::BudgetRecord;
use super::claim;
use super::device::{DeviceMap, Devices};
use super::kinds::{Allowed, Kinds};
use super::listing::Listing;
use super::node::NodeRecord;
use super::pod::PodRecord;
use super::topology::TopologyKeys;

/// The nodes that are kept, and the jobs there.
pub(super) struct Running {
    pub(super) kinds: Kinds,
    pub(super) nodes: Vec<DumpNode>,
    /// Whether the listing has nodes without GPUs, where pods may go that ask for none.
    pub(super) others: bool,
    pub(super) jobs: Vec<DumpJob>,
    /// Names that jobs have, with what they stand for.
    pub(super) names: Names,
    /// Namespace and name of each pod that holds GPUs, or launches those that do.
    pub(super) pods: Vec<String>,
    /// The budgets that allow some disruptions.
    pub(super) limits: Vec<DumpLimit>,
}

/// Takes what a listing holds.
pub(super) fn running(listing: &mut Listing, keys: &TopologyKeys, tally: &mut Tally) -> Running {
    let mut places: FxHashMap<Rc<str>, Option<u32>> = FxHashMap::default();
    listing.nodes.retain(|node| {
        let new = !node.name.is_empty() && places.insert(node.name.as_str().into(), None).is_none();
        if !new {
            tally.met("nodes without a name, or that are listed more than once; the first counts", &node.name);
        }
        new
    });
    let mut seen: FxHashSet<String> = FxHashSet::default();
    listing.pods.retain(|pod| {
        let new = seen.insert(pod.name.clone());
        if !new {
            tally.met("pods that are listed more than once; the first counts", &pod.name);
        }
        new && !pod.ended
    });
    drop(seen);
    claim::resolve(listing, tally);
    let others = listing.nodes.iter().any(|node| node.not_whole().is_none() && node.devices == 0);
    listing.nodes.retain(|node| is_kept(node, tally));
    let Listing { nodes: records, pods, budgets, .. } = listing;
    let with_gpus = || pods.iter().filter(|pod| pod.request.gpus > 0 && !pod.reserves);
    let gangs_with_gpus = with_gpus().filter_map(|pod| pod.gang.as_ref()).map(|gang| gang.name.as_str()).collect();
    let launchers = pods.iter().filter(|pod| !pod.node.is_empty() && is_launcher(pod, &gangs_with_gpus));
    let kinds = Kinds::new(records, &with_gpus().chain(launchers).collect::<Vec<_>>());
    let mut nodes = Vec::with_capacity(records.len());
    for record in records.iter() {
        places.insert(record.name.as_str().into(), Some(nodes.len() as u32));
        nodes.push(node(record, keys, &kinds, tally));
    }
    let mut here: Vec<Vec<&PodRecord>> = vec![Vec::new(); nodes.len()];
    for pod in pods.iter().filter(|pod| !pod.node.is_empty()) {
        match places.get(pod.node.as_str()) {
            Some(&Some(at)) => here[at as usize].push(pod),
            Some(None) if pod.request.gpus > 0 => tally.met("pods with GPUs on nodes that are left out", &pod.name),
            Some(None) => {}
            None => tally.met("pods on nodes that no list has, left out", &pod.name),
        }
    }
    let (by_name, names) = (FxHashMap::default(), Names::default());
    let mut jobs = Jobs {
        gangs_with_gpus,
        kinds: &kinds,
        nodes: &nodes,
        keys,
        budgets,
        limits: BTreeMap::new(),
        jobs: Vec::new(),
        by_name,
        names,
        pods: Vec::new(),
    };
    for (at, (record, pods)) in records.iter().zip(here).enumerate() {
        jobs.take_node(at as u32, record, &pods, tally);
    }
    let pods = std::mem::take(&mut jobs.pods);
    let limits = jobs.limits(tally);
    let (jobs, names) = jobs.finish(tally);
    Running { kinds, nodes, others, jobs, names, pods, limits }
}

fn is_kept(node: &NodeRecord, tally: &mut Tally) -> bool {
    let why = match node.not_whole() {
        Some(why) => why,
        None if node.devices == 0 => "nodes without GPUs, left out",
        None if node.devices > MAX_GPUS as u64 => "nodes with more than 16 GPUs, left out",
        None => {
            if node.slices {
                tally.met(
                    "nodes with parts of GPUs (MIG, shares) beside whole ones: the parts are not counted",
                    &node.name,
                );
            }
            return true;
        }
    };
    tally.met(why, &node.name);
    false
}

fn node(record: &NodeRecord, keys: &TopologyKeys, kinds: &Kinds, tally: &mut Tally) -> DumpNode {
    let place = keys.place(record);
    if place.lacks {
        tally.met(
            "nodes without one of the labels that say where nodes are; without the innermost, in no rack",
            &record.name,
        );
    }
    let closed = kinds.closed(record);
    if let Some(why) = closed {
        tally.met(why, &record.name);
    }
    let broken = record.devices - record.gpus;
    if broken > 0 {
        tally.met(
            "nodes with GPUs that cannot be given out; which ones is assumed: the highest that no pod names",
            &record.name,
        );
    }
    DumpNode {
        name: record.name.clone(),
        gpus: record.devices as u8,
        model: kinds.model(record),
        domain: place.domain,
        rack: place.rack,
        cpu_milli: record.cpu_milli,
        memory_mib: record.memory_mib,
        unschedulable: closed.is_some(),
        broken: broken as u8,
        ..DumpNode::default()
    }
}

/// Whether a pod is one without GPUs, whole or in part, of a gang that has some.
fn is_launcher(pod: &PodRecord, gangs_with_gpus: &FxHashSet<&str>) -> bool {
    let has_gpus = pod.request.gpus > 0 || pod.request.parts > 0 || pod.fraction || pod.reserves;
    !has_gpus && pod.gang.as_ref().is_some_and(|gang| gangs_with_gpus.contains(gang.name.as_str()))
}

/// Puts pods together to jobs.
struct Jobs<'a> {
    /// Gangs of which some pod has GPUs.
    gangs_with_gpus: FxHashSet<&'a str>,
    kinds: &'a Kinds,
    nodes: &'a [DumpNode],
    keys: &'a TopologyKeys,
    budgets: &'a [BudgetRecord],
    /// The jobs of budgets that allow some disruptions, by the places of both.
    limits: BTreeMap<usize, BTreeSet<usize>>,
    jobs: Vec<Member>,
    by_name: FxHashMap<(String, &'static str), usize>,
    names: Names,
    pods: Vec<String>,
}

/// A job as far as its pods have been met.
struct Member {
    job: DumpJob,
    /// What said that its pods are one job; nothing for a pod alone.
    by: Option<&'static str>,
    together: Option<String>,
}

impl Jobs<'_> {
    fn take_node(&mut self, at: u32, record: &NodeRecord, pods: &[&PodRecord], tally: &mut Tally) {
        let map = DeviceMap::new(record.hami.as_deref(), pods.iter().map(|pod| &pod.devices));
        let mut rest = DumpSeat { node: at, ..DumpSeat::default() };
        for pod in pods {
            for (is, what) in [
                (
                    pod.request.parts > 0,
                    "running pods with parts of GPUs (MIG, shares): they hold CPU and memory alone",
                ),
                (pod.fraction, "running pods that share a GPU, which another pod holds for them"),
                (pod.reserves, "pods that hold GPUs for others to share: these count as held whole, and are not moved"),
                (pod.ends && pod.request.gpus > 0, "pods that end, and hold their GPUs until they have"),
            ] {
                if is {
                    tally.met(what, &pod.name);
                }
            }
            // A launcher must be where its workers are; all others without GPUs only take room.
            if pod.request.gpus == 0 && !is_launcher(pod, &self.gangs_with_gpus) {
                rest.cpu_milli = rest.cpu_milli.saturating_add(pod.request.cpu_milli);
                rest.memory_mib = rest.memory_mib.saturating_add(pod.request.memory_mib);
                continue;
            }
            let devices = map.mask(&pod.devices);
            if devices.is_none() && pod.devices != Devices::Unknown {
                tally.met("pods whose devices are named in a way that nothing translates", &pod.name);
            }
            let seat = DumpSeat {
                node: at,
                gpus: pod.request.gpus.min(MAX_GPUS as u64 + 1) as u8,
                devices,
                cpu_milli: pod.request.cpu_milli,
                memory_mib: pod.request.memory_mib,
                pod: Some(self.pods.len() as u32),
                ..DumpSeat::default()
            };
            self.pods.push(pod.name.clone());
            self.add(pod, seat, tally);
        }
        if rest.cpu_milli > 0 || rest.memory_mib > 0 {
            // One job for all of them: what they leave free matters here, not where they go.
            let name = self.names.take(format!("{}/without-gpus", record.name), "");
            let job = DumpJob { name, pinned: true, seats: vec![rest], ..DumpJob::default() };
            self.jobs.push(Member { job, by: None, together: None });
        }
    }

    fn add(&mut self, pod: &PodRecord, seat: DumpSeat, tally: &mut Tally) {
        let (key, by) = match &pod.gang {
            Some(gang) if !pod.reserves => ((gang.name.clone(), gang.by), Some(gang.by)),
            _ => ((pod.name.clone(), ""), None),
        };
        let at = *self.by_name.entry(key).or_insert_with_key(|(name, by_what)| {
            let name = self.names.take(name.clone(), by_what);
            self.jobs.push(Member { job: DumpJob { name, ..DumpJob::default() }, by, together: None });
            self.jobs.len() - 1
        });
        let Member { job: member, together, .. } = &mut self.jobs[at];
        if together.is_none() {
            together.clone_from(&pod.together);
        }
        let (models, is_certain) = match self.kinds.allowed(pod) {
            Allowed::These(models) => (models, false),
            Allowed::Nowhere => (Vec::new(), false),
            Allowed::Certain => (Vec::new(), true),
        };
        member.pinned |= pod.pinned || is_certain;
        let known = member.models.iter().position(|known| *known == models);
        let models = known.unwrap_or_else(|| {
            member.models.push(models);
            member.models.len() - 1
        });
        // A job of more kinds of pods than can be told apart takes the rest for the last of them.
        member.seats.push(DumpSeat { models: models.min(usize::from(u16::MAX)) as u16, ..seat });
        if member.pinned {
            return;
        }
        for (place, budget) in self.budgets.iter().enumerate().filter(|(_, budget)| budget.covers(pod)) {
            self.limits.entry(place).or_default().insert(at);
            if budget.allowed == 0 {
                member.pinned = true;
                tally.met("pods that their PodDisruptionBudget lets nobody disrupt now: they are not moved", &pod.name);
            }
        }
    }

    /// The budgets that allow some disruptions, with their jobs.
    fn limits(&mut self, tally: &mut Tally) -> Vec<DumpLimit> {
        let mut limits = Vec::new();
        for (place, jobs) in std::mem::take(&mut self.limits) {
            let BudgetRecord { name, allowed, .. } = &self.budgets[place];
            if *allowed == 0 {
                tally.met("PodDisruptionBudgets that allow no disruption, or do not say so, and have such pods", name);
                continue;
            }
            tally.met("PodDisruptionBudgets that allow some disruptions: plan and explain alone keep to them", name);
            let jobs = jobs.into_iter().map(|at| self.jobs[at].job.name.clone()).collect();
            limits.push(DumpLimit { name: name.clone(), allowed: *allowed, jobs });
        }
        limits
    }

    fn finish(self, tally: &mut Tally) -> (Vec<DumpJob>, Names) {
        let Self { nodes, keys, jobs, names, .. } = self;
        let finish = |Member { mut job, by, together }: Member| {
            if let Some(by) = by {
                tally.met(format!("running jobs whose pods are one by {by}"), &job.name);
            }
            let is_bound = together.is_some();
            job.within = together.and_then(|key| keys.within(&key)).filter(|&within| {
                let place = |seat: &DumpSeat| {
                    let node = &nodes[seat.node as usize];
                    (&node.rack, (within == Within::Domain).then_some(&node.domain))
                };
                job.seats.iter().all(|seat| place(seat) == place(&job.seats[0]))
            });
            if is_bound && job.within.is_none() {
                tally.met(
                    "running jobs that must share a level that is neither domain nor rack here, or do not share it: nothing \
                     keeps them together",
                    &job.name,
                );
            }
            job.allow_what_runs(nodes);
            job
        };
        (jobs.into_iter().map(finish).collect(), names)
    }
}

/// Names that jobs have. A pod and a gang may be called the same.
#[derive(Debug, Default)]
pub(super) struct Names(FxHashSet<String>);

impl Names {
    /// The name itself if nobody has it, else one with what it is by.
    pub(super) fn take(&mut self, name: String, by: &str) -> String {
        let mut free = name;
        if self.0.contains(&free) && !by.is_empty() {
            free = format!("{free} ({by})");
        }
        while !self.0.insert(free.clone()) {
            free.push('\'');
        }
        free
    }
}
