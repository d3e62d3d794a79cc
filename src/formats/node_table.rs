//! A list of nodes as a table, a node a row.

use std::io::Read;

use crate::cluster::{ClusterBuilder, NodeSpec};

use super::error::{FormatError, Note};
use super::snapshot::Snapshot;
use super::table::{Column, Table};

/// Reads all rows. `size` tells the GPUs and amounts of one; its name and its model, if any, stand in these columns.
/// Nodes without GPUs are left out and counted in a note. Nothing runs.
///
/// # Errors
/// What `size` returns, or if a node has no name, or one that is there already.
pub(super) fn read_nodes<R: Read>(
    input: &str,
    mut table: Table<'_, R>,
    (name, model): (Column, Column),
    mut size: impl FnMut(&Table<'_, R>) -> Result<NodeSpec<'static>, FormatError>,
) -> Result<Snapshot, FormatError> {
    let mut builder = ClusterBuilder::new();
    let mut without_gpus = 0u64;
    while table.next()? {
        let spec = size(&table)?;
        if spec.gpus == 0 {
            without_gpus += 1;
            continue;
        }
        let node = table.text(name);
        if node.is_empty() {
            return Err(table.fault(name, "found no text, expected the node's name"));
        }
        let model = Some(table.text(model)).filter(|model| !model.is_empty());
        builder.add_node(&NodeSpec { name: node, model, ..spec }).map_err(|error| table.fault(name, error))?;
    }
    let cluster = builder.finish().map_err(|error| FormatError::new(input, error))?;
    let mut notes = Vec::new();
    if without_gpus > 0 {
        let text = format!("{without_gpus} nodes without GPUs are left out");
        notes.push(Note { place: input.to_owned(), text });
    }
    Ok(Snapshot { cluster, notes, ..Snapshot::default() })
}
