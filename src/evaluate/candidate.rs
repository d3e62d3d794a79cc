//! From candidate placement sets to batches: what can be said of a candidate without a kernel is said here.
//!
//! An instance that stays on its node, on whatever devices, is not moved: it counts for nothing, needs no permission,
//! and its node need not be schedulable. Of the devices that are left out, the lowest free ones are taken, once all
//! moved instances have given theirs back and all named devices are taken: first for the moves, then for the job, in
//! their order. A share that names no device goes beside others first, where the least is left that is enough; shares
//! are not moved.

mod check;
mod shares;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use self::check::{MinSome, check_place, unresolvable, within};
use super::abi::{Candidate, Need, PackedState, Touch};
use super::backend::EvalError;
use super::batch::{Batch, MAX_TOUCHES, phi_in_range};
use super::node_rows::MAX_NODES;
use super::reason::Reason;
use crate::cluster::{Cluster, GpuMask, InstanceId, JobId, NodeId, PerSize, PoolId, Request, lowest_gpus};

/// Where one instance would go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The node.
    pub node: NodeId,
    /// The devices; `None` for the lowest that are free.
    pub gpus: Option<GpuMask>,
}

/// A running instance that would move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Who; an instance of the cluster.
    pub instance: InstanceId,
    /// Where to.
    pub to: Place,
}

/// One way to place a job: nodes and devices of all its instances, and the moves that it needs. Numbers of jobs and
/// nodes may be out of range; that is a reason then, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateSet {
    /// The job, which does not run.
    pub job: JobId,
    /// One entry an instance.
    pub place: Vec<Place>,
    /// Running instances that move in the same step.
    pub moves: Vec<Move>,
    /// A reason that was found before: an unknown name, an instance that does not run, a bad or duplicate index. What
    /// is wrong is then left out of the rest: no such move, no devices named.
    pub given: Option<Reason>,
}

/// How many instances of each size a pool has more, or less, afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolChange {
    /// The pool.
    pub pool: PoolId,
    /// By size; index 0 is 0.
    pub delta: PerSize<i64>,
}

/// ΔΦ* of some changes of demand: Φ* after less Φ* before, summed over the pools, each of which is named once.
pub type DeltaPhi<'a> = &'a mut dyn FnMut(&[PoolChange]) -> i64;

/// Builds batches; keeps its working memory from one to the next.
#[derive(Clone, Debug, Default)]
pub struct BatchBuilder {
    /// By node: the candidate that touched it last, and its position among the loads.
    seen: Vec<(u64, u32)>,
    /// By rack and by domain (and one for none): the last candidate with an instance there.
    racks: Vec<u64>,
    domains: Vec<u64>,
    /// Counts candidates over all batches, so that `seen` need not be cleared.
    stamp: u64,
    loads: Vec<Load>,
    shares: Vec<shares::Given>,
    changes: Vec<PoolChange>,
    last_changes: Vec<PoolChange>,
    last_phi: i64,
    moved: Vec<InstanceId>,
    needs: FxHashMap<Need, u32>,
}

/// What a candidate does to a node.
#[derive(Clone, Copy, Debug)]
struct Load {
    node: NodeId,
    freed: GpuMask,
    taken: GpuMask,
    step: u32,
    cpu_arrives: u64,
    cpu_leaves: u64,
    memory_arrives: u64,
    memory_leaves: u64,
}

impl BatchBuilder {
    /// Without any working memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a batch. The candidates of a job need not stand together: they are brought together, jobs by first
    /// appearance; `Batch::source` leads back.
    ///
    /// # Errors
    /// If there is more of something than 32-bit rows can hold.
    pub fn build(
        &mut self,
        cluster: &Cluster,
        sets: &[CandidateSet],
        delta_phi: DeltaPhi<'_>,
        batch: &mut Batch,
    ) -> Result<(), EvalError> {
        let nodes = cluster.nodes().len();
        EvalError::check_size("nodes", nodes, MAX_NODES)?;
        EvalError::check_size("candidates", sets.len(), MAX_TOUCHES)?;
        self.seen.resize(nodes, (0, 0));
        self.racks.resize(cluster.n_racks() + 1, 0);
        self.domains.resize(cluster.n_domains() + 1, 0);
        self.last_changes.clear();
        self.last_phi = 0;
        self.needs.clear();
        batch.clear();
        batch.nodes = nodes;
        group(sets, &mut batch.source);
        for position in 0..sets.len() {
            let set = &sets[batch.source[position] as usize];
            if position > 0 && batch.candidates[position - 1].job != set.job.0 {
                batch.jobs.push(position as u32);
            }
            self.push(cluster, set, delta_phi, batch)?;
        }
        if !sets.is_empty() {
            batch.jobs.push(sets.len() as u32);
        }
        Ok(())
    }

