//! Nodes with GPUs, and who holds what on them.

use rustc_hash::FxHashMap;

use crate::cluster::{GpuMask, JobTimes, MAX_GPUS, Within, gpu_indices};

use super::super::dump::{DumpJob, DumpNode, DumpSeat, Held, Tally};
use super::super::tres::Tres;
use super::gres::{Asked, Gres, is_slice};
use super::hostlist::each_host;
use super::record::{Holding, JobRecord, NodeRecord, holds, usable};
use super::topology::Topology;
use super::walls::{Allowed, Walls};

/// The type of GPUs that have none.
const UNTYPED: &str = "gpu";

/// The nodes that are kept, and the jobs that run there.
pub(super) struct Running {
    pub(super) walls: Walls,
    nodes: Vec<DumpNode>,
    /// By name: the place in `nodes`, `None` for a node that is left out.
    places: FxHashMap<String, Option<u32>>,
    /// Devices of which shards are held, by node.
    sharded: Vec<GpuMask>,
    jobs: Vec<DumpJob>,
}

impl Running {
    /// Takes the nodes.
    pub(super) fn new(
        records: &mut Vec<NodeRecord>,
        jobs: &[JobRecord],
        topology: &Topology,
        tally: &mut Tally,
    ) -> Self {
        let mut places = FxHashMap::default();
        records.retain(|node| {
            let new = !node.name.is_empty() && places.insert(node.name.clone(), None).is_none();
            if !new {
                tally.met("nodes without a name, or that are listed more than once; the first counts", &node.name);
            }
            new
        });
        let types: Vec<Option<String>> = records.iter().map(|node| type_of(node, tally)).collect();
        let walls = Walls::new(records.iter().zip(types.iter().cloned()), jobs);
        let mut running = Self { walls, nodes: Vec::new(), places, sharded: Vec::new(), jobs: Vec::new() };
        for (record, gpu) in records.iter().zip(types) {
            let Some(gpu) = gpu else { continue };
            running.places.insert(record.name.clone(), Some(running.nodes.len() as u32));
            let node = running.node(record, gpu, topology, tally);
            running.nodes.push(node);
        }
        running
    }

    fn node(&mut self, record: &NodeRecord, gpu: String, topology: &Topology, tally: &mut Tally) -> DumpNode {
        let place = topology.place(record);
        let used = record.gres_used.as_deref().map(Gres::read).unwrap_or_default();
        // A device that is shared counts as held whole.
        let sharded = used.sharded & !used.devices.unwrap_or(0);
        self.sharded.push(sharded);
        if used.shards > 0 && sharded == 0 {
            tally.met("nodes with shards of GPUs in use that are not told apart, and not counted", &record.name);
        }
        let usable = usable(&record.states);
        if !usable {
            tally.met(format!("nodes that take no new jobs ({})", record.states.join("+")), &record.name);
        }
        if record.owned {
            tally.met("nodes that one user has alone, taken as open to all", &record.name);
        }
        let gpus = Gres::read(&record.gres).gpus() as u8;
        DumpNode {
            name: record.name.clone(),
            gpus,
            model: self.walls.model(record, gpu).cloned(),
            domain: place.domain,
            rack: place.rack,
            cpu_milli: Some(record.cpus.saturating_mul(1000)).filter(|&cpus| cpus > 0),
            memory_mib: Some(record.memory_mib).filter(|&memory| memory > 0),
            unschedulable: !usable,
            broken: 0,
            held: Held {
                gpus: (used.gpus() + u64::from(sharded.count_ones())).min(u64::from(gpus)) as u8,
                devices: used.devices.map(|devices| devices | sharded),
                cpu_milli: record.cpus_used.saturating_mul(1000),
                memory_mib: record.memory_used,
            },
        }
    }

