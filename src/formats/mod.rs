//! What comes in and what goes out again: one file per format. Each reader returns the data and notes for the user.
//!
//! Every fault of an input is a [`FormatError`], one line that says where it is, what was found and what was expected.

mod acme;
mod alibaba;
mod candidates;
mod clock;
mod dump;
mod edits;
mod error;
pub(crate) mod fields;
mod gather;
mod groups;
mod helios;
mod job;
mod job_table;
mod journal;
mod json;
mod kubernetes;
mod lines;
mod node_events;
mod node_table;
mod openb;
mod origin;
mod output;
mod philly;
mod philly_log;
mod queue;
mod sacct;
mod slurm;
mod snapshot;
mod snapshot_out;
mod source;
mod split;
mod sweep;
mod swf;
mod table;
mod trace;
mod tres;
mod window;

pub use acme::{read_acme, read_acme_from};
pub use alibaba::{read_alibaba_2026, read_alibaba_2026_from, read_alibaba_2026_jobs, read_alibaba_2026_jobs_from};
pub use candidates::{CandidateSpec, MoveSpec, NoDevices, SeatSpec, devices, read_candidates, read_candidates_from};
pub use dump::{Handles, Import, WaitingGroup, WaitingJob};
pub use edits::{EditSpec, GangSpec, GroupSpec, StartSpec, WaitSpec, WithinSpec};
pub use error::{FormatError, Note};
pub use gather::{LeftOut, Trace, TraceReport};
pub use helios::{read_helios, read_helios_from};
pub use job::MAX_SECONDS;
pub use journal::Journal;
pub use kubernetes::{
    ClaimView, Holding, Holdings, NodeView, PodGroupView, PodView, SliceView, TopologyKeys, holdings, read_claim_view,
    read_kubernetes, read_kubernetes_from, read_node_view, read_pod_group_view, read_pod_view, read_slice_view,
};
pub use node_events::{read_node_events, read_node_events_from};
pub use openb::{read_openb_nodes, read_openb_nodes_from, read_openb_pods, read_openb_pods_from};
pub use origin::{TraceOptions, cluster_source, dump_source, foreign_trace, queue_source, trace_source};
pub use output::{AtomicFile, discard_unfinished, write_file};
pub use philly::{read_philly, read_philly_from};
pub use queue::{read_queue, read_queue_from, removal, write_queue};
pub use sacct::{read_sacct, read_sacct_from};
pub use slurm::{read_slurm, read_slurm_from};
pub use snapshot::{IndexSource, Snapshot, overcommitted, read_cluster, read_cluster_from};
pub use snapshot_out::{write_cluster, write_snapshot};
pub use source::Source;
pub use sweep::{SweepRow, SweepRows};
pub use swf::{GpusPerProc, read_swf, read_swf_from};
pub use trace::{read_trace, read_trace_from, write_trace};
