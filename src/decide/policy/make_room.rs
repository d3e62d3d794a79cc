//! make-room, slotwise's own policy: best-fit without the walls of Σ, and the fewest moves where a job is blocked for want
//! of the right holes.
//!
//! Where CPU or memory alone keeps a job out, nothing moves.
//!
//! Best-fit opens a large hole only where no smaller one does. Where a job then fits nowhere, though its GPUs are free,
//! running instances move, as few as let it start, if that costs the jobs that pause less than the wait that it saves. In a
//! simulation the cost is what a migration pauses a job, for each job that pauses; and the wait is the time until
//! departures alone would let the job start, were nothing else started, and no more than it would wait.
//! A price above the pause makes moves fewer and
//! jobs later. Only the head of the queue may move others. In `place`, which knows no time, whatever moves the budget allows are worth
//! a start.

use super::Order;

/// How it places what fits.
pub(super) const ORDER: Order = Order::FewestFree;
