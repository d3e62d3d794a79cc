//! Where jobs run in a simulation: a real cluster under the commit loop, or the oracle's multiset.

use crate::anchor::{Migration, PoolState};
use crate::cluster::{Cluster, JobId, NodeId, Request, WHOLE_GPU};
use crate::decide::{CommitLoop, Offer, Repack, Status, Why, Worth, offers, why_blocked};
use crate::fragmentation::{PhiStar, wcc};
use crate::workload::{Demand, QueueEntry};

use super::backfill::Place;
use super::scenario::Scenario;

/// What there is to see between two instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// Avoidable partial nodes.
    pub(super) n_sif: u64,
    /// GPUs that something holds; one that shares lie on is one.
    pub(super) busy_gpus: u64,
    /// Schedulable nodes that hold nothing.
    pub(super) empty_nodes: u64,
    /// Whether the Workload Composition Condition holds in all pools; `None` where it has no meaning.
    pub(super) wcc: Option<bool>,
}

/// A place that jobs start on and leave.
pub(super) trait Site {
    /// A job has come and waits.
    fn arrive(&mut self, job: JobId);
    /// How well it fits, the smaller the better; `None` if it cannot start, or the policy does not say.
    fn growth(&mut self, job: JobId) -> Option<i64>;
    /// Whether the policy would rather have it wait.
    fn holds_back(&mut self, job: JobId) -> bool;
    /// Starts a job, if it can; `index` is its place in the trace. Returns what moved for it. Where others are moved to make
    /// room for it, only if that is worth it.
    fn start(&mut self, job: JobId, index: usize, worth: Worth) -> Option<&[Migration]>;
    /// Ends running jobs, as one event. Returns what moved then.
    fn end(&mut self, jobs: &[JobId]) -> &[Migration];
    /// The jobs that hold anything of a node, ascending.
    fn jobs_on(&self, node: NodeId) -> Vec<JobId>;
    /// Closes nodes, opens others, and ends jobs, as one event. Returns what moved then.
    fn change_nodes(&mut self, closed: &[NodeId], opened: &[NodeId], ended: &[JobId]) -> &[Migration];
    /// Repacks what runs, as one event. Returns what moved.
    fn repack(&mut self, how: Repack) -> &[Migration];
    /// Why a job cannot start, which was just refused; [`Why::Space`] if its GPUs fit somewhere.
    fn why(&self, job: JobId) -> Why;
    /// The nodes that it could have.
    fn offers(&self, job: JobId) -> Vec<Offer>;
    /// Free GPUs that a job could have.
    fn free_gpus(&self) -> u64;
    /// The same in thousandths, with the rests of devices that shares lie on.
    fn free_milli(&self) -> u64;
    /// Places that a job could have.
    fn free_places(&self, place: Place) -> u64;
    /// What there is to see now.
    fn view(&mut self) -> View;
    /// Who holds what; `None` where nothing is assigned to a node.
    fn cluster(&self) -> Option<&Cluster>;
}

impl Site for CommitLoop<'_> {
    fn arrive(&mut self, job: JobId) {
        CommitLoop::arrive(self, job);
    }

    fn growth(&mut self, job: JobId) -> Option<i64> {
        CommitLoop::growth(self, job)
    }

    fn holds_back(&mut self, job: JobId) -> bool {
        CommitLoop::holds_back(self, job)
    }

    fn start(&mut self, job: JobId, index: usize, worth: Worth) -> Option<&[Migration]> {
        self.set_worth(Some(worth));
        let decision = self.decide(QueueEntry::Submit(job), index);
        (decision.status == Status::Placed).then_some(&decision.migrations[..])
    }

    fn end(&mut self, jobs: &[JobId]) -> &[Migration] {
        &self.remove_together(jobs).migrations
    }

    fn jobs_on(&self, node: NodeId) -> Vec<JobId> {
        self.state().cluster().jobs_on(node)
    }

    fn change_nodes(&mut self, closed: &[NodeId], opened: &[NodeId], ended: &[JobId]) -> &[Migration] {
        &CommitLoop::change_nodes(self, closed, opened, ended).migrations
    }

    fn repack(&mut self, how: Repack) -> &[Migration] {
        &CommitLoop::repack(self, how).migrations
    }

    fn why(&self, job: JobId) -> Why {
        why_blocked(self.state(), job)
    }

    fn offers(&self, job: JobId) -> Vec<Offer> {
        offers(self.state(), self.policy(), job)
    }

    fn free_gpus(&self) -> u64 {
        self.state().free_gpus()
    }

    fn free_milli(&self) -> u64 {
        self.state().free_gpu_milli()
    }

    fn free_places(&self, place: Place) -> u64 {
        let beside: u64 = self.state().shared_devices(place.gpu_milli()).map(|(.., left)| place.on(left)).sum();
        self.state().free_gpus() * place.on(WHOLE_GPU) + beside
    }

    fn view(&mut self) -> View {
        let pools = self.state().pools();
        let holds = |pool: &PoolState| pool.fragmentation().wcc().map(|wcc| wcc.holds);
        View {
            n_sif: u64::try_from(self.n_sif()).unwrap_or(0),
            busy_gpus: pools.iter().map(|pool| pool.fragmentation().demand().gpus()).sum(),
            empty_nodes: pools.iter().map(|pool| u64::from(pool.empty().len())).sum(),
            wcc: pools.iter().try_fold(true, |all, pool| Some(all & holds(pool)?)),
        }
    }

    fn cluster(&self) -> Option<&Cluster> {
        Some(self.state().cluster())
    }
}

