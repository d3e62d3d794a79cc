//! `slotwise` decides where the jobs of a GPU cluster go.
//!
//! Data flows one way; a module imports only what lies before it:
//!
//! ```text
//! formats ─► cluster, workload ─► fragmentation, anchor ─► evaluate ─► decide ─► plan, simulate ─► report ─► serve
//! ```
//!
//! `cli` sits on top and is the only module that prints. ARCHITECTURE.md is the map.

pub mod cluster;
pub mod workload;

pub mod fragmentation;

pub mod anchor;

pub mod evaluate;

pub mod decide;

pub mod formats;

pub mod simulate;

pub mod plan;

pub mod report;

pub mod serve;

pub mod cli;
