//! Dumps made from a seed in every form that Slurm has, and what was made broken.

use std::collections::BTreeMap;
use std::fmt::Write;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slotwise::cluster::gpu_indices;
use slotwise::formats::*;

use super::{holdings, told};
use crate::spoil::spoil;

/// What a dump is made of.
struct World {
    nodes: Vec<Node>,
    jobs: Vec<Job>,
}

struct Node {
    gpus: u8,
    model: &'static str,
    drained: bool,
    /// The devices that a job holds.
    held: u16,
}

struct Job {
    /// Node by node: devices, CPUs and MiB.
    seats: Vec<(usize, u16, u64, u64)>,
    requeue: bool,
}

fn world(seed: u64) -> World {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut nodes: Vec<Node> = (0..random.random_range(1..9))
        .map(|_| Node {
            gpus: random.random_range(1..=16),
            model: ["h100", "a100", "4090", ""][random.random_range(0..4)],
            drained: random.random_ratio(1, 5),
            held: 0,
        })
        .collect();
    let mut jobs = Vec::new();
    for _ in 0..random.random_range(0..12) {
        let mut seats = Vec::new();
        let like = (random.random_range(1..4), random.random_range(1..4000));
        for (at, node) in nodes.iter_mut().enumerate() {
            let free: u16 = !node.held & ((1u32 << node.gpus) - 1) as u16;
            let devices = free & random.random::<u16>() & random.random::<u16>();
            if random.random_ratio(1, 3) && devices != 0 {
                node.held |= devices;
                seats.push((at, devices, like.0, like.1));
            }
        }
        if !seats.is_empty() {
            jobs.push(Job { seats, requeue: random.random() });
        }
    }
    World { nodes, jobs }
}

fn name(node: usize) -> String {
    format!("gpu{:03}", node + 1)
}

/// `0-2,5`
fn ranges(devices: u16) -> String {
    let mut text = String::new();
    let indices: Vec<u8> = gpu_indices(devices).collect();
    for run in indices.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { "," };
        match run {
            [one] => write!(text, "{comma}{one}").unwrap(),
            [first, .., last] => write!(text, "{comma}{first}-{last}").unwrap(),
            [] => {}
        }
    }
    text
}

fn gres(model: &str, devices: u16) -> String {
    let colon = if model.is_empty() { "" } else { ":" };
    let list = if devices == 0 { "N/A".to_owned() } else { ranges(devices) };
    format!("gpu{colon}{model}:{}(IDX:{list})", devices.count_ones())
}

impl World {
    fn configured(&self, node: &Node) -> String {
        let colon = if node.model.is_empty() { "" } else { ":" };
        format!("gpu{colon}{}:{}(S:0-1)", node.model, node.gpus)
    }

    fn cpus_used(&self, at: usize) -> (u64, u64) {
        let seats = self.jobs.iter().flat_map(|job| &job.seats).filter(|seat| seat.0 == at);
        seats.fold((0, 0), |sum, seat| (sum.0 + seat.2, sum.1 + seat.3))
    }

