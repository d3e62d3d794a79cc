//! Nodes and running jobs as a dump lists them, put together to a cluster.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::cluster::{
    BuildError, Cluster, ClusterBuilder, GpuMask, JobSpec, JobTimes, MAX_AMOUNT, NodeId, NodeSpec, Seat, Within,
    lowest_gpus,
};

use super::super::snapshot::IndexSource;
use super::Tally;

/// A node as a dump lists it. It has 1 to 16 GPUs, and a name of its own.
#[derive(Clone, Debug, Default)]
pub(in crate::formats) struct DumpNode {
    pub(in crate::formats) name: String,
    pub(in crate::formats) gpus: u8,
    pub(in crate::formats) model: Option<String>,
    pub(in crate::formats) domain: Option<String>,
    pub(in crate::formats) rack: Option<String>,
    pub(in crate::formats) cpu_milli: Option<u64>,
    pub(in crate::formats) memory_mib: Option<u64>,
    pub(in crate::formats) unschedulable: bool,
    /// As many of its devices work no more, which ones nobody knows.
    pub(in crate::formats) broken: u8,
    /// What anybody holds here, where the dump says so itself: more than its jobs explain is held by jobs unknown.
    pub(in crate::formats) held: Held,
}

/// What is held on a node.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::formats) struct Held {
    pub(in crate::formats) gpus: u8,
    /// Which ones, if that is known.
    pub(in crate::formats) devices: Option<GpuMask>,
    pub(in crate::formats) cpu_milli: u64,
    pub(in crate::formats) memory_mib: u64,
}

/// A running job as a dump lists it.
#[derive(Clone, Debug, Default)]
pub(in crate::formats) struct DumpJob {
    pub(in crate::formats) name: String,
    pub(in crate::formats) pinned: bool,
    /// The models that instances may have, list by list; an empty list, or none at all, is for any.
    pub(in crate::formats) models: Vec<Vec<String>>,
    pub(in crate::formats) within: Option<Within>,
    pub(in crate::formats) times: JobTimes,
    pub(in crate::formats) seats: Vec<DumpSeat>,
}

/// One instance of a running job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::formats) struct DumpSeat {
    /// The node's place in the list of nodes.
    pub(in crate::formats) node: u32,
    pub(in crate::formats) gpus: u8,
    /// Its devices, where the dump names them.
    pub(in crate::formats) devices: Option<GpuMask>,
    pub(in crate::formats) cpu_milli: u64,
    pub(in crate::formats) memory_mib: u64,
    /// Which of the lists of its job's models is its own.
    pub(in crate::formats) models: u16,
    /// Its pod's place among those that the dump's reader lists, where it lists any.
    pub(in crate::formats) pod: Option<u32>,
}

impl DumpJob {
    /// Lets instances have the models that they have: they run where they run, whatever is asked now.
    pub(in crate::formats) fn allow_what_runs(&mut self, nodes: &[DumpNode]) {
        for seat in &self.seats {
            let Some(models) = self.models.get_mut(usize::from(seat.models)).filter(|models| !models.is_empty()) else {
                continue;
            };
            let here = nodes[seat.node as usize].model.as_ref();
            models.extend(here.filter(|here| !models.contains(here)).cloned());
        }
    }
}

/// A cluster made of a dump.
#[derive(Debug)]
pub(in crate::formats) struct Assembled {
    pub(in crate::formats) cluster: Cluster,
    pub(in crate::formats) index_source: IndexSource,
    /// What became which job, by its number.
    pub(in crate::formats) origins: Vec<Origin>,
}

/// What a job of the cluster is in the dump.
#[derive(Debug)]
pub(in crate::formats) struct Origin {
    /// The name of the job that it is, or is a part of.
    pub(in crate::formats) name: String,
    /// The pod of each instance.
    pub(in crate::formats) pods: Vec<Option<u32>>,
}

/// Makes a cluster of them.
///
/// Devices that a dump does not name are chosen: of those that the node says are held if it says so, else the lowest that
/// are free. Instances of a job that are unlike each other become groups of it, `NAME/1`, `NAME/2` and so on. What is
/// held on a node and by no job is held by a job `NODE/unknown`, which is not moved.
///
/// # Errors
/// If there is more than a cluster can count.
pub(in crate::formats) fn assemble(
    nodes: &[DumpNode],
    mut jobs: Vec<DumpJob>,
    tally: &mut Tally,
) -> Result<Assembled, BuildError> {
    let mut builder = ClusterBuilder::new();
    let unavailable = broken(nodes, &jobs);
    for (node, &unavailable) in nodes.iter().zip(&unavailable) {
        builder.add_node(&NodeSpec { unavailable, ..spec_of(node) })?;
    }
    let mut names = FxHashSet::default();
    jobs.retain(|job| {
        let new = names.insert(job.name.clone());
        if !new {
            tally.met("running jobs that are listed more than once, the first counts", &job.name);
        }
        new
    });
    let mut desk = Desk::new(nodes, &unavailable);
    desk.seat_named(&mut jobs, tally);
    desk.seat_others(&mut jobs, tally);
    let unknown = desk.unknown(&jobs, &names, tally);
    let mut origins = Vec::with_capacity(jobs.len());
    for job in jobs.iter().chain(&unknown) {
        add(&mut builder, job, &mut names, &mut origins, tally)?;
    }
    Ok(Assembled { cluster: builder.finish()?, index_source: desk.source(), origins })
}

