//! A queue and what was decided of it, as columns.

use prost::Message;
use serde::Deserialize;

use super::columns::{Taker, bad};
use super::generated as wire;
use super::generated::{EntryKind, Status as Outcome};
use super::jobs::JobRows;
use crate::cluster::{Cluster, GpuMask, NodeId};
use crate::decide::{Decision, Status, Why};
use crate::formats::{FormatError, MoveSpec, devices, removal};
use crate::serve::fault::ServeError;
use crate::serve::live::{Changed, Effect};
use crate::workload::{Queue, QueueEntry};

/// The queue of a message. Its jobs are registered in the cluster.
///
/// # Errors
/// If a column is not as it should be, or a removal names a job that is not there; that names the column.
pub fn queue(message: &wire::PlaceRequest, cluster: &mut Cluster) -> Result<Queue, FormatError> {
    let none = Default::default();
    let jobs = JobRows::new("jobs.", message.jobs.as_ref().unwrap_or(&none))?;
    let (n_rows, n_removals) = (jobs.len(), message.remove.len());
    let in_order = || {
        let n_jobs = (0..n_rows).filter(|&row| jobs.begins(row)).count();
        std::iter::repeat_n(EntryKind::EntrySubmit as i32, n_jobs)
            .chain(std::iter::repeat_n(EntryKind::EntryRemove as i32, n_removals))
    };
    let entries: Vec<i32> = if message.entry.is_empty() { in_order().collect() } else { message.entry.clone() };
    let (mut submits, mut removals) = (Taker::new("", "jobs", n_rows), Taker::new("", "remove", n_removals));
    let mut queue = Queue::with_capacity(entries.len());
    for (row, kind) in entries.into_iter().enumerate() {
        queue.push(match EntryKind::try_from(kind) {
            Ok(EntryKind::EntrySubmit) => {
                let first = submits.one()?;
                let entry = jobs.register("jobs.", first, cluster)?;
                if let QueueEntry::SubmitGroups(job) = entry {
                    submits.take(job.jobs().len() as u32 - 1)?;
                }
                entry
            }
            Ok(EntryKind::EntryRemove) => {
                let at = removals.one()?;
                removal(cluster, &message.remove[at]).map_err(|text| bad("", "remove", Some(at), text))?
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
        Status::Blocked(why) => blocked(why),
        Status::Removed => Outcome::Removed,
        Status::Absent => Outcome::Absent,
    };
    let seats = |seats: &mut dyn Iterator<Item = (NodeId, GpuMask)>| {
        let (node, gpus) = seats.map(|(node, gpus)| (node.0, u32::from(gpus))).unzip();
        wire::Seats { node, gpus }
    };
    let moves = &decision.migrations;
    let (delta_sif_nodes, in_abs) = effect((decision.delta_sif_nodes, decision.in_abs));
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
            from: Vec::new(),
        }),
        from: moves.iter().map(|one| one.from.0).collect(),
        delta_sif_nodes: vec![delta_sif_nodes],
        in_abs: vec![in_abs],
        ..Default::default()
    };
    row.encode(out).map_err(|error| ServeError::Failed(error.to_string()))
}

/// The answer, of decisions that were appended.
pub(super) fn answer(changed: &Changed) -> Result<wire::PlaceResponse, ServeError> {
    let rows = changed.answer.as_deref().unwrap_or_default();
    let rows = wire::PlaceResponse::decode(rows).map_err(|error| ServeError::Failed(error.to_string()))?;
    Ok(wire::PlaceResponse { version: changed.version.to_string(), ..rows })
}

/// A line of JSON that was answered, or would have been.
#[derive(Deserialize)]
struct Line {
    job: String,
    status: String,
    why: Option<String>,
    #[serde(default)]
    instances: Vec<Seat>,
    migrations: Vec<MoveSpec>,
}

#[derive(Deserialize)]
struct Seat {
    node: String,
    gpus: Vec<u64>,
}

/// The answer to a call that was made before, by whichever protocol: from its lines of JSON. The nodes are still called so,
/// for another snapshot forgets all calls.
pub(super) fn repeated(changed: &Changed, cluster: &Cluster) -> Result<wire::PlaceResponse, ServeError> {
    let fault = |text: &dyn std::fmt::Display| ServeError::Failed(format!("a kept answer: {text}"));
    let mut out = wire::PlaceResponse { version: changed.version.to_string(), repeated: true, ..Default::default() };
    let number = |name: &str| cluster.find_node(name).map(|node| node.0).ok_or_else(|| fault(&"an unknown node"));
    let push = |seats: &mut wire::Seats, node: &str, gpus: &[u64]| {
        seats.node.push(number(node)?);
        seats.gpus.push(devices(gpus).map_err(|error| fault(&error))?.into());
        Ok::<_, ServeError>(())
    };
    let kept = changed.answer.as_deref().unwrap_or_default();
    for line in serde_json::Deserializer::from_slice(kept).into_iter::<Line>() {
        let line = line.map_err(|error| fault(&error))?;
        out.status.push(status(&line).ok_or_else(|| fault(&"an unknown status"))? as i32);
        out.job.push(line.job);
        out.n_places.push(line.instances.len() as u32);
        out.n_moves.push(line.migrations.len() as u32);
        for Seat { node, gpus } in &line.instances {
            push(out.place.get_or_insert_default(), node, gpus)?;
        }
        for MoveSpec { job, instance, node, from, gpus } in line.migrations {
            let moves = out.moves.get_or_insert_default();
            moves.job.push(job);
            moves.instance.push(instance as u32);
            push(moves.to.get_or_insert_default(), &node, gpus.as_deref().unwrap_or_default())?;
            out.from.push(number(&from.unwrap_or_default())?);
        }
    }
    // Of removals the lines say nothing of that.
    (out.delta_sif_nodes, out.in_abs) = changed.effects.iter().copied().map(effect).unzip();
    if !out.job.is_empty() {
        // As `append` has them: there, though without a row.
        out.place.get_or_insert_default();
        out.moves.get_or_insert_default().to.get_or_insert_default();
    }
    Ok(out)
}

/// As columns have what a decision did, which has nothing where nothing was decided.
fn effect((delta_sif_nodes, in_abs): Effect) -> (i64, bool) {
    (delta_sif_nodes.unwrap_or(0), in_abs.unwrap_or(false))
}

fn status(line: &Line) -> Option<Outcome> {
    Some(match (line.status.as_str(), line.why.as_deref()) {
        ("placed", _) => Outcome::Placed,
        ("removed", _) => Outcome::Removed,
        ("absent", _) => Outcome::Absent,
        ("blocked", Some(why)) => blocked(
            [Why::Capacity, Why::Fragmentation, Why::Constraint, Why::Space]
                .into_iter()
                .find(|one| one.name() == why)?,
        ),
        _ => return None,
    })
}

fn blocked(why: Why) -> Outcome {
    match why {
        Why::Capacity => Outcome::BlockedCapacity,
        Why::Fragmentation => Outcome::BlockedFragmentation,
        Why::Constraint => Outcome::BlockedConstraint,
        Why::Space => Outcome::BlockedSpace,
    }
}
