//! CAFGD, an approximation: FGD for a mix of the demand in the long and in the short term, and an admission that may wait
//! for a peak.
//!
//! That is all that the evaluation of COMPASS-ABS (arXiv 2606.09200, §5) tells of this baseline. It must not stand for its
//! authors' scheduler in a claim. Assumed here:
//!
//! - *Long term* is what is typical for `fgd`: the jobs of the queue or trace, or those of `--typical`. *Short term* is what
//!   runs now, by instances. Both weigh the same once 64 instances run; fewer weigh less in proportion. The mix is made anew
//!   when an eighth of the running instances, and at least 16, has come or gone (see `mix.rs`).
//! - A *peak* is a moment at which GPUs are scarce: fewer than one in eight is free. A job is held back at a peak if it
//!   would make the fragment of the cluster grow wherever the policy would put it, up to 300 s after its submission; it is
//!   looked at again whenever something starts, leaves or moves. To the queue it is a job that cannot start yet: under
//!   strict FIFO those behind it wait, under EASY its GPUs are promised to it at once. Measures count it as a job that waits
//!   though enough GPUs are free.
//! - Where there is no time, in `place`, nobody waits.

use crate::decide::mix::Moment;

/// The short term.
pub(super) const MOMENT: Moment = Moment::Running;

/// For how many seconds after its submission a job may be held back.
pub(super) const PATIENCE_S: u64 = 300;

/// One in so many GPUs is free, or more: no peak.
const SCARCE: u64 = 8;

/// Whether GPUs are scarce, of which so many are free.
pub(in crate::decide) fn is_peak(free_gpus: u64, gpus: u64) -> bool {
    free_gpus < gpus / SCARCE
}

/// Whether a job that would let the fragment grow by so much waits for the end of a peak.
pub(in crate::decide) fn hurts(growth: i64) -> bool {
    growth > 0
}