fn spec_of(node: &DumpNode) -> NodeSpec<'_> {
    // More than can be counted is as good as no limit.
    let amount = |amount: Option<u64>| amount.and_then(|n| u32::try_from(n).ok()).filter(|&n| n <= MAX_AMOUNT);
    fn word(word: &Option<String>) -> Option<&str> {
        word.as_deref().filter(|word| !word.is_empty())
    }
    NodeSpec {
        name: &node.name,
        gpus: node.gpus,
        model: word(&node.model),
        domain: word(&node.domain),
        rack: word(&node.rack),
        cpu_milli: amount(node.cpu_milli),
        memory_mib: amount(node.memory_mib),
        unschedulable: node.unschedulable,
        unavailable: 0,
    }
}

/// The broken devices of each node: the highest that nobody is said to hold.
fn broken(nodes: &[DumpNode], jobs: &[DumpJob]) -> Vec<GpuMask> {
    let mut named: Vec<GpuMask> = nodes.iter().map(|node| node.held.devices.unwrap_or(0)).collect();
    for seat in jobs.iter().flat_map(|job| &job.seats) {
        named[seat.node as usize] |= seat.devices.unwrap_or(0);
    }
    let highest = |(node, named): (&DumpNode, GpuMask)| {
        let mut rest = all_devices(node) & !named;
        for _ in 0..rest.count_ones().saturating_sub(u32::from(node.broken)) {
            rest &= rest - 1;
        }
        rest
    };
    nodes.iter().zip(named).map(highest).collect()
}

fn all_devices(node: &DumpNode) -> GpuMask {
    ((1u32 << node.gpus) - 1) as GpuMask
}

/// Gives devices out.
struct Desk<'a> {
    nodes: &'a [DumpNode],
    /// The devices of each node that work and that nobody has yet.
    free: Vec<GpuMask>,
    /// Instances whose devices the dump named, and those whose devices were chosen here.
    named: u64,
    chosen: u64,
}

impl<'a> Desk<'a> {
    fn new(nodes: &'a [DumpNode], unavailable: &[GpuMask]) -> Self {
        let free = nodes.iter().zip(unavailable).map(|(node, broken)| all_devices(node) & !broken);
        Self { nodes, free: free.collect(), named: 0, chosen: 0 }
    }

    fn seat_named(&mut self, jobs: &mut [DumpJob], tally: &mut Tally) {
        for job in jobs {
            for seat in job.seats.iter_mut().filter(|seat| seat.gpus > 0) {
                let Some(devices) = seat.devices else { continue };
                let free = &mut self.free[seat.node as usize];
                if devices & !*free == 0 && devices.count_ones() == u32::from(seat.gpus) {
                    *free &= !devices;
                    self.named += 1;
                } else {
                    tally.met("instances whose devices another job holds or the node lacks, given others", &job.name);
                    seat.devices = None;
                }
            }
        }
    }

    fn seat_others(&mut self, jobs: &mut [DumpJob], tally: &mut Tally) {
        for job in jobs {
            let name = &job.name;
            job.seats.retain_mut(|seat| {
                if seat.gpus == 0 || seat.devices.is_some() {
                    return true;
                }
                let before = self.chosen;
                let devices = self.choose(seat.node as usize, seat.gpus);
                if self.chosen > before {
                    tally.met("instances whose devices nobody names: the lowest free ones are assumed", name);
                }
                if devices.is_none() {
                    tally.met("instances whose node has no GPUs left for them, left out", name);
                }
                seat.devices = devices;
                devices.is_some()
            });
        }
    }

    /// Takes `gpus` devices of a node.
    fn choose(&mut self, node: usize, gpus: u8) -> Option<GpuMask> {
        let free = self.free[node];
        let held = self.nodes[node].held.devices.map_or(0, |held| held & free);
        let from = if held.count_ones() >= u32::from(gpus) { held } else { free };
        let devices = lowest_gpus(from, gpus)?;
        // Where all of them are taken nothing was chosen.
        if devices == from {
            self.named += 1;
        } else {
            self.chosen += 1;
        }
        self.free[node] &= !devices;
        Some(devices)
    }