    fn push(
        &mut self,
        cluster: &Cluster,
        set: &CandidateSet,
        delta_phi: DeltaPhi<'_>,
        batch: &mut Batch,
    ) -> Result<(), EvalError> {
        let mut row = Candidate { job: set.job.0, ..Candidate::default() };
        let found = unresolvable(cluster, set).or_else(|| self.resolve(cluster, set, &mut row));
        let reason = found.min_some(set.given);
        // An infeasible candidate touches nothing: its reason comes before any that a kernel could find.
        if reason.is_none() {
            row.delta_phi_star = self.phi(delta_phi)?;
            self.emit(cluster, batch)?;
        }
        batch.given.push(reason.map_or(0, Reason::number));
        batch.candidates.push(row);
        batch.offsets.push(batch.touches.len() as u32);
        Ok(())
    }

    /// Fills `loads`, `changes` and the static columns. All numbers of `set` are in range.
    fn resolve(&mut self, cluster: &Cluster, set: &CandidateSet, row: &mut Candidate) -> Option<Reason> {
        self.stamp += 1;
        self.loads.clear();
        self.shares.clear();
        self.changes.clear();
        let request = cluster.request_of(set.job);
        let mut first = self.check_moves(cluster, set, row);
        for place in &set.place {
            first = first.min_some(check_place(cluster, place, request, true));
            self.spread(cluster, place.node, row);
        }
        let wrong_count = set.place.len() != cluster.job(set.job).instances() as usize;
        first = first.min_some(wrong_count.then_some(Reason::WrongCount));
        let together = within(cluster, request.within, set.place.iter().map(|place| place.node));
        first = first.min_some((!together).then_some(Reason::Topology));
        if first.is_some() {
            return first;
        }
        // What only changes its index keeps its CPU and memory, also on a node that is overcommitted.
        let stays = |one: &Move| cluster.instance(one.instance).node() == Some(one.to.node);
        for one in &set.moves {
            self.leave(cluster, one.instance, stays(one));
        }
        let arrivals = || {
            let request_of = |one: &Move| cluster.request_of(cluster.instance(one.instance).job());
            let moves = set.moves.iter().map(move |one| (one.to, request_of(one), stays(one)));
            moves.chain(set.place.iter().map(|place| (*place, request, false)))
        };
        let mut room = true;
        for (place, request, stays) in arrivals().filter(|(place, ..)| place.gpus.is_some()) {
            room &= self.arrive(cluster, place, request, stays);
        }
        for (place, request, stays) in arrivals().filter(|(place, ..)| place.gpus.is_none()) {
            room &= self.arrive(cluster, place, request, stays);
        }
        (!room).then_some(Reason::GpuBusy)
    }

    /// Checks what is to be moved and counts it.
    fn check_moves(&mut self, cluster: &Cluster, set: &CandidateSet, row: &mut Candidate) -> Option<Reason> {
        let mut first: Option<Reason> = None;
        self.moved.clear();
        for one in &set.moves {
            let instance = cluster.instance(one.instance);
            let request = cluster.request_of(instance.job());
            let away = instance.node() != Some(one.to.node);
            let pinned = request.is_share() || away && !cluster.job(instance.job()).migratable();
            first = first.min_some(pinned.then_some(Reason::NotMigratable));
            first = first.min_some(check_place(cluster, &one.to, request, away));
            row.moves += u32::from(away);
            row.moved_gpus += if away { u32::from(request.gpus) } else { 0 };
            self.moved.push(one.instance);
        }
        self.moved.sort_unstable();
        let twice = self.moved.windows(2).any(|pair| pair[0] == pair[1]);
        first = first.min_some(twice.then_some(Reason::BadIndex));
        first.min_some(self.breaks_topology(cluster, set).then_some(Reason::Topology))
    }

    /// Whether a job of which an instance moves to another node would not lie within what it asks for any more.
    fn breaks_topology(&self, cluster: &Cluster, set: &CandidateSet) -> bool {
        let away = |one: &&Move| cluster.instance(one.instance).node() != Some(one.to.node);
        let mut jobs: Vec<JobId> = set
            .moves
            .iter()
            .filter(away)
            .map(|one| cluster.instance(one.instance).job())
            .filter(|&job| cluster.request_of(job).within.is_some())
            .collect();
        if jobs.is_empty() {
            return false;
        }
        jobs.sort_unstable();
        jobs.dedup();
        let to: FxHashMap<InstanceId, NodeId> = set.moves.iter().map(|one| (one.instance, one.to.node)).collect();
        jobs.into_iter().any(|job| {
            let nodes = cluster
                .instances_of(job)
                .filter_map(|instance| to.get(&instance).copied().or_else(|| cluster.instance(instance).node()));
            !within(cluster, cluster.request_of(job).within, nodes)
        })
    }

    /// Counts a node's rack and domain, if they are new to the candidate.
    fn spread(&mut self, cluster: &Cluster, node: NodeId, row: &mut Candidate) {
        let node = cluster.node(node);
        let stamp = self.stamp;
        let new = |seen: &mut [u64], at: Option<usize>| {
            let slot = &mut seen[at.map_or(0, |at| at + 1)];
            u32::from(std::mem::replace(slot, stamp) != stamp)
        };
        row.racks += new(&mut self.racks, node.rack().map(|rack| rack.index()));
        row.domains += new(&mut self.domains, node.domain().map(|domain| domain.index()));
    }