    fn hosts(job: &Job) -> String {
        let numbers: Vec<String> = job.seats.iter().map(|seat| format!("{:03}", seat.0 + 1)).collect();
        format!("gpu[{}]", numbers.join(","))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let (name, (cpus, memory)) = (name(at), self.cpus_used(at));
            let state = if node.drained { "MIXED+DRAIN" } else { "MIXED+PLANNED" };
            let (gres, used) = (self.configured(node), gres(node.model, node.held));
            writeln!(
                text,
                "NodeName={name} Arch=x86_64 CoresPerSocket=32 \n   CPUAlloc={cpus} CPUEfctv=64 CPUTot=64 CPULoad=3.12\n   \
                 Gres={gres}\n   GresDrain=N/A\n   GresUsed={used}\n   OS=Linux 6.18 #1 SMP @0 \n   \
                 RealMemory=512000 AllocMem={memory} FreeMem=22381 Sockets=2 Boards=1\n   State={state} \
                 ThreadsPerCore=1 Owner=N/A MCS_label=N/A\n   Partitions=batch \n   Reason=it's \"out\" of order\n\n"
            )
            .unwrap();
        }
        for (at, job) in self.jobs.iter().enumerate() {
            let (id, hosts) = (at + 1, Self::hosts(job));
            let (requeue, nodes) = (u8::from(job.requeue), job.seats.len());
            writeln!(
                text,
                "JobId={id} JobName=a job=x\n   Priority=7 Nice=0\n   JobState=RUNNING Reason=None Dependency=(null)\n   \
                 Requeue={requeue} Restarts=0 BatchFlag=1 Reboot=0\n   RunTime=00:00:26 TimeLimit=UNLIMITED TimeMin=N/A\n   \
                 Partition=batch\n   ReqNodeList=(null) ExcNodeList=(null)\n   NodeList={hosts}\n   NumNodes={nodes} \
                 NumCPUs=4\n   JOB_GRES=gpu:9"
            )
            .unwrap();
            for &(node, devices, cpus, memory) in &job.seats {
                let gres = gres(self.nodes[node].model, devices);
                let last = cpus - 1;
                writeln!(text, "     Nodes={} CPU_IDs=0-{last} Mem={memory} GRES={gres}", name(node)).unwrap();
            }
            writeln!(text, "   Features=(null)\n   OverSubscribe=OK\n   Command=/home/a b/c\n").unwrap();
        }
        text
    }

    /// As 24.11 prints it, or as 22.05 does.
    fn json(&self, new: bool) -> String {
        let number = |n: u64| {
            if new { serde_json::json!({"set": true, "infinite": false, "number": n}) } else { n.into() }
        };
        let words = |text: &str| {
            if new { serde_json::json!([text]) } else { text.to_lowercase().into() }
        };
        let nodes = self.nodes.iter().enumerate().map(|(at, node)| {
            let (cpus, memory) = self.cpus_used(at);
            let flags = if node.drained { vec!["DRAIN"] } else { vec!["PLANNED"] };
            let mut all = serde_json::json!({
                "name": name(at), "gres": self.configured(node), "gres_used": gres(node.model, node.held),
                "gres_drained": "N/A", "cpus": 64, "alloc_cpus": cpus, "real_memory": 512_000, "alloc_memory": memory,
                "partitions": ["batch"], "state": words("MIXED"), "state_flags": flags, "owner": null,
            });
            if new {
                all["state"] = serde_json::json!(["MIXED", flags[0]]);
                all["effective_cpus"] = 64.into();
                all.as_object_mut().unwrap().remove("state_flags");
            }
            all
        });
        let jobs = self.jobs.iter().enumerate().map(|(at, job)| {
            let hosts = Self::hosts(job);
            let detail: Vec<String> = job.seats.iter().map(|seat| gres(self.nodes[seat.0].model, seat.1)).collect();
            let cores = |cpus: u64| (0..cpus).map(|core| (core.to_string(), "allocated".into())).collect();
            let share = |&(node, _, cpus, memory): &(usize, u16, u64, u64)| {
                let name = name(node);
                if new {
                    serde_json::json!({"name": name, "cpus": {"count": cpus, "used": 0},
                        "memory": {"used": 0, "allocated": memory}})
                } else {
                    let cores: serde_json::Map<_, _> = cores(cpus);
                    serde_json::json!({"nodename": name, "memory_allocated": memory, "cpus_used": 0,
                        "sockets": {"0": {"cores": cores}}})
                }
            };
            let shares: Vec<_> = job.seats.iter().map(share).collect();
            let cpus: u64 = job.seats.iter().map(|seat| seat.2).sum();
            let resources = if new {
                serde_json::json!({"nodes": {"list": hosts, "count": job.seats.len(), "allocation": shares}})
            } else {
                serde_json::json!({"nodes": hosts, "allocated_cores": cpus, "allocated_nodes": shares})
            };
            serde_json::json!({
                "job_id": at + 1, "job_state": words("RUNNING"), "state_reason": "None", "partition": "batch",
                "priority": number(7), "node_count": number(job.seats.len() as u64), "cpus": number(cpus),
                "nodes": hosts, "requeue": job.requeue, "batch_flag": true, "gres_detail": detail,
                "job_resources": resources, "features": "", "required_nodes": "", "het_job_id": number(0),
                "thread_spec": 32_766, "time_limit": {"set": false, "infinite": true, "number": 0},
            })
        });
        let document = serde_json::json!({
            "meta": {"slurm": {"version": {"major": "24"}}}, "errors": [],
            "jobs": jobs.collect::<Vec<_>>(), "nodes": nodes.collect::<Vec<_>>(),
        });
        serde_json::to_string_pretty(&document).unwrap()
    }
}

fn read(text: &str) -> Result<Import, FormatError> {
    read_slurm_from("dump", text.as_bytes())
}

