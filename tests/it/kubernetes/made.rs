//! Dumps made from a seed in every shape that Kubernetes has, and what was made broken.

use std::collections::BTreeMap;
use std::fmt::Write;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use slotwise::cluster::gpu_indices;
use slotwise::formats::*;

use super::{GOLDEN, holdings, read, told};
use crate::spoil::spoil;

/// What a dump is made of.
struct World {
    /// GPUs of each node.
    nodes: Vec<u8>,
    pods: Vec<Pod>,
}

struct Pod {
    gang: Option<usize>,
    /// The node and the devices; nothing for one that waits.
    seat: Option<(usize, u16)>,
    gpus: u8,
    cpu_milli: u64,
}

fn world(seed: u64, named: bool) -> (World, Value) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let nodes: Vec<u8> = (0..random.random_range(1..7)).map(|_| random.random_range(1..=16)).collect();
    let mut pods = Vec::new();
    for (at, &gpus) in nodes.iter().enumerate() {
        let mut free = ((1u32 << gpus) - 1) as u16;
        for _ in 0..random.random_range(0..4) {
            let devices = free & random.random::<u16>() & random.random::<u16>();
            free &= !devices;
            let gang = random.random_ratio(1, 2).then(|| random.random_range(0..3));
            let cpu_milli = u64::from(devices.count_ones()) * 100;
            pods.push(Pod { gang, seat: Some((at, devices)), gpus: devices.count_ones() as u8, cpu_milli });
        }
    }
    for gang in 10..10 + random.random_range(0..4) {
        let (gpus, cpu_milli) = (random.random_range(1..=16), random.random_range(1..9000));
        let pod = || Pod { gang: Some(gang), seat: None, gpus, cpu_milli };
        pods.extend((0..random.random_range(1..4)).map(|_| pod()));
    }
    let world = World { nodes, pods };
    let items = world.items(named);
    (world, items)
}

impl World {
    fn job(&self, at: usize) -> String {
        self.pods[at].gang.map_or_else(|| format!("ml/p{at}"), |gang| format!("ml/g{gang}"))
    }

    /// All objects; with `named` the kubelet reports devices.
    fn items(&self, named: bool) -> Value {
        let nodes = self.nodes.iter().enumerate().map(|(at, gpus)| {
            let amounts = json!({"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": gpus.to_string(), "pods": "110"});
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{at}"), "uid": "u",
                "labels": {"nvidia.com/gpu.product": "H100", "empty": ""}, "managedFields": [{"manager": "k"}]},
                "spec": {"podCIDR": "10.0.0.0/24"}, "status": {"allocatable": amounts, "capacity": amounts,
                "conditions": [{"type": "Ready", "status": "True"}], "images": [{"names": ["a: b", "'c'"]}]}})
        });
        let pods = self.pods.iter().enumerate().map(|(at, pod)| {
            let gpus = pod.gpus.to_string();
            let amounts = json!({"nvidia.com/gpu": gpus, "cpu": format!("{}m", pod.cpu_milli)});
            let mut object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{at}"),
                "namespace": "ml", "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "u"}]},
                "spec": {"containers": [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}],
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}], "priority": 0},
                "status": {"phase": if pod.seat.is_some() { "Running" } else { "Pending" }}});
            if let Some(gang) = pod.gang {
                object["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = format!("g{gang}").into();
            }
            if let Some((node, devices)) = pod.seat {
                object["spec"]["nodeName"] = format!("n{node}").into();
                if named {
                    let list: Vec<Value> =
                        gpu_indices(devices).map(|index| json!({"resourceID": index.to_string()})).collect();
                    object["status"]["containerStatuses"] =
                        json!([{"allocatedResourcesStatus": [{"name": "nvidia.com/gpu", "resources": list}]}]);
                }
            }
            object
        });
        nodes.chain(pods).collect()
    }
}

/// The same value as YAML in blocks.
fn yaml(value: &Value, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                write!(out, "\n{pad}{key}:").unwrap();
                yaml(value, indent + 2, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                write!(out, "\n{pad}-").unwrap();
                yaml(item, indent + 2, out);
            }
        }
        leaf => write!(out, " {leaf}").unwrap(),
    }
}

