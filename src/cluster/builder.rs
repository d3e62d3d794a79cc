//! Builds a cluster from what a snapshot says, and refuses what cannot be.

use rustc_hash::FxHashMap;

use super::capacity::MAX_GPUS;
use super::composition::Composition;
use super::edit::Edit;
use super::ids::{DomainId, InstanceId, JobId, ModelId, NodeId, PoolId, RackId, RequestId};
use super::ledger::{Cluster, JobTimes, Pool};
use super::names::TooManyNames;
use super::node::{GpuMask, Node, lowest_gpus};
use super::request::{MAX_AMOUNT, Request, UNLIMITED, WHOLE_GPU, Within};

/// A node as a snapshot states it.
#[derive(Clone, Debug, Default)]
pub struct NodeSpec<'a> {
    /// Its name, unique.
    pub name: &'a str,
    /// Its devices, 1..=16, broken ones included.
    pub gpus: u8,
    /// Its GPU model.
    pub model: Option<&'a str>,
    /// Its NVLink domain; the same name in another rack is another domain.
    pub domain: Option<&'a str>,
    /// Its rack.
    pub rack: Option<&'a str>,
    /// Milli-cores; `None` is unlimited.
    pub cpu_milli: Option<u32>,
    /// MiB; `None` is unlimited.
    pub memory_mib: Option<u32>,
    /// False for a cordoned node.
    pub unschedulable: bool,
    /// Broken devices.
    pub unavailable: GpuMask,
}

/// A job as a snapshot or a queue states it.
#[derive(Clone, Debug)]
pub struct JobSpec<'a> {
    /// Its name, unique among running and queued jobs.
    pub name: &'a str,
    /// GPUs an instance, 0..=16.
    pub gpus: u8,
    /// Thousandths of each of them: [`WHOLE_GPU`], or less with 1 GPU an instance.
    pub gpu_milli: u16,
    /// Milli-cores an instance.
    pub cpu_milli: u32,
    /// MiB an instance.
    pub memory_mib: u32,
    /// Allowed GPU models; empty allows all.
    pub models: &'a [&'a str],
    /// All instances in one domain or rack.
    pub within: Option<Within>,
    /// True if its instances must not be moved.
    pub pinned: bool,
    /// What is known of its time.
    pub times: JobTimes,
}

impl Default for JobSpec<'_> {
    /// A job without a name of CPU-only instances that ask for nothing.
    fn default() -> Self {
        Self {
            name: "",
            gpus: 0,
            gpu_milli: WHOLE_GPU,
            cpu_milli: 0,
            memory_mib: 0,
            models: &[],
            within: None,
            pinned: false,
            times: JobTimes::default(),
        }
    }
}

impl JobSpec<'_> {
    /// Whether so many instances of it are a job, but for its name.
    ///
    /// # Errors
    /// If a number is out of range.
    pub fn check(&self, instances: u32) -> Result<(), BuildError> {
        let name = || self.name.to_owned();
        if usize::from(self.gpus) > MAX_GPUS {
            return Err(BuildError::InstanceSize(name(), self.gpus));
        }
        if self.gpu_milli == 0 || self.gpu_milli > WHOLE_GPU || (self.gpu_milli < WHOLE_GPU && self.gpus != 1) {
            return Err(BuildError::Share(name(), self.gpu_milli, self.gpus));
        }
        if instances == 0 {
            return Err(BuildError::NoInstances(name()));
        }
        for (what, amount) in [("cpu_milli", self.cpu_milli), ("memory_mib", self.memory_mib)] {
            if amount > MAX_AMOUNT {
                return Err(BuildError::Amount(what, name(), amount));
            }
        }
        Ok(())
    }
}

