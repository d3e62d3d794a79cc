//! What the planner sees of a cluster: classes of instances that are alike, and classes of nodes that are alike.
//!
//! Identical nodes are interchangeable, and so are instances that ask for the same; thousands of nodes come down to some
//! tens of classes. CPU and memory are left out where they cannot bind whatever is moved, which is proved node by node.

use rustc_hash::FxHashMap;

use super::relocation::home;
use crate::cluster::{Cluster, InstanceId, JobId, ModelId, NodeId, Request, UNLIMITED, Within};

/// An amount of CPU or memory that never binds.
pub(super) const UNBOUND: i64 = i64::MAX;

/// Which constraints are looked at; all of them, but where a relaxation is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// CPU and memory.
    pub(super) resources: bool,
    /// Models, and `within` of the job.
    pub(super) wishes: bool,
    /// Jobs that must not be moved.
    pub(super) pins: bool,
    /// `within` of what runs: its instances stay in their region. Without it they may go anywhere.
    pub(super) stay: bool,
    /// Nodes of unlike capacity are told apart.
    pub(super) by_capacity: bool,
}

impl Rules {
    pub(super) const ALL: Self = Self { resources: true, wishes: true, pins: true, stay: true, by_capacity: false };
    /// GPUs alone.
    pub(super) const GPUS: Self = Self { resources: false, wishes: false, pins: true, stay: false, by_capacity: false };
}

/// What room is to be made for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Guest<'r> {
    /// Instances of a job.
    Job(&'r Request),
    /// Nothing: whole nodes are to be free of GPU instances.
    WholeNode,
}

/// A class of instances that are alike to the planner. The first of a layout is the guest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Item {
    pub(super) gpus: u8,
    pub(super) cpu: i64,
    pub(super) memory: i64,
    /// The number of the list of models that it allows.
    pub(super) models: u32,
    /// The region that it must not leave.
    pub(super) home: Option<u32>,
    /// It takes a whole node, whatever that has.
    pub(super) whole: bool,
    /// What moving it costs.
    pub(super) cost: i64,
}

/// Any region of its kind.
const ANY: u32 = u32::MAX;

/// The guest.
pub(super) const GUEST: usize = 0;

/// Items, ascending unless said otherwise, with how many of each.
pub(super) type Counts = Vec<(u16, u16)>;

/// An instance that may leave its node, with its item.
pub(super) type Mover = (u16, InstanceId);

/// A class of nodes that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Class {
    /// The lists of models that its nodes are on.
    pub(super) kind: u32,
    /// The regions that bound instances live in, and it lies in.
    pub(super) homes: Vec<u32>,
    pub(super) free: u8,
    /// GPUs that would be free if all movers left.
    pub(super) clear: u8,
    /// Whether all its GPUs would be free then.
    pub(super) whole: bool,
    /// All its GPUs, if the rules tell capacities apart; else 0.
    pub(super) capacity: u8,
    /// Free CPU; negative if overcommitted, `UNBOUND` if it cannot bind.
    pub(super) cpu: i64,
    pub(super) memory: i64,
    /// What may leave, by item, ascending, with how many.
    pub(super) movers: Counts,
}

/// The classes of a cluster. Unschedulable nodes are in none: room there is of no use.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) items: Vec<Item>,
    /// How many movers there are of each item.
    pub(super) n_movers: Vec<i64>,
    pub(super) classes: Vec<Class>,
    pub(super) members: Vec<Vec<NodeId>>,
    /// The class of each node, `u32::MAX` for none.
    pub(super) class_of: Vec<u32>,
    /// What may leave each node, with its item.
    pub(super) movers_on: Vec<Vec<Mover>>,
    /// For each kind, the lists of models that it is on.
    kinds: Vec<Vec<bool>>,
}

/// More classes of instances than are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyItems;

impl Layout {
    /// Sorts the instances and nodes of a cluster, or of the nodes of a part of it, into classes. `movable` says of each job
    /// whether it may be moved, and `cost` what moving one of its instances costs.
    pub(super) fn new(
        cluster: &Cluster,
        guest: Guest<'_>,
        rules: Rules,
        movable: &[bool],
        part: Option<&[bool]>,
        cost: &dyn Fn(JobId) -> i64,
    ) -> Result<Self, TooManyItems> {
        let is_open = |node: NodeId| cluster.node(node).schedulable() && part.is_none_or(|part| part[node.index()]);
        let movers_by_node = movers(cluster, rules, movable, &is_open);
        let requests = Requests::new(cluster, guest, rules, &movers_by_node);
        let mut sorter = Sorter {
            cluster,
            rules,
            cost,
            requests,
            items: Vec::new(),
            numbers: FxHashMap::default(),
            lists: Vec::new(),
            regions: FxHashMap::default(),
            regions_of: FxHashMap::default(),
        };
        sorter.add_guest(guest);
        let mut movers_on = Vec::with_capacity(movers_by_node.len());
        for movers in movers_by_node {
            let item = |instance| Ok((sorter.item_of(instance)?, instance));
            let mut movers = movers.into_iter().map(item).collect::<Result<Vec<_>, TooManyItems>>()?;
            movers.sort_unstable();
            movers_on.push(movers);
        }
        Ok(sorter.finish(movers_on, &is_open))
    }

