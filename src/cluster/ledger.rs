//! The cluster: nodes, jobs, and the ledger of which instance holds which devices.

use rustc_hash::FxHashMap;

use super::capacity::MAX_GPUS;
use super::groups::GroupedJobs;
use super::ids::{DomainId, InstanceId, JobId, ModelId, NodeId, PoolId, RackId, RequestId};
use super::names::{Names, TooManyNames};
use super::node::{GpuMask, Node};
use super::request::Request;

/// No instance.
pub(super) const NOBODY: u32 = u32::MAX;

/// The owner of a device that shares lie on; which they are, the instances know.
pub(super) const SHARED: u32 = u32::MAX - 1;

/// A job. Its name and its request are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The request's number, with `PINNED` for a job that must not be moved: there may be a million jobs.
    request_and_pin: u32,
    pub(super) instances: u32,
    /// The first instance, `NOBODY` before the job was first given instance numbers.
    pub(super) first: u32,
    pub(super) running: u32,
}

/// The bit of a pinned job.
const PINNED: u32 = 1 << 31;

impl Job {
    /// Its request's number.
    pub fn request(&self) -> RequestId {
        RequestId(self.request_and_pin & !PINNED)
    }

    /// The number of its instances.
    pub fn instances(&self) -> u32 {
        self.instances
    }

    /// Whether any of its instances runs. Between decisions all of them run, or none.
    pub fn runs(&self) -> bool {
        self.running > 0
    }

    /// Whether its instances may be moved while they run.
    pub fn migratable(&self) -> bool {
        self.request_and_pin & PINNED == 0
    }
}

/// One instance: whose it is, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    pub(super) job: JobId,
    /// `NOBODY` (as a node number) while it holds nothing.
    pub(super) node: u32,
    pub(super) gpus: GpuMask,
}

impl Instance {
    /// Its job.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// The node it runs on, if it runs.
    pub fn node(&self) -> Option<NodeId> {
        (self.node != NOBODY).then_some(NodeId(self.node))
    }

    /// The devices it holds; empty for a CPU-only instance and for one that does not run.
    pub fn gpus(&self) -> GpuMask {
        self.gpus
    }
}

/// A pool: all nodes of one capacity and model. Φ* and the bounds of the method are per pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    /// Working GPUs a node.
    pub capacity: u8,
    /// The model; `None` for nodes that name none.
    pub model: Option<ModelId>,
}

/// Seconds that a snapshot may state of a running job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTimes {
    /// How long the job will still run.
    pub remaining_s: Option<u64>,
    /// What one migration costs it.
    pub move_cost_s: Option<u64>,
}

/// A whole cluster. All changes go through [`Cluster::apply`].
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub(super) nodes: Vec<Node>,
    pub(super) node_names: Names,
    pub(super) pools: Vec<Pool>,
    pub(super) models: Names,
    pub(super) racks: Names,
    /// Rack and name of each domain; the names are interned with the rack's in front.
    pub(super) domains: Names,
    pub(super) domain_parts: Vec<(Option<RackId>, String)>,
    pub(super) requests: Vec<Request>,
    pub(super) request_numbers: FxHashMap<Request, RequestId>,
    pub(super) jobs: Vec<Job>,
    pub(super) job_names: Names,
    pub(super) job_times: FxHashMap<JobId, JobTimes>,
    pub(super) grouped: GroupedJobs,
    pub(super) instances: Vec<Instance>,
    /// The instance that holds each device, nodes one after another.
    pub(super) owners: Vec<u32>,
    /// The thousandths that shares hold of each device, for the nodes that have any: clusters without shares have none.
    pub(super) shares: FxHashMap<NodeId, [u16; MAX_GPUS]>,
}