/// Why a cluster cannot be built. The text names the node or job; the reader of the file adds where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Two nodes of one name.
    #[error("node \"{0}\" is there twice")]
    DuplicateNode(String),
    /// Two jobs of one name.
    #[error("job \"{0}\" is there twice")]
    DuplicateJob(String),
    /// Not 1..=16 devices.
    #[error("node \"{0}\" has {1} GPUs, expected 1 to 16")]
    NodeSize(String, u8),
    /// A broken device past the last.
    #[error("node \"{0}\" has no device {1} that could be unavailable, it has {2}")]
    UnavailableIndex(String, u32, u8),
    /// More than an amount can be.
    #[error("{0} of \"{1}\" is {2}, expected at most {MAX_AMOUNT}")]
    Amount(&'static str, String, u32),
    /// Not 0..=16 GPUs an instance.
    #[error("job \"{0}\" asks {1} GPUs an instance, expected 0 to 16")]
    InstanceSize(String, u8),
    /// A share that is none, or of more than one GPU.
    #[error("job \"{0}\" asks {1} thousandths of each of {2} GPUs, expected 1 to 999 of one GPU, or whole GPUs")]
    Share(String, u16, u8),
    /// No instance at all.
    #[error("job \"{0}\" has no instances")]
    NoInstances(String),
    /// A group that does not follow those before it.
    #[error(
        "job \"{0}\" is said to be a group of \"{1}\", expected \"{1}/{2}\", right behind the groups before it and within \
         the same"
    )]
    NotAGroup(String, String, u32),
    /// No group at all.
    #[error("job \"{0}\" has no groups")]
    NoGroups(String),
    /// More instances than can be numbered.
    #[error("too many instances: at most 4,294,967,294")]
    TooManyInstances,
    /// An instance on a node that is not there.
    #[error("there is no node \"{0}\"")]
    UnknownNode(String),
    /// Device indices that are not as many as the request.
    #[error("instance {1} of job \"{0}\" lists {2} GPUs, expected {3}")]
    WrongCount(String, u32, u32, u8),
    /// A device index past the node's last.
    #[error("instance {1} of job \"{0}\" holds GPU {2} of node \"{3}\", which has {4}")]
    GpuIndex(String, u32, u32, String, u8),
    /// A device that is broken.
    #[error("instance {1} of job \"{0}\" holds GPU {2} of node \"{3}\", which is unavailable")]
    GpuUnavailable(String, u32, u32, String),
    /// A device that somebody else holds.
    #[error("instance {1} of job \"{0}\" holds GPU {2} of node \"{3}\", which job \"{4}\" holds too")]
    GpuHeldTwice(String, u32, u32, String, String),
    /// A device of which shares hold too much.
    #[error("instance {1} of job \"{0}\" holds {4} thousandths of GPU {2} of node \"{3}\", which has {5} left")]
    GpuOverfull(String, u32, u32, String, u16, u16),
    /// An instance larger than its node.
    #[error("instance {1} of job \"{0}\" needs {2} GPUs, node \"{3}\" has {4}")]
    LargerThanNode(String, u32, u8, String, u8),
    /// Not enough free devices for an instance that names none.
    #[error("instance {1} of job \"{0}\" needs {2} GPUs, node \"{3}\" has {4} left")]
    NodeFull(String, u32, u8, String, u8),
    /// The names are too long together.
    #[error(transparent)]
    TooManyNames(#[from] TooManyNames),
}

/// Where one running instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// On which node.
    pub node: NodeId,
    /// On which devices; `None` for the lowest that are free once all others have theirs.
    pub gpus: Option<GpuMask>,
}

/// Collects nodes, then running jobs.
#[derive(Debug, Default)]
pub struct ClusterBuilder {
    pub(super) cluster: Cluster,
    pool_numbers: FxHashMap<Pool, PoolId>,
    /// Instances whose devices are not named; they are seated last, in file order.
    unseated: Vec<(InstanceId, NodeId)>,
}

