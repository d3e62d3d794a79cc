//! What is evaluated at once: candidates of several jobs, flattened into touches.

use std::ops::Range;

use super::abi::{Candidate, NONE, Need, ScoreRow, Touch};
use super::backend::EvalError;
use super::node_rows::MAX_NODES;
use super::rank::{self, RankKey};
use super::reason::Reason;

/// The most touches of a batch: their offsets are 32-bit words.
pub const MAX_TOUCHES: usize = u32::MAX as usize;

/// Candidates in the form that the kernels read. The candidates of a job stand together.
///
/// Candidate `c` touches `touches[offsets[c]..offsets[c + 1]]`, job `j` has the candidates `jobs[j]..jobs[j + 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub(super) nodes: usize,
    pub(super) touches: Vec<Touch>,
    pub(super) offsets: Vec<u32>,
    pub(super) given: Vec<u32>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) jobs: Vec<u32>,
    pub(super) needs: Vec<Need>,
    pub(super) source: Vec<u32>,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            nodes: 0,
            touches: Vec::new(),
            offsets: vec![0],
            given: Vec::new(),
            candidates: Vec::new(),
            jobs: vec![0],
            needs: vec![Need::NONE],
            source: Vec::new(),
        }
    }
}

/// The arrays of a batch, unchecked.
#[derive(Clone, Debug, Default)]
pub struct BatchRows {
    /// The number of nodes of the cluster that it is about.
    pub nodes: usize,
    /// The touches of all candidates.
    pub touches: Vec<Touch>,
    /// Where each candidate's touches begin, and the end.
    pub offsets: Vec<u32>,
    /// A reason known before, for each candidate; 0 for none.
    pub given: Vec<u32>,
    /// The static columns.
    pub candidates: Vec<Candidate>,
    /// Where each job's candidates begin, and the end.
    pub jobs: Vec<u32>,
    /// The table of needs; entry 0 is `Need::NONE`.
    pub needs: Vec<Need>,
}

impl Batch {
    /// A batch of rows that were made elsewhere, for tests and measurements. `BatchBuilder` is the usual way.
    ///
    /// # Errors
    /// If the rows are not as the types say: an index out of range, offsets that do not ascend, a node twice in a
    /// candidate, an unknown reason, a ΔΦ* beyond ±2^30.
    pub fn from_rows(rows: BatchRows) -> Result<Self, EvalError> {
        let BatchRows { nodes, touches, offsets, given, candidates, jobs, needs } = rows;
        EvalError::check_size("nodes", nodes, MAX_NODES)?;
        EvalError::check_size("touches", touches.len(), MAX_TOUCHES)?;
        let fault = |what| Err(EvalError::Malformed(what));
        let n = candidates.len();
        if !spans(&offsets, n, touches.len()) || given.len() != n {
            return fault("the offsets of touches");
        }
        if jobs.is_empty() || !spans(&jobs, jobs.len() - 1, n) {
            return fault("the offsets of candidates");
        }
        if given.iter().any(|&reason| reason != 0 && Reason::from_number(reason).is_none()) {
            return fault("a reason");
        }
        if needs.first() != Some(&Need::NONE) || touches.iter().any(|touch| touch.need as usize >= needs.len()) {
            return fault("the needs");
        }
        if candidates.iter().any(|candidate| !phi_in_range(i64::from(candidate.delta_phi_star))) {
            return fault("a change of Φ*");
        }
        let mut seen = vec![u32::MAX; nodes];
        for (candidate, span) in offsets.windows(2).enumerate() {
            for touch in &touches[span[0] as usize..span[1] as usize] {
                match seen.get_mut(touch.node as usize) {
                    Some(seen) if *seen != candidate as u32 => *seen = candidate as u32,
                    _ => return fault("the nodes of touches"),
                }
            }
        }
        let source = (0..n as u32).collect();
        Ok(Self { nodes, touches, offsets, given, candidates, jobs, needs, source })
    }

    /// Takes all candidates out; the buffers stay.
    pub fn clear(&mut self) {
        self.nodes = 0;
        self.touches.clear();
        self.offsets.truncate(1);
        self.given.clear();
        self.candidates.clear();
        self.jobs.truncate(1);
        self.needs.truncate(1);
        self.source.clear();
    }

