//! Plans: the fewest moves, proved.

mod brute;
mod budgets;
mod cases;
mod choose;
mod claims;
mod cycles;
mod integer_program;
mod room;
mod scale;
mod shares;
mod verifier;

use slotwise::cluster::Cluster;
use slotwise::plan::{Effort, Mode, PlanOptions};

/// Options with which everything that is migratable may be moved.
fn options(cluster: &Cluster, mode: Mode) -> PlanOptions {
    PlanOptions::new(cluster, mode, Effort::new(4_000_000, None))
}
