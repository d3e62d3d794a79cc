//! Candidates and their scores, as columns.

use super::columns::{Column, Taker, bad, check};
use super::generated as wire;
use super::jobs::{JobRows, MoveRows, SeatRows};
use crate::cluster::{Cluster, GpuMask, JobId, NodeId};
use crate::evaluate::{CandidateSet, Move, Place, Reason, delta_sif_nodes};
use crate::formats::FormatError;
use crate::serve::live::Scored;

/// The candidates of a message. Its jobs are registered in the cluster.
///
/// # Errors
/// If a column is not as it should be, or a number none of this cluster; that names the column.
pub fn candidates(message: &wire::ScoreRequest, cluster: &mut Cluster) -> Result<Vec<CandidateSet>, FormatError> {
    let nodes = cluster.nodes().len();
    let (no_jobs, no_place, no_moves) = Default::default();
    let jobs = JobRows::new("jobs.", message.jobs.as_ref().unwrap_or(&no_jobs))?;
    let place = SeatRows::new("place.", message.place.as_ref().unwrap_or(&no_place), nodes)?;
    let moves = MoveRows::new("moves.", message.moves.as_ref().unwrap_or(&no_moves), nodes)?;
    let (rows, n_jobs) = (message.job.len(), jobs.len());
    check("", "job", &message.job, |job| (job as usize) < n_jobs, &format!("less than {n_jobs}, as many as jobs"))?;
    let n_moves = Column::new("", "n_moves", &message.n_moves, rows, 0)?;
    let n_places = Column::new("", "n_places", &message.n_places, rows, 0)?;
    if let Some((row, whole)) = (0..n_jobs).find_map(|row| Some((row, jobs.group_of(row)?))) {
        let text = format_args!("found a group of {whole:?}, expected none: jobs of several groups are not scored");
        return Err(bad("jobs.", "group_of", Some(row), text));
    }
    let registered: Vec<JobId> =
        (0..n_jobs).map(|row| jobs.register_row("jobs.", row, cluster)).collect::<Result<_, _>>()?;
    let mut places = Taker::new("", "place", place.len());
    let mut moved = Taker::new("", "moves", moves.len());
    let to = |(node, gpus): (NodeId, Option<GpuMask>)| Place { node, gpus };
    let mut sets = Vec::with_capacity(rows);
    for (row, &job) in message.job.iter().enumerate() {
        let count = if message.n_places.is_empty() { jobs.instances(job as usize) } else { n_places.get(row) };
        let mut set = CandidateSet {
            job: registered[job as usize],
            place: places.take(count)?.map(|seat| to(place.get(seat))).collect(),
            moves: Vec::new(),
            given: None,
        };
        for one in moved.take(n_moves.get(row))? {
            match moves.running(cluster, one) {
                Some(instance) => set.moves.push(Move { instance, to: to(moves.to(one)) }),
                None => set.given = Some(Reason::NotRunning),
            }
        }
        sets.push(set);
    }
    places.done()?;
    moved.done()?;
    Ok(sets)
}

/// The answer, in the order of the request.
pub(super) fn scores(scored: &Scored) -> wire::ScoreResponse {
    let Scored { version, batch, scores, empty_nodes } = scored;
    let ranks = scores.ranks(batch);
    let mut out = wire::ScoreResponse { version: version.to_string(), ..Default::default() };
    for position in batch.positions() {
        let position = position as usize;
        let (row, candidate) = (&scores.rows[position], &batch.candidates()[position]);
        let feasible = row.reason == 0;
        out.reason.push(row.reason as i32);
        out.rank.push(ranks[position]);
        out.delta_partial.push(if feasible { row.delta_partial } else { 0 });
        out.delta_phi_star.push(if feasible { candidate.delta_phi_star } else { 0 });
        out.delta_sif_nodes.push(if feasible { delta_sif_nodes(row, candidate) } else { 0 });
        out.left_abs.push(if feasible { row.left } else { 0 });
        out.in_abs.push(feasible && row.outside == 0);
        out.moves.push(if feasible { candidate.moves } else { 0 });
        out.moved_gpus.push(if feasible { candidate.moved_gpus } else { 0 });
        let empty = *empty_nodes as i64 + i64::from(row.delta_empty);
        out.empty_nodes_after.push(if feasible { empty } else { 0 });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_the_same_numbers_on_the_wire() {
        for &reason in Reason::ALL {
            let wire = wire::Reason::try_from(reason.number() as i32).unwrap();
            let name = format!("REASON_{}", reason.name().replace('-', "_").to_uppercase());
            assert_eq!(wire.as_str_name(), name);
        }
        assert!(wire::Reason::try_from(Reason::ALL.len() as i32 + 1).is_err());
    }
}
