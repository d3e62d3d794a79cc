//! What a request asks of a single node, worked out once for all jobs that share it.

use crate::anchor::{PoolState, State};
use crate::cluster::{Cluster, GroupedJob, Node, NodeId, PoolId, Request, RequestId, WHOLE_GPU, Within};

/// A request, resolved against the pools of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Need {
    pub(super) gpus: u8,
    /// Thousandths of each of them.
    pub(super) gpu_milli: u16,
    pub(super) cpu_milli: u32,
    pub(super) memory_mib: u32,
    pub(super) within: Option<Within>,
    /// Whether CPU or memory can forbid a node at all.
    pub(super) limited: bool,
    /// The pools whose nodes have enough devices and an allowed model, ascending.
    pub(super) pools: Box<[PoolId]>,
    /// The same as a flag for each pool.
    admitted: Box<[bool]>,
    /// Whether unschedulable nodes are looked at as if they were not.
    despite_cordons: bool,
}

impl Need {
    pub(super) fn new(cluster: &Cluster, request: &Request) -> Self {
        let pools: Box<[PoolId]> = cluster.pools_for(request).collect();
        let mut admitted = vec![false; cluster.pools().len()].into_boxed_slice();
        pools.iter().for_each(|pool| admitted[pool.index()] = true);
        Self {
            gpus: request.gpus,
            gpu_milli: request.gpu_milli,
            cpu_milli: request.cpu_milli,
            memory_mib: request.memory_mib,
            within: request.within,
            limited: request.cpu_milli > 0 || request.memory_mib > 0,
            admitted,
            pools,
            despite_cordons: false,
        }
    }

    /// The same need where no node were unschedulable. Counts of the pools do not know of that.
    pub(super) fn despite_cordons(self) -> Self {
        Self { despite_cordons: true, ..self }
    }

    /// True if it asks for less than a whole GPU.
    pub(super) fn is_share(&self) -> bool {
        self.gpu_milli < WHOLE_GPU
    }

    /// Whether a node can take one instance more on devices that are free: for a share, whether it can open one.
    pub(super) fn fits(&self, node: &Node) -> bool {
        self.allows(node) && node.free_gpus() >= self.gpus && self.has_cpu_and_memory(node)
    }

    /// Whether a node's cordon, size and model allow an instance.
    pub(super) fn allows(&self, node: &Node) -> bool {
        (node.schedulable() || self.despite_cordons) && self.admitted[node.pool().index()]
    }

    /// Whether a node's free CPU and memory are enough for one instance more.
    pub(super) fn has_cpu_and_memory(&self, node: &Node) -> bool {
        !self.limited || node.has_cpu_and_memory(self.cpu_milli, self.memory_mib)
    }

    /// How many instances a node can take as it is; `u32::MAX` where nothing limits them.
    ///
    /// The instances of a job are alike, so on several nodes together fit exactly as many as the sum of this.
    pub(super) fn room(&self, cluster: &Cluster, id: NodeId) -> u64 {
        let node = cluster.node(id);
        if !self.allows(node) {
            return 0;
        }
        let by_gpus = if self.is_share() {
            cluster.room_on_shared(id, self.gpu_milli) + u32::from(node.free_gpus()) * self.a_device()
        } else {
            node.free_gpus().checked_div(self.gpus).map_or(u32::MAX, u32::from)
        };
        u64::from(by_gpus.min(node.room_by_cpu_and_memory(self.cpu_milli, self.memory_mib)))
    }

    /// Whether `instances` of it fit on these nodes together. Stops as soon as they do.
    pub(super) fn fit_on(&self, cluster: &Cluster, nodes: impl IntoIterator<Item = NodeId>, instances: u64) -> bool {
        let mut left = instances;
        nodes.into_iter().any(|node| {
            left = left.saturating_sub(self.room(cluster, node));
            left == 0
        })
    }

    /// Whether `instances` of it fit on the schedulable nodes of the admitted pools, GPUs alone. O(pools), and the shared
    /// devices for a share for which free ones do not suffice.
    pub(super) fn gpus_fit(&self, state: &State, instances: u64) -> bool {
        let pools = self.pools.iter().map(|&id| state.pool(id));
        let admitted = |node| self.admitted[state.cluster().node(node).pool().index()];
        self.gpus_fit_in(state, pools, admitted, instances)
    }

    /// The same on the schedulable nodes of all pools.
    pub(super) fn gpus_fit_anywhere(&self, state: &State, instances: u64) -> bool {
        self.gpus_fit_in(state, state.pools().iter(), |_| true, instances)
    }

    fn gpus_fit_in<'s>(
        &self,
        state: &'s State,
        pools: impl Iterator<Item = &'s PoolState>,
        admitted: impl Fn(NodeId) -> bool,
        instances: u64,
    ) -> bool {
        let on_free: u64 = pools.map(|pool| pool.max_instances(self.gpus)).sum();
        if !self.is_share() {
            return on_free >= instances;
        }
        let mut left = instances.saturating_sub(on_free * u64::from(self.a_device()));
        let mut shared = state.shared_devices(self.gpu_milli).filter(|&(node, ..)| admitted(node));
        left == 0
            || shared.any(|(_, _, rest)| {
                left = left.saturating_sub(u64::from(rest / self.gpu_milli));
                left == 0
            })
    }

    /// How many shares go on a free device.
    fn a_device(&self) -> u32 {
        u32::from(WHOLE_GPU / self.gpu_milli)
    }
}

/// The needs of the requests that somebody asked for, by request number: what runs may have thousands of others.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    needs: Vec<Need>,
    /// By request: the place of its need, or `UNKNOWN`.
    places: Vec<u32>,
}

/// Nobody has asked for it yet.
const UNKNOWN: u32 = u32::MAX;

impl Needs {
    /// Works out the need of a request, unless that was done before.
    #[inline(always)]
    pub(super) fn resolve(&mut self, cluster: &Cluster, request: RequestId) {
        if self.places.get(request.index()).is_none_or(|&place| place == UNKNOWN) {
            self.work_out(cluster, request);
        }
    }

    /// The same of all groups of a job.
    pub(super) fn resolve_groups(&mut self, cluster: &Cluster, job: GroupedJob) {
        job.jobs().for_each(|group| self.resolve(cluster, cluster.job(group).request()));
    }

    #[cold]
    fn work_out(&mut self, cluster: &Cluster, request: RequestId) {
        if self.places.len() <= request.index() {
            self.places.resize(cluster.requests().len(), UNKNOWN);
        }
        self.places[request.index()] = self.needs.len() as u32;
        self.needs.push(Need::new(cluster, cluster.request(request)));
    }

    /// The need of a request, which must have been worked out.
    pub(super) fn of(&self, request: RequestId) -> &Need {
        &self.needs[self.places[request.index()] as usize]
    }
}
