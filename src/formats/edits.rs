//! Edits of a cluster, our own format: what has happened since a snapshot, in that order.
//!
//! As with candidates, what an edit names is not looked up here.

mod start;

use serde::{Deserialize, Serialize};

use super::candidates::{MoveSpec, SeatSpec};
use super::fields::{object, objects};
use start::StartDocument;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "lowercase",
    expecting = "an object that is an edit: start, wait, end, moves, cordon, uncordon or gang"
)]
pub enum EditSpec {
    /// A job runs now: an element of `running` of a snapshot; or a line of a queue, of which each group says where its
    /// instances are in place of how many they are.
    #[serde(deserialize_with = "object")]
    Start(StartSpec),
    /// A job waits. Nothing is decided by that; it is known, and so is its gang.
    #[serde(deserialize_with = "object")]
    Wait(WaitSpec),
    /// A job that ran or waited has ended; its name may be given again.
    End(String),
    /// Instances of running jobs have moved, all at once: what they had is free to all of them.
    #[serde(deserialize_with = "objects")]
    Moves(Vec<MoveSpec>),
    /// A node takes no more instances.
    Cordon(String),
    /// A node takes instances again.
    Uncordon(String),
    /// What is known of a gang whose parts start one by one, whether or not any of them is there yet.
    #[serde(deserialize_with = "object")]
    Gang(GangSpec),
}

/// A job that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StartDocument", into = "StartDocument")]
pub struct StartSpec {
    /// Its name, which no running job has.
    pub job: String,
    /// GPUs of each instance, 0 to 16.
    pub gpus_per_instance: u8,
    /// The thousandths of a device that each instance has, where it shares one.
    pub gpu_milli: Option<u16>,
    /// Milli-cores of each instance.
    pub cpu_milli: u32,
    /// MiB of each instance.
    pub memory_mib: u32,
    /// Whether its instances may be moved.
    pub migratable: bool,
    /// The models that its instances may be on; none for any.
    pub models: Vec<String>,
    /// What all of its instances must be in.
    pub within: Option<WithinSpec>,
    /// For how long it still runs, in seconds.
    pub remaining_s: Option<u64>,
    /// What a move costs it, in seconds.
    pub move_cost_s: Option<u64>,
    /// The gang that it is a part of, where the parts of a gang start one by one.
    pub gang: Option<String>,
    /// Where its instances are.
    pub instances: Vec<SeatSpec>,
    /// Its groups, where its instances are not all alike; none else. What an instance asks for and where it is then stands
    /// in each group, and such a job is no part of a gang: all of it starts at once.
    pub groups: Vec<GroupSpec>,
}

/// A group of a job that runs: instances that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that is a group of instances")]
pub struct GroupSpec {
    /// GPUs of each instance, 0 to 16.
    pub gpus_per_instance: u8,
    /// The thousandths of a device that each instance has, where it shares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_milli: Option<u16>,
    /// Milli-cores of each instance.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_milli: u32,
    /// MiB of each instance.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_mib: u32,
    /// The models that its instances may be on; none for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Where its instances are.
    #[serde(deserialize_with = "objects")]
    pub instances: Vec<SeatSpec>,
}

/// A job that waits: one instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that is a job that waits")]
pub struct WaitSpec {
    /// Its name, which no other job has.
    pub job: String,
    /// Its GPUs, 0 to 16.
    pub gpus: u8,
    /// Its milli-cores.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_milli: u32,
    /// Its MiB.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_mib: u32,
    /// The gang that it is a part of, where the parts of a gang start one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// How many parts must be there for the gang to start; without, those that are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang_size: Option<u32>,
}

/// What is known of a gang whose parts start one by one. It stands in place of what the parts said, and of what was said
/// before; with nothing but its name, nothing is known any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that is a gang")]
pub struct GangSpec {
    /// Its name.
    pub gang: String,
    /// How many parts must be there for it to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// What all of its parts must be in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<WithinSpec>,
}

/// The word for [`crate::cluster::Within`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", expecting = "\"domain\" or \"rack\"")]
pub enum WithinSpec {
    /// One NVLink domain.
    Domain,
    /// One rack.
    Rack,
}

impl From<crate::cluster::Within> for WithinSpec {
    fn from(within: crate::cluster::Within) -> Self {
        match within {
            crate::cluster::Within::Domain => Self::Domain,
            crate::cluster::Within::Rack => Self::Rack,
        }
    }
}

