//! The state that decisions read and change: the cluster, with every index that keeps a decision from scanning it.

use std::sync::Arc;

use super::pair::PairPlans;
use super::pool_state::PoolState;
use super::shared_devices::SharedDevices;
use super::transaction::Journal;
use crate::cluster::{
    Cluster, Composition, DomainId, Edit, EditError, GpuMask, JobId, JobMark, NodeId, NodeSet, PerSize, PoolId, RackId,
    Request, RequestId, TooManyNames, Within,
};

/// A cluster and its indexes. Jobs may be registered in the cluster; what it holds changes only through
/// [`State::begin`] and the transaction it returns.
#[derive(Clone, Debug)]
pub struct State {
    cluster: Cluster,
    pools: Vec<PoolState>,
    /// The position of each node within its pool.
    positions: Vec<u32>,
    racks: Vec<Vec<NodeId>>,
    domains: Vec<Vec<NodeId>>,
    free_gpus: u64,
    pub(super) shared: SharedDevices,
    /// Pools that changed since they were last compacted, in no order; `is_dirty` says which.
    dirty: Vec<PoolId>,
    is_dirty: Vec<bool>,
    pub(super) pair_plans: PairPlans,
    pub(super) journal: Journal,
    /// The pools that admit each request, once asked for.
    admitting: Vec<Option<Arc<[PoolId]>>>,
}