    /// Jobs that hold what the nodes say is held, and no job of the dump holds.
    fn unknown(&mut self, jobs: &[DumpJob], names: &FxHashSet<String>, tally: &mut Tally) -> Vec<DumpJob> {
        let mut used = vec![(0u8, 0u64, 0u64); self.nodes.len()];
        for seat in jobs.iter().flat_map(|job| &job.seats) {
            let (gpus, cpu_milli, memory_mib) = &mut used[seat.node as usize];
            *gpus += seat.gpus;
            *cpu_milli = cpu_milli.saturating_add(seat.cpu_milli);
            *memory_mib = memory_mib.saturating_add(seat.memory_mib);
        }
        let mut unknown = Vec::new();
        for (at, (node, (gpus, cpu_milli, memory_mib))) in self.nodes.iter().zip(used).enumerate() {
            let held = node.held;
            let gpus = held.gpus.saturating_sub(gpus).min(self.free[at].count_ones() as u8);
            let cpu_milli = held.cpu_milli.saturating_sub(cpu_milli);
            let memory_mib = held.memory_mib.saturating_sub(memory_mib);
            if (gpus, cpu_milli, memory_mib) == (0, 0, 0) {
                continue;
            }
            let devices = if gpus == 0 { None } else { self.choose(at, gpus) };
            tally.met(
                if gpus == 0 {
                    "nodes with CPU or memory that no listed job holds; held by a job NODE/unknown"
                } else {
                    "nodes with GPUs that no listed job holds; held by a job NODE/unknown, in one piece"
                },
                &node.name,
            );
            let mut name = format!("{}/unknown", node.name);
            while names.contains(&name) {
                name.push('\'');
            }
            let seat = DumpSeat { node: at as u32, gpus, devices, cpu_milli, memory_mib, ..DumpSeat::default() };
            unknown.push(DumpJob { name, pinned: true, seats: vec![seat], ..DumpJob::default() });
        }
        unknown
    }

    fn source(&self) -> IndexSource {
        match (self.named, self.chosen) {
            (_, 0) => IndexSource::Stated,
            (0, _) => IndexSource::Assumed,
            _ => IndexSource::Partly,
        }
    }
}

/// Adds a job, in groups where its instances are unlike.
fn add(
    builder: &mut ClusterBuilder,
    job: &DumpJob,
    names: &mut FxHashSet<String>,
    origins: &mut Vec<Origin>,
    tally: &mut Tally,
) -> Result<(), BuildError> {
    let mut groups: Vec<(DumpSeat, Vec<Seat>, Vec<Option<u32>>)> = Vec::new();
    let mut found = FxHashMap::default();
    for &DumpSeat { node, gpus, devices, cpu_milli, memory_mib, models, pod } in &job.seats {
        let like = DumpSeat { node: 0, gpus, devices: None, cpu_milli, memory_mib, models, pod: None };
        let at = *found.entry((gpus, cpu_milli, memory_mib, models)).or_insert_with(|| {
            groups.push((like, Vec::new(), Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(Seat { node: NodeId(node), gpus: devices });
        groups[at].2.push(pod);
    }
    let several = groups.len() > 1;
    // The groups of a job are called after it, so they can be told from others by their names alone.
    let joined = several && (1..=groups.len()).all(|number| !names.contains(&format!("{}/{number}", job.name)));
    if several && joined {
        tally.met("jobs whose instances are unlike, taken as jobs of groups NAME/1, NAME/2, …", &job.name);
    } else if several {
        tally
            .met("jobs whose instances are unlike and whose groups' names are taken, taken as several jobs", &job.name);
    }
    for (at, (like, seats, pods)) in groups.into_iter().enumerate() {
        let mut name = job.name.clone();
        if several {
            name = format!("{name}/{}", at + 1);
            while !names.insert(name.clone()) {
                name.push('\'');
            }
        }
        let models: Vec<&str> =
            job.models.get(usize::from(like.models)).into_iter().flatten().map(String::as_str).collect();
        let amount = |amount: u64| amount.min(u64::from(MAX_AMOUNT)) as u32;
        let spec = JobSpec {
            name: &name,
            gpus: like.gpus,
            cpu_milli: amount(like.cpu_milli),
            memory_mib: amount(like.memory_mib),
            models: &models,
            within: job.within,
            pinned: job.pinned,
            times: job.times,
            ..JobSpec::default()
        };
        let added = builder.add_running(&spec, &seats)?;
        if joined {
            builder.join_group(added, &job.name)?;
        }
        debug_assert_eq!(added.index(), origins.len());
        origins.push(Origin { name: job.name.clone(), pods });
    }
    Ok(())
}
