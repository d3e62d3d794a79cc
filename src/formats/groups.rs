//! The groups of a queued job whose instances are not all alike.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess};

use super::job::JobScratch;
use super::json::{Int, Items, Object, ObjectSeed, Path, require};
use super::queue::MAX_INSTANCES;
use crate::cluster::{BuildError, Cluster, GroupedJob, JobId, JobSpec};

/// The groups of one job, in buffers that the next job uses again.
#[derive(Debug, Default)]
pub(super) struct GroupList {
    groups: Vec<GroupScratch>,
    len: usize,
}

/// One group as a file states it.
#[derive(Debug, Default)]
struct GroupScratch {
    job: JobScratch,
    instances: u32,
}

/// What became of the groups of a line.
pub(super) enum Registered {
    /// One group is a job like any other.
    Job(JobId),
    /// Several are not.
    Groups(GroupedJob),
}

impl GroupList {
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Registers a job of these groups, which has its name and what binds its instances from `whole`.
    ///
    /// # Errors
    /// Which group is wrong, if it is one, and how.
    pub(super) fn register(
        &self,
        whole: &JobScratch,
        cluster: &mut Cluster,
    ) -> Result<Registered, (Option<usize>, BuildError)> {
        let groups = &self.groups[..self.len];
        let models: Vec<Vec<&str>> = groups.iter().map(|group| group.job.models.all()).collect();
        let specs: Vec<(JobSpec<'_>, u32)> = groups
            .iter()
            .zip(&models)
            .map(|(group, models)| (whole.bind(group.job.spec(models)), group.instances))
            .collect();
        for (at, (spec, instances)) in specs.iter().enumerate() {
            spec.check(*instances).map_err(|error| (Some(at), error))?;
        }
        let registered = match &specs[..] {
            [(spec, instances)] => cluster.register(spec, *instances).map(Registered::Job),
            several => cluster.register_groups(&whole.name, several).map(Registered::Groups),
        };
        registered.map_err(|error| (None, error))
    }
}

impl Items for GroupList {
    const WHAT: &'static str = "a list of groups";

    fn item<'de, D: Deserializer<'de>>(&mut self, _: usize, deserializer: D, path: &mut Path) -> Result<(), D::Error> {
        if self.groups.len() == self.len {
            self.groups.push(GroupScratch::default());
        }
        let group = &mut self.groups[self.len];
        group.job.clear();
        self.len += 1;
        ObjectSeed(group, path).deserialize(deserializer)
    }
}

impl Object for GroupScratch {
    const WHAT: &'static str = "a group of instances";
    const FIELDS: &'static [&'static str] =
        &["instances", "gpus_per_instance", "cpu_milli", "memory_mib", "models", "gpu_milli"];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, path: &mut Path) -> Result<(), A::Error> {
        // The places of the same fields of a job.
        const OF_JOB: [usize; 6] = [0, 1, 2, 3, 5, 7];
        if field == 0 {
            self.instances = map.next_value_seed(Int(1, MAX_INSTANCES))? as u32;
            return Ok(());
        }
        self.job.field(OF_JOB[field], map, path)
    }

    fn finish<E: Error>(&mut self, seen: u32, _: &mut Path) -> Result<(), E> {
        require::<Self, E>(seen, &[0, 1])
    }
}
