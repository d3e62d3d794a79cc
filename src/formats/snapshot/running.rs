//! The running jobs of a snapshot.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess};

use super::Parts;
use super::node::{Indices, position};
use crate::cluster::{BuildError, ClusterBuilder, NodeId, Seat};
use crate::formats::job::{COMMON_FIELDS, MAX_SECONDS};
use crate::formats::json::{Int, Items, ListSeed, Maybe, Object, ObjectSeed, Path, Text, require};

/// Reads the running jobs into the cluster.
pub(super) struct RunningList<'a>(pub(super) &'a mut Parts);

impl Items for RunningList<'_> {
    const WHAT: &'static str = "a list of running jobs";

    fn item<'de, D: Deserializer<'de>>(&mut self, _: usize, deserializer: D, path: &mut Path) -> Result<(), D::Error> {
        let parts = &mut *self.0;
        parts.job.clear();
        parts.group_of.clear();
        parts.seats.clear();
        parts.indices.clear();
        parts.ends.clear();
        ObjectSeed(parts, path).deserialize(deserializer)?;
        let Parts { builder, job, group_of, seats, .. } = parts;
        let added = job.with_spec(|spec| builder.add_running(spec, seats));
        let joined = added.and_then(|job| if group_of.is_empty() { Ok(()) } else { builder.join_group(job, group_of) });
        joined.map_err(|error| {
            self.0.point_at(&error, path);
            D::Error::custom(error)
        })
    }
}

impl Parts {
    /// Leads the path on to the element that the error is about.
    fn point_at(&self, error: &BuildError, path: &mut Path) {
        match *error {
            BuildError::DuplicateJob(_) => path.key("job"),
            BuildError::NotAGroup(..) => path.key("group_of"),
            BuildError::Share(..) => path.key("gpu_milli"),
            BuildError::NoInstances(_) | BuildError::TooManyInstances => path.key("instances"),
            BuildError::LargerThanNode(_, instance, ..) => {
                path.key("instances");
                path.index(instance as usize);
            }
            BuildError::WrongCount(_, instance, ..) => {
                path.key("instances");
                path.index(instance as usize);
                path.key("gpus");
            }
            BuildError::GpuIndex(_, instance, gpu, ..)
            | BuildError::GpuUnavailable(_, instance, gpu, _)
            | BuildError::GpuHeldTwice(_, instance, gpu, ..)
            | BuildError::GpuOverfull(_, instance, gpu, ..) => {
                let end = |i: usize| self.ends.get(i).map_or(0, |&end| end as usize);
                let instance = instance as usize;
                let start = instance.checked_sub(1).map_or(0, end);
                path.key("instances");
                path.index(instance);
                path.key("gpus");
                path.index(position(self.indices.get(start..end(instance)).unwrap_or(&[]), gpu));
            }
            _ => {}
        }
    }
}

impl Object for Parts {
    const WHAT: &'static str = "a running job";
    const FIELDS: &'static [&'static str] = &[
        "job",
        "gpus_per_instance",
        "cpu_milli",
        "memory_mib",
        "migratable",
        "models",
        "within",
        "gpu_milli",
        "remaining_s",
        "move_cost_s",
        "group_of",
        "instances",
    ];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, path: &mut Path) -> Result<(), A::Error> {
        const AFTER: usize = COMMON_FIELDS + 1;
        const GROUP: usize = COMMON_FIELDS + 2;
        let seconds = Maybe(Int(0, MAX_SECONDS));
        match field {
            0..COMMON_FIELDS => self.job.field(field, map, path)?,
            COMMON_FIELDS => self.job.times.remaining_s = map.next_value_seed(seconds)?,
            AFTER => self.job.times.move_cost_s = map.next_value_seed(seconds)?,
            GROUP => map.next_value_seed(Text(&mut self.group_of))?,
            _ => map.next_value_seed(ListSeed(&mut SeatList(self), path))?,
        }
        Ok(())
    }

    fn finish<E: Error>(&mut self, seen: u32, _: &mut Path) -> Result<(), E> {
        require::<Self, E>(seen, &[0, 1, COMMON_FIELDS + 3])
    }
}

struct SeatList<'a>(&'a mut Parts);

impl Items for SeatList<'_> {
    const WHAT: &'static str = "a list of instances";

    fn item<'de, D: Deserializer<'de>>(&mut self, _: usize, deserializer: D, path: &mut Path) -> Result<(), D::Error> {
        let Parts { builder, seats, indices, ends, node_name, .. } = &mut *self.0;
        // The list of this instance is appended to those before, so that one buffer serves the whole job.
        let gpus = Indices { mask: 0, list: std::mem::take(indices) };
        let mut seat = SeatScratch { builder, node_name, node: None, gpus, listed: false };
        let read = ObjectSeed(&mut seat, path).deserialize(deserializer);
        let SeatScratch { node, gpus: Indices { mask, list }, listed, .. } = seat;
        *indices = list;
        read?;
        ends.push(indices.len() as u32);
        // `finish` has seen to it that there is a node.
        let node = node.ok_or_else(|| D::Error::missing_field("node"))?;
        seats.push(Seat { node, gpus: listed.then_some(mask) });
        Ok(())
    }
}

/// One instance as the file states it.
struct SeatScratch<'a> {
    builder: &'a ClusterBuilder,
    node_name: &'a mut String,
    node: Option<NodeId>,
    gpus: Indices,
    listed: bool,
}

impl Object for SeatScratch<'_> {
    const WHAT: &'static str = "an instance";
    const FIELDS: &'static [&'static str] = &["node", "gpus"];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, path: &mut Path) -> Result<(), A::Error> {
        if field == 0 {
            map.next_value_seed(Text(self.node_name))?;
            self.node = self.builder.find_node(self.node_name);
            if self.node.is_none() {
                let text = format_args!("found node \"{}\", expected one that is listed in nodes", self.node_name);
                return Err(A::Error::custom(text));
            }
        } else {
            self.listed = map.next_value_seed(Maybe(ListSeed(&mut self.gpus, path)))?.is_some();
        }
        Ok(())
    }

    fn finish<E: Error>(&mut self, seen: u32, _: &mut Path) -> Result<(), E> {
        require::<Self, E>(seen, &[0])
    }
}