impl ClusterBuilder {
    /// An empty cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node.
    ///
    /// # Errors
    /// If the name is taken or a number is out of range; the builder must then be given up.
    pub fn add_node(&mut self, spec: &NodeSpec<'_>) -> Result<NodeId, BuildError> {
        let name = || spec.name.to_owned();
        if spec.gpus == 0 || usize::from(spec.gpus) > MAX_GPUS {
            return Err(BuildError::NodeSize(name(), spec.gpus));
        }
        let all = ((1u32 << spec.gpus) - 1) as GpuMask;
        if spec.unavailable & !all != 0 {
            let index = (spec.unavailable & !all).trailing_zeros();
            return Err(BuildError::UnavailableIndex(name(), index, spec.gpus));
        }
        let amount = |what, amount: Option<u32>| match amount {
            None => Ok(UNLIMITED),
            Some(n) if n > MAX_AMOUNT => Err(BuildError::Amount(what, name(), n)),
            Some(n) => Ok(n),
        };
        let (cpu_milli, memory_mib) = (amount("cpu_milli", spec.cpu_milli)?, amount("memory_mib", spec.memory_mib)?);
        let cluster = &mut self.cluster;
        let (id, new) = cluster.node_names.insert(spec.name)?;
        if !new {
            return Err(BuildError::DuplicateNode(name()));
        }
        let usable = all & !spec.unavailable;
        let capacity = usable.count_ones() as u8;
        let model = spec.model.map(|model| cluster.intern_model(model)).transpose()?;
        let rack = spec.rack.map(|rack| cluster.racks.insert(rack)).transpose()?.map(|(id, _)| RackId(id));
        let domain = spec.domain.map(|domain| self.domain(rack, spec.rack, domain)).transpose()?;
        let pool = self.pool(Pool { capacity, model });
        let cluster = &mut self.cluster;
        let owners_at = cluster.owners.len() as u32;
        cluster.owners.extend((0..spec.gpus).map(|_| u32::MAX));
        cluster.nodes.push(Node {
            owners_at,
            busy: 0,
            anchors: 0,
            shared: 0,
            usable,
            composition: Composition::EMPTY,
            devices: spec.gpus,
            capacity,
            schedulable: !spec.unschedulable,
            pool,
            domain,
            rack,
            cpu_milli,
            memory_mib,
            cpu_used: 0,
            memory_used: 0,
        });
        Ok(NodeId(id))
    }