/// Why the oracle cannot run somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OracleError {
    /// It packs bins of one size.
    #[error("sif-opt packs nodes of one kind: found {0} pools, expected one")]
    Pools(usize),
    /// It packs all of them.
    #[error("sif-opt uses every node: found {0} that cannot be scheduled, expected none")]
    Cordoned(u64),
    /// It packs whole GPUs.
    #[error("sif-opt packs whole GPUs: found jobs that ask for a share of one, expected none")]
    Shares,
    /// It puts nothing on any node.
    #[error("sif-opt puts nothing on any node: found events of nodes, expected none")]
    Events,
}

/// SIFOpt: a multiset of running instances that could be packed.
#[derive(Debug)]
pub(super) struct Oracle<'a> {
    scenario: &'a Scenario,
    demand: Demand,
    solver: PhiStar,
    capacity: u8,
    nodes: u64,
}

impl<'a> Oracle<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, OracleError> {
        let cluster = scenario.cluster();
        let [pool] = cluster.pools() else { return Err(OracleError::Pools(cluster.pools().len())) };
        let cordoned = cluster.nodes().iter().filter(|node| !node.schedulable()).count() as u64;
        if cordoned > 0 {
            return Err(OracleError::Cordoned(cordoned));
        }
        if cluster.requests().iter().any(Request::is_share) {
            return Err(OracleError::Shares);
        }
        if !scenario.events().is_empty() {
            return Err(OracleError::Events);
        }
        let running = cluster.job_ids().filter(|&job| cluster.job(job).runs());
        let demand =
            running.map(|job| (cluster.request_of(job).gpus, u64::from(cluster.job(job).instances()))).collect();
        let (capacity, nodes) = (pool.capacity, cluster.nodes().len() as u64);
        Ok(Self { scenario, demand, solver: PhiStar::new(capacity), capacity, nodes })
    }

    fn instances(&self, job: JobId) -> (u8, u64) {
        let cluster = self.scenario.cluster();
        (cluster.request_of(job).gpus, u64::from(cluster.job(job).instances()))
    }
}

impl Site for Oracle<'_> {
    fn arrive(&mut self, _: JobId) {}

    fn growth(&mut self, _: JobId) -> Option<i64> {
        None
    }

    fn holds_back(&mut self, _: JobId) -> bool {
        false
    }

    fn start(&mut self, job: JobId, _: usize, _: Worth) -> Option<&[Migration]> {
        let (gpus, n) = self.instances(job);
        if u64::from(gpus).saturating_mul(n) > self.free_gpus() {
            return None;
        }
        self.demand.add(gpus, n);
        if self.solver.fewest_nodes(&self.demand) > self.nodes {
            self.demand.remove(gpus, n);
            return None;
        }
        Some(&[])
    }

    fn end(&mut self, jobs: &[JobId]) -> &[Migration] {
        for &job in jobs {
            let (gpus, n) = self.instances(job);
            self.demand.remove(gpus, n);
        }
        &[]
    }

    fn jobs_on(&self, _: NodeId) -> Vec<JobId> {
        // A scenario with events of nodes has no oracle.
        Vec::new()
    }

    fn change_nodes(&mut self, _: &[NodeId], _: &[NodeId], _: &[JobId]) -> &[Migration] {
        &[]
    }

    fn repack(&mut self, _: Repack) -> &[Migration] {
        // It is packed at all times.
        &[]
    }

    fn why(&self, job: JobId) -> Why {
        let (gpus, n) = self.instances(job);
        let lacks = u64::from(gpus).saturating_mul(n) > self.free_gpus();
        if lacks { Why::Capacity } else { Why::Fragmentation }
    }

    fn offers(&self, _: JobId) -> Vec<Offer> {
        Vec::new()
    }

    fn free_gpus(&self) -> u64 {
        (self.nodes * u64::from(self.capacity)).saturating_sub(self.demand.gpus())
    }

    fn free_milli(&self) -> u64 {
        self.free_gpus() * u64::from(WHOLE_GPU)
    }

    fn free_places(&self, place: Place) -> u64 {
        self.free_gpus() * place.on(WHOLE_GPU)
    }

    fn view(&mut self) -> View {
        View {
            n_sif: 0,
            busy_gpus: self.demand.gpus(),
            empty_nodes: self.nodes.saturating_sub(self.solver.fewest_nodes(&self.demand)),
            wcc: wcc(self.capacity, &self.demand).map(|wcc| wcc.holds),
        }
    }

    fn cluster(&self) -> Option<&Cluster> {
        None
    }
}
