//! Time: a trace played against a cluster under a scheduler, event by event.
//!
//! The semantics are those of COMPASS-ABS (arXiv 2606.09200, §5), made exact where the source is silent:
//!
//! - A job holds its GPUs in `[start, finish)`. At one instant all departures come first, by job; then all changes of
//!   nodes; then all arrivals, in the order of the trace; then one scheduling pass ([`Discipline`]). A job of no duration departs in a further round of
//!   the instant in which it starts.
//! - Schedulers that repack do so between the changes of nodes and the arrivals of an instant in which a round starts.
//! - All departures of one round of an instant are one event, and so is the start of one job: the operators run, then one compaction.
//! - A running job that an event migrates pauses: its finish moves by the cost of a migration, once an event, however
//!   many of its instances moved. A job that ends at this instant or that this event starts is not charged.
//! - A node that drains takes nothing new, and what runs there ends in its time. With a node that fails every job ends that
//!   holds anything of it, all instances of a gang; it waits again at the place that its submission gives it (in a FIFO
//!   queue before all that came later), and starts from its beginning. The GPU-seconds that it had held are lost, and
//!   counted. All changes of one instant are one event, as departures are: what fails together is gone before anything
//!   moves. What ran on the cluster at first has no submission, and does not come back.
//! - Every measure is a sum of integers over the intervals between instants ([`Totals`]); states of no length count for
//!   nothing.
//!
//! What is placed where is decided by [`CommitLoop`](crate::decide::CommitLoop), as everywhere. Nothing here depends on
//! threads, hash order or floating point; a run is a pure function of its [`Scenario`], [`Scheduler`] and [`SimOptions`].

mod allocations;
mod backfill;
mod curve;
mod discipline;
mod engine;
mod explain;
mod fingerprint;
mod load_curve;
mod measures;
mod minutes;
mod observe;
mod occupancy;
mod outcome;
mod quantiles;
mod recorder;
mod running;
mod scenario;
mod scheduler;
mod site;
mod sizing;
mod sweep;
mod turns;
mod wait;

pub use allocations::Allocations;
pub use curve::{Bucket, Curve, Extent, Gauge};
pub use discipline::Discipline;
pub use engine::{SimOptions, simulate, simulate_observed};
pub use explain::{Cause, Explanation, FirstTry, Wait, explain};
pub use fingerprint::Fingerprint;
pub use load_curve::{LoadBin, LoadCurve};
pub use measures::{Interval, Totals};
pub use minutes::{Minute, minutes, n_minutes};
pub use observe::{Observer, Stand};
pub use occupancy::Occupancy;
pub use outcome::{JobOutcome, Outcome};
pub use quantiles::{Quantiles, SIZE_CLASSES, SizeClass, Summary};
pub use recorder::{Keep, Overview, Recorder};
pub use running::{LostRun, Pauses};
pub use scenario::Scenario;
pub use scheduler::{ROUND_S, Scheduler, SchedulerError};
pub use site::OracleError;
pub use sizing::{Share, ShareError, Until, concurrent_demand, nodes_for};
pub use sweep::{Cell, DAY_S, Grid, Played, Shard, Size, Sweep, SweepError, SweepOptions};
