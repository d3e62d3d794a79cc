//! A decision is a transaction: its edits stand only once it is committed; dropped means discarded.

use rustc_hash::FxHashMap;

use super::state::State;
use crate::cluster::{Cluster, Edit, EditError, GpuMask, InstanceId, JobId, NodeId, lowest_gpus};

/// A running instance that a committed decision moved to another node (net: what lies between does not count).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Migration {
    /// Whose instance.
    pub job: JobId,
    /// Which instance.
    pub instance: InstanceId,
    /// Where it was.
    pub from: NodeId,
    /// Where it is.
    pub to: NodeId,
    /// Which devices it holds there.
    pub gpus: GpuMask,
}

/// A point of a transaction to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint {
    log: usize,
    moved: usize,
}

/// An open decision on a state.
#[derive(Debug)]
pub struct Transaction<'s> {
    state: &'s mut State,
    log: Vec<Edit>,
    /// Instances that ran when the transaction began and were freed since, with where they were; first one first.
    origins: FxHashMap<InstanceId, NodeId>,
    moved: Vec<InstanceId>,
    /// The job that this decision starts: its instances have no origin.
    starting: Option<JobId>,
}

impl State {
    /// Opens a decision.
    pub fn begin(&mut self) -> Transaction<'_> {
        Transaction { state: self, log: Vec::new(), origins: FxHashMap::default(), moved: Vec::new(), starting: None }
    }
}

impl Transaction<'_> {
    /// The state as it is with the edits so far.
    pub fn state(&self) -> &State {
        self.state
    }

    /// The state, to work out Φ*.
    pub fn state_mut(&mut self) -> &mut State {
        self.state
    }

    /// The cluster as it is with the edits so far.
    pub fn cluster(&self) -> &Cluster {
        self.state.cluster()
    }

    /// The edits so far, in order.
    pub fn log(&self) -> &[Edit] {
        &self.log
    }

    /// Says which job this decision starts, and gives its instances their numbers, which a rollback does not undo.
    /// Returns false if the numbers ran out; see [`Cluster::number_instances`].
    #[must_use]
    pub fn start(&mut self, job: JobId) -> bool {
        self.starting = Some(job);
        self.state.number_instances(job)
    }

    /// Puts an instance that holds nothing on these devices.
    ///
    /// # Errors
    /// If that is not possible; nothing has changed then.
    pub fn take(&mut self, instance: InstanceId, node: NodeId, gpus: GpuMask) -> Result<(), EditError> {
        self.push(Edit::Take { instance, node, gpus })
    }

    /// Puts an instance that holds nothing on the lowest free devices of a node.
    ///
    /// # Errors
    /// If the node cannot host it; nothing has changed then.
    pub fn take_lowest(&mut self, instance: InstanceId, node: NodeId) -> Result<(), EditError> {
        let cluster = self.cluster();
        let gpus = cluster.request_of(cluster.instance(instance).job()).gpus;
        let mask = lowest_gpus(cluster.node(node).free(), gpus).ok_or(EditError::GpuBusy(node))?;
        self.take(instance, node, mask)
    }

    /// Takes everything from a running instance.
    ///
    /// # Errors
    /// If it does not run.
    pub fn free(&mut self, instance: InstanceId) -> Result<(), EditError> {
        let held = *self.cluster().instance(instance);
        let node = held.node().ok_or(EditError::NotHeld(instance))?;
        self.push(Edit::Free { instance, node, gpus: held.gpus() })?;
        Ok(())
    }

    /// The point to go back to.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { log: self.log.len(), moved: self.moved.len() }
    }

    /// Takes back everything since the checkpoint. Cannot fail.
    pub fn rollback(&mut self, to: Checkpoint) {
        while self.log.len() > to.log {
            if let Some(edit) = self.log.pop() {
                self.state.undo(edit);
            }
        }
        for instance in self.moved.drain(to.moved..) {
            self.origins.remove(&instance);
        }
    }

    /// The number of instances that ran when the transaction began and were freed since.
    pub fn n_freed(&self) -> usize {
        self.moved.len()
    }

    /// Whether moving this instance would add to [`Transaction::n_freed`].
    pub fn counts_as_move(&self, instance: InstanceId) -> bool {
        self.starting != Some(self.cluster().instance(instance).job()) && !self.origins.contains_key(&instance)
    }

    /// Where an instance was when the transaction began, if it was freed since.
    pub fn origin(&self, instance: InstanceId) -> Option<NodeId> {
        self.origins.get(&instance).copied()
    }

    /// The number of instances that ran at the start, were freed since, and run on another node now.
    pub fn n_migrations(&self) -> usize {
        self.moved.iter().filter(|&&instance| self.migration(instance).is_some()).count()
    }

    /// The net migrations so far, by job and instance.
    pub fn migrations(&self) -> Vec<Migration> {
        let mut migrations: Vec<Migration> = self.moved.iter().filter_map(|&i| self.migration(i)).collect();
        migrations.sort_unstable();
        migrations
    }

    /// Keeps everything. Returns the edits, in order.
    pub fn commit(mut self) -> Vec<Edit> {
        self.moved.clear();
        std::mem::take(&mut self.log)
    }

    fn migration(&self, instance: InstanceId) -> Option<Migration> {
        let held = self.cluster().instance(instance);
        let from = *self.origins.get(&instance)?;
        let to = held.node()?;
        (to != from).then_some(Migration { job: held.job(), instance, from, to, gpus: held.gpus() })
    }

    fn push(&mut self, edit: Edit) -> Result<(), EditError> {
        self.state.apply(edit)?;
        if let Edit::Free { instance, node, .. } = edit
            && self.counts_as_move(instance)
        {
            self.origins.insert(instance, node);
            self.moved.push(instance);
        }
        self.log.push(edit);
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.rollback(Checkpoint { log: 0, moved: 0 });
    }
}
