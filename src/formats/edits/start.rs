//! A job that runs, as a document states it.

use serde::{Deserialize, Serialize};

use super::{GroupSpec, StartSpec, WithinSpec};
use crate::formats::candidates::SeatSpec;
use crate::formats::fields::maybe_objects;

/// The fields of a [`StartSpec`]: either those of instances that are alike, or `groups`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that is a running job")]
pub(super) struct StartDocument {
    job: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gpus_per_instance: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gpu_milli: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpu_milli: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_mib: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "maybe_objects")]
    groups: Option<Vec<GroupSpec>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    migratable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    models: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<WithinSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remaining_s: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    move_cost_s: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gang: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "maybe_objects")]
    instances: Option<Vec<SeatSpec>>,
}

impl TryFrom<StartDocument> for StartSpec {
    type Error = String;

    fn try_from(document: StartDocument) -> Result<Self, String> {
        let beside = document.said_of_alike_instances();
        let mut spec = Self {
            job: document.job,
            migratable: document.migratable.unwrap_or(true),
            within: document.within,
            remaining_s: document.remaining_s,
            move_cost_s: document.move_cost_s,
            gang: document.gang,
            ..Self::default()
        };
        let missing = |field: &str| format!("missing field `{field}`");
        let Some(mut groups) = document.groups else {
            return Ok(spec.of_one_group(GroupSpec {
                gpus_per_instance: document.gpus_per_instance.ok_or_else(|| missing("gpus_per_instance"))?,
                gpu_milli: document.gpu_milli,
                cpu_milli: document.cpu_milli.unwrap_or(0),
                memory_mib: document.memory_mib.unwrap_or(0),
                models: document.models.unwrap_or_default(),
                instances: document.instances.ok_or_else(|| missing("instances"))?,
            }));
        };
        if let Some(field) = beside {
            return Err(format!("found `{field}` beside `groups`, expected it in each group"));
        }
        if spec.gang.is_some() {
            return Err("found `gang` beside `groups`, expected none: all groups of a job start at once".to_owned());
        }
        match (groups.len(), groups.pop()) {
            (_, None) => Err("groups: found an empty list, expected at least one group".to_owned()),
            // As in a queue.
            (1, Some(alone)) => Ok(spec.of_one_group(alone)),
            (_, Some(last)) => {
                groups.push(last);
                spec.groups = groups;
                Ok(spec)
            }
        }
    }
}

impl StartDocument {
    /// A field that is there and belongs in a group where there are some.
    fn said_of_alike_instances(&self) -> Option<&'static str> {
        let said = [
            ("gpus_per_instance", self.gpus_per_instance.is_some()),
            ("gpu_milli", self.gpu_milli.is_some()),
            ("cpu_milli", self.cpu_milli.is_some()),
            ("memory_mib", self.memory_mib.is_some()),
            ("models", self.models.is_some()),
            ("instances", self.instances.is_some()),
        ];
        said.into_iter().find_map(|(field, is)| is.then_some(field))
    }
}

impl StartSpec {
    fn of_one_group(self, group: GroupSpec) -> Self {
        let GroupSpec { gpus_per_instance, gpu_milli, cpu_milli, memory_mib, models, instances } = group;
        Self { gpus_per_instance, gpu_milli, cpu_milli, memory_mib, models, instances, ..self }
    }
}

/// A job whose instances are alike, as a group of a larger one: what holds for the whole job is left behind.
impl From<StartSpec> for GroupSpec {
    fn from(spec: StartSpec) -> Self {
        let StartSpec { gpus_per_instance, gpu_milli, cpu_milli, memory_mib, models, instances, .. } = spec;
        Self { gpus_per_instance, gpu_milli, cpu_milli, memory_mib, models, instances }
    }
}

/// Fields that say nothing are left out.
impl From<StartSpec> for StartDocument {
    fn from(spec: StartSpec) -> Self {
        let alike = spec.groups.is_empty();
        Self {
            job: spec.job,
            gpus_per_instance: alike.then_some(spec.gpus_per_instance),
            gpu_milli: spec.gpu_milli,
            cpu_milli: Some(spec.cpu_milli).filter(|&n| n > 0),
            memory_mib: Some(spec.memory_mib).filter(|&n| n > 0),
            groups: (!alike).then_some(spec.groups),
            migratable: (!spec.migratable).then_some(false),
            models: Some(spec.models).filter(|models| !models.is_empty()),
            within: spec.within,
            remaining_s: spec.remaining_s,
            move_cost_s: spec.move_cost_s,
            gang: spec.gang,
            instances: alike.then_some(spec.instances),
        }
    }
}
