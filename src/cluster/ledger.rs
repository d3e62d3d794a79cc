//! The cluster: nodes, jobs, and the ledger of which instance holds which devices.

use rustc_hash::FxHashMap;

use super::edit::{Edit, EditError};
use super::ids::{DomainId, InstanceId, JobId, ModelId, NodeId, PoolId, RackId, RequestId};
use super::names::{Names, TooManyNames};
use super::node::{GpuMask, Node};
use super::request::Request;

/// No instance.
pub(super) const NOBODY: u32 = u32::MAX;

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
    pub(super) instances: Vec<Instance>,
    /// The instance that holds each device, nodes one after another.
    pub(super) owners: Vec<u32>,
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

    /// The instance that holds a device of a node, if one does.
    pub fn owner(&self, node: NodeId, gpu: u8) -> Option<InstanceId> {
        let node = self.node(node);
        debug_assert!(gpu < node.devices);
        let owner = self.owners[node.owners_at as usize + usize::from(gpu)];
        (owner != NOBODY).then_some(InstanceId(owner))
    }

    /// The instances that hold devices of a node, by their lowest device. CPU-only instances are not among them.
    pub fn instances_on(&self, node: NodeId) -> impl Iterator<Item = InstanceId> + '_ {
        let mut left = self.node(node).busy;
        std::iter::from_fn(move || {
            let gpu = left.trailing_zeros() as u8;
            let instance = (left != 0).then(|| self.owner(node, gpu)).flatten()?;
            left &= !self.instance(instance).gpus;
            Some(instance)
        })
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
        let (id, new) = self.job_names.insert(name)?;
        if new {
            debug_assert!(request.0 < PINNED);
            let request_and_pin = request.0 | if migratable { 0 } else { PINNED };
            self.jobs.push(Job { request_and_pin, instances, first: NOBODY, running: 0 });
        }
        Ok(new.then_some(JobId(id)))
    }

    /// Gives the instances of a job their numbers, if they have none yet. Returns false (and does nothing) if the
    /// numbers run out: there are 2^32 − 1 for all jobs that ever ran.
    #[must_use]
    pub fn number_instances(&mut self, job: JobId) -> bool {
        let n = self.job(job).instances;
        if self.job(job).first != NOBODY {
            return true;
        }
        let first = self.instances.len();
        if first + n as usize >= NOBODY as usize {
            return false;
        }
        self.jobs[job.index()].first = first as u32;
        self.instances.extend((0..n).map(|_| Instance { job, node: NOBODY, gpus: 0 }));
        true
    }

    /// Applies a batch in its order: whole, or not at all.
    ///
    /// # Errors
    /// The first step that is not possible; the cluster is then as it was before.
    pub fn apply(&mut self, edits: &[Edit]) -> Result<(), EditError> {
        for (done, &edit) in edits.iter().enumerate() {
            if let Err(error) = self.check(edit) {
                self.undo(&edits[..done]);
                return Err(error);
            }
            self.step(edit);
        }
        Ok(())
    }

    /// Applies one edit: the same as a batch of one.
    ///
    /// # Errors
    /// If it is not possible; nothing has changed then.
    pub fn apply_one(&mut self, edit: Edit) -> Result<(), EditError> {
        self.check(edit)?;
        self.step(edit);
        Ok(())
    }

    /// Takes back a batch that was applied, and after which nothing else was applied. Cannot fail.
    pub fn undo(&mut self, edits: &[Edit]) {
        for edit in edits.iter().rev() {
            self.step(edit.inverse());
        }
    }

    /// Whether one edit is possible now.
    fn check(&self, edit: Edit) -> Result<(), EditError> {
        let (Edit::Take { instance, node: node_id, gpus } | Edit::Free { instance, node: node_id, gpus }) = edit;
        let holder = self.instances.get(instance.index()).ok_or(EditError::UnknownInstance(instance))?;
        let node = self.nodes.get(node_id.index()).ok_or(EditError::UnknownNode(node_id))?;
        if let Edit::Free { .. } = edit {
            let held = holder.node == node_id.0 && holder.gpus == gpus;
            return if held { Ok(()) } else { Err(EditError::NotHeld(instance)) };
        }
        let request = self.request_of(holder.job);
        if holder.node != NOBODY {
            Err(EditError::AlreadyRuns(instance))
        } else if gpus.count_ones() != u32::from(request.gpus) {
            Err(EditError::WrongCount(instance))
        } else if gpus & !node.usable != 0 {
            Err(EditError::NoSuchGpu(node_id))
        } else if gpus & node.busy != 0 {
            Err(EditError::GpuBusy(node_id))
        } else if request.cpu_milli > 0 && node.cpu_free() < request.cpu_milli {
            Err(EditError::NoCpu(node_id))
        } else if request.memory_mib > 0 && node.memory_free() < request.memory_mib {
            Err(EditError::NoMemory(node_id))
        } else {
            Ok(())
        }
    }

    /// The one function that changes who holds what.
    pub(super) fn step(&mut self, edit: Edit) {
        let (Edit::Take { instance, node: node_id, gpus } | Edit::Free { instance, node: node_id, gpus }) = edit;
        let holder = &mut self.instances[instance.index()];
        let job = &mut self.jobs[holder.job.index()];
        let request = &self.requests[job.request().index()];
        let node = &mut self.nodes[node_id.index()];
        let (cpu, memory) = (u64::from(request.cpu_milli), u64::from(request.memory_mib));
        let anchors = if request.gpus >= 2 { gpus } else { 0 };
        let owner = match edit {
            Edit::Take { .. } => {
                debug_assert!(holder.node == NOBODY && node.busy & gpus == 0);
                *holder = Instance { node: node_id.0, gpus, ..*holder };
                job.running += 1;
                node.busy |= gpus;
                node.anchors |= anchors;
                node.cpu_used += cpu;
                node.memory_used += memory;
                node.composition = node.composition.with(request.gpus).unwrap_or(node.composition);
                instance.0
            }
            Edit::Free { .. } => {
                debug_assert!(holder.node == node_id.0 && holder.gpus == gpus);
                *holder = Instance { node: NOBODY, gpus: 0, ..*holder };
                job.running -= 1;
                node.busy &= !gpus;
                node.anchors &= !anchors;
                node.cpu_used -= cpu;
                node.memory_used -= memory;
                node.composition = node.composition.without(request.gpus).unwrap_or(node.composition);
                NOBODY
            }
        };
        let at = node.owners_at as usize;
        let mut left = gpus;
        while left != 0 {
            self.owners[at + left.trailing_zeros() as usize] = owner;
            left &= left - 1;
        }
        debug_assert_eq!(u32::from(node.composition.busy()), node.busy.count_ones());
    }
}

impl Cluster {
    /// Whether a node may host an instance of this request as far as model and cordon go: the part of a request that
    /// no load changes.
    pub fn admits(&self, node: NodeId, request: &Request) -> bool {
        let node = self.node(node);
        node.schedulable && self.pool_admits(node.pool, request)
    }

    /// Whether the nodes of a pool have a model that the request allows.
    pub fn pool_admits(&self, pool: PoolId, request: &Request) -> bool {
        match &request.models {
            None => true,
            Some(models) => self.pool(pool).model.is_some_and(|model| models.binary_search(&model).is_ok()),
        }
    }

    /// Whether the node's free CPU and memory are enough for one instance more.
    pub fn has_cpu_and_memory(&self, node: NodeId, request: &Request) -> bool {
        self.node(node).has_cpu_and_memory(request.cpu_milli, request.memory_mib)
    }
}