/// The objects in every shape in which they come.
fn shapes(items: &Value) -> Vec<String> {
    let of_kind = |kind: &str| -> Vec<Value> {
        let objects = items.as_array().unwrap().iter().filter(|object| object["kind"] == kind);
        let bare = |object: &Value| {
            let mut object = object.clone();
            object.as_object_mut().unwrap().remove("kind");
            object
        };
        objects.map(bare).collect()
    };
    let (nodes, pods) = (of_kind("Node"), of_kind("Pod"));
    let list = json!({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}});
    let (nodes_list, pods_list) =
        (json!({"kind": "NodeList", "items": nodes}), json!({"items": pods, "kind": "PodList"}));
    let mut in_yaml = String::new();
    yaml(&list, 0, &mut in_yaml);
    let mut documents = String::new();
    for object in items.as_array().unwrap() {
        documents.push_str("\n---");
        yaml(object, 0, &mut documents);
    }
    vec![
        serde_json::to_string_pretty(&list).unwrap(),
        format!("{nodes_list}\n{pods_list}\n"),
        items.to_string(),
        json!({"rawObjects": {"pods": pods, "nodes": nodes, "podGroups": [], "resourceClaims": null}}).to_string(),
        json!({"nodes": {"items": nodes}, "pods": pods, "pvs": null}).to_string(),
        in_yaml,
        documents,
    ]
}

#[test]
fn every_shape_says_what_it_was_made_of() {
    for seed in 0..100 {
        let (world, items) = world(seed, true);
        let mut expected: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
        let mut waiting: BTreeMap<String, (u32, u8, u64)> = BTreeMap::new();
        for (at, pod) in world.pods.iter().enumerate() {
            match pod.seat {
                Some((node, devices)) if devices != 0 => {
                    let held = expected.entry(world.job(at)).or_default().entry(format!("n{node}")).or_default();
                    held.extend(gpu_indices(devices));
                    held.sort_unstable();
                }
                Some(_) => {}
                None => waiting.entry(world.job(at)).or_insert((0, pod.gpus, pod.cpu_milli)).0 += 1,
            }
        }
        let mut first = None;
        for shape in shapes(&items) {
            let import = read(&shape).unwrap_or_else(|error| panic!("{seed}: {error}\n{shape}"));
            assert_eq!(holdings(&import.snapshot.cluster), expected, "{seed}: {shape}");
            assert_eq!(import.snapshot.index_source, Some(IndexSource::Stated), "{seed}");
            let found = import.waiting.iter().map(|job| {
                let [group] = &job.groups[..] else { panic!("{seed}: the pods of a gang are alike") };
                (job.name.clone(), (group.instances, group.gpus, group.cpu_milli))
            });
            assert_eq!(found.collect::<BTreeMap<_, _>>(), waiting, "{seed}");
            let told = told(import);
            assert_eq!(first.get_or_insert_with(|| told.clone()), &told, "{seed}: {shape}");
        }
    }
}

#[test]
fn without_a_word_on_devices_counts_are_right_and_indices_are_said_to_be_assumed() {
    let mut assumed = 0;
    for seed in 0..100 {
        let (world, items) = world(seed, false);
        let import = read(&items.to_string()).unwrap();
        let cluster = &import.snapshot.cluster;
        for (at, &gpus) in world.nodes.iter().enumerate() {
            let held: u32 = world
                .pods
                .iter()
                .filter_map(|pod| pod.seat)
                .filter(|seat| seat.0 == at)
                .map(|seat| seat.1.count_ones())
                .sum();
            let node = cluster.node(cluster.find_node(&format!("n{at}")).unwrap());
            assert_eq!((node.devices(), node.busy().count_ones()), (gpus, held));
        }
        assumed += u32::from(import.snapshot.index_source == Some(IndexSource::Assumed));
    }
    assert!(assumed > 50, "{assumed}");
    let note = "instances whose devices nobody names: the lowest free ones are assumed";
    assert!(read(GOLDEN).unwrap().snapshot.notes.iter().any(|told| told.text.starts_with(note)));
}

#[test]
fn broken_dumps_are_refused_in_words_or_read_but_never_a_panic() {
    let rounds = if std::env::var_os("SLOTWISE_NIGHTLY").is_some() { 20_000 } else { 400 };
    let words =
        ["-1", "1.5", "9999999999999999999999", "null", "~", "\"", "{", "}", "[", "]", ":", "\n", "&a", "*a", "Always"];
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut refused = 0;
    for round in 0..rounds {
        let (_, items) = world(round % 20, round % 2 == 0);
        let shapes = shapes(&items);
        let shape = if round % 8 == 7 { GOLDEN } else { &shapes[round as usize % shapes.len()] };
        let mut bytes = shape.as_bytes().to_vec();
        spoil(&mut bytes, &words, &mut random);
        match read_kubernetes_from("dump", &bytes[..], None) {
            Ok(import) => drop(told(import)),
            Err(error) => {
                refused += 1;
                let text = error.to_string();
                assert!(text.starts_with("dump") && text.len() < 2000 && !text.contains('\n'), "{text}");
            }
        }
    }
    assert!(refused > rounds / 10, "{refused}");
}
