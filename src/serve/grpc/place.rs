//! A queue and what was decided of it, as columns.

use prost::Message;

use super::columns::{Taker, bad};
use super::generated as wire;
use super::generated::{EntryKind, Status as Outcome};
use super::jobs::JobRows;
use crate::cluster::{Cluster, GpuMask, GroupedJob, NodeId};
use crate::decide::{Decision, Status, Why};
use crate::formats::FormatError;
use crate::serve::fault::ServeError;
use crate::serve::live::Changed;
use crate::workload::{Queue, QueueEntry};

/// The queue of a message. Its jobs are registered in the cluster.
///
/// # Errors
/// If a column is not as it should be, or a removal names a job that is not there; that names the column.
pub fn queue(message: &wire::PlaceRequest, cluster: &mut Cluster) -> Result<Queue, FormatError> {
    let none = Default::default();
    let jobs = JobRows::new("jobs.", message.jobs.as_ref().unwrap_or(&none))?;
    let (n_jobs, n_removals) = (jobs.len(), message.remove.len());
    let in_order = std::iter::repeat_n(EntryKind::EntrySubmit as i32, n_jobs)
        .chain(std::iter::repeat_n(EntryKind::EntryRemove as i32, n_removals));
    let entries: Vec<i32> = if message.entry.is_empty() { in_order.collect() } else { message.entry.clone() };
    let (mut submits, mut removals) = (Taker::new("", "jobs", n_jobs), Taker::new("", "remove", n_removals));
    let mut queue = Queue::with_capacity(entries.len());
    for (row, kind) in entries.into_iter().enumerate() {
        queue.push(match EntryKind::try_from(kind) {
            Ok(EntryKind::EntrySubmit) => QueueEntry::Submit(jobs.register("jobs.", submits.one()?, cluster)?),
            Ok(EntryKind::EntryRemove) => {
                let at = removals.one()?;
                let name = &message.remove[at];
                let grouped = || cluster.find_grouped_job(name).map(GroupedJob::first);
                let known = cluster.find_job(name).or_else(grouped).ok_or_else(|| {
                    let text = format_args!("found {name:?}, expected a job that runs or is placed before");
                    bad("", "remove", Some(at), text)
                })?;
                QueueEntry::Remove(known)
            }
            Err(_) => return Err(bad("", "entry", Some(row), format_args!("found {kind}, expected 0 or 1"))),
        });
    }
    submits.done()?;
    removals.done()?;
    Ok(queue)
}

/// Appends one decision: an answer of one row. Messages of protobuf that stand one after another are one message, their
/// columns joined; so the decisions of a queue are its answer.
pub(super) fn append(out: &mut Vec<u8>, cluster: &Cluster, decision: &Decision) -> Result<(), ServeError> {
    let status = match decision.status {
        Status::Placed => Outcome::Placed,
        Status::Blocked(Why::Capacity) => Outcome::BlockedCapacity,
        Status::Blocked(Why::Fragmentation) => Outcome::BlockedFragmentation,
        Status::Blocked(Why::Constraint) => Outcome::BlockedConstraint,
        Status::Blocked(Why::Space) => Outcome::BlockedSpace,
        Status::Removed => Outcome::Removed,
        Status::Absent => Outcome::Absent,
    };
    let seats = |seats: &mut dyn Iterator<Item = (NodeId, GpuMask)>| {
        let (node, gpus) = seats.map(|(node, gpus)| (node.0, u32::from(gpus))).unzip();
        wire::Seats { node, gpus }
    };
    let moves = &decision.migrations;
    let row = wire::PlaceResponse {
        job: vec![cluster.whole_job_name(decision.job).to_owned()],
        status: vec![status as i32],
        n_places: vec![decision.placements.len() as u32],
        place: Some(seats(&mut decision.placements.iter().copied())),
        n_moves: vec![moves.len() as u32],
        moves: Some(wire::Moves {
            job: moves.iter().map(|one| cluster.job_name(one.job).to_owned()).collect(),
            instance: moves.iter().map(|one| cluster.position(one.instance)).collect(),
            to: Some(seats(&mut moves.iter().map(|one| (one.to, one.gpus)))),
        }),
        from: moves.iter().map(|one| one.from.0).collect(),
        delta_sif_nodes: vec![decision.delta_sif_nodes.unwrap_or(0)],
        in_abs: vec![decision.in_abs.unwrap_or(false)],
        ..Default::default()
    };
    row.encode(out).map_err(|error| ServeError::Failed(error.to_string()))
}

/// The answer, of decisions that were appended.
pub(super) fn answer(changed: &Changed) -> Result<wire::PlaceResponse, ServeError> {
    let rows = changed.answer.as_deref().unwrap_or_default();
    // What was answered over HTTP is JSON, and no message of ours begins like that.
    if rows.first() == Some(&b'{') {
        let text = "id: found one that was used over HTTP, expected the same protocol";
        return Err(ServeError::Input(text.to_owned()));
    }
    let rows = wire::PlaceResponse::decode(rows).map_err(|error| ServeError::Failed(error.to_string()))?;
    Ok(wire::PlaceResponse { version: changed.version.to_string(), repeated: changed.repeated, ..rows })
}
