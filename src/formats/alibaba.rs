//! The node list of Alibaba's 2026 spot-GPU trace: CSV with `gpu_model,gpu_capacity_num,cpu_num,node_name`, in any
//! order and with other columns beside them.

use std::io::Read;

use crate::cluster::{ClusterBuilder, MAX_AMOUNT, MAX_GPUS, NodeSpec};

use super::error::{FormatError, Note};
use super::snapshot::Snapshot;
use super::source::Source;
use super::table::Table;

/// Reads the node list. vCPUs become milli-cores, memory is unlimited, nothing runs. Nodes without GPUs are left out
/// and counted in a note.
///
/// # Errors
/// If it cannot be read, a column is missing, or a node cannot be.
pub fn read_alibaba_2026(path: &str) -> Result<Snapshot, FormatError> {
    let mut source = Source::open(path)?.not_empty("a CSV list of nodes")?;
    let name = source.name().to_owned();
    read_alibaba_2026_from(&name, source.reader())
}

/// Reads the node list; `name` stands in errors.
///
/// # Errors
/// As for [`read_alibaba_2026`].
pub fn read_alibaba_2026_from(name: &str, reader: impl Read) -> Result<Snapshot, FormatError> {
    let mut table = Table::new(name, reader, &["gpu_model", "gpu_capacity_num", "cpu_num", "node_name"])?;
    let mut builder = ClusterBuilder::new();
    let mut without_gpus = 0u64;
    while table.next()? {
        let gpus = table.int(1, MAX_GPUS as u64)? as u8;
        let cpus = table.int(2, u64::from(MAX_AMOUNT / 1000))? as u32;
        if gpus == 0 {
            without_gpus += 1;
            continue;
        }
        let model = Some(table.text(0)).filter(|model| !model.is_empty());
        let name = table.text(3);
        if name.is_empty() {
            return Err(table.fault(3, "found no text, expected the node's name"));
        }
        let spec = NodeSpec { name, gpus, model, cpu_milli: Some(cpus * 1000), ..NodeSpec::default() };
        builder.add_node(&spec).map_err(|error| table.fault(3, error))?;
    }
    let cluster = builder.finish().map_err(|error| FormatError::new(name, error))?;
    let mut notes = Vec::new();
    if without_gpus > 0 {
        let text = format!("{without_gpus} nodes without GPUs are left out");
        notes.push(Note { place: name.to_owned(), text });
    }
    Ok(Snapshot { cluster, as_of: None, notes })
}