    /// Takes the jobs that hold something; `at_s` is when they were listed.
    ///
    /// # Errors
    /// What is wrong with a list of hosts.
    pub(super) fn take_jobs(&mut self, jobs: &[JobRecord], at_s: Option<u64>, tally: &mut Tally) -> Result<(), String> {
        for job in jobs.iter().filter(|job| holds(&job.states)) {
            let taken = self.job(job, at_s, tally).map_err(|wrong| format!("job {}: {wrong}", job.id))?;
            if !taken.seats.is_empty() {
                self.jobs.push(taken);
            }
        }
        for (at, &sharded) in self.sharded.iter().enumerate().filter(|&(_, &sharded)| sharded != 0) {
            let node = &self.nodes[at].name;
            tally.met("nodes with shards of GPUs in use: these count as held whole, by a job NODE/shards", node);
            let seat =
                |device: u8| DumpSeat { node: at as u32, gpus: 1, devices: Some(1 << device), ..DumpSeat::default() };
            let seats = gpu_indices(sharded).map(seat).collect();
            self.jobs.push(DumpJob { name: format!("{node}/shards"), pinned: true, seats, ..DumpJob::default() });
        }
        Ok(())
    }

    fn job(&self, job: &JobRecord, at_s: Option<u64>, tally: &mut Tally) -> Result<DumpJob, String> {
        let name = job.id.to_string();
        let bound = !job.required_nodes.is_empty() || !self.all_closed(&job.excluded_nodes);
        let mut dumped = DumpJob {
            pinned: !(job.requeue && job.batch) || job.reservation || bound,
            models: vec![self.models(job)],
            times: JobTimes { remaining_s: remaining(job, at_s), move_cost_s: None },
            seats: Vec::new(),
            ..DumpJob::default()
        };
        for holding in &job.holdings {
            let each = Each::of(job, holding);
            if each.gres.shards > 0 {
                tally.met("running jobs that have shards of GPUs: they hold CPU and memory alone", &name);
            }
            each_host(&holding.hosts, |host| match self.places.get(host) {
                Some(&Some(node)) => dumped.seats.extend(each.seat(node)),
                Some(None) => {}
                None => tally.met("instances on nodes that no file lists, left out", &name),
            })?;
        }
        if !job.detailed && !dumped.seats.is_empty() {
            tally.met("running jobs without details (scontrol -d): an equal share of their total on each node", &name);
        }
        if job.switches == 1 && self.share_rack(&dumped.seats) {
            dumped.within = Some(Within::Rack);
        }
        dumped.allow_what_runs(&self.nodes);
        Ok(DumpJob { name, ..dumped })
    }

    fn models(&self, job: &JobRecord) -> Vec<String> {
        let kinds = asked(job).kinds;
        match self.walls.allowed(job, kinds.first().map_or("", String::as_str)) {
            Allowed::These(models) => models,
            Allowed::Nowhere | Allowed::Unreadable => Vec::new(),
        }
    }

    fn share_rack(&self, seats: &[DumpSeat]) -> bool {
        let mut racks = seats.iter().map(|seat| self.nodes[seat.node as usize].rack.as_ref());
        let first = racks.next().flatten();
        first.is_some() && racks.all(|rack| rack == first)
    }

    /// The GPUs of the nodes that a job may have, if all of them have as many.
    pub(super) fn common_size(&self, models: &[String]) -> Option<u8> {
        let mut sizes = self
            .nodes
            .iter()
            .filter(|node| models.is_empty() || node.model.as_ref().is_some_and(|model| models.contains(model)))
            .map(|node| node.gpus);
        let first = sizes.next()?;
        sizes.all(|size| size == first).then_some(first)
    }

    /// Whether every one of these nodes takes no new jobs, or is no node of ours.
    pub(super) fn all_closed(&self, hosts: &str) -> bool {
        let mut closed = true;
        let read = each_host(hosts, |host| {
            let node = self.places.get(host).copied().flatten().map(|at| &self.nodes[at as usize]);
            closed &= node.is_none_or(|node| node.unschedulable);
        });
        read.is_ok() && closed
    }

    /// Whether any node says which rack it is in.
    pub(super) fn knows_racks(&self) -> bool {
        self.nodes.iter().any(|node| node.rack.is_some())
    }

    /// The nodes and the jobs.
    pub(super) fn finish(self) -> (Vec<DumpNode>, Vec<DumpJob>) {
        (self.nodes, self.jobs)
    }
}