    /// Whether the nodes of a kind, in these regions, may host an item, as far as models and regions go.
    pub(super) fn admits(&self, kind: u32, homes: &[u32], item: usize) -> bool {
        let item = &self.items[item];
        self.kinds[kind as usize][item.models as usize] && item.home.is_none_or(|home| homes.contains(&home))
    }
}

/// What may leave each node.
fn movers(cluster: &Cluster, rules: Rules, movable: &[bool], is_open: &dyn Fn(NodeId) -> bool) -> Vec<Vec<InstanceId>> {
    let mut movers = vec![Vec::new(); cluster.nodes().len()];
    for job in cluster.job_ids() {
        if !cluster.job(job).runs() || rules.pins && !movable[job.index()] {
            continue;
        }
        for instance in cluster.instances_of(job) {
            let Some(node) = cluster.instance(instance).node() else { continue };
            // A share of a GPU stays where it is.
            let request = cluster.request_of(job);
            if is_open(node) && !request.is_share() && (rules.resources || request.gpus > 0) {
                movers[node.index()].push(instance);
            }
        }
    }
    movers
}

/// CPU or memory, as far as it can bind.
struct Resource {
    /// Free on each node, `UNBOUND` where it cannot bind.
    free: Vec<i64>,
    /// Whether it can bind anywhere.
    binds: bool,
}

struct Requests {
    cpu: Resource,
    memory: Resource,
}

impl Requests {
    fn new(cluster: &Cluster, guest: Guest<'_>, rules: Rules, movers: &[Vec<InstanceId>]) -> Self {
        let resource = |asks: &dyn Fn(&Request) -> u32, all: &dyn Fn(NodeId) -> (u32, u64)| {
            let mut resource = Resource { free: vec![UNBOUND; cluster.nodes().len()], binds: false };
            if !rules.resources {
                return resource;
            }
            // The most that any request asks for each of its GPUs, as a fraction; over 0 if it has none.
            let mut most = (0i64, 1i64);
            let mut look = |request: &Request| {
                let (ask, gpus) = (i64::from(asks(request)), i64::from(request.gpus));
                if ask > 0 && ask * most.1 > most.0 * gpus {
                    most = (ask, gpus);
                }
            };
            if let Guest::Job(request) = guest {
                look(request);
            }
            let requests =
                movers.iter().flatten().map(|&instance| cluster.job(cluster.instance(instance).job()).request());
            let mut seen = vec![false; cluster.requests().len()];
            for request in requests {
                if !std::mem::replace(&mut seen[request.index()], true) {
                    look(cluster.request(request));
                }
            }
            for (node, movers) in cluster.node_ids().zip(movers) {
                let (limit, used) = all(node);
                if limit == UNLIMITED || most.0 == 0 {
                    continue;
                }
                let free = i64::from(limit) - i64::try_from(used).unwrap_or(UNBOUND / 2);
                let requests = movers.iter().map(|&instance| cluster.request_of(cluster.instance(instance).job()));
                let (ask, gpus) = requests.fold((0, 0), |(ask, gpus), request| {
                    (ask + i64::from(asks(request)), gpus + i64::from(request.gpus))
                });
                let clear = gpus + i64::from(cluster.node(node).free_gpus());
                if most.1 == 0 || most.0 * clear > (free + ask) * most.1 {
                    resource.free[node.index()] = free;
                    resource.binds |= cluster.node(node).schedulable();
                }
            }
            resource
        };
        let cpu = resource(&|request| request.cpu_milli, &|node| {
            (cluster.node(node).cpu_milli(), cluster.node(node).cpu_used())
        });
        let memory = resource(&|request| request.memory_mib, &|node| {
            (cluster.node(node).memory_mib(), cluster.node(node).memory_used())
        });
        Self { cpu, memory }
    }
}

struct Sorter<'a> {
    cluster: &'a Cluster,
    rules: Rules,
    cost: &'a dyn Fn(JobId) -> i64,
    requests: Requests,
    items: Vec<Item>,
    numbers: FxHashMap<Item, u16>,
    lists: Vec<Option<Box<[ModelId]>>>,
    regions: FxHashMap<(Within, u32), u32>,
    /// The region of each bound job.
    regions_of: FxHashMap<JobId, Option<u32>>,
}

