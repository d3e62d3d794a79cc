//! What running and queued jobs have in common.

use serde::de::{Error, MapAccess, Unexpected};

use crate::cluster::{Cluster, JobId, JobSpec, JobTimes, MAX_AMOUNT, MAX_GPUS, WHOLE_GPU, Within};

use super::json::{Flag, Int, ListSeed, Maybe, Path, Text, Texts};

/// The longest time that a file may state in seconds: what every JSON reader keeps exact.
pub const MAX_SECONDS: u64 = (1 << 53) - 1;

/// The number of fields that [`JobScratch::field`] reads; they come first in the lists of both.
pub(super) const COMMON_FIELDS: usize = 8;

/// One job as a file states it, in buffers that the next job uses again.
#[derive(Debug, Default)]
pub(super) struct JobScratch {
    pub(super) name: String,
    pub(super) gpus: u8,
    /// `None` for whole GPUs.
    gpu_milli: Option<u16>,
    cpu_milli: u32,
    memory_mib: u32,
    pinned: bool,
    pub(super) models: Texts,
    within: Option<Within>,
    pub(super) times: JobTimes,
    word: String,
}

impl JobScratch {
    /// Forgets the last job.
    pub(super) fn clear(&mut self) {
        self.name.clear();
        self.models.clear();
        (self.gpus, self.gpu_milli, self.cpu_milli, self.memory_mib) = (0, None, 0, 0);
        (self.pinned, self.within, self.times) = (false, None, JobTimes::default());
    }

    /// Reads field `0..COMMON_FIELDS`: job, gpus_per_instance, cpu_milli, memory_mib, migratable, models, within,
    /// gpu_milli.
    pub(super) fn field<'de, A: MapAccess<'de>>(
        &mut self,
        field: usize,
        map: &mut A,
        path: &mut Path,
    ) -> Result<(), A::Error> {
        match field {
            0 => map.next_value_seed(Text(&mut self.name))?,
            1 => self.gpus = map.next_value_seed(Int(0, MAX_GPUS as u64))? as u8,
            2 => self.cpu_milli = amount(map)?.unwrap_or(0),
            3 => self.memory_mib = amount(map)?.unwrap_or(0),
            4 => self.pinned = !map.next_value_seed(Maybe(Flag))?.unwrap_or(true),
            5 => {
                self.models.clear();
                let listed = map.next_value_seed(Maybe(ListSeed(&mut self.models, path)))?;
                if listed.is_some() && self.models.is_empty() {
                    return Err(A::Error::custom("found an empty list, expected at least one model, or no list"));
                }
            }
            6 => {
                self.within = match map.next_value_seed(Maybe(Text(&mut self.word)))?.map(|()| self.word.as_str()) {
                    None => None,
                    Some("domain") => Some(Within::Domain),
                    Some("rack") => Some(Within::Rack),
                    Some(other) => {
                        return Err(A::Error::invalid_value(Unexpected::Str(other), &"\"domain\" or \"rack\""));
                    }
                }
            }
            _ => self.gpu_milli = map.next_value_seed(Maybe(Int(1, u64::from(WHOLE_GPU) - 1)))?.map(|n| n as u16),
        }
        Ok(())
    }

    /// Hands the job to `use_it` as the cluster wants it.
    pub(super) fn with_spec<R>(&self, use_it: impl FnOnce(&JobSpec<'_>) -> R) -> R {
        let models = self.models.all();
        use_it(&self.spec(&models))
    }

    /// The job as the cluster wants it, given its models.
    pub(super) fn spec<'a>(&'a self, models: &'a [&'a str]) -> JobSpec<'a> {
        JobSpec {
            name: &self.name,
            gpus: self.gpus,
            gpu_milli: self.gpu_milli.unwrap_or(WHOLE_GPU),
            cpu_milli: self.cpu_milli,
            memory_mib: self.memory_mib,
            models,
            within: self.within,
            pinned: self.pinned,
            times: self.times,
        }
    }

    /// One of its groups: with its name, and with what holds for all of them.
    pub(super) fn bind<'a>(&'a self, group: JobSpec<'a>) -> JobSpec<'a> {
        JobSpec { name: &self.name, within: self.within, pinned: self.pinned, ..group }
    }
}

/// Reads milli-cores or MiB.
pub(super) fn amount<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<u32>, A::Error> {
    Ok(map.next_value_seed(Maybe(Int(0, u64::from(MAX_AMOUNT))))?.map(|n| n as u32))
}

/// A job's request as both writers put it. Fields that say nothing are left out.
#[derive(serde::Serialize)]
pub(super) struct RequestOut<'a> {
    gpus_per_instance: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_milli: Option<u16>,
    #[serde(skip_serializing_if = "is_zero")]
    cpu_milli: u32,
    #[serde(skip_serializing_if = "is_zero")]
    memory_mib: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    migratable: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    models: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<&'static str>,
}

impl<'a> RequestOut<'a> {
    /// The same for one group of several, without what is said of all of them.
    pub(super) fn of_group(cluster: &'a Cluster, job: JobId) -> Self {
        Self { migratable: None, within: None, ..Self::of(cluster, job) }
    }

    pub(super) fn of(cluster: &'a Cluster, job: JobId) -> Self {
        let request = cluster.request_of(job);
        let models = request.models.iter().flatten().map(|&model| cluster.model_name(model)).collect();
        Self {
            gpus_per_instance: request.gpus,
            gpu_milli: request.is_share().then_some(request.gpu_milli),
            cpu_milli: request.cpu_milli,
            memory_mib: request.memory_mib,
            migratable: (!cluster.job(job).migratable()).then_some(false),
            models,
            within: request.within.map(within_word),
        }
    }
}

/// The word for it in a file.
pub(super) fn within_word(within: Within) -> &'static str {
    match within {
        Within::Domain => "domain",
        Within::Rack => "rack",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}