    /// Puts another batch about the same nodes behind this one: its jobs stay its own, whatever their numbers. So several
    /// callers share one evaluation; [`Scores::part`] takes the answers apart again.
    ///
    /// # Errors
    /// If it is about another cluster, or there is more of something than 32-bit rows can hold. Nothing has changed then.
    pub fn append(&mut self, other: &Self) -> Result<(), EvalError> {
        if self.nodes != other.nodes && !self.is_empty() {
            return Err(EvalError::Malformed("the number of nodes"));
        }
        EvalError::check_size("touches", self.touches.len() + other.touches.len(), MAX_TOUCHES)?;
        EvalError::check_size("candidates", self.len() + other.len(), MAX_TOUCHES)?;
        self.nodes = other.nodes;
        let (touches, candidates) = (self.touches.len() as u32, self.len() as u32);
        // Entry 0 is no need in both.
        let needs = self.needs.len() as u32 - 1;
        let moved = |need: u32| if need == 0 { 0 } else { need + needs };
        self.touches.extend(other.touches.iter().map(|touch| Touch { need: moved(touch.need), ..*touch }));
        self.offsets.extend(other.offsets[1..].iter().map(|offset| offset + touches));
        self.given.extend_from_slice(&other.given);
        self.candidates.extend_from_slice(&other.candidates);
        self.jobs.extend(other.jobs[1..].iter().map(|job| job + candidates));
        self.needs.extend_from_slice(&other.needs[1..]);
        self.source.extend(other.source.iter().map(|source| source + candidates));
        Ok(())
    }

    /// The number of candidates.
    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    /// True if there is no candidate.
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    /// The number of nodes of the cluster that it is about.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// All touches.
    pub fn touches(&self) -> &[Touch] {
        &self.touches
    }

    /// Where each candidate's touches begin, and the end of the last.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// What was known of each candidate before: a reason's number, or 0.
    pub fn given(&self) -> &[u32] {
        &self.given
    }

    /// The static columns of each candidate.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Where each job's candidates begin, and the end of the last.
    pub fn jobs(&self) -> &[u32] {
        &self.jobs
    }

    /// The table of needs.
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// The number of jobs.
    pub fn n_jobs(&self) -> usize {
        self.jobs.len() - 1
    }

    /// The candidates of the `job`th job of the batch.
    pub fn candidates_of(&self, job: usize) -> Range<usize> {
        self.jobs[job] as usize..self.jobs[job + 1] as usize
    }

    /// The touches of a candidate.
    pub fn touches_of(&self, candidate: usize) -> &[Touch] {
        &self.touches[self.offsets[candidate] as usize..self.offsets[candidate + 1] as usize]
    }

    /// The position of a candidate in the input that the batch was built from.
    pub fn source(&self, candidate: usize) -> usize {
        self.source[candidate] as usize
    }

    /// The place in the batch of each candidate in the order in which they were given: the inverse of [`Batch::source`].
    pub fn positions(&self) -> Vec<u32> {
        let mut positions = vec![0; self.source.len()];
        for (position, &source) in (0..).zip(&self.source) {
            positions[source as usize] = position;
        }
        positions
    }
}

/// N·ΔSIF = Δpartial − ΔΦ* must fit a word: |Δpartial| is below 2^28, so this leaves room.
pub(super) fn phi_in_range(delta: i64) -> bool {
    delta.unsigned_abs() <= 1 << 30
}

fn spans(offsets: &[u32], n: usize, end: usize) -> bool {
    offsets.len() == n + 1
        && offsets[0] == 0
        && offsets[n] as usize == end
        && offsets.windows(2).all(|pair| pair[0] <= pair[1])
}

/// What evaluating a batch gives; the buffers are reused from batch to batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    /// One row a candidate.
    pub rows: Vec<ScoreRow>,
    /// The best candidate of each job, `NONE` if none is feasible.
    pub best: Vec<u32>,
}

impl Scores {
    /// Makes room for a batch. What the buffers hold is then unspecified: every backend writes all of it.
    pub fn resize(&mut self, batch: &Batch) {
        self.rows.resize(batch.len(), ScoreRow::default());
        self.best.resize(batch.n_jobs(), 0);
    }

    /// The answers to one of the batches that were put together: that of so many candidates and jobs, behind so many.
    #[must_use]
    pub fn part(&self, candidates: Range<usize>, jobs: Range<usize>) -> Self {
        let first = candidates.start as u32;
        let moved = |&best: &u32| if best == NONE { NONE } else { best - first };
        Self { rows: self.rows[candidates].to_vec(), best: self.best[jobs].iter().map(moved).collect() }
    }

    /// The rank key of a candidate; `None` if it is infeasible.
    pub fn key(&self, batch: &Batch, candidate: usize) -> Option<RankKey> {
        RankKey::of(&self.rows[candidate], &batch.candidates[candidate])
    }

    /// Why a candidate is infeasible, if it is.
    pub fn reason(&self, candidate: usize) -> Option<Reason> {
        Reason::from_number(self.rows[candidate].reason)
    }

    /// The rank of each candidate within its job, from 1 without gaps; 0 for infeasible ones.
    pub fn ranks(&self, batch: &Batch) -> Vec<u32> {
        rank::ranks(batch, self)
    }
}