impl Cluster {
    /// All nodes, in file order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.index()]
    }

    /// All node numbers, ascending.
    pub fn node_ids(&self) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// A node's name.
    pub fn node_name(&self, node: NodeId) -> &str {
        self.node_names.get(node.0)
    }

    /// The node of this name.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.node_names.find(name).map(NodeId)
    }

    /// All pools, by first appearance in the file.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// One pool.
    pub fn pool(&self, pool: PoolId) -> Pool {
        self.pools[pool.index()]
    }

    /// The name of a model.
    pub fn model_name(&self, model: ModelId) -> &str {
        self.models.get(model.0)
    }

    /// The number of racks.
    pub fn n_racks(&self) -> usize {
        self.racks.len()
    }

    /// The name of a rack.
    pub fn rack_name(&self, rack: RackId) -> &str {
        self.racks.get(rack.0)
    }

    /// The number of NVLink domains.
    pub fn n_domains(&self) -> usize {
        self.domains.len()
    }

    /// The name of a domain, without its rack's.
    pub fn domain_name(&self, domain: DomainId) -> &str {
        &self.domain_parts[domain.index()].1
    }

    /// The rack of a domain, if its nodes name one.
    pub fn domain_rack(&self, domain: DomainId) -> Option<RackId> {
        self.domain_parts[domain.index()].0
    }

    /// All jobs ever registered: running, queued and gone.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// One job.
    pub fn job(&self, job: JobId) -> &Job {
        &self.jobs[job.index()]
    }

    /// All job numbers, in order of registration.
    pub fn job_ids(&self) -> impl ExactSizeIterator<Item = JobId> + use<> {
        (0..self.jobs.len() as u32).map(JobId)
    }

    /// A job's name.
    pub fn job_name(&self, job: JobId) -> &str {
        self.job_names.get(job.0)
    }

    /// The job of this name, whatever its state.
    pub fn find_job(&self, name: &str) -> Option<JobId> {
        self.job_names.find(name).map(JobId)
    }

    /// What a snapshot stated of a job's time.
    pub fn job_times(&self, job: JobId) -> JobTimes {
        self.job_times.get(&job).copied().unwrap_or_default()
    }

    /// All distinct requests.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// A request by its number.
    pub fn request(&self, request: RequestId) -> &Request {
        &self.requests[request.index()]
    }

    /// What each instance of the job asks for.
    pub fn request_of(&self, job: JobId) -> &Request {
        self.request(self.job(job).request())
    }

    /// One instance.
    pub fn instance(&self, instance: InstanceId) -> &Instance {
        &self.instances[instance.index()]
    }

    /// The instances of a job, ascending; none before [`Cluster::number_instances`] was called for it.
    pub fn instances_of(&self, job: JobId) -> impl ExactSizeIterator<Item = InstanceId> + DoubleEndedIterator + use<> {
        let job = self.job(job);
        let range = if job.first == NOBODY { 0..0 } else { job.first..job.first + job.instances };
        range.map(InstanceId)
    }

    /// The position of an instance within its job, from 0.
    pub fn position(&self, instance: InstanceId) -> u32 {
        instance.0 - self.job(self.instance(instance).job).first
    }

    /// The instance that holds a whole device of a node, if one does; none holds a device that is shared.
    pub fn owner(&self, node: NodeId, gpu: u8) -> Option<InstanceId> {
        let node = self.node(node);
        debug_assert!(gpu < node.devices);
        let owner = self.owners[node.owners_at as usize + usize::from(gpu)];
        (owner < SHARED).then_some(InstanceId(owner))
    }

    /// The instances that hold whole devices of a node, by their lowest device. CPU-only instances and shares are not
    /// among them.
    pub fn instances_on(&self, node: NodeId) -> impl Iterator<Item = InstanceId> + '_ {
        let mut left = self.node(node).busy & !self.node(node).shared;
        std::iter::from_fn(move || {
            let gpu = left.trailing_zeros() as u8;
            let instance = (left != 0).then(|| self.owner(node, gpu)).flatten()?;
            left &= !self.instance(instance).gpus;
            Some(instance)
        })
    }

    /// The jobs that hold anything of a node, shares of its devices and CPU-only instances included, ascending. O(1) where
    /// no device of it is shared and no request is CPU-only, else O(all instances).
    pub fn jobs_on(&self, node: NodeId) -> Vec<JobId> {
        let mut jobs: Vec<JobId> = self.instances_on(node).map(|instance| self.instance(instance).job).collect();
        let shared = self.node(node).shared;
        if shared != 0 || self.requests.iter().any(|request| request.gpus == 0) {
            let on_it = self.instances.iter().filter(|held| held.node == node.0);
            jobs.extend(on_it.filter(|held| held.gpus == 0 || held.gpus & shared != 0).map(|held| held.job));
        }
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }

    /// All GPUs that work.
    pub fn gpus(&self) -> u64 {
        self.nodes.iter().map(|node| u64::from(node.capacity)).sum()
    }

    /// The number for a request; equal requests share one.
    pub fn intern_request(&mut self, request: Request) -> RequestId {
        if let Some(&id) = self.request_numbers.get(&request) {
            return id;
        }
        let id = RequestId(self.requests.len() as u32);
        self.requests.push(request.clone());
        self.request_numbers.insert(request, id);
        id
    }

    /// The number for a model name, which need not occur in the cluster.
    ///
    /// # Errors
    /// If there are too many names.
    pub fn intern_model(&mut self, name: &str) -> Result<ModelId, TooManyNames> {
        self.models.insert(name).map(|(id, _)| ModelId(id))
    }

    /// Registers a job that does not run yet. `None` if the name is taken.
    ///
    /// # Errors
    /// If there are too many names.
    pub fn add_job(
        &mut self,
        name: &str,
        request: RequestId,
        instances: u32,
        migratable: bool,
    ) -> Result<Option<JobId>, TooManyNames> {
        if self.grouped.has(name) {
            return Ok(None);
        }
        let (id, new) = self.job_names.insert(name)?;
        if new {
            debug_assert!(request.0 < PINNED);
            let request_and_pin = request.0 | if migratable { 0 } else { PINNED };
            self.jobs.push(Job { request_and_pin, instances, first: NOBODY, running: 0 });
        }
        Ok(new.then_some(JobId(id)))
    }

    /// Gives the instances of a job their numbers, if they have none yet. Returns false (and does nothing) if the
    /// numbers run out: there are 2^32 − 2 for all jobs that ever ran.
    #[must_use]
    pub fn number_instances(&mut self, job: JobId) -> bool {
        let n = self.job(job).instances;
        if self.job(job).first != NOBODY {
            return true;
        }
        let first = self.instances.len();
        if first + n as usize >= SHARED as usize {
            return false;
        }
        self.jobs[job.index()].first = first as u32;
        self.instances.extend((0..n).map(|_| Instance { job, node: NOBODY, gpus: 0 }));
        true
    }
}
