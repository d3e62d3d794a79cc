//! A decision is a transaction: its edits stand only once it is committed; dropped means discarded.

use rustc_hash::FxHashMap;

use super::state::State;
use crate::cluster::{Cluster, Edit, EditError, GpuMask, GroupedJob, InstanceId, JobId, NodeId, lowest_gpus};

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
    freed: usize,
}

/// What a transaction keeps; the state owns it between transactions, so that none allocates.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    log: Vec<Edit>,
    origins: Origins,
    /// The jobs that this decision starts: their instances have no origin.
    starting: Starting,
}

/// Jobs that a decision starts, which are numbered without a gap.
#[derive(Clone, Copy, Debug, Default)]
struct Starting {
    first: u32,
    jobs: u32,
}

impl Starting {
    fn contains(self, job: JobId) -> bool {
        job.0.wrapping_sub(self.first) < self.jobs
    }
}

/// Instances that ran when the transaction began and were freed since, in that order, and where each was. Most events
/// have a few, which are looked through; the first repair of a large cluster has very many, which are hashed.
#[derive(Clone, Debug, Default)]
struct Origins {
    list: Vec<(InstanceId, Origin)>,
    /// All of the list, once it is long.
    index: FxHashMap<InstanceId, Origin>,
}

/// What an instance held when the transaction began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    node: NodeId,
    gpus: GpuMask,
}

impl Origins {
    const LONG: usize = 16;

    fn get(&self, instance: InstanceId) -> Option<Origin> {
        if self.list.len() <= Self::LONG {
            return self.list.iter().find(|(other, _)| *other == instance).map(|&(_, origin)| origin);
        }
        self.index.get(&instance).copied()
    }

    fn push(&mut self, instance: InstanceId, origin: Origin) {
        self.list.push((instance, origin));
        if self.list.len() == Self::LONG + 1 {
            self.index.extend(self.list.iter().copied());
        } else if self.list.len() > Self::LONG {
            self.index.insert(instance, origin);
        }
    }

    fn truncate(&mut self, len: usize) {
        if self.list.len() > Self::LONG {
            if len <= Self::LONG {
                self.index.clear();
            } else {
                for (instance, _) in &self.list[len..] {
                    self.index.remove(instance);
                }
            }
        }
        self.list.truncate(len);
    }
}

/// An open decision on a state.
#[derive(Debug)]
pub struct Transaction<'s> {
    state: &'s mut State,
}

