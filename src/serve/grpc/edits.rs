//! Edits, from columns.

use super::columns::{Column, Taker, bad, full};
use super::generated as wire;
use super::generated::EditKind;
use super::jobs::{MoveRows, RunningRows};
use crate::cluster::{Cluster, MAX_AMOUNT, MAX_GPUS, NodeId};
use crate::formats::{EditSpec, FormatError, GangSpec, WaitSpec, WithinSpec};

/// The edits of a message, in their order, with the names that the numbers stand for in this cluster.
///
/// # Errors
/// If a column is not as it should be, or a number none of this cluster; that names the column.
pub fn edits(message: &wire::ApplyEditsRequest, cluster: &Cluster) -> Result<Vec<EditSpec>, FormatError> {
    let nodes = cluster.nodes().len();
    let (no_start, no_moves, no_wait) = Default::default();
    let start = RunningRows::new("start.", message.start.as_ref().unwrap_or(&no_start), nodes)?;
    let moves = MoveRows::new("moves.", message.moves.as_ref().unwrap_or(&no_moves), nodes)?;
    let wait = WaitRows::new(message.wait.as_ref().unwrap_or(&no_wait))?;
    super::columns::check(
        "",
        "node",
        &message.node,
        |node| (node as usize) < nodes,
        &format!("less than {nodes}, as many as nodes"),
    )?;
    let no_gang = wire::Gangs::default();
    let gang = GangRows::new(message.gang.as_ref().unwrap_or(&no_gang))?;
    let mut starts = Taker::new("start.", "jobs", start.len());
    let mut ends = Taker::new("", "end", message.end.len());
    let mut counts = Taker::new("", "n_moves", message.n_moves.len());
    let mut moved = Taker::new("", "moves", moves.len());
    let mut cordoned = Taker::new("", "node", message.node.len());
    let mut waits = Taker::new("", "wait", wait.rows());
    let mut gangs = Taker::new("", "gang", gang.rows());
    let mut node = || cordoned.one().map(|row| cluster.node_name(NodeId(message.node[row])).to_owned());
    let mut edits = Vec::with_capacity(message.kind.len());
    for (row, &kind) in message.kind.iter().enumerate() {
        edits.push(match EditKind::try_from(kind) {
            Ok(EditKind::EditStart) => {
                let (spec, rows) = start.spec("start.", cluster, starts.one()?)?;
                // The first is taken.
                starts.take(rows as u32 - 1)?;
                EditSpec::Start(spec)
            }
            Ok(EditKind::EditEnd) => EditSpec::End(message.end[ends.one()?].clone()),
            Ok(EditKind::EditMove) => {
                let rows = moved.take(message.n_moves[counts.one()?])?;
                EditSpec::Moves(rows.map(|row| moves.spec(cluster, row)).collect())
            }
            Ok(EditKind::EditCordon) => EditSpec::Cordon(node()?),
            Ok(EditKind::EditUncordon) => EditSpec::Uncordon(node()?),
            Ok(EditKind::EditWait) => EditSpec::Wait(wait.spec(waits.one()?)),
            Ok(EditKind::EditGang) => EditSpec::Gang(gang.spec(gangs.one()?)),
            Ok(EditKind::EditUnspecified) | Err(_) => {
                let text = format_args!("found {kind}, expected 1 to 7, as EditKind has them");
                return Err(bad("", "kind", Some(row), text));
            }
        });
    }
    for taker in [starts, ends, counts, moved, cordoned, waits, gangs] {
        taker.done()?;
    }
    Ok(edits)
}

struct WaitRows<'a> {
    wait: &'a wire::Waiting,
    size: Column<'a, u32>,
    cpu_milli: Column<'a, u32>,
    memory_mib: Column<'a, u32>,
}

impl<'a> WaitRows<'a> {
    fn new(wait: &'a wire::Waiting) -> Result<Self, FormatError> {
        const AT: &str = "wait.";
        let rows = wait.job.len();
        full(AT, "gpus", &wait.gpus, rows)?;
        super::columns::check(AT, "gpus", &wait.gpus, |n| n as usize <= MAX_GPUS, "0 to 16")?;
        if !wait.gang.is_empty() {
            full(AT, "gang", &wait.gang, rows)?;
        }
        let amount = |name: &str, values: &'a [u32]| {
            let amounts = Column::new(AT, name, values, rows, 0)?;
            amounts.check(AT, name, |amount| amount <= MAX_AMOUNT, &format!("at most {MAX_AMOUNT}"))
        };
        Ok(Self {
            wait,
            size: Column::new(AT, "gang_size", &wait.gang_size, rows, 0)?,
            cpu_milli: amount("cpu_milli", &wait.cpu_milli)?,
            memory_mib: amount("memory_mib", &wait.memory_mib)?,
        })
    }

    fn rows(&self) -> usize {
        self.wait.job.len()
    }

    fn spec(&self, row: usize) -> WaitSpec {
        let size = self.size.get(row);
        WaitSpec {
            job: self.wait.job[row].clone(),
            // At most 16: checked above.
            gpus: self.wait.gpus[row] as u8,
            cpu_milli: self.cpu_milli.get(row),
            memory_mib: self.memory_mib.get(row),
            gang: self.wait.gang.get(row).filter(|gang| !gang.is_empty()).cloned(),
            gang_size: (size > 0).then_some(size),
        }
    }
}

struct GangRows<'a> {
    gangs: &'a wire::Gangs,
    size: Column<'a, u32>,
    within: Column<'a, i32>,
}

impl<'a> GangRows<'a> {
    fn new(gangs: &'a wire::Gangs) -> Result<Self, FormatError> {
        const AT: &str = "gang.";
        let rows = gangs.gang.len();
        Ok(Self {
            gangs,
            size: Column::new(AT, "size", &gangs.size, rows, 0)?,
            within: super::jobs::within_column(AT, &gangs.within, rows)?,
        })
    }

    fn rows(&self) -> usize {
        self.gangs.gang.len()
    }

    fn spec(&self, row: usize) -> GangSpec {
        let size = self.size.get(row);
        GangSpec {
            gang: self.gangs.gang[row].clone(),
            size: (size > 0).then_some(size),
            within: super::jobs::within_of(self.within.get(row)).map(WithinSpec::from),
        }
    }
}
