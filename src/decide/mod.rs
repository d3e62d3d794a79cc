//! Where the jobs of a queue go: policies, the commit loop that runs them, and why a job is blocked.
//!
//! Semantics are sequential: each job is decided on the state that the one before left ([`CommitLoop`]). What a window
//! of the queue ranks beforehand, on however many threads, only saves work and never shows in a result.

mod audit;
mod bulk_scorer;
mod commit_loop;
mod decision;
mod groups;
mod mix;
mod need;
mod obstacles;
mod offers;
mod placer;
pub mod policy;
mod ranker;
mod ranking;
mod region;
mod repack;
mod room;
mod scorer;
mod show;
mod tournament;
mod walk;
mod why;

pub use audit::{
    Audit, Compaction, Figures, Measure, NoThreshold, NodesByFree, Part, Pending, PendingGroups, PendingJobs,
    PoolFigures, RegionFigures, Regions, StartableJobs, Stranded, Threshold, WccFigures, audit,
};
pub use commit_loop::{CommitLoop, PlaceOptions};
pub use decision::{Decision, Status};
pub use groups::{Refusal, why_groups_blocked};
pub use obstacles::{Constraint, Nearest, NodeClass, Obstacle, Obstacles, RegionFit, obstacles};
pub use offers::{Offer, OfferKind, offers};
pub use policy::{Arithmetic, Policy, Reordering};
pub use repack::Repack;
pub use room::{Room, RoomLimits, RoomMaker, Worth};
pub use show::{Next, decide_and_show};
pub use why::{Why, why_blocked};