    fn load(&mut self, node: NodeId) -> &mut Load {
        let (stamp, position) = &mut self.seen[node.index()];
        if *stamp != self.stamp {
            (*stamp, *position) = (self.stamp, self.loads.len() as u32);
            self.loads.push(Load {
                node,
                freed: 0,
                taken: 0,
                step: 0,
                cpu_arrives: 0,
                cpu_leaves: 0,
                memory_arrives: 0,
                memory_leaves: 0,
            });
        }
        &mut self.loads[*position as usize]
    }

    fn leave(&mut self, cluster: &Cluster, instance: InstanceId, stays: bool) {
        let instance = cluster.instance(instance);
        let Some(id) = instance.node() else { return };
        let (node, request) = (cluster.node(id), cluster.request_of(instance.job()));
        let load = self.load(id);
        load.freed |= instance.gpus();
        load.step = load.step.wrapping_sub(PackedState::step_of(request.gpus, node.capacity()));
        if !stays {
            load.cpu_leaves += u64::from(request.cpu_milli);
            load.memory_leaves += u64::from(request.memory_mib);
        }
        self.change(node.pool(), request.gpus, -1);
    }

    /// False if the devices are not there: left out and not enough, or taken by the candidate already.
    fn arrive(&mut self, cluster: &Cluster, place: Place, request: &Request, stays: bool) -> bool {
        let node = cluster.node(place.node);
        let load = self.load(place.node);
        if !stays {
            load.cpu_arrives += u64::from(request.cpu_milli);
            load.memory_arrives += u64::from(request.memory_mib);
        }
        if request.is_share() {
            return self.arrive_beside(cluster, place, request.gpu_milli);
        }
        let free = (node.free() | load.freed) & !load.taken;
        let Some(gpus) = place.gpus.or_else(|| lowest_gpus(free, request.gpus)) else { return false };
        self.take(cluster, place.node, gpus)
    }

    /// Takes devices that no share lies on. False if the candidate has taken one of them already.
    fn take(&mut self, cluster: &Cluster, id: NodeId, gpus: GpuMask) -> bool {
        let (node, n) = (cluster.node(id), gpus.count_ones() as u8);
        let load = self.load(id);
        let fresh = gpus & load.taken == 0;
        load.taken |= gpus;
        load.step = load.step.wrapping_add(PackedState::step_of(n, node.capacity()));
        self.change(node.pool(), n, 1);
        fresh
    }

    fn change(&mut self, pool: PoolId, gpus: u8, by: i64) {
        if gpus == 0 {
            return;
        }
        // A candidate draws on one pool or a few.
        let at = self.changes.iter().position(|change| change.pool == pool).unwrap_or_else(|| {
            self.changes.push(PoolChange { pool, delta: [0; 17] });
            self.changes.len() - 1
        });
        self.changes[at].delta[usize::from(gpus)] += by;
    }

    /// ΔΦ* of the changes. Most candidates of a job change the same, so the last answer is kept.
    fn phi(&mut self, delta_phi: DeltaPhi<'_>) -> Result<i32, EvalError> {
        self.changes.retain(|change| change.delta.iter().any(|&n| n != 0));
        self.changes.sort_unstable_by_key(|change| change.pool);
        if self.changes != self.last_changes {
            self.last_phi = if self.changes.is_empty() { 0 } else { delta_phi(&self.changes) };
            std::mem::swap(&mut self.changes, &mut self.last_changes);
        }
        if phi_in_range(self.last_phi) {
            Ok(self.last_phi as i32)
        } else {
            EvalError::check_size("of ΔΦ*", self.last_phi.unsigned_abs() as usize, 1 << 30).map(|()| 0)
        }
    }

    /// Appends the loads as touches.
    fn emit(&mut self, cluster: &Cluster, batch: &mut Batch) -> Result<(), EvalError> {
        EvalError::check_size("touches", batch.touches.len() + self.loads.len(), MAX_TOUCHES)?;
        debug_assert!(self.loads.iter().all(|load| load.node.index() < cluster.nodes().len()));
        for load in &self.loads {
            let need = Need {
                cpu: Need::amount(load.cpu_arrives, load.cpu_leaves),
                memory: Need::amount(load.memory_arrives, load.memory_leaves),
            };
            let need = if need == Need::NONE {
                0
            } else {
                *self.needs.entry(need).or_insert_with(|| {
                    batch.needs.push(need);
                    batch.needs.len() as u32 - 1
                })
            };
            let &Load { node, freed, taken, step, .. } = load;
            batch.touches.push(Touch { node: node.0, need, freed, taken, step });
        }
        Ok(())
    }
}

/// The batch without its rows, but with their memory.
/// The positions of the candidates, those of a job together, jobs by first appearance.
fn group(sets: &[CandidateSet], order: &mut Vec<u32>) {
    let mut firsts = FxHashMap::default();
    let keys: Vec<u32> =
        sets.iter().enumerate().map(|(position, set)| *firsts.entry(set.job).or_insert(position as u32)).collect();
    order.clear();
    order.extend(0..sets.len() as u32);
    order.sort_by_key(|&position| keys[position as usize]);
}
