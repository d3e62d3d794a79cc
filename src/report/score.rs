//! The scores of candidates.

use serde::Serialize;

use super::json::append_line;
use super::number::{grouped, signed};
use super::table::{Align, Rows};
use crate::evaluate::{Batch, Scores, delta_sif_nodes};
use crate::formats::CandidateSpec;

/// What was evaluated, in the order of the input.
#[derive(Debug)]
pub struct ScoreRows<'a> {
    specs: &'a [CandidateSpec],
    batch: &'a Batch,
    scores: &'a Scores,
    ranks: Vec<u32>,
    /// Where each candidate of the input stands in the batch.
    positions: Vec<u32>,
    empty_nodes: u64,
}

/// What the short names of the table's columns mean.
const LEGEND: &str = "ΔPART: more partial nodes, of which N·ΔSIF are avoidable. LEFT: nodes taken out of Σ.
GPUS: of the instances that move. EMPTY: empty nodes afterwards.
";

#[derive(Serialize)]
struct Line<'a> {
    job: &'a str,
    candidate: &'a str,
    feasible: bool,
    reason: Option<&'static str>,
    delta_partial: Option<i32>,
    delta_phi_star: Option<i32>,
    delta_sif_nodes: Option<i32>,
    in_abs: Option<bool>,
    left_abs: Option<u32>,
    moves: Option<u32>,
    moved_gpus: Option<u32>,
    empty_nodes_after: Option<i64>,
    rank: Option<u32>,
}

impl<'a> ScoreRows<'a> {
    /// The scores of a batch that was built from `specs`, on a cluster with so many empty nodes.
    pub fn new(specs: &'a [CandidateSpec], batch: &'a Batch, scores: &'a Scores, empty_nodes: u64) -> Self {
        let positions = batch.positions();
        Self { specs, batch, scores, ranks: scores.ranks(batch), positions, empty_nodes }
    }

    /// The number of candidates.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// True if there is no candidate.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The number of candidates that are feasible.
    pub fn n_feasible(&self) -> usize {
        self.ranks.iter().filter(|&&rank| rank > 0).count()
    }

    /// Appends the JSON of the `index`th candidate of the input.
    ///
    /// # Errors
    /// As [`append_line`].
    pub fn append_json(&self, out: &mut Vec<u8>, index: usize) -> Result<(), serde_json::Error> {
        append_line(out, &self.line(index))
    }

    /// What is not known of an infeasible candidate is null: its deltas, and what the cluster would be like after it.
    fn line(&self, index: usize) -> Line<'a> {
        let (spec, position) = (&self.specs[index], self.positions[index] as usize);
        let (row, candidate) = (&self.scores.rows[position], &self.batch.candidates()[position]);
        let reason = self.scores.reason(position);
        let feasible = reason.is_none();
        Line {
            job: &spec.job,
            candidate: &spec.candidate,
            feasible,
            reason: reason.map(|reason| reason.name()),
            delta_partial: feasible.then_some(row.delta_partial),
            delta_phi_star: feasible.then_some(candidate.delta_phi_star),
            delta_sif_nodes: feasible.then(|| delta_sif_nodes(row, candidate)),
            in_abs: feasible.then_some(row.outside == 0),
            left_abs: feasible.then_some(row.left),
            moves: feasible.then_some(candidate.moves),
            moved_gpus: feasible.then_some(candidate.moved_gpus),
            empty_nodes_after: feasible.then(|| self.empty_nodes as i64 + i64::from(row.delta_empty)),
            rank: feasible.then_some(self.ranks[position]),
        }
    }

    /// The scores for people, in the order of the input.
    pub fn table(&self) -> String {
        let (left, right) = (|name| (name, Align::Left), |name| (name, Align::Right));
        let words = ["JOB", "CANDIDATE"].map(left);
        let numbers = ["RANK", "N·ΔSIF", "ΔPART", "LEFT", "MOVES", "GPUS", "EMPTY"].map(right);
        let columns: Vec<_> = words.into_iter().chain(numbers).chain([left("NOTE")]).collect();
        let mut table = Rows::new(&columns);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let signed = |n: Option<i32>| or_dash(n.map(|n| signed(i64::from(n))));
        let count = |n: Option<u32>| or_dash(n.map(grouped));
        for index in 0..self.len() {
            let line = self.line(index);
            let inside = line.in_abs.map(|inside| if inside { "in Σ" } else { "outside Σ" });
            table.push([
                line.job.to_owned(),
                line.candidate.to_owned(),
                count(line.rank),
                signed(line.delta_sif_nodes),
                signed(line.delta_partial),
                count(line.left_abs),
                count(line.moves),
                count(line.moved_gpus),
                or_dash(line.empty_nodes_after.map(grouped)),
                line.reason.or(inside).unwrap_or_default().to_owned(),
            ]);
        }
        let (all, feasible) = (self.len(), self.n_feasible());
        let candidates = if all == 1 { "candidate" } else { "candidates" };
        let summary = format!("{} {candidates}, {} feasible\n", grouped(all as u64), grouped(feasible as u64));
        if table.is_empty() { summary } else { format!("{}\n{summary}{LEGEND}", table.text()) }
    }
}
