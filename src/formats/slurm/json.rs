//! What `--json` of `scontrol show nodes`, `scontrol show jobs` and `squeue` prints, from 22.05 on.
//!
//! The shapes differ by version: a number is a number, null, or an object that says whether it is set; a state is one word
//! or a list of them. What is not used is skipped without being kept.

use std::fmt;
use std::io::Read;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::super::error::FormatError;
use super::Records;
use super::hostlist::hosts;
use super::record::{Holding, JobRecord, NodeRecord, state_words};

/// Reads a document.
///
/// # Errors
/// If it cannot be read, is malformed, or has neither nodes nor jobs.
pub(super) fn read(name: &str, reader: impl Read, records: &mut Records) -> Result<(), FormatError> {
    let mut json = serde_json::Deserializer::from_reader(reader);
    let mut track = serde_path_to_error::Track::new();
    let mut found = false;
    let document = Document { records, found: &mut found };
    let read = document.deserialize(serde_path_to_error::Deserializer::new(&mut json, &mut track));
    let read = read.and_then(|()| json.end());
    read.map_err(|error| FormatError::json(name, Some(0), &track.path().to_string(), error))?;
    let expected = "found neither `nodes` nor `jobs`, expected what scontrol --json or squeue --json prints";
    if found { Ok(()) } else { Err(FormatError::new(name, expected)) }
}

struct Document<'a> {
    records: &'a mut Records,
    found: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the nodes or the jobs of Slurm")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let Records { nodes, jobs, at_s, .. } = &mut *self.records;
            match key.as_str() {
                "nodes" => map.next_value_seed(Each::<Node, _>::new(|node: Node| nodes.push(node.record())))?,
                "jobs" => map.next_value_seed(Each::<Job, _>::new(|job: Job| jobs.push(job.record())))?,
                "last_update" => {
                    *at_s = map.next_value::<Number>()?.0.filter(|&at| at > 0).max(*at_s);
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            }
            *self.found = true;
        }
        Ok(())
    }
}

/// Hands on the elements of a list one by one, so that none is kept as it came.
struct Each<T, F>(F, std::marker::PhantomData<T>);

impl<T, F> Each<T, F> {
    fn new(take: F) -> Self {
        Self(take, std::marker::PhantomData)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            (self.0)(element);
        }
        Ok(())
    }
}