impl State {
    /// Opens a decision.
    pub fn begin(&mut self) -> Transaction<'_> {
        debug_assert!(self.journal.log.is_empty());
        self.journal.starting = Starting::default();
        Transaction { state: self }
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
        &self.state.journal.log
    }

    /// Says which job this decision starts, and gives its instances their numbers, which a rollback does not undo.
    /// Returns false if the numbers ran out; see [`Cluster::number_instances`].
    #[must_use]
    pub fn start(&mut self, job: JobId) -> bool {
        self.state.journal.starting = Starting { first: job.0, jobs: 1 };
        self.state.number_instances(job)
    }

    /// The same of all groups of a job.
    #[must_use]
    pub fn start_groups(&mut self, job: GroupedJob) -> bool {
        self.state.journal.starting = Starting { first: job.first().0, jobs: job.jobs().len() as u32 };
        job.jobs().all(|group| self.state.number_instances(group))
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

    /// Lets a node take no more instances; what runs there runs on.
    ///
    /// # Errors
    /// If it is cordoned already.
    pub fn cordon(&mut self, node: NodeId) -> Result<(), EditError> {
        self.push(Edit::Cordon(node))
    }

    /// Lets a cordoned node take instances again.
    ///
    /// # Errors
    /// If it is not cordoned.
    pub fn uncordon(&mut self, node: NodeId) -> Result<(), EditError> {
        self.push(Edit::Uncordon(node))
    }

    /// The point to go back to.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { log: self.state.journal.log.len(), freed: self.state.journal.origins.list.len() }
    }

    /// Takes back everything since the checkpoint. Cannot fail.
    pub fn rollback(&mut self, to: Checkpoint) {
        while self.state.journal.log.len() > to.log {
            if let Some(edit) = self.state.journal.log.pop() {
                self.state.undo(edit);
            }
        }
        self.state.journal.origins.truncate(to.freed);
    }

    /// The number of instances that ran when the transaction began and were freed since.
    pub fn n_freed(&self) -> usize {
        self.state.journal.origins.list.len()
    }

    /// Whether moving this instance would add to [`Transaction::n_freed`].
    pub fn counts_as_move(&self, instance: InstanceId) -> bool {
        !self.state.journal.starting.contains(self.cluster().instance(instance).job())
            && self.state.journal.origins.get(instance).is_none()
    }

    /// Where an instance was when the transaction began, if it was freed since.
    pub fn origin(&self, instance: InstanceId) -> Option<NodeId> {
        self.state.journal.origins.get(instance).map(|origin| origin.node)
    }

    /// The net migrations so far, by job and instance.
    pub fn migrations(&self) -> Vec<Migration> {
        let mut migrations = Vec::new();
        self.migrations_into(&mut migrations);
        migrations
    }

    /// The same, in place of what a list holds.
    pub fn migrations_into(&self, migrations: &mut Vec<Migration>) {
        migrations.clear();
        let moved = self.state.journal.origins.list.iter();
        migrations.extend(moved.filter_map(|&(instance, origin)| self.migration(instance, origin.node)));
        if migrations.len() > 1 {
            migrations.sort_unstable();
        }
    }

    /// Keeps everything.
    pub fn commit(self) {
        // What is no longer in the log is not taken back.
        self.state.journal.log.clear();
    }

    /// Gives instances that left their node and came back the devices they had: what stays on a node stays where it is,
    /// and only what comes to it is free to choose. Nothing else changes.
    pub fn settle(&mut self) {
        let mut nodes: Vec<NodeId> = self.returned_elsewhere().map(|(_, origin)| origin.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            let start = self.checkpoint();
            if self.settle_node(node).is_err() {
                self.rollback(start);
            }
        }
    }

    /// Instances that are back on their node, on other devices than they had.
    fn returned_elsewhere(&self) -> impl Iterator<Item = (InstanceId, Origin)> + '_ {
        self.state.journal.origins.list.iter().copied().filter(|&(instance, origin)| {
            let held = self.cluster().instance(instance);
            held.node() == Some(origin.node) && held.gpus() != origin.gpus
        })
    }

    /// Seats the returned instances of a node first, then those that are new there, on the lowest devices left.
    fn settle_node(&mut self, node: NodeId) -> Result<(), EditError> {
        let returned: Vec<(InstanceId, Origin)> =
            self.returned_elsewhere().filter(|(_, origin)| origin.node == node).collect();
        let starting = self.state.journal.starting;
        let is_new = |instance: &InstanceId| match self.state.journal.origins.get(*instance) {
            Some(origin) => origin.node != node,
            None => starting.contains(self.cluster().instance(*instance).job()),
        };
        let mut new: Vec<InstanceId> = self.cluster().instances_on(node).filter(is_new).collect();
        new.sort_unstable();
        for &instance in returned.iter().map(|(instance, _)| instance).chain(&new) {
            self.free(instance)?;
        }
        for (instance, origin) in returned {
            self.take(instance, node, origin.gpus)?;
        }
        new.into_iter().try_for_each(|instance| self.take_lowest(instance, node))
    }

    fn migration(&self, instance: InstanceId, from: NodeId) -> Option<Migration> {
        let held = self.cluster().instance(instance);
        let to = held.node()?;
        (to != from).then_some(Migration { job: held.job(), instance, from, to, gpus: held.gpus() })
    }

    fn push(&mut self, edit: Edit) -> Result<(), EditError> {
        self.state.apply(edit)?;
        if let Edit::Free { instance, node, gpus } = edit
            && self.counts_as_move(instance)
        {
            self.state.journal.origins.push(instance, Origin { node, gpus });
        }
        self.state.journal.log.push(edit);
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.rollback(Checkpoint { log: 0, freed: 0 });
    }
}
