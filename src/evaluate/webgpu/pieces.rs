//! Cuts a batch into pieces that go over one after the other.

use std::ops::Range;

use crate::evaluate::batch::Batch;

/// Some touches in a row, and the candidates that they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The touches.
    pub(super) touches: Range<usize>,
    /// The candidates. The first may have begun in the piece before.
    pub(super) candidates: Range<usize>,
    /// Whether the last candidate goes on in the next piece.
    pub(super) goes_on: bool,
}

impl Piece {
    /// The candidates that end here.
    pub(super) fn finished(&self) -> Range<usize> {
        self.candidates.start..self.candidates.end - usize::from(self.goes_on)
    }
}

/// The pieces of a batch, none of which has more touches or candidates than may be. Every candidate ends in one of
/// them; touches are cut anywhere, so that a candidate may be as large as it likes.
#[derive(Clone, Debug)]
pub(super) struct Pieces<'a> {
    batch: &'a Batch,
    most_touches: usize,
    most_candidates: usize,
    touch: usize,
    candidate: usize,
}

impl<'a> Pieces<'a> {
    /// At most so many of each, at least one.
    pub(super) fn new(batch: &'a Batch, most_touches: usize, most_candidates: usize) -> Self {
        let (most_touches, most_candidates) = (most_touches.max(1), most_candidates.max(1));
        Self { batch, most_touches, most_candidates, touch: 0, candidate: 0 }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let (first, offsets) = (self.candidate, self.batch.offsets());
        if first == self.batch.len() {
            return None;
        }
        let most = (first + self.most_candidates).min(self.batch.len());
        let end = (self.touch + self.most_touches).min(offsets[most] as usize);
        // The candidates that end within.
        let finished = first + offsets[first + 1..=most].partition_point(|&stop| stop as usize <= end);
        let goes_on = finished < most && (offsets[finished] as usize) < end;
        let piece = Piece { touches: self.touch..end, candidates: first..finished + usize::from(goes_on), goes_on };
        (self.touch, self.candidate) = (end, finished);
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::abi::{Candidate, Need, Touch};
    use crate::evaluate::batch::BatchRows;

    /// One job of candidates of these sizes.
    fn batch(sizes: &[u32]) -> Batch {
        let mut offsets = vec![0];
        let mut touches = Vec::new();
        for &size in sizes {
            touches.extend((0..size).map(|node| Touch { node, ..Touch::default() }));
            offsets.push(touches.len() as u32);
        }
        let n = sizes.len();
        Batch::from_rows(BatchRows {
            nodes: 100,
            touches,
            offsets,
            given: vec![0; n],
            candidates: vec![Candidate::default(); n],
            jobs: vec![0, n as u32],
            needs: vec![Need::NONE],
        })
        .unwrap()
    }

    #[test]
    fn every_touch_and_candidate_is_in_its_piece() {
        let sizes: [&[u32]; 6] =
            [&[], &[0], &[0, 0, 0, 5, 0], &[100], &[1, 2, 3, 4, 5, 6, 7], &[0, 9, 0, 0, 30, 0, 1, 1, 1, 0, 0]];
        for sizes in sizes {
            let batch = batch(sizes);
            for (most_touches, most_candidates) in [(1, 1), (1, 9), (3, 2), (4, 100), (100, 1), (1000, 1000)] {
                let (mut touch, mut candidate, mut going_on) = (0, 0, false);
                for piece in Pieces::new(&batch, most_touches, most_candidates) {
                    assert!(piece.touches.len() <= most_touches && piece.candidates.len() <= most_candidates);
                    assert_eq!((piece.touches.start, piece.candidates.start), (touch, candidate));
                    let offset = |candidate: usize| batch.offsets()[candidate] as usize;
                    assert_eq!(going_on, offset(candidate) < touch);
                    assert!(piece.finished().all(|done| offset(done + 1) <= piece.touches.end));
                    let last = piece.candidates.end;
                    assert!(if piece.goes_on {
                        offset(last) > piece.touches.end
                    } else {
                        offset(last) == piece.touches.end
                    });
                    assert!(!piece.touches.is_empty() || !piece.finished().is_empty());
                    (touch, candidate, going_on) = (piece.touches.end, piece.finished().end, piece.goes_on);
                }
                assert_eq!((touch, candidate), (batch.touches().len(), batch.len()));
            }
        }
    }
}