/// The type of the GPUs of a node, all types if it has several; `None` if it is left out.
fn type_of(node: &NodeRecord, tally: &mut Tally) -> Option<String> {
    let gres = Gres::read(&node.gres);
    let mut kinds: Vec<&str> = Vec::new();
    for kind in gres.kinds().map(|kind| if kind.is_empty() { UNTYPED } else { kind }) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        tally.met("nodes without GPUs, left out", &node.name);
        return None;
    }
    if kinds.iter().any(|kind| is_slice(kind)) {
        tally.met("nodes whose GPUs are cut in slices (MIG), left out", &node.name);
        return None;
    }
    if gres.gpus() > MAX_GPUS as u64 {
        tally.met("nodes with more than 16 GPUs, left out", &node.name);
        return None;
    }
    if kinds.len() > 1 {
        tally.met(
            "nodes with GPUs of several types: a model of its own, which no job that asks for one type gets",
            &node.name,
        );
    }
    Some(kinds.join("+"))
}

/// What a job asks of GPUs, in whichever way.
pub(super) fn asked(job: &JobRecord) -> Asked {
    let ways = [&job.per_node, &job.per_task, &job.per_job, &job.per_socket];
    ways.map(|way| Asked::read(way)).into_iter().find(|asked| asked.gpus > 0 || asked.shares).unwrap_or_default()
}

/// What a job holds on each host of one list.
struct Each {
    gres: Gres,
    cpu_milli: u64,
    memory_mib: u64,
}

impl Each {
    fn of(job: &JobRecord, holding: &Holding) -> Self {
        let given = Tres::read(if job.given.is_empty() { &job.asked } else { &job.given }).unwrap_or_default();
        let nodes = job.nodes.max(1);
        let mut gres = Gres::read(&holding.gres);
        if !job.detailed {
            let total = if given.gpus() > 0 { given.gpus().div_ceil(nodes) } else { gpus_a_node(job).unwrap_or(0) };
            gres = Gres { types: vec![(String::new(), total)], ..Gres::default() };
        }
        Self {
            gres,
            cpu_milli: holding.cpus.map_or(given.cpu_milli.div_ceil(nodes), |cpus| cpus.saturating_mul(1000)),
            memory_mib: holding.memory_mib.unwrap_or(given.memory_mib.div_ceil(nodes)),
        }
    }

    fn seat(&self, node: u32) -> Option<DumpSeat> {
        let gpus = self.gres.gpus().min(MAX_GPUS as u64) as u8;
        let nothing = gpus == 0 && self.cpu_milli == 0 && self.memory_mib == 0;
        let devices = self.gres.devices.filter(|_| gpus > 0);
        let (cpu_milli, memory_mib) = (self.cpu_milli, self.memory_mib);
        let seat = DumpSeat { node, gpus, devices, cpu_milli, memory_mib, ..DumpSeat::default() };
        (!nothing).then_some(seat)
    }
}

/// The GPUs that a job asks for on each of its nodes; `None` if they do not come out even, or go by the socket.
pub(super) fn gpus_a_node(job: &JobRecord) -> Option<u64> {
    let nodes = job.nodes.max(1);
    let even = |total: u64| total.is_multiple_of(nodes).then_some(total / nodes);
    let (node, task) = (Asked::read(&job.per_node).gpus, Asked::read(&job.per_task).gpus);
    let (whole, socket) = (Asked::read(&job.per_job).gpus, Asked::read(&job.per_socket).gpus);
    match (node, whole, task) {
        (1.., ..) => Some(node),
        (_, 1.., _) => even(whole),
        (_, _, 1..) => even(task.checked_mul(job.tasks.max(1))?),
        _ if socket > 0 => None,
        // Sites that account for GPUs have them in the total.
        _ => even(Tres::read(&job.asked).unwrap_or_default().gpus()),
    }
}

fn remaining(job: &JobRecord, at_s: Option<u64>) -> Option<u64> {
    /// The longest time that a snapshot may state.
    const MOST: u64 = (1 << 53) - 1;
    let until_end = || Some(job.end_s?.saturating_sub(at_s?));
    job.remaining_s.or_else(until_end).filter(|&seconds| seconds <= MOST)
}