#[test]
fn every_form_says_what_it_was_made_of() {
    for seed in 0..200 {
        let world = world(seed);
        let mut expected: BTreeMap<String, BTreeMap<String, Vec<u64>>> = BTreeMap::new();
        for (at, job) in world.jobs.iter().enumerate() {
            let seats = job.seats.iter().map(|seat| (name(seat.0), gpu_indices(seat.1).map(u64::from).collect()));
            expected.insert((at + 1).to_string(), seats.collect());
        }
        let one_line: String = {
            let records = world.text().replace("\n   ", " ");
            records.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("{line}\n")).collect()
        };
        let forms = [world.text(), one_line, world.json(true), world.json(false)];
        let mut first = None;
        for form in forms {
            let import = read(&form).unwrap_or_else(|error| panic!("{seed}: {error}"));
            let cluster = &import.snapshot.cluster;
            cluster.check_books().unwrap();
            assert_eq!(holdings(cluster), expected, "{seed}: {form}");
            assert_eq!(import.snapshot.index_source, Some(IndexSource::Stated));
            for (at, node) in world.nodes.iter().enumerate() {
                let found = cluster.node(cluster.find_node(&name(at)).unwrap());
                assert_eq!((found.devices(), found.schedulable()), (node.gpus, !node.drained), "{seed}");
                assert_eq!((found.cpu_used(), found.memory_used()), {
                    let (cpus, memory) = world.cpus_used(at);
                    (cpus * 1000, memory)
                });
            }
            for (at, job) in world.jobs.iter().enumerate() {
                let of_it = |name: &str| name.split('/').next() == Some(&(at + 1).to_string());
                let mut named = cluster.job_ids().filter(|&id| of_it(cluster.job_name(id)));
                assert!(named.all(|id| cluster.job(id).migratable() == job.requeue));
            }
            let told = told(cluster);
            assert_eq!(first.get_or_insert_with(|| told.clone()), &told, "{seed}");
        }
    }
}

#[test]
fn broken_dumps_are_refused_in_words_or_read_but_never_a_panic() {
    let rounds = if std::env::var_os("SLOTWISE_NIGHTLY").is_some() { 20_000 } else { 300 };
    let words =
        ["-1", "9999999999999999999999", "null", "\"", "{", "}", "[", "]", "(", ")", ",", "=", "\n", "IDX:", "[0-9"];
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut refused = 0;
    for round in 0..rounds {
        let world = world(round % 20);
        let mut bytes = [world.text(), world.json(true), world.json(false)][round as usize % 3].clone().into_bytes();
        spoil(&mut bytes, &words, &mut random);
        match read_slurm_from("dump", &bytes[..]) {
            Ok(mut import) => {
                import.snapshot.cluster.check_books().unwrap();
                let mut cluster = std::mem::take(&mut import.snapshot.cluster);
                import.queue("dump", &mut cluster).unwrap();
            }
            Err(error) => {
                refused += 1;
                let text = error.to_string();
                assert!(text.starts_with("dump") && text.len() < 2000, "{text}");
            }
        }
    }
    assert!(refused > rounds / 10, "{refused}");
}

#[test]
fn faults_name_their_place() {
    let world = world(1);
    for (text, expected) in [
        ("", "dump:1: found no nodes, jobs or switches, expected what scontrol show node, job or topology prints"),
        ("{}", "dump: found neither `nodes` nor `jobs`, expected what scontrol --json or squeue --json prints"),
        ("{\"nodes\": []}", "dump: found no nodes and no jobs, expected some"),
        ("{\"nodes\": [{\"name\": 7}]}", "nodes[0].name: found integer `7`, expected a string"),
        (
            "{\"jobs\": [{\"cpus\": []}]}",
            "jobs[0].cpus: found sequence, expected a number, or an object with `set` and `number`",
        ),
        ("\nJobId=x JobName=y", "dump:2: found \"x\", expected the number of a job"),
        (
            "NodeName=n CPUs=64 Gres=gpu:8",
            "dump:1: found a node without CPUTot, expected what scontrol show node prints",
        ),
        ("JobId=1 JobState=RUNNING\n  NodeList=n[3", "dump: job 1: found the hosts \"n[3\", expected ] behind ["),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with("dump") && error.ends_with(expected), "{error}\n{expected}");
    }
    // Half of a document is none.
    let text = world.json(true);
    assert!(read(&text[..text.len() / 2]).unwrap_err().line().is_some());
}
