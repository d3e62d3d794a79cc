//! Dumps of Kubernetes: every trap in one file, made ones in every shape, and broken ones.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect_file;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use slotwise::cluster::{Cluster, Within, gpu_indices};
use slotwise::formats::*;

const GOLDEN: &str = include_str!("../golden/kubernetes.yaml");

fn read(text: &str) -> Result<Import, FormatError> {
    read_kubernetes_from("dump", text.as_bytes(), None)
}

/// The snapshot, the queue and all notes.
fn told(mut import: Import) -> String {
    let mut out = Vec::new();
    write_snapshot(&import.snapshot, &mut out).unwrap();
    let mut cluster = std::mem::take(&mut import.snapshot.cluster);
    cluster.check_books().unwrap();
    let (queue, notes) = import.queue("dump", &mut cluster).unwrap();
    write_queue(&cluster, &queue, &mut out).unwrap();
    let mut text = String::from_utf8(out).unwrap();
    for note in import.snapshot.notes.iter().chain(&notes) {
        writeln!(text, "{note}").unwrap();
    }
    text
}

#[test]
fn every_trap_in_one_file_is_told_apart() {
    expect_file!["../golden/kubernetes.txt"].assert_eq(&told(read(GOLDEN).unwrap()));
}

#[test]
fn topology_is_what_the_user_says_else_what_the_labels_say() {
    let place = |keys: Option<&str>, more: &str| {
        let keys = keys.map(|keys| keys.parse::<TopologyKeys>().unwrap());
        let text = format!("{GOLDEN}\n{more}");
        let import = read_kubernetes_from("dump", text.as_bytes(), keys.as_ref()).unwrap();
        let cluster = import.snapshot.cluster;
        let node = cluster.node(cluster.find_node("n0").unwrap());
        let rack = node.rack().map_or("", |rack| cluster.rack_name(rack)).to_owned();
        (node.domain().map_or("", |domain| cluster.domain_name(domain)).to_owned(), rack)
    };
    let pair = |domain: &str, rack: &str| (domain.to_owned(), rack.to_owned());
    assert_eq!(place(None, ""), pair("c0ffee.1", "b0/r0"));
    assert_eq!(place(Some("cloud.provider.com/topology-block"), ""), pair("c0ffee.1", "b0"));
    assert_eq!(place(Some("none"), ""), pair("c0ffee.1", ""));
    let topology = "---\n{kind: Topology, spec: {levels: [{nodeLabel: cloud.provider.com/topology-rack}, \
                    {nodeLabel: kubernetes.io/hostname}]}}";
    assert_eq!(place(None, topology), pair("c0ffee.1", "r0"));
}

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

