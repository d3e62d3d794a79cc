//! What is simulated: a cluster, and the jobs that come to it.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{
    BuildError, Cluster, ClusterBuilder, JobId, NodeId, NodeSpec, PoolId, Request, RequestId, TooManyNames, UNLIMITED,
    WHOLE_GPU,
};
use crate::fragmentation::fgd::Typical;
use crate::workload::{NodeChange, NodeEvent, TraceJob};

/// A cluster and a trace, whose jobs are registered in it. Whatever runs on the cluster at first is not part of the
/// trace: it leaves after its `remaining_s`, counted from the first submission, or never.
#[derive(Clone, Debug)]
pub struct Scenario {
    cluster: Cluster,
    jobs: Vec<TraceJob>,
    /// The number of `jobs[0]` in the cluster; the others follow.
    first: u32,
    /// Jobs that not even the empty cluster could take, by position.
    rejected: Vec<bool>,
    /// What is typical, if it is not the jobs.
    typical: Option<Typical>,
    /// Whether the nodes have whatever model a job asks for.
    any_model: bool,
    /// What happens to nodes, by time.
    events: Vec<NodeEvent>,
}

impl Scenario {
    /// Registers the jobs, which are sorted by submission, ties staying in order. A job that would not fit on the empty
    /// cluster (its GPUs, models, CPU and memory) is rejected: under strict FIFO everything would wait behind it forever.
    ///
    /// # Errors
    /// If a job's name is taken, or a number is out of range.
    pub fn new(mut cluster: Cluster, mut jobs: Vec<TraceJob>) -> Result<Self, BuildError> {
        jobs.sort_by_key(|job| job.submit_s);
        let first = cluster.jobs().len() as u32;
        for job in &jobs {
            job.register(&mut cluster)?;
        }
        let mut scenario =
            Self { cluster, jobs, first, rejected: Vec::new(), typical: None, any_model: false, events: Vec::new() };
        scenario.reject();
        Ok(scenario)
    }

    /// The same with what happens to nodes. A cordoned node that an event returns counts for what the cluster could take;
    /// one that fails or drains does too.
    #[must_use]
    pub fn with_events(mut self, mut events: Vec<NodeEvent>) -> Self {
        events.sort_by_key(|event| event.at_s);
        self.events = events;
        self.reject();
        self
    }

    /// Works out which jobs are left out.
    fn reject(&mut self) {
        let returns = self.events.iter().filter(|event| event.change == NodeChange::Return);
        let kinds = Kinds::of(&self.cluster, &returns.map(|event| event.node).collect());
        let mut most: BTreeMap<RequestId, u64> = BTreeMap::new();
        let first = self.first;
        let rejected = self.jobs.iter().enumerate().map(|(position, job)| {
            let request = self.cluster.job(JobId(first + position as u32)).request();
            let room = || kinds.room(&self.cluster, self.cluster.request(request));
            *most.entry(request).or_insert_with(room) < u64::from(job.instances)
        });
        self.rejected = rejected.collect();
    }

    /// The jobs on a new cluster of nodes `n0`, `n1`, … of one kind, which limit neither CPU nor memory and are of whatever
    /// model a job asks for: the jobs lose their models.
    ///
    /// # Errors
    /// As [`Scenario::new`], or if the cluster cannot be built.
    pub fn homogeneous(nodes: u64, gpus_per_node: u8, mut jobs: Vec<TraceJob>) -> Result<Self, BuildError> {
        let mut builder = ClusterBuilder::new();
        for i in 0..nodes {
            builder.add_node(&NodeSpec { name: &format!("n{i}"), gpus: gpus_per_node, ..NodeSpec::default() })?;
        }
        jobs.iter_mut().for_each(|job| job.models.clear());
        Ok(Self { any_model: true, ..Self::new(builder.finish()?, jobs)? })
    }

    /// Says whose requests are typical, for `fgd` and what is built on it, instead of those of the
    /// jobs.
    ///
    /// # Errors
    /// If there are too many names of models.
    pub fn set_typical(&mut self, mut jobs: Vec<TraceJob>) -> Result<(), TooManyNames> {
        if self.any_model {
            jobs.iter_mut().for_each(|job| job.models.clear());
        }
        self.typical = Some(Typical::of_trace(&mut self.cluster, &jobs)?);
        Ok(())
    }

    /// What is typical, if it is not the jobs.
    pub(super) fn typical(&self) -> Option<&Typical> {
        self.typical.as_ref()
    }

    /// The cluster before the first submission.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The jobs, by submission.
    pub fn jobs(&self) -> &[TraceJob] {
        &self.jobs
    }

    /// Whether the job at a position is left out because not even the empty cluster could take it.
    pub fn is_rejected(&self, position: usize) -> bool {
        self.rejected[position]
    }

    /// The number of jobs that are left out.
    pub fn n_rejected(&self) -> u64 {
        self.rejected.iter().filter(|&&rejected| rejected).count() as u64
    }

    /// What happens to nodes, by time.
    pub fn events(&self) -> &[NodeEvent] {
        &self.events
    }

    /// The number in the cluster of the job at a position.
    pub fn job_id(&self, position: usize) -> JobId {
        JobId(self.first + position as u32)
    }

    /// The position in the trace of a job of the cluster; `None` for one that ran there at first.
    pub fn position(&self, job: JobId) -> Option<usize> {
        job.0.checked_sub(self.first).map(|position| position as usize)
    }

    /// All GPUs of a job, one of which it asks for a share counted whole.
    pub(super) fn gpus(&self, job: JobId) -> u64 {
        u64::from(self.cluster.request_of(job).gpus) * u64::from(self.cluster.job(job).instances())
    }

    /// All that a job asks for, in thousandths of a GPU.
    pub(super) fn demand_milli(&self, job: JobId) -> u64 {
        self.gpus(job) * u64::from(self.cluster.request_of(job).gpu_milli)
    }
}

/// The nodes that ever take instances by what they have when they are empty: pool, milli-cores and MiB; and how many of each.
struct Kinds(BTreeMap<(PoolId, u32, u32), u64>);

impl Kinds {
    /// Of the schedulable nodes and of those that return.
    fn of(cluster: &Cluster, returning: &BTreeSet<NodeId>) -> Self {
        let mut kinds = BTreeMap::new();
        let ids = cluster.node_ids().filter(|id| cluster.node(*id).schedulable() || returning.contains(id));
        for node in ids.map(|id| cluster.node(id)) {
            *kinds.entry((node.pool(), node.cpu_milli(), node.memory_mib())).or_default() += 1;
        }
        Self(kinds)
    }

    /// How many instances of a request they hold.
    fn room(&self, cluster: &Cluster, request: &Request) -> u64 {
        let by =
            |all: u32, each: u32| if all == UNLIMITED { u32::MAX } else { all.checked_div(each).unwrap_or(u32::MAX) };
        let on_a_node = |&(pool, cpu, memory): &(PoolId, u32, u32)| {
            let whole = cluster.pool(pool).capacity.checked_div(request.gpus).map_or(u32::MAX, u32::from);
            let gpus = whole.saturating_mul(u32::from(WHOLE_GPU / request.gpu_milli));
            gpus.min(by(cpu, request.cpu_milli)).min(by(memory, request.memory_mib))
        };
        let admit = self.0.iter().filter(|((pool, ..), _)| cluster.pool_admits(*pool, request));
        admit.map(|(kind, &n)| n.saturating_mul(u64::from(on_a_node(kind)))).fold(0, u64::saturating_add)
    }
}