impl From<WithinSpec> for crate::cluster::Within {
    fn from(word: WithinSpec) -> Self {
        match word {
            WithinSpec::Domain => Self::Domain,
            WithinSpec::Rack => Self::Rack,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_read_and_written_alike() {
        let lines = [
            r#"{"start":{"job":"a","gpus_per_instance":2,"models":["H100"],"within":"rack","instances":[{"node":"n","gpus":[0,1]}]}}"#,
            r#"{"start":{"job":"c","groups":[{"gpus_per_instance":0,"cpu_milli":5,"instances":[{"node":"n"}]},{"gpus_per_instance":8,"models":["H100"],"instances":[{"node":"m"},{"node":"o"}]}],"migratable":false,"within":"rack"}}"#,
            r#"{"end":"a"}"#,
            r#"{"wait":{"job":"b","gpus":8,"gang":"g","gang_size":4}}"#,
            r#"{"moves":[{"job":"a","instance":0,"node":"m"}]}"#,
            r#"{"cordon":"n"}"#,
            r#"{"uncordon":"n"}"#,
            r#"{"wait":{"job":"b","gpus":8,"cpu_milli":4000,"memory_mib":1}}"#,
            r#"{"gang":{"gang":"g","size":4,"within":"domain"}}"#,
            r#"{"gang":{"gang":"g"}}"#,
        ];
        for line in lines {
            let edit: EditSpec = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&edit).unwrap(), line);
        }
        let fault = |line: &str| serde_json::from_str::<EditSpec>(line).unwrap_err().to_string();
        assert!(fault(r#"{"start":{"job":"a","gpus":2}}"#).contains("unknown field `gpus`"));
        assert!(fault(r#"{"stop":"a"}"#).contains("unknown variant `stop`"));
        assert!(fault(r#"{"end":7}"#).contains("expected a string"));
        assert!(fault(r#"{"wait":["b",8,"g",4]}"#).contains("expected an object"));
        assert!(fault(r#"{"start":["a",2]}"#).contains("expected an object"));
        assert!(fault(r#"{"moves":[["a",0,"m"]]}"#).contains("expected an object"));
    }

    #[test]
    fn a_job_of_groups_says_of_each_what_it_asks_for() {
        let read = |line: &str| serde_json::from_str::<StartSpec>(line);
        let group = r#"{"gpus_per_instance":2,"instances":[{"node":"n"}]}"#;
        // As in a queue, one group is a job like any other.
        let one = read(&format!(r#"{{"job":"a","groups":[{group}],"within":"rack"}}"#)).unwrap();
        let plain = r#"{"job":"a","gpus_per_instance":2,"instances":[{"node":"n"}],"within":"rack"}"#;
        assert_eq!(one, read(plain).unwrap());
        let two = format!(r#""job":"a","groups":[{group},{group}]"#);
        assert_eq!(read(&format!("{{{two}}}")).unwrap().groups.len(), 2);
        for (line, says) in [
            (r#"{"job":"a","groups":[]}"#.to_owned(), "expected at least one group"),
            (format!(r#"{{{two},"gpus_per_instance":2}}"#), "found `gpus_per_instance` beside `groups`"),
            (format!(r#"{{{two},"instances":[]}}"#), "found `instances` beside `groups`"),
            (format!(r#"{{{two},"models":["x"]}}"#), "found `models` beside `groups`"),
            (format!(r#"{{{two},"gang":"g"}}"#), "found `gang` beside `groups`"),
            (r#"{"job":"a","instances":[]}"#.to_owned(), "missing field `gpus_per_instance`"),
            (r#"{"job":"a","gpus_per_instance":1}"#.to_owned(), "missing field `instances`"),
            (r#"{"job":"a","groups":[{"gpus_per_instance":1,"instances":3}]}"#.to_owned(), "expected a sequence"),
        ] {
            let found = read(&line).unwrap_err().to_string();
            assert!(found.contains(says), "{line}: {found}");
        }
    }

    #[test]
    fn the_steps_of_a_plan_are_moves() {
        let step = r#"{"job":"a","instance":1,"from":"n","to":"m","gpus":[0,1]}"#;
        let edit: EditSpec = serde_json::from_str(&format!(r#"{{"moves":[{step}]}}"#)).unwrap();
        let moved =
            MoveSpec { job: "a".into(), instance: 1, node: "m".into(), from: Some("n".into()), gpus: Some(vec![0, 1]) };
        assert_eq!(edit, EditSpec::Moves(vec![moved]));
        let both = r#"{"job":"a","instance":1,"node":"m","to":"m"}"#;
        assert!(serde_json::from_str::<MoveSpec>(both).unwrap_err().to_string().contains("duplicate field `node`"));
    }
}