/// What each job holds, node by node.
fn holdings(cluster: &Cluster) -> BTreeMap<String, BTreeMap<String, Vec<u8>>> {
    let mut all: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
    for job in cluster.job_ids().filter(|&job| cluster.job(job).runs()) {
        let name = cluster.job_name(job);
        // Instances that are unlike are jobs of their own, behind a second stroke.
        let name = name.match_indices('/').nth(1).map_or(name, |(at, _)| &name[..at]);
        for instance in cluster.instances_of(job).map(|id| cluster.instance(id)) {
            let node = cluster.node_name(instance.node().unwrap()).to_owned();
            let devices = all.entry(name.to_owned()).or_default().entry(node).or_default();
            devices.extend(gpu_indices(instance.gpus()));
            devices.sort_unstable();
        }
    }
    all
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
fn a_gang_that_must_share_a_level_is_within_it() {
    let pod = |name: &str, level: &str| {
        format!(
            "- {{kind: Pod, metadata: {{name: {name}, labels: {{ray.io/cluster: {name}}}, annotations: \
             {{kai.scheduler/topology-required-placement: {level}}}}}, spec: {{containers: [{{resources: {{limits: \
             {{nvidia.com/gpu: 1}}}}}}]}}}}\n"
        )
    };
    let text = format!(
        "items:\n- {{kind: Node, metadata: {{name: n, labels: {{a.b/row: r, a.b/rack: k}}}}, status: {{allocatable: {{nvidia.com/gpu: 8}}}}}}\n{}{}{}",
        pod("a", "a.b/rack"),
        pod("b", "nvidia.com/gpu.clique"),
        pod("c", "a.b/row")
    );
    let keys: TopologyKeys = "a.b/row,a.b/rack".parse().unwrap();
    let import = read_kubernetes_from("dump", text.as_bytes(), Some(&keys)).unwrap();
    let within: Vec<Option<Within>> = import.waiting.iter().map(|job| job.within).collect();
    assert_eq!(within, [Some(Within::Rack), Some(Within::Domain), None]);
    assert!(import.waiting_notes.iter().any(|note| note.text.contains("neither domain nor rack")));
}

#[test]
fn devices_by_claims_are_held_once_and_slices_are_nodes_with_gpus() {
    let claim = |name: &str, device: &str, admin: bool| {
        format!(
            "- {{kind: ResourceClaim, metadata: {{name: {name}, namespace: ml}}, status: {{allocation: {{devices: {{results: \
             [{{driver: gpu.nvidia.com, pool: n, device: {device}, adminAccess: {admin}}}]}}}}}}}}\n"
        )
    };
    let slice = |generation: u64, devices: &str| {
        format!(
            "- {{kind: ResourceSlice, metadata: {{name: s{generation}}}, spec: {{nodeName: n, driver: gpu.nvidia.com, pool: \
             {{name: n, generation: {generation}}}, devices: [{devices}]}}}}\n"
        )
    };
    let pod = |name: &str, claims: &str| {
        format!(
            "- {{kind: Pod, metadata: {{name: {name}, namespace: ml}}, spec: {{nodeName: n, resourceClaims: [{claims}]}}}}\n"
        )
    };
    let text = [
        "items:\n- {kind: Node, metadata: {name: n}}\n".to_owned(),
        slice(1, "{name: gpu-0}"),
        slice(2, "{name: gpu-0}, {name: gpu-1}, {name: gpu-2}, {name: gpu-3-mig-9}"),
        pod("a", "{name: x, resourceClaimName: one}, {name: y, resourceClaimName: two}"),
        pod("b", "{name: x, resourceClaimName: two}"),
        pod("watch", "{name: x, resourceClaimName: admin}"),
        pod("lost", "{name: x, resourceClaimName: none}"),
        claim("one", "gpu-2", false),
        claim("two", "gpu-0", false),
        claim("admin", "gpu-1", true),
    ];
    let import = read(&text.concat()).unwrap();
    let cluster = &import.snapshot.cluster;
    let node = cluster.node(cluster.find_node("n").unwrap());
    assert_eq!((node.devices(), node.busy()), (3, 0b101));
    assert_eq!(
        holdings(cluster),
        BTreeMap::from([("ml/a".to_owned(), BTreeMap::from([("n".to_owned(), vec![0, 2])]))])
    );
    let told = told(import);
    assert!(told.contains("share the claim of another pod, which holds its devices: 1 (ml/b)"), "{told}");
    assert!(told.contains("claims that no list has, whose devices are not counted: 1 (ml/lost)"), "{told}");
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
        for _ in 0..random.random_range(1..5) {
            let at = random.random_range(0..bytes.len());
            match random.random_range(0..5) {
                0 => bytes.truncate(at + 1),
                1 => bytes[at] = random.random(),
                2 => drop(bytes.remove(at)),
                3 => drop(bytes.splice(at..at, words[random.random_range(0..words.len())].bytes())),
                _ => {
                    let piece: Vec<u8> = bytes[at..].iter().copied().take(300).collect();
                    let to = random.random_range(0..=bytes.len());
                    drop(bytes.splice(to..to, piece));
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
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

#[test]
fn faults_name_their_place() {
    for (text, expected) in [
        ("{}", "found no nodes and no pods (0 other objects), expected some"),
        ("kind: Service\nspec: {}", "found no nodes and no pods (1 other objects), expected some"),
        ("{\"items\": [{\"kind\": \"Pod\", \"spec\": 7}]}", "items[0].spec: found integer `7`, expected an object"),
        (
            "{\"items\": [{\"kind\": \"Node\", \"metadata\": {\"name\": \"n\"}, \"status\": {\"allocatable\": \
             {\"nvidia.com/gpu\": \"1.5\"}}}]}",
            "node n: found \"1.5\" of nvidia.com/gpu, expected a whole number",
        ),
        ("{\"items\": [{}", "EOF while parsing a list"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with("dump") && error.ends_with(expected), "{error}");
    }
    let error = read("items:\n- kind: Pod\n  spec: 7\n").unwrap_err();
    assert_eq!(error.line(), Some(3), "{error}");
    assert!(read_kubernetes(&["none"], None).unwrap_err().to_string().contains("no such file"));
}

#[test]
fn disruption_budgets_pin_pods_or_limit_how_many_move() {
    let node = |name: &str| {
        format!("---\n{{kind: Node, metadata: {{name: {name}}}, status: {{allocatable: {{nvidia.com/gpu: \"4\"}}}}}}\n")
    };
    let pod = |space: &str, name: &str, labels: &str| {
        format!(
            "---\n{{kind: Pod, metadata: {{name: {name}, namespace: {space}, labels: {labels}, ownerReferences: [{{kind: ReplicaSet, name: r}}]}}, \
             spec: {{nodeName: n0, containers: [{{resources: {{limits: {{nvidia.com/gpu: \"1\"}}}}}}]}}}}\n"
        )
    };
    let budget = |name: &str, selector: &str, status: &str| {
        format!(
            "---\n{{kind: PodDisruptionBudget, metadata: {{name: {name}, namespace: a}}, spec: {{minAvailable: 1, selector: {selector}}}, status: {status}}}\n"
        )
    };
    let pods = [pod("a", "x", "{app: x, tier: web}"), pod("a", "y", "{app: y}"), pod("b", "x", "{app: x}")].concat();
    let movable = |more: &[String]| {
        let import = read(&[node("n0"), node("n1"), pods.clone(), more.concat()].concat()).unwrap();
        let cluster = &import.snapshot.cluster;
        let names = cluster.job_ids().filter(|&job| cluster.job(job).migratable());
        let names: Vec<String> = names.map(|job| cluster.job_name(job).to_owned()).collect();
        let notes: Vec<String> = import.snapshot.notes.iter().map(ToString::to_string).collect();
        (names.join(" "), import.snapshot.budgets.clone(), notes.join("\n"))
    };
    // A budget is for pods of its namespace; an empty selector has all of them, none at all has none.
    for (selector, expected) in [
        ("{matchLabels: {app: x}}", "a/y b/x"),
        ("{matchLabels: {app: z}}", "a/x a/y b/x"),
        ("{}", "b/x"),
        ("null", "a/x a/y b/x"),
        ("{matchExpressions: [{key: app, operator: In, values: [y, z]}]}", "a/x b/x"),
        ("{matchExpressions: [{key: tier, operator: DoesNotExist}]}", "a/x b/x"),
        ("{matchExpressions: [{key: tier, operator: Exists}, {key: app, operator: NotIn, values: [y]}]}", "a/y b/x"),
        ("{matchLabels: {app: x}, matchExpressions: [{key: tier, operator: NotIn, values: [web]}]}", "a/x a/y b/x"),
    ] {
        for status in ["{disruptionsAllowed: 0}", "{}"] {
            let (names, budgets, notes) = movable(&[budget("p", selector, status)]);
            assert_eq!((names.as_str(), budgets.len()), (expected, 0), "{selector}");
            let told = notes.contains(
                "PodDisruptionBudgets that allow no disruption, or do not say so, and have such pods: 1 (a/p)",
            );
            assert_eq!(told, expected != "a/x a/y b/x", "{selector}: {notes}");
        }
    }
    let (names, budgets, notes) = movable(&[budget("some", "{}", "{disruptionsAllowed: 1}")]);
    assert_eq!((names.as_str(), budgets.len()), ("a/x a/y b/x", 1));
    assert_eq!((budgets[0].name.as_str(), budgets[0].allowed, budgets[0].jobs.len()), ("a/some", 1, 2));
    assert!(notes.contains("PodDisruptionBudgets that allow some disruptions"), "{notes}");
}

#[test]
fn unlike_pods_of_a_gang_are_groups_that_start_together() {
    let node = |name: &str, gpus: u8| {
        format!(
            "- {{kind: Node, metadata: {{name: {name}}}, status: {{allocatable: {{nvidia.com/gpu: {gpus}, cpu: 64, memory: \
             1Gi}}, conditions: [{{type: Ready, status: \"True\"}}]}}}}\n"
        )
    };
    let pod = |name: &str, gpus: &str, cpu: u8| {
        let limits = if gpus.is_empty() { String::new() } else { format!("nvidia.com/gpu: {gpus}, ") };
        format!(
            "- {{kind: Pod, metadata: {{name: {name}, namespace: a, labels: {{ray.io/cluster: r}}}}, spec: {{containers: \
             [{{resources: {{limits: {{{limits}cpu: {cpu}}}}}}}]}}}}\n"
        )
    };
    let pods = pod("head", "", 4) + &pod("w0", "8", 16) + &pod("w1", "8", 16) + &pod("w2", "4", 8);
    let groups = |text: &str| {
        let import = read(text).unwrap();
        let [job] = &import.waiting[..] else { panic!("{:?}", import.waiting_notes) };
        let of = job.groups.iter().map(|group| (group.instances, group.gpus, group.cpu_milli)).collect::<Vec<_>>();
        (of, import.waiting_notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    };
    let with_gpus = format!("items:\n{}{}{pods}", node("n0", 8), node("n1", 8));
    let (found, notes) = groups(&with_gpus);
    assert_eq!(found, [(1, 0, 4000), (2, 8, 16_000), (1, 4, 8000)]);
    assert!(
        notes.contains("waiting jobs whose pods are unlike: several groups, which start together: 1 (a/r)"),
        "{notes}"
    );
    // Where a node has no GPUs the head can be had there.
    let (found, notes) = groups(&(with_gpus + &node("c0", 0)));
    assert_eq!(found, [(2, 8, 16_000), (1, 4, 8000)]);
    assert!(notes.contains("pods that need no GPU, taken without these: 1 (a/r)"), "{notes}");
}