    /// The node of this name, if it was added.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.cluster.find_node(name)
    }

    /// Adds a running job with all its instances.
    ///
    /// # Errors
    /// If the name is taken, a number is out of range, or a device cannot be held; the builder must then be given up.
    pub fn add_running(&mut self, spec: &JobSpec<'_>, seats: &[Seat]) -> Result<JobId, BuildError> {
        if seats.is_empty() {
            return Err(BuildError::NoInstances(spec.name.to_owned()));
        }
        let count = u32::try_from(seats.len()).map_err(|_| BuildError::TooManyInstances)?;
        let job = self.cluster.register(spec, count)?;
        if !self.cluster.number_instances(job) {
            return Err(BuildError::TooManyInstances);
        }
        for (instance, seat) in self.cluster.instances_of(job).zip(seats) {
            let position = self.cluster.position(instance);
            let node = self.cluster.node(seat.node);
            if spec.gpus > node.capacity {
                let node_name = self.cluster.node_name(seat.node).to_owned();
                let error =
                    BuildError::LargerThanNode(spec.name.to_owned(), position, spec.gpus, node_name, node.capacity);
                return Err(error);
            }
            match seat.gpus {
                Some(gpus) => self.seat(spec, instance, position, seat.node, gpus)?,
                None if spec.gpus == 0 => self.cluster.step(Edit::Take { instance, node: seat.node, gpus: 0 }),
                None => self.unseated.push((instance, seat.node)),
            }
        }
        Ok(job)
    }

    /// The cluster, once the instances without device indices have got the lowest free ones.
    ///
    /// # Errors
    /// If a node has not enough devices for them.
    pub fn finish(mut self) -> Result<Cluster, BuildError> {
        for (instance, node_id) in std::mem::take(&mut self.unseated) {
            let job = self.cluster.instance(instance).job();
            let node = self.cluster.node(node_id);
            let &Request { gpus, gpu_milli, .. } = self.cluster.request_of(job);
            let mask = match gpu_milli {
                WHOLE_GPU => lowest_gpus(node.free(), gpus),
                share => self.cluster.device_for_share(node_id, share),
            };
            let Some(mask) = mask else {
                let position = self.cluster.position(instance);
                let (job, name) = (self.cluster.job_name(job).to_owned(), self.cluster.node_name(node_id).to_owned());
                return Err(BuildError::NodeFull(job, position, gpus, name, node.free_gpus()));
            };
            self.cluster.step(Edit::Take { instance, node: node_id, gpus: mask });
        }
        Ok(self.cluster)
    }

    fn seat(
        &mut self,
        spec: &JobSpec<'_>,
        instance: InstanceId,
        position: u32,
        node_id: NodeId,
        gpus: GpuMask,
    ) -> Result<(), BuildError> {
        let node = self.cluster.node(node_id);
        let job = || spec.name.to_owned();
        let node_name = || self.cluster.node_name(node_id).to_owned();
        let beyond = u32::from(gpus) >> node.devices;
        if gpus.count_ones() != u32::from(spec.gpus) {
            return Err(BuildError::WrongCount(job(), position, gpus.count_ones(), spec.gpus));
        }
        if beyond != 0 {
            let index = beyond.trailing_zeros() + u32::from(node.devices);
            return Err(BuildError::GpuIndex(job(), position, index, node_name(), node.devices));
        }
        if gpus & !node.usable != 0 {
            let index = (gpus & !node.usable).trailing_zeros();
            return Err(BuildError::GpuUnavailable(job(), position, index, node_name()));
        }
        let beside = if spec.gpu_milli < WHOLE_GPU { gpus & node.shared } else { 0 };
        if let Some((gpu, left)) = self.cluster.shared_left(node_id).find(|&(gpu, _)| beside >> gpu & 1 == 1)
            && left < spec.gpu_milli
        {
            return Err(BuildError::GpuOverfull(job(), position, gpu.into(), node_name(), spec.gpu_milli, left));
        }
        if gpus & node.busy & !beside != 0 {
            let index = (gpus & node.busy).trailing_zeros();
            let holder = self.cluster.holder(node_id, index as u8);
            let holder = holder.map_or(String::new(), |holder| self.cluster.job_name(holder).to_owned());
            return Err(BuildError::GpuHeldTwice(job(), position, index, node_name(), holder));
        }
        self.cluster.step(Edit::Take { instance, node: node_id, gpus });
        Ok(())
    }

    fn pool(&mut self, pool: Pool) -> PoolId {
        let pools = &mut self.cluster.pools;
        *self.pool_numbers.entry(pool).or_insert_with(|| {
            pools.push(pool);
            PoolId(pools.len() as u32 - 1)
        })
    }

    fn domain(&mut self, rack: Option<RackId>, rack_name: Option<&str>, name: &str) -> Result<DomainId, TooManyNames> {
        // The length in front keeps ("a", "bc") and ("ab", "c") apart.
        let key = match rack_name {
            None => format!("-{name}"),
            Some(rack) => format!("{}:{rack}{name}", rack.len()),
        };
        let (id, new) = self.cluster.domains.insert(&key)?;
        if new {
            self.cluster.domain_parts.push((rack, name.to_owned()));
        }
        Ok(DomainId(id))
    }
}

impl Cluster {
    /// Registers a job that does not run yet, with the request that `spec` states.
    ///
    /// # Errors
    /// If the name is taken, by a job in whatever state, or a number is out of range. Nothing has changed then, but
    /// that model names may have been interned.
    pub fn register(&mut self, spec: &JobSpec<'_>, instances: u32) -> Result<JobId, BuildError> {
        spec.check(instances)?;
        let request = self.request_for(spec)?;
        let job = self.add_job(spec.name, request, instances, !spec.pinned)?;
        let job = job.ok_or_else(|| BuildError::DuplicateJob(spec.name.to_owned()))?;
        if spec.times != JobTimes::default() {
            self.job_times.insert(job, spec.times);
        }
        Ok(job)
    }

    /// The number for the request that `spec` states.
    ///
    /// # Errors
    /// If there are too many names.
    pub fn request_for(&mut self, spec: &JobSpec<'_>) -> Result<RequestId, TooManyNames> {
        let models = if spec.models.is_empty() {
            None
        } else {
            let mut ids =
                spec.models.iter().map(|model| self.intern_model(model)).collect::<Result<Vec<ModelId>, _>>()?;
            ids.sort_unstable();
            ids.dedup();
            Some(ids.into_boxed_slice())
        };
        let &JobSpec { gpus, gpu_milli, cpu_milli, memory_mib, within, .. } = spec;
        Ok(self.intern_request(Request { gpus, gpu_milli, cpu_milli, memory_mib, models, within }))
    }
}
