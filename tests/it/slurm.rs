//! Dumps of Slurm: real ones of two versions against what was set up, and made ones in every form.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use serde_json::Value;
use slotwise::cluster::{Cluster, gpu_indices};
use slotwise::formats::*;

use super::formats::data;

mod live;
mod made;

/// Everything that a cluster says but how long jobs still run, which differs between dumps taken one after another.
fn told(cluster: &Cluster) -> Vec<String> {
    let mut text = Vec::new();
    write_cluster(cluster, None, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let without_time = |line: &str| {
        let Some((before, rest)) = line.split_once("\"remaining_s\":") else { return line.to_owned() };
        format!("{before}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ','))
    };
    text.lines().map(|line| without_time(line).trim_end_matches([',', ']', '}']).to_owned()).collect()
}

/// What a dump's jobs hold: node by node, by the number of the job.
fn holdings(cluster: &Cluster) -> BTreeMap<String, BTreeMap<String, Vec<u64>>> {
    let mut all: BTreeMap<String, BTreeMap<String, Vec<u64>>> = BTreeMap::new();
    for job in cluster.job_ids().filter(|&job| cluster.job(job).runs()) {
        let name = cluster.whole_job_name(job).to_owned();
        for instance in cluster.instances_of(job).map(|id| cluster.instance(id)) {
            let node = cluster.node_name(instance.node().unwrap()).to_owned();
            let devices = all.entry(name.clone()).or_default().entry(node).or_default();
            devices.extend(gpu_indices(instance.gpus()).map(u64::from));
        }
    }
    all
}

fn truth(folder: &Path) -> Value {
    let (plain, packed) = (folder.join("expected.json"), folder.join("expected.json.gz"));
    let path = if plain.exists() { plain } else { packed };
    let mut text = String::new();
    Source::open(path.to_str().unwrap()).unwrap().reader().read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|index| index.as_u64().unwrap()).collect()
}

fn read_files(folder: &Path, files: &[&str]) -> Import {
    let paths: Vec<String> = files.iter().map(|file| folder.join(file).to_str().unwrap().to_owned()).collect();
    read_slurm(&paths.iter().map(String::as_str).collect::<Vec<_>>()).unwrap()
}

/// Every pair of files that says all, in each folder.
const FORMS: [(&str, &[&[&str]]); 3] = [
    (
        "22.05-tree",
        &[
            &["sinfo.json", "squeue.json.gz"],
            &["sinfo.json", "scontrol-d-show-job.txt"],
            &["scontrol-d-show-node.txt", "squeue.json.gz"],
            &["scontrol-d-o-show-node.txt", "scontrol-d-show-job.txt"],
        ],
    ),
    (
        "24.11-block",
        &[
            &["scontrol-show-nodes.json", "squeue.json.gz"],
            &["scontrol-show-nodes.json", "scontrol-show-jobs.json.gz"],
            &["scontrol-show-jobs.json.gz", "scontrol-d-o-show-node.txt"],
            &["scontrol-d-show-node.txt", "scontrol-d-show-job.txt"],
        ],
    ),
    (
        "24.11-200",
        &[
            &["scontrol-show-nodes.json.gz", "squeue.json.gz"],
            &["scontrol-d-show-node.txt.gz", "scontrol-d-show-job.txt.gz"],
        ],
    ),
];

#[test]
fn real_dumps_say_what_was_set_up_in_every_form() {
    for (folder, forms) in FORMS {
        let Some(folder) = data(&format!("slurm-real/{folder}")) else { return };
        let truth = truth(&folder);
        let mut first: Option<Vec<String>> = None;
        for files in forms {
            let import = read_files(&folder, files);
            let cluster = &import.snapshot.cluster;
            cluster.check_books().unwrap();
            assert_eq!(import.snapshot.index_source, Some(IndexSource::Stated), "{files:?}");
            let nodes = truth["nodes"].as_object().unwrap();
            assert_eq!(cluster.nodes().len(), nodes.len());
            for (name, expected) in nodes {
                let node = cluster.node(cluster.find_node(name).unwrap());
                assert_eq!(u64::from(node.devices()), expected["total"].as_u64().unwrap(), "{name}");
                let busy: Vec<u64> = gpu_indices(node.busy()).map(u64::from).collect();
                assert_eq!(busy, numbers(&expected["used"]), "{files:?} {name}");
                assert_eq!(Some(node.schedulable()), expected["usable"].as_bool(), "{files:?} {name}");
                assert!(!node.overcommitted());
            }
            let mut expected: BTreeMap<String, BTreeMap<String, Vec<u64>>> = BTreeMap::new();
            for (id, job) in truth["jobs"].as_object().unwrap() {
                let Some(gpus) = job["gpus"].as_object() else { continue };
                let on_nodes = gpus.iter().map(|(node, list)| (node.clone(), numbers(list)));
                expected.insert(id.clone(), on_nodes.collect());
            }
            assert_eq!(holdings(cluster), expected, "{files:?}");
            let told = told(cluster);
            assert_eq!(first.get_or_insert_with(|| told.clone()), &told, "{files:?}");
        }
    }
}

#[test]
fn real_waiting_jobs_are_those_that_wait_for_nodes() {
    for (folder, forms) in FORMS {
        let Some(folder) = data(&format!("slurm-real/{folder}")) else { return };
        let truth = truth(&folder);
        let pending = truth["pending"].as_object().unwrap().clone();
        for files in forms {
            let import = read_files(&folder, files);
            let names: BTreeSet<String> = import.waiting.iter().map(|job| job.name.clone()).collect();
            // Job 30 asks for a node that is drained.
            let for_nodes = |(id, reason): &(&String, &Value)| {
                ["Resources", "Priority"].contains(&reason.as_str().unwrap()) && id.as_str() != "30"
            };
            let expected = pending.iter().filter(for_nodes).map(|(id, _)| id.clone()).collect();
            assert_eq!(names, expected, "{files:?}");
            assert_eq!(import.waiting_notes.is_empty(), pending.len() == names.len());
            for (own, job) in &import.own_names {
                assert_eq!(truth["jobs"][job]["name"].as_str(), Some(&**own), "{files:?}");
            }
            assert_eq!(import.own_names.len(), names.len());
        }
    }
    let Some(folder) = data("slurm-real/24.11-200") else { return };
    let [seg] = &read_files(&folder, FORMS[2].1[0]).waiting[..] else { panic!("one job waits") };
    let [group] = &seg.groups[..] else { panic!("its nodes are alike") };
    assert_eq!((group.instances, group.gpus, group.cpu_milli, group.memory_mib), (36, 8, 1000, 1024));
}

#[test]
fn the_real_topology_gives_domains_and_racks() {
    let Some(folder) = data("slurm-real/24.11-block") else { return };
    let domain_of = |files: &[&str], node: &str| {
        let cluster = read_files(&folder, files).snapshot.cluster;
        let node = cluster.node(cluster.find_node(node).unwrap());
        node.domain().map(|domain| cluster.domain_name(domain).to_owned())
    };
    for topology in ["scontrol-show-topology.txt", "topology.conf"] {
        assert_eq!(domain_of(&["scontrol-show-nodes.json", topology], "gpu005").as_deref(), Some("b2"));
    }
    assert_eq!(domain_of(&["scontrol-show-nodes.json"], "gpu005"), None);
    let tree = data("slurm-real/22.05-tree").unwrap();
    for topology in ["scontrol-show-topology.txt", "topology.conf"] {
        let import = read_files(&tree, &["scontrol-d-show-node.txt", "scontrol-d-show-job.txt", topology]);
        let cluster = &import.snapshot.cluster;
        let rack = cluster.node(cluster.find_node("gpu012").unwrap()).rack().unwrap();
        assert_eq!(cluster.rack_name(rack), "leaf3");
        // --switches=1
        let gang = import.waiting.iter().find(|job| job.name == "31").unwrap();
        let [group] = &gang.groups[..] else { panic!("its nodes are alike") };
        assert_eq!((group.instances, group.gpus, gang.within), (3, 8, Some(slotwise::cluster::Within::Rack)));
        assert_eq!(group.models, ["h100"]);
    }
}

#[test]
fn real_shards_are_whole_gpus_that_nobody_moves_and_exclusive_jobs_hold_their_node() {
    let Some(folder) = data("slurm-real/24.11-shard") else { return };
    for files in [
        ["scontrol-show-nodes.json", "squeue.json.gz"],
        ["scontrol-show-nodes.json", "scontrol-show-jobs.json.gz"],
        ["scontrol-d-show-node.txt", "scontrol-d-show-job.txt"],
    ] {
        let import = read_files(&folder, &files);
        let cluster = &import.snapshot.cluster;
        let held = holdings(cluster);
        let on = |job: &str, node: &str| held[job][node].clone();
        assert_eq!(on("3", "gpu009"), [2]);
        assert_eq!(on("gpu009/shards", "gpu009"), [0, 1]);
        assert!(!cluster.job(cluster.find_job("gpu009/shards").unwrap()).migratable());
        assert!(on("1", "gpu009").is_empty() && on("2", "gpu009").is_empty());
        assert_eq!((on("4", "gpu003").len(), on("5", "gpu004").len()), (8, 8));
        // All its memory is taken: free GPUs that nothing can use.
        let gpu002 = cluster.node(cluster.find_node("gpu002").unwrap());
        assert_eq!((gpu002.busy(), gpu002.memory_free(), gpu002.schedulable()), (0, 0, true));
        let notes: Vec<String> = import.snapshot.notes.iter().map(ToString::to_string).collect();
        assert!(
            notes.iter().any(|note| note.contains("shards of GPUs in use: these count as held whole")),
            "{notes:?}"
        );
        assert!(import.waiting.is_empty() && import.waiting_notes[0].text.contains("certain nodes"));
    }
}

#[test]
fn what_is_not_known_is_said() {
    let Some(folder) = data("slurm-real/24.11-block") else { return };
    // Nodes alone: what they hold is held by jobs that nobody knows.
    let import = read_files(&folder, &["scontrol-show-nodes.json"]);
    let cluster = &import.snapshot.cluster;
    let busy = |name: &str| cluster.node(cluster.find_node(name).unwrap()).busy();
    assert_eq!((busy("gpu001"), busy("gpu007"), busy("gpu012")), (0b11_1111, 0b11_0111, 1));
    assert!(import.snapshot.notes.iter().any(|note| note.text.contains("no jobs are listed")));
    assert!(import.snapshot.notes.iter().any(|note| note.text.contains("held by a job NODE/unknown")));
    // Without details nothing tells devices, nor that an exclusive job holds more than it asked for.
    let import = read_files(&folder, &["scontrol-show-node.txt", "scontrol-show-job.txt"]);
    assert_ne!(import.snapshot.index_source, Some(IndexSource::Stated));
    assert!(import.snapshot.notes.iter().any(|note| note.text.contains("without details (scontrol -d)")));
    let cluster = &import.snapshot.cluster;
    let one4 = cluster.find_job("1").unwrap();
    assert_eq!(cluster.request_of(one4).gpus, 4);
}

#[test]
fn a_job_that_excludes_an_open_node_is_not_moved_there() {
    let node = |name: &str, state: &str| {
        format!("NodeName={name} CPUTot=8\n   Gres=gpu:4\n   State={state}\n   Partitions=batch\n\n")
    };
    let nodes = [node("n0", "MIXED"), node("n1", "IDLE"), node("n2", "IDLE+DRAIN")].concat();
    for (excluded, migratable) in [("(null)", true), ("n2", true), ("n[1-2]", false)] {
        let job = format!(
            "JobId=7 JobName=a\n   JobState=RUNNING\n   Requeue=1 BatchFlag=1\n   Partition=batch\n   NodeList=n0\n   \
             ReqNodeList=(null) ExcNodeList={excluded}\n   NumNodes=1\n     Nodes=n0 CPU_IDs=0 Mem=1 GRES=gpu:1(IDX:0)\n"
        );
        let cluster = read_slurm_from("dump", (nodes.clone() + &job).as_bytes()).unwrap().snapshot.cluster;
        assert_eq!(cluster.job(cluster.find_job("7").unwrap()).migratable(), migratable, "{excluded}");
    }
}

#[test]
fn a_queue_takes_what_waits_in_a_dump() {
    let Some(folder) = data("slurm-real/22.05-tree") else { return };
    let origin = |files: &[&str]| {
        let paths: Vec<String> = files.iter().map(|file| folder.join(file).to_str().unwrap().to_owned()).collect();
        format!("slurm:{}", paths.join(","))
    };
    let all = origin(&["sinfo.json", "squeue.json.gz", "topology.conf"]);
    for queue in [&all, &origin(&["squeue.json.gz"])] {
        let mut cluster = cluster_source(&all, None).unwrap().cluster;
        let (queue, _) = queue_source(queue, &mut cluster, None, None, None).unwrap();
        let names: Vec<&str> = queue.iter().map(|entry| cluster.job_name(entry.job())).collect();
        assert_eq!(names, ["25", "26", "31"]);
        assert_eq!(cluster.request_of(queue[0].job()).models.as_ref().map(|models| models.len()), Some(1));
    }
    // Where the snapshot has them as running, they do not wait a second time.
    let mut cluster = cluster_source(&all, None).unwrap().cluster;
    let import = dump_source(&all, None).unwrap().unwrap();
    import.queue("q", &mut cluster).unwrap();
    let (again, notes) = import.queue("q", &mut cluster).unwrap();
    assert!(again.is_empty() && notes.iter().any(|note| note.text.contains("runs or waits already, left out: 3")));
}

/// Parts of a heterogeneous job as `scontrol show job` prints them: its number, and of each part the number, what waits for
/// what, and what it asks.
fn parts(whole: u64, parts: &[(u64, &str, u64, &str)]) -> String {
    let part = |(offset, &(id, reason, nodes, tres)): (usize, &(u64, &str, u64, &str))| {
        format!(
            "JobId={id} HetJobId={whole} HetJobOffset={offset} JobName=het\n   Priority={} JobState=PENDING \
             Reason={reason}\n   Partition=batch NumNodes={nodes} NumTasks={nodes}\n   ReqTRES=cpu={},mem=2G,node={nodes}{}\n   \
             {tres}\n\n",
            100 - offset,
            2 * nodes,
            if tres.is_empty() { "" } else { ",gres/gpu=1" },
        )
    };
    parts.iter().enumerate().map(part).collect()
}

#[test]
fn a_heterogeneous_job_has_a_group_for_each_part() {
    let nodes: String = (1..4)
        .map(|n| {
            format!(
                "NodeName=g{n} CPUAlloc=0 CPUTot=64\n   Gres=gpu:h100:8\n   RealMemory=512000 AllocMem=0\n   \
                 State=IDLE\n   Partitions=batch\n\n"
            )
        })
        .collect();
    let eight = "TresPerNode=gres/gpu:8";
    let text = nodes.clone()
        + &parts(23, &[(24, "Resources", 2, eight), (23, "None", 1, "")])
        + &parts(30, &[(30, "Dependency", 1, eight), (31, "Priority", 1, eight)]);
    let import = read_slurm_from("dump", text.as_bytes()).unwrap();
    let [job] = &import.waiting[..] else { panic!("{:?}", import.waiting) };
    let asked: Vec<_> = job.groups.iter().map(|group| (group.instances, group.gpus, group.cpu_milli)).collect();
    assert_eq!((job.name.as_str(), asked), ("23", vec![(1, 0, 2000), (2, 8, 2000)]));
    let notes: Vec<String> = import.waiting_notes.iter().map(ToString::to_string).collect();
    assert!(notes.iter().any(|note| note.contains("a group for each part, which start together: 1 (23)")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("something else (Dependency), left out: 1 (30)")), "{notes:?}");
    let mut cluster = import.snapshot.cluster.clone();
    let (queue, _) = import.queue("dump", &mut cluster).unwrap();
    let mut written = Vec::new();
    write_queue(&cluster, &queue, &mut written).unwrap();
    let expected = "{\"job\":\"23\",\"groups\":[{\"instances\":1,\"gpus_per_instance\":0,\"cpu_milli\":2000,\"memory_mib\":2048},\
        {\"instances\":2,\"gpus_per_instance\":8,\"cpu_milli\":2000,\"memory_mib\":1024}]}\n";
    assert_eq!(std::str::from_utf8(&written).unwrap(), expected);
    // Where a node has no GPUs, a part without any can be had there.
    let other = "NodeName=c1 CPUTot=64\n   RealMemory=512000\n   State=IDLE\n   Partitions=batch\n\n";
    let import = read_slurm_from("dump", (other.to_owned() + &text).as_bytes()).unwrap();
    assert_eq!(import.waiting[0].groups.len(), 1);
    assert!(import.waiting_notes.iter().any(|note| note.text.contains("parts that need no GPU, taken without these")));
}