impl State {
    /// Indexes a cluster. O(nodes + instances).
    pub fn new(cluster: Cluster) -> Self {
        let mut members = vec![Vec::new(); cluster.pools().len()];
        let mut positions = Vec::with_capacity(cluster.nodes().len());
        let mut racks = vec![Vec::new(); cluster.n_racks()];
        let mut domains = vec![Vec::new(); cluster.n_domains()];
        let mut free_gpus = 0;
        let mut shared = SharedDevices::default();
        for id in cluster.node_ids() {
            let node = cluster.node(id);
            let pool: &mut Vec<NodeId> = &mut members[node.pool().index()];
            positions.push(pool.len() as u32);
            pool.push(id);
            if let Some(rack) = node.rack() {
                racks[rack.index()].push(id);
            }
            if let Some(domain) = node.domain() {
                domains[domain.index()].push(id);
            }
            if node.schedulable() {
                free_gpus += u64::from(node.free_gpus());
                shared.enter(&cluster, id);
            }
        }
        let pools = cluster.pools().iter().zip(members).map(|(&pool, nodes)| PoolState::new(pool, nodes));
        let mut state = Self {
            pools: pools.collect(),
            positions,
            racks,
            domains,
            free_gpus,
            shared,
            dirty: (0..cluster.pools().len() as u32).map(PoolId).collect(),
            is_dirty: vec![true; cluster.pools().len()],
            pair_plans: PairPlans::default(),
            journal: Journal::default(),
            admitting: Vec::new(),
            cluster,
        };
        for id in state.cluster.node_ids() {
            let node = state.cluster.node(id);
            let pool = &mut state.pools[node.pool().index()];
            pool.enter(state.positions[id.index()], node.composition(), node.schedulable());
            for gpus in 1..=node.capacity() {
                pool.fragmentation_mut().add(gpus, u64::from(node.composition().count(gpus)));
            }
        }
        state
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The cluster again, without the indexes.
    pub fn into_cluster(self) -> Cluster {
        self.cluster
    }

    /// All pools.
    pub fn pools(&self) -> &[PoolState] {
        &self.pools
    }

    /// One pool.
    pub fn pool(&self, pool: PoolId) -> &PoolState {
        &self.pools[pool.index()]
    }

    /// One pool, to work out its Φ*.
    pub fn pool_mut(&mut self, pool: PoolId) -> &mut PoolState {
        &mut self.pools[pool.index()]
    }

    /// The position of a node within its pool.
    pub fn position(&self, node: NodeId) -> u32 {
        self.positions[node.index()]
    }

    /// The nodes of a rack, ascending.
    pub fn rack_nodes(&self, rack: RackId) -> &[NodeId] {
        &self.racks[rack.index()]
    }

    /// The nodes of a domain, ascending.
    pub fn domain_nodes(&self, domain: DomainId) -> &[NodeId] {
        &self.domains[domain.index()]
    }

    /// Nodes of all racks, by rack number.
    pub fn racks(&self) -> &[Vec<NodeId>] {
        &self.racks
    }

    /// Nodes of all domains, by domain number.
    pub fn domains(&self) -> &[Vec<NodeId>] {
        &self.domains
    }

    /// The nodes of all domains or of all racks, by their number. A node without one is in none, so it cannot host a job
    /// that must lie within one.
    pub fn regions(&self, within: Within) -> &[Vec<NodeId>] {
        match within {
            Within::Domain => &self.domains,
            Within::Rack => &self.racks,
        }
    }

    /// Whether a node lies in one of [`State::regions`].
    pub fn is_in(&self, node: NodeId, (within, number): (Within, usize)) -> bool {
        self.cluster.node(node).region(within).is_some_and(|region| region as usize == number)
    }

    /// Whether all of these nodes, those of a region, are there for one gang: each schedulable, and no GPU held.
    pub fn is_intact(&self, region: &[NodeId]) -> bool {
        region.iter().map(|&id| self.cluster.node(id)).all(|node| node.schedulable() && node.busy() == 0)
    }

    /// Free GPUs on schedulable nodes.
    pub fn free_gpus(&self) -> u64 {
        self.free_gpus
    }

    /// Nodes with some but not all GPUs busy.
    pub fn n_partial(&self) -> u64 {
        self.pools.iter().map(PoolState::n_partial).sum()
    }

    /// Nodes outside Σ.
    pub fn n_outside(&self) -> u64 {
        self.pools.iter().map(PoolState::n_outside).sum()
    }

    /// Σ over pools of Φ*.
    pub fn phi_star(&mut self) -> u64 {
        self.pools.iter_mut().map(|pool| pool.fragmentation_mut().phi_star()).sum()
    }

    /// N·SIF: avoidable partial nodes.
    pub fn n_sif(&mut self) -> i64 {
        self.n_partial() as i64 - self.phi_star() as i64
    }

    /// Registers a job that does not run yet: see [`Cluster::add_job`].
    ///
    /// # Errors
    /// If there are too many names.
    pub fn add_job(
        &mut self,
        name: &str,
        request: Request,
        instances: u32,
        migratable: bool,
    ) -> Result<Option<JobId>, TooManyNames> {
        let request = self.cluster.intern_request(request);
        self.cluster.add_job(name, request, instances, migratable)
    }

    /// Lets `read` register jobs in the cluster, as the reader of a queue does. Nothing else may change in it.
    pub fn enqueue<R>(&mut self, read: impl FnOnce(&mut Cluster) -> R) -> R {
        read(&mut self.cluster)
    }

    /// Forgets jobs that were registered after the mark and do not run: see [`Cluster::forget_since`].
    pub fn forget_since(&mut self, mark: JobMark) {
        self.cluster.forget_since(mark);
        self.admitting.truncate(self.cluster.requests().len());
    }

    /// Keeps the nodes sorted by free GPUs from now on, for policies that choose by them. O(nodes) at first.
    pub fn index_free_gpus(&mut self) {
        for pool in &mut self.pools {
            if pool.with_free(0).is_some() {
                continue;
            }
            let mut sets: PerSize<NodeSet> = std::array::from_fn(|_| NodeSet::new(pool.nodes().len() as u32));
            for (position, &id) in pool.nodes().iter().enumerate() {
                let node = self.cluster.node(id);
                if node.schedulable() {
                    sets[usize::from(node.free_gpus())].insert(position as u32);
                }
            }
            pool.index_free(sets);
        }
    }

    /// Takes the lowest pool that changed since it was last compacted; all pools at first.
    pub(super) fn take_dirty(&mut self) -> Option<PoolId> {
        let (at, &pool) = self.dirty.iter().enumerate().min_by_key(|(_, pool)| **pool)?;
        self.dirty.swap_remove(at);
        self.is_dirty[pool.index()] = false;
        Some(pool)
    }

    /// The pools for a request (see [`Cluster::pools_for`]), by capacity, then number.
    pub(super) fn pools_admitting(&mut self, id: RequestId) -> Arc<[PoolId]> {
        if self.admitting.len() <= id.index() {
            self.admitting.resize(id.index() + 1, None);
        }
        let cluster = &self.cluster;
        let pools = self.admitting[id.index()].get_or_insert_with(|| {
            let mut pools: Vec<PoolId> = cluster.pools_for(cluster.request(id)).collect();
            pools.sort_by_key(|pool| cluster.pool(*pool).capacity);
            pools.into()
        });
        Arc::clone(pools)
    }

    /// Says that a pool is not yet as compact as it can be.
    pub(super) fn mark_dirty(&mut self, pool: PoolId) {
        if !self.is_dirty[pool.index()] {
            self.is_dirty[pool.index()] = true;
            self.dirty.push(pool);
        }
    }

    /// Says that a pool is compact.
    pub(super) fn clear_dirty(&mut self, pool: PoolId) {
        if self.is_dirty[pool.index()] {
            self.is_dirty[pool.index()] = false;
            self.dirty.retain(|&other| other != pool);
        }
    }

    pub(super) fn number_instances(&mut self, job: JobId) -> bool {
        self.cluster.number_instances(job)
    }

    pub(super) fn apply(&mut self, edit: Edit) -> Result<(), EditError> {
        let before = self.cluster.nodes().get(edit.node().index()).map(|node| (node.composition(), node.shared()));
        let left = before.and_then(|(_, shared)| self.left_of_shared(shared, edit));
        self.cluster.apply_one(edit)?;
        if let Some((before, _)) = before {
            self.reindex(edit, before, left);
        }
        Ok(())
    }

    pub(super) fn undo(&mut self, edit: Edit) {
        let node = self.cluster.node(edit.node());
        let (before, left) = (node.composition(), self.left_of_shared(node.shared(), edit));
        self.cluster.undo(&[edit]);
        self.reindex(edit, before, left);
    }

    /// What is left of the device of an edit, if shares lie on it: it is among the `shared` ones of its node.
    fn left_of_shared(&self, shared: GpuMask, edit: Edit) -> Option<(u8, u16)> {
        // Most clusters have no shares, and every edit comes by here.
        if shared == 0 { None } else { self.left_of_one_shared(edit) }
    }

    #[cold]
    fn left_of_one_shared(&self, edit: Edit) -> Option<(u8, u16)> {
        let (Edit::Take { node, gpus, .. } | Edit::Free { node, gpus, .. }) = edit else { return None };
        self.cluster.shared_left(node).find(|&(gpu, _)| gpus >> gpu & 1 == 1)
    }

    /// Brings the indexes up to date with an edit, or with one that was taken back, before which the node held `before`
    /// and shares left `left` of the device.
    fn reindex(&mut self, edit: Edit, before: Composition, left: Option<(u8, u16)>) {
        if let Edit::Cordon(id) | Edit::Uncordon(id) = edit {
            return self.reindex_cordon(id);
        }
        let id = edit.node();
        let node = self.cluster.node(id);
        let open = node.schedulable();
        let left_now = self.left_of_shared(node.shared(), edit);
        if let Some((gpu, _)) = left.or(left_now)
            && open
        {
            self.shared.change(id, gpu, left.map(|(_, left)| left), left_now.map(|(_, left)| left));
        }
        let (after, pool_id) = (node.composition(), node.pool());
        if before == after {
            // A CPU-only instance, or a share beside others.
            return;
        }
        self.mark_dirty(pool_id);
        let taken = self.pools[pool_id.index()].change(self.positions[id.index()], before, after, open);
        if open {
            self.free_gpus = self.free_gpus.wrapping_add_signed(-i64::from(taken));
        }
    }

    /// A node was cordoned or uncordoned.
    #[cold]
    fn reindex_cordon(&mut self, id: NodeId) {
        let node = self.cluster.node(id);
        let (pool_id, free) = (node.pool(), u64::from(node.free_gpus()));
        let (position, composition) = (self.positions[id.index()], node.composition());
        let pool = &mut self.pools[pool_id.index()];
        if node.schedulable() {
            pool.uncordon(position, composition);
            self.free_gpus += free;
        } else {
            pool.cordon(position, composition);
            self.free_gpus -= free;
        }
        let open = node.schedulable();
        for (gpu, left) in self.cluster.shared_left(id) {
            let left = Some(left);
            let (before, now) = if open { (None, left) } else { (left, None) };
            self.shared.change(id, gpu, before, now);
        }
        self.mark_dirty(pool_id);
    }
}