/// A number in any of the ways in which it is written; `None` where it is not set, infinite, or no count.
#[derive(Clone, Copy, Debug, Default)]
struct Number(Option<u64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or an object with `set` and `number`")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
        Ok(Number(Some(number)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
        Ok(Number(u64::try_from(number).ok()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
        Ok(Number((0.0..1e18).contains(&number).then_some(number as u64)))
    }

    fn visit_str<E>(self, word: &str) -> Result<Number, E> {
        Ok(Number(word.parse().ok()))
    }

    fn visit_unit<E>(self) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Number, A::Error> {
        #[derive(Deserialize)]
        #[serde(expecting = "an object with `set` and `number`")]
        struct Written {
            set: bool,
            #[serde(default)]
            infinite: bool,
            #[serde(default)]
            number: Number,
        }
        let written = Written::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        Ok(Number(written.number.0.filter(|_| written.set && !written.infinite)))
    }
}

/// Words in any of the ways in which they are written: a list, one text, or null.
#[derive(Clone, Debug, Default)]
struct Words(Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Words, E> {
        Ok(Words(text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()))
    }

    fn visit_unit<E>(self) -> Result<Words, E> {
        Ok(Words::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
        let mut words = Words::default();
        while let Some(word) = list.next_element()? {
            words.0.push(word);
        }
        Ok(words)
    }
}

impl Words {
    fn states(self, flags: Self) -> Vec<String> {
        self.0.iter().chain(&flags.0).flat_map(|word| state_words(word)).collect()
    }
}

/// A text, or null for an empty one.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(default, expecting = "an object that is a node")]
#[derive(Default)]
struct Node {
    #[serde(deserialize_with = "text")]
    name: String,
    state: Words,
    state_flags: Words,
    #[serde(deserialize_with = "text")]
    gres: String,
    gres_used: Option<String>,
    cpus: Number,
    effective_cpus: Number,
    alloc_cpus: Number,
    real_memory: Number,
    specialized_memory: Number,
    alloc_memory: Number,
    partitions: Words,
    active_features: Words,
    topology: Value,
    #[serde(deserialize_with = "text")]
    owner: String,
}

impl Node {
    fn record(self) -> NodeRecord {
        let number = |number: Number| number.0.unwrap_or(0);
        NodeRecord {
            name: self.name,
            states: self.state.states(self.state_flags),
            gres: self.gres,
            gres_used: self.gres_used,
            cpus: self.effective_cpus.0.filter(|&cpus| cpus > 0).unwrap_or(number(self.cpus)),
            cpus_used: number(self.alloc_cpus),
            memory_mib: number(self.real_memory).saturating_sub(number(self.specialized_memory)),
            memory_used: number(self.alloc_memory),
            partitions: self.partitions.0,
            features: self.active_features.0,
            topology: self.topology.as_str().unwrap_or("").to_owned(),
            owned: !self.owner.is_empty(),
        }
    }
}

#[derive(Deserialize)]
#[serde(default, expecting = "an object that is a job")]
#[derive(Default)]
struct Job {
    job_id: Number,
    #[serde(deserialize_with = "text")]
    name: String,
    job_state: Words,
    #[serde(deserialize_with = "text")]
    state_reason: String,
    partition: Words,
    priority: Number,
    node_count: Number,
    cpus: Number,
    tasks: Number,
    #[serde(deserialize_with = "text")]
    tres_req_str: String,
    #[serde(deserialize_with = "text")]
    tres_alloc_str: String,
    #[serde(deserialize_with = "text")]
    tres_per_node: String,
    #[serde(deserialize_with = "text")]
    tres_per_task: String,
    #[serde(deserialize_with = "text")]
    tres_per_job: String,
    #[serde(deserialize_with = "text")]
    tres_per_socket: String,
    #[serde(deserialize_with = "text")]
    nodes: String,
    #[serde(deserialize_with = "text")]
    required_nodes: String,
    #[serde(deserialize_with = "text")]
    excluded_nodes: String,
    #[serde(deserialize_with = "text")]
    features: String,
    required_switches: Number,
    shared: Words,
    exclusive: Words,
    #[serde(deserialize_with = "text")]
    resv_name: String,
    requeue: Option<bool>,
    batch_flag: Option<bool>,
    het_job_id: Number,
    #[serde(deserialize_with = "text")]
    array_task_string: String,
    end_time: Number,
    gres_detail: Words,
    job_resources: Value,
}

impl Job {
    fn record(self) -> JobRecord {
        let number = |number: Number| number.0.unwrap_or(0);
        let is_exclusive = |word: &String| matches!(word.as_str(), "none" | "true" | "exclusive");
        JobRecord {
            id: number(self.job_id),
            name: self.name,
            holdings: holdings(&self.nodes, self.cpus.0, &self.gres_detail.0, &self.job_resources),
            // A list without an element is a job that holds no GPU.
            detailed: true,
            states: self.job_state.states(Words::default()),
            reason: self.state_reason,
            partitions: self.partition.0,
            priority: number(self.priority),
            nodes: number(self.node_count),
            tasks: number(self.tasks),
            asked: self.tres_req_str,
            given: self.tres_alloc_str,
            per_node: self.tres_per_node,
            per_task: self.tres_per_task,
            per_job: self.tres_per_job,
            per_socket: self.tres_per_socket,
            required_nodes: self.required_nodes,
            excluded_nodes: self.excluded_nodes,
            features: self.features,
            switches: number(self.required_switches),
            exclusive: self.shared.0.iter().chain(&self.exclusive.0).any(is_exclusive),
            reservation: !self.resv_name.is_empty(),
            requeue: self.requeue.unwrap_or(true),
            batch: self.batch_flag.unwrap_or(true),
            heterogeneous: self.het_job_id.0.filter(|&id| id > 0),
            array_tasks: self.array_task_string,
            remaining_s: None,
            end_s: self.end_time.0.filter(|&end| end > 0),
        }
    }
}

/// What a job holds on each of its nodes: `gres_detail[i]` belongs to the i-th host of the list of its resources.
fn holdings(nodes: &str, cpus: Option<u64>, details: &[String], resources: &Value) -> Vec<Holding> {
    // The list itself up to 23.02, an object with the list from then on.
    let listed = match &resources["nodes"] {
        Value::String(list) => list,
        object => object["list"].as_str().unwrap_or(nodes),
    };
    let shares = resources["nodes"]["allocation"].as_array().or(resources["allocated_nodes"].as_array());
    let shares = shares.map_or(&[][..], Vec::as_slice);
    if details.is_empty() && shares.is_empty() {
        return vec![Holding { hosts: listed.to_owned(), ..Holding::default() }];
    }
    // A list of hosts that cannot be read is told when it is used.
    let Ok(names) = hosts(listed) else { return vec![Holding { hosts: listed.to_owned(), ..Holding::default() }] };
    let all_cores: u64 = shares.iter().filter_map(cores).sum();
    let mut holdings: Vec<Holding> = Vec::with_capacity(names.len());
    for (at, host) in names.into_iter().enumerate() {
        let share = shares.get(at).filter(|share| {
            let name = share["name"].as_str().or(share["nodename"].as_str());
            name.is_none_or(|name| name == host)
        });
        let share = share.unwrap_or(&Value::Null);
        // 22.05 lists cores alone: the CPUs of the job are spread as they are.
        let spread = || Some(cores(share)?.checked_mul(cpus?)?.div_ceil(all_cores.max(1)));
        let cpus = share["cpus"]["count"].as_u64().or_else(spread);
        let memory_mib = share["memory"]["allocated"].as_u64().or(share["memory_allocated"].as_u64());
        holdings.push(Holding { hosts: host, gres: details.get(at).cloned().unwrap_or_default(), cpus, memory_mib });
    }
    holdings
}

/// The cores that are listed as allocated on a node.
fn cores(share: &Value) -> Option<u64> {
    let sockets = share["sockets"].as_object()?;
    let cores = sockets.values().filter_map(|socket| socket["cores"].as_object()).flat_map(serde_json::Map::values);
    Some(cores.filter(|state| state.as_str().is_some_and(|state| state.starts_with("allocated"))).count() as u64)
}
