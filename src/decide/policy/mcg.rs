//! MCG, an approximation: FGD's gradient for what is typical and for the pending queue, and a queue that is reordered.
//!
//! That is all that the evaluation of COMPASS-ABS (arXiv 2606.09200, §5) tells of this baseline. It must not stand for its
//! authors' scheduler in a claim. Assumed here:
//!
//! - The demand of the queue joins the typical pods of `fgd`, by instances. Both weigh the same once 64 instances wait; fewer
//!   weigh less in proportion. The mix is made anew when an eighth of the waiting instances, and at least 16, has come or
//!   gone (see `mix.rs`). In `place` all jobs of the queue wait from the start, until they are placed or removed.
//! - Where there is time, of the first 16 jobs of the queue the one goes first that makes the fragment of the cluster grow
//!   the least, all its instances together, among those that can be placed; equal ones in the order of the queue. So a job
//!   that is blocked is overtaken, under strict FIFO too, at most 16 times; then the queue ends with it for everybody
//!   behind it until it has started. Under EASY this comes first and keeps no promise; what is left is backfilled as usual.
//! - `place` decides in the order of its queue, which its output promises, and reorders nothing.

use super::Reordering;
use crate::decide::mix::Moment;

/// Whose demand joins what is typical.
pub(super) const MOMENT: Moment = Moment::Waiting;

/// How the queue is reordered.
pub(super) const REORDERING: Reordering = Reordering { window: 16, overtakings: 16 };
