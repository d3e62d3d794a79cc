//! What must be true after every decision, worked out anew from what the state holds.

use crate::anchor::State;
use crate::cluster::gpu_indices;
use crate::decide::{Decision, Policy, Status};
use crate::report::Totals;

/// Violations that are told; one is bad enough.
const MOST: usize = 20;

/// Watches a run of the commit loop.
#[derive(Debug)]
pub(super) struct Invariants {
    /// Whether the policy promises theorem 1 (COMPASS-ABS, arXiv 2606.09200, §4) after every event.
    bounded: bool,
    n_sif: i64,
    n_sif_max: i64,
    n_sif_sum: i128,
    busy_gpus: u64,
    busy_gpus_max: u64,
    recounts: u64,
    events: u64,
    violations: Vec<String>,
}

impl Invariants {
    /// Before the first decision, on a state with these totals.
    pub(super) fn new(policy: Policy, before: Totals) -> Self {
        let Totals { n_sif, busy_gpus, .. } = before;
        Self {
            bounded: policy == Policy::Compass,
            n_sif,
            n_sif_max: n_sif,
            n_sif_sum: 0,
            busy_gpus,
            busy_gpus_max: busy_gpus,
            recounts: 0,
            events: 0,
            violations: Vec::new(),
        }
    }

    /// The mean of avoidable partial nodes over all events.
    pub(super) fn n_sif_mean(&self) -> f64 {
        self.n_sif_sum as f64 / self.events.max(1) as f64
    }

    /// The most GPUs that were busy so far.
    pub(super) fn busy_gpus_max(&self) -> u64 {
        self.busy_gpus_max
    }

    /// The most avoidable partial nodes so far.
    pub(super) fn n_sif_max(&self) -> i64 {
        self.n_sif_max
    }

    /// How often everything was recounted.
    pub(super) fn recounts(&self) -> u64 {
        self.recounts
    }

    /// What did not hold.
    pub(super) fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Checks what can be checked after every decision.
    pub(super) fn after(&mut self, state: &State, decision: &Decision) {
        self.events += 1;
        self.n_sif += decision.delta_sif_nodes.unwrap_or(0);
        self.n_sif_max = self.n_sif_max.max(self.n_sif);
        self.n_sif_sum += i128::from(self.n_sif);
        let job = state.cluster().job(decision.job);
        let gpus = u64::from(state.cluster().request_of(decision.job).gpus) * u64::from(job.instances());
        match decision.status {
            Status::Placed => {
                self.ledger(state, decision);
                self.busy_gpus += gpus;
                self.busy_gpus_max = self.busy_gpus_max.max(self.busy_gpus);
            }
            Status::Removed => self.busy_gpus = self.busy_gpus.saturating_sub(gpus),
            Status::Blocked(_) | Status::Absent => {}
        }
        if self.bounded {
            self.theorem_1(state);
        }
    }

    /// What the decision says is what the ledger says.
    fn ledger(&mut self, state: &State, decision: &Decision) {
        let cluster = state.cluster();
        let gpus = u32::from(cluster.request_of(decision.job).gpus);
        let held = cluster.instances_of(decision.job).map(|id| (id, cluster.instance(id)));
        let mut same = held.len() == decision.placements.len();
        for ((id, instance), &(node, mask)) in held.zip(&decision.placements) {
            same &= instance.node() == Some(node) && instance.gpus() == mask && mask.count_ones() == gpus;
            same &= gpu_indices(mask).all(|gpu| cluster.owner(node, gpu) == Some(id));
        }
        if !same {
            let name = cluster.job_name(decision.job);
            self.violated(format!("job {name} is not where its decision says"));
        }
    }

    /// Where the Workload Composition Condition holds and all nodes are in Σ and open, a pool has at most two avoidable
    /// partial nodes. Φ* is then a closed form, so this does not ask the solver that the decisions asked.
    fn theorem_1(&mut self, state: &State) {
        for pool in state.pools() {
            let fragmentation = pool.fragmentation();
            let promised = fragmentation.wcc().is_some_and(|wcc| wcc.holds)
                && pool.n_outside() == 0
                && pool.n_schedulable() as usize == pool.nodes().len();
            let phi_star = u64::from(!fragmentation.gpus().is_multiple_of(u64::from(pool.capacity().max(1))));
            if promised && pool.n_partial() > phi_star + 2 {
                let partial = pool.n_partial();
                self.violated(format!("{partial} partial nodes in a pool where {phi_star} are inherent"));
            }
        }
    }

    /// Recounts everything.
    pub(super) fn recount(&mut self, state: &State) {
        self.recounts += 1;
        if let Err(error) = state.cluster().check_books() {
            self.violated(error);
        }
        let cluster = state.cluster();
        let open = cluster.nodes().iter().filter(|node| node.schedulable());
        let free: u64 = open.map(|node| u64::from(node.free_gpus())).sum();
        if free != state.free_gpus() {
            self.violated(format!("{} free GPUs, recounted {free}", state.free_gpus()));
        }
        let partial = cluster.nodes().iter().filter(|node| {
            let busy = node.composition().busy();
            busy > 0 && busy < node.capacity()
        });
        let partial = partial.count() as u64;
        if partial != state.n_partial() {
            self.violated(format!("{} partial nodes, recounted {partial}", state.n_partial()));
        }
    }

    /// Recounts at the end, when the totals are known anew.
    pub(super) fn end(&mut self, state: &State, after: Totals) {
        self.recount(state);
        if after.busy_gpus != self.busy_gpus {
            let text = format!("all decisions add up to {} busy GPUs, there are {}", self.busy_gpus, after.busy_gpus);
            self.violated(text);
        }
        let n_sif = after.n_sif;
        if n_sif != self.n_sif {
            self.violated(format!("all N·ΔSIF add up to {} avoidable partial nodes, there are {n_sif}", self.n_sif));
        }
    }

    fn violated(&mut self, text: String) {
        if self.violations.len() < MOST {
            self.violations.push(format!("after {} events: {text}", self.events));
        }
    }
}