impl Sorter<'_> {
    fn add_guest(&mut self, guest: Guest<'_>) {
        let item = match guest {
            Guest::Job(request) => Item { home: None, ..self.item(request, None, 0) },
            Guest::WholeNode => {
                let models = self.list(&None);
                Item { gpus: 0, cpu: 0, memory: 0, models, home: None, whole: true, cost: 0 }
            }
        };
        self.items.push(item);
    }

    fn item(&mut self, request: &Request, home: Option<u32>, cost: i64) -> Item {
        let models = if self.rules.wishes { self.list(&request.models) } else { self.list(&None) };
        let amount = |resource: &Resource, asks: u32| if resource.binds { i64::from(asks) } else { 0 };
        let cpu = amount(&self.requests.cpu, request.cpu_milli);
        let memory = amount(&self.requests.memory, request.memory_mib);
        Item { gpus: request.gpus, cpu, memory, models, home, whole: false, cost }
    }

    fn item_of(&mut self, instance: InstanceId) -> Result<u16, TooManyItems> {
        let job = self.cluster.instance(instance).job();
        let cluster = self.cluster;
        let request = cluster.request_of(job);
        let home = match request.within {
            Some(within) if self.rules.stay => self.home(job, within),
            _ => None,
        };
        let item = self.item(request, home, (self.cost)(job));
        if let Some(&number) = self.numbers.get(&item) {
            return Ok(number);
        }
        let number = u16::try_from(self.items.len()).map_err(|_| TooManyItems)?;
        self.items.push(item.clone());
        self.numbers.insert(item, number);
        Ok(number)
    }

    /// The number here of the region that a job stays in, if it is in one.
    fn home(&mut self, job: JobId, within: Within) -> Option<u32> {
        if let Some(&known) = self.regions_of.get(&job) {
            return known;
        }
        let first = home(self.cluster, job, within);
        let next = self.regions.len() as u32;
        // A lone instance is together wherever it is, if only it is somewhere.
        let first = if self.cluster.stands_alone(job) { first.map(|_| ANY) } else { first };
        let home = first.map(|first| *self.regions.entry((within, first)).or_insert(next));
        self.regions_of.insert(job, home);
        home
    }

    fn list(&mut self, models: &Option<Box<[ModelId]>>) -> u32 {
        let at = self.lists.iter().position(|list| list == models).unwrap_or_else(|| {
            self.lists.push(models.clone());
            self.lists.len() - 1
        });
        at as u32
    }

    fn finish(self, movers_on: Vec<Vec<Mover>>, is_open: &dyn Fn(NodeId) -> bool) -> Layout {
        let cluster = self.cluster;
        let mut kinds: Vec<Vec<bool>> = Vec::new();
        let kind_of_pool: Vec<u32> = cluster
            .pools()
            .iter()
            .map(|pool| {
                let on = |list: &Option<Box<[ModelId]>>| match list {
                    None => true,
                    Some(models) => pool.model.is_some_and(|model| models.binary_search(&model).is_ok()),
                };
                let kind: Vec<bool> = self.lists.iter().map(on).collect();
                let at = kinds.iter().position(|other| *other == kind).unwrap_or_else(|| {
                    kinds.push(kind);
                    kinds.len() - 1
                });
                at as u32
            })
            .collect();
        let mut n_movers = vec![0; self.items.len()];
        let mut numbers: FxHashMap<Class, u32> = FxHashMap::default();
        let (mut classes, mut members) = (Vec::new(), Vec::<Vec<NodeId>>::new());
        let mut class_of = vec![u32::MAX; cluster.nodes().len()];
        for (id, movers) in cluster.node_ids().zip(&movers_on) {
            let node = cluster.node(id);
            if !is_open(id) {
                continue;
            }
            let mut counts: Counts = Vec::new();
            for &(item, _) in movers {
                n_movers[usize::from(item)] += 1;
                match counts.last_mut() {
                    Some((last, count)) if *last == item => *count += 1,
                    _ => counts.push((item, 1)),
                }
            }
            let clear = node.free_gpus()
                + counts.iter().map(|&(item, n)| self.items[usize::from(item)].gpus * n as u8).sum::<u8>();
            let here = |within| cluster.node(id).region(within).map(|region| [(within, region), (within, ANY)]);
            let here = [Within::Domain, Within::Rack].into_iter().filter_map(here).flatten();
            let mut homes: Vec<u32> = here.filter_map(|region| self.regions.get(&region).copied()).collect();
            homes.sort_unstable();
            let class = Class {
                kind: kind_of_pool[node.pool().index()],
                homes,
                free: node.free_gpus(),
                clear,
                whole: self.items[GUEST].whole && clear == node.capacity() && clear > 0,
                capacity: if self.rules.by_capacity { node.capacity() } else { 0 },
                cpu: self.requests.cpu.free[id.index()],
                memory: self.requests.memory.free[id.index()],
                movers: counts,
            };
            let number = *numbers.entry(class).or_insert_with_key(|class| {
                classes.push(class.clone());
                members.push(Vec::new());
                classes.len() as u32 - 1
            });
            members[number as usize].push(id);
            class_of[id.index()] = number;
        }
        Layout { items: self.items, n_movers, classes, members, class_of, movers_on, kinds }
    }
}
