//! A snapshot, piece by piece.

use super::columns::{Column, bad, check, full};
use super::generated as wire;
use super::generated::put_cluster_request::Piece;
use super::jobs::RunningRows;
use crate::cluster::{ClusterBuilder, GpuMask, MAX_GPUS, NodeSpec, Seat};
use crate::formats::{FormatError, Snapshot, overcommitted, read_cluster_from};
use crate::serve::fault::ServeError;

/// An amount that is no limit.
const NO_LIMIT: u32 = u32::MAX;

/// What has come so far.
#[derive(Debug, Default)]
pub struct Pieces {
    json: Vec<u8>,
    columns: Option<(ClusterBuilder, usize)>,
    bytes: usize,
}

impl Pieces {
    /// Adds a piece; `limit` is for the bytes of all of them.
    ///
    /// # Errors
    /// If it does not go with those before, or is no part of a cluster.
    pub fn push(&mut self, piece: wire::PutClusterRequest, limit: usize) -> Result<(), ServeError> {
        self.bytes += prost::Message::encoded_len(&piece);
        if self.bytes > limit {
            return Err(ServeError::Input(format!(
                "found more than {limit} bytes, expected at most that in all pieces"
            )));
        }
        let mixed = || ServeError::Input("found columns and JSON, expected one of them in all pieces".to_owned());
        match piece.piece {
            None => Err(ServeError::Input("found an empty piece, expected json, nodes or running".to_owned())),
            Some(Piece::Json(_)) if self.columns.is_some() => Err(mixed()),
            Some(Piece::Nodes(_) | Piece::Running(_)) if !self.json.is_empty() => Err(mixed()),
            Some(Piece::Json(bytes)) => {
                self.json.extend_from_slice(&bytes);
                Ok(())
            }
            Some(Piece::Nodes(nodes)) => {
                let (builder, n) = self.columns.get_or_insert_default();
                *n += nodes.name.len();
                Ok(add_nodes(builder, &nodes)?)
            }
            Some(Piece::Running(running)) => {
                let (builder, n) = self.columns.get_or_insert_default();
                Ok(add_running(builder, *n, &running)?)
            }
        }
    }

    /// The snapshot of all pieces.
    ///
    /// # Errors
    /// If they are no cluster that can be.
    pub fn finish(self) -> Result<Snapshot, ServeError> {
        match self.columns {
            None => Ok(read_cluster_from("json", &self.json[..])?),
            Some((builder, _)) => {
                let cluster = builder.finish().map_err(|error| FormatError::new("running", error))?;
                let notes = overcommitted(&cluster);
                Ok(Snapshot { cluster, notes, ..Snapshot::default() })
            }
        }
    }
}

fn add_nodes(builder: &mut ClusterBuilder, nodes: &wire::Nodes) -> Result<(), FormatError> {
    const AT: &str = "nodes.";
    let rows = nodes.name.len();
    full(AT, "gpus", &nodes.gpus, rows)?;
    check(AT, "gpus", &nodes.gpus, |n| (1..=MAX_GPUS as u32).contains(&n), "1 to 16")?;
    let unavailable = Column::new(AT, "unavailable", &nodes.unavailable, rows, 0)?;
    let unavailable =
        unavailable.check(AT, "unavailable", |mask| mask <= u32::from(GpuMask::MAX), "a mask of 16 bits")?;
    let n_words = nodes.words.len();
    let words = |name, values| {
        let expected = format!("at most {n_words}, as many as words");
        Column::new(AT, name, values, rows, 0)?.check(AT, name, |n| n as usize <= n_words, &expected)
    };
    let (model, domain) = (words("model", &nodes.model)?, words("domain", &nodes.domain)?);
    let rack = words("rack", &nodes.rack)?;
    let cpu_milli = Column::new(AT, "cpu_milli", &nodes.cpu_milli, rows, NO_LIMIT)?;
    let memory_mib = Column::new(AT, "memory_mib", &nodes.memory_mib, rows, NO_LIMIT)?;
    let cordoned = Column::new(AT, "cordoned", &nodes.cordoned, rows, false)?;
    let word = |n: u32| n.checked_sub(1).map(|at| nodes.words[at as usize].as_str());
    let amount = |n: u32| (n != NO_LIMIT).then_some(n);
    for row in 0..rows {
        let spec = NodeSpec {
            name: &nodes.name[row],
            gpus: nodes.gpus[row] as u8,
            model: word(model.get(row)),
            domain: word(domain.get(row)),
            rack: word(rack.get(row)),
            cpu_milli: amount(cpu_milli.get(row)),
            memory_mib: amount(memory_mib.get(row)),
            unschedulable: cordoned.get(row),
            unavailable: unavailable.get(row) as GpuMask,
        };
        builder.add_node(&spec).map_err(|error| bad(AT, "name", Some(row), error))?;
    }
    Ok(())
}

fn add_running(builder: &mut ClusterBuilder, nodes: usize, running: &wire::Running) -> Result<(), FormatError> {
    const AT: &str = "running.";
    let rows = RunningRows::new(AT, running, nodes)?;
    let mut seats = Vec::new();
    for row in 0..rows.len() {
        seats.clear();
        seats.extend(rows.seats_of(row).map(|at| {
            let (node, gpus) = rows.seats.get(at);
            Seat { node, gpus }
        }));
        let added = rows.jobs.with_spec(row, rows.times(row), |spec| builder.add_running(spec, &seats));
        let joined = added.and_then(|job| match rows.jobs.group_of(row) {
            None => Ok(()),
            Some(whole) => builder.join_group(job, whole),
        });
        joined.map_err(|error| bad(AT, "jobs", Some(row), error))?;
    }
    Ok(())
}
