//! Moves of running instances: which are allowed, and how many an event has made.

use super::rules::Rules;
use super::transaction::{Checkpoint, Transaction};
use crate::cluster::{InstanceId, NodeId, Within};

/// A transaction, with what the rules allow it to move.
#[derive(Debug)]
pub(super) struct Mover<'t, 's> {
    pub(super) transaction: &'t mut Transaction<'s>,
    /// The only region that a job may be placed in.
    pub(super) region: Option<(Within, usize)>,
    budget: Option<usize>,
    /// Instances that the transaction had freed before any move, because their job ended.
    departed: usize,
    /// True once a move was left out for want of budget.
    pub(super) short_of_budget: bool,
}

impl<'t, 's> Mover<'t, 's> {
    /// The instances freed so far are those of a job that ended.
    pub(super) fn new(transaction: &'t mut Transaction<'s>, rules: &Rules) -> Self {
        let departed = transaction.n_freed();
        let budget = rules.migration_budget.map(|budget| budget as usize);
        Self { transaction, region: rules.region, budget, departed, short_of_budget: false }
    }

    /// How many instances more may move.
    pub(super) fn allowance(&self) -> usize {
        let spent = self.transaction.n_freed() - self.departed;
        self.budget.map_or(usize::MAX, |budget| budget.saturating_sub(spent))
    }

    /// Whether the job, its topology and the budget let an instance go to a node of its pool. CPU and memory are not
    /// asked: they depend on what else moves.
    pub(super) fn may_move(&self, instance: InstanceId, to: NodeId) -> bool {
        let cluster = self.transaction.cluster();
        let held = cluster.instance(instance);
        let job = cluster.job(held.job());
        if !job.migratable() || !cluster.node(to).schedulable() {
            return false;
        }
        let Some(from) = held.node() else { return false };
        let (from, to) = (cluster.node(from), cluster.node(to));
        match cluster.request(job.request()).within {
            None => true,
            Some(within) => {
                let region = to.region(within);
                region.is_some() && (region == from.region(within) || cluster.stands_alone(held.job()))
            }
        }
    }

    /// Moves one instance to the lowest free devices of a node of its pool, if everything allows it.
    pub(super) fn move_to(&mut self, instance: InstanceId, to: NodeId) -> bool {
        if !self.may_move(instance, to) {
            return false;
        }
        let cluster = self.transaction.cluster();
        if !cluster.has_cpu_and_memory(to, cluster.request_of(cluster.instance(instance).job())) {
            return false;
        }
        let counts = self.transaction.counts_as_move(instance);
        if counts && self.allowance() == 0 {
            self.short_of_budget = true;
            return false;
        }
        let checkpoint = self.transaction.checkpoint();
        let moved = self.transaction.free(instance).is_ok() && self.transaction.take_lowest(instance, to).is_ok();
        if !moved {
            self.transaction.rollback(checkpoint);
        }
        moved
    }

    /// Moves some 1-GPU instance from one node to another of the same pool.
    pub(super) fn move_a_one(&mut self, from: NodeId, to: NodeId) -> bool {
        let mut gpus_left =
            self.transaction.cluster().node(from).busy() & !self.transaction.cluster().node(from).anchors();
        while gpus_left != 0 {
            // From the highest device down: what stays is then packed low.
            let gpu = 15 - gpus_left.leading_zeros() as u8;
            gpus_left &= !(1 << gpu);
            let Some(instance) = self.transaction.cluster().owner(from, gpu) else { continue };
            if self.move_to(instance, to) {
                return true;
            }
            if self.short_of_budget {
                return false;
            }
        }
        false
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        self.transaction.checkpoint()
    }

    pub(super) fn rollback(&mut self, to: Checkpoint) {
        self.transaction.rollback(to);
    }
}
