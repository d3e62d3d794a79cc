//! A decision, and how it is read off the event that it was.

use super::ranking::Window;
use super::why::Why;
use crate::anchor::{Migration, Shape, Transaction};
use crate::cluster::{Edit, GpuMask, JobId, NodeId};

/// What became of an entry of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The job runs.
    Placed,
    /// The job does not run, and nothing was moved for it.
    Blocked(Why),
    /// The job ran and is gone.
    Removed,
    /// The job that was to go did not run.
    Absent,
}

/// What was decided on one entry of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The job, or the first group of a job of several; of several that left together, the first.
    pub job: JobId,
    /// What became of it.
    pub status: Status,
    /// Where its instances are, in their order and that of its groups, if it was placed.
    pub placements: Vec<(NodeId, GpuMask)>,
    /// Which running instances changed nodes (net), by job and instance.
    pub migrations: Vec<Migration>,
    /// N·ΔSIF of the event, compaction included; `None` for a blocked or absent job.
    pub delta_sif_nodes: Option<i64>,
    /// Whether every node that the event touched is in Σ afterwards; `None` for a blocked or absent job.
    pub in_abs: Option<bool>,
    /// Of a blocked job of several groups, whether it is proved that there is no room for it as things are; `None` of every
    /// other.
    pub proven: Option<bool>,
}

impl Decision {
    /// Reads off an event, before it is committed, what it moved and what it touched.
    #[inline]
    pub(super) fn record(&mut self, window: &mut Window, transaction: &Transaction<'_>) {
        let cluster = transaction.cluster();
        if transaction.n_freed() > 0 {
            transaction.migrations_into(&mut self.migrations);
        }
        if window.listens() {
            transaction.log().iter().for_each(|edit| window.touch(cluster, edit.node()));
        }
        // What counts is what the event changed in the end; a node that was only tried is as it was. Mostly no node at all is
        // outside.
        let inside = |id: NodeId| {
            let node = cluster.node(id);
            Shape::of(node.capacity(), node.composition()).in_space()
        };
        let left = |edit: &Edit| match *edit {
            // Whoever was freed and does not run has left.
            Edit::Free { instance, node, .. } if !cluster.job(cluster.instance(instance).job()).runs() => Some(node),
            _ => None,
        };
        let in_abs = transaction.state().n_outside() == 0
            || (self.placements.iter().all(|&(node, _)| inside(node))
                && self.migrations.iter().all(|moved| inside(moved.from) && inside(moved.to))
                && (!self.placements.is_empty() || transaction.log().iter().filter_map(left).all(inside)));
        self.in_abs = Some(in_abs);
    }

    /// The same of the start of a job, which is then committed.
    #[inline]
    pub(super) fn keep_start(&mut self, window: &mut Window, transaction: Transaction<'_>, job: JobId) {
        self.keep_starts(window, transaction, std::iter::once(job));
    }

    /// The same of jobs that start together.
    #[inline]
    pub(super) fn keep_starts(
        &mut self,
        window: &mut Window,
        transaction: Transaction<'_>,
        jobs: impl Iterator<Item = JobId>,
    ) {
        let cluster = transaction.cluster();
        for job in jobs {
            let held = cluster.instances_of(job).map(|instance| cluster.instance(instance));
            self.placements.extend(held.filter_map(|held| Some((held.node()?, held.gpus()))));
        }
        self.record(window, &transaction);
        transaction.commit();
    }
}
