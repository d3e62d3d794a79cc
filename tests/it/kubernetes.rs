//! Dumps of Kubernetes: every trap in one file, and one concept a test; made ones in every shape, and broken ones.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect_file;
use slotwise::cluster::{Cluster, Within, gpu_indices};
use slotwise::formats::*;
use slotwise::plan::{Effort, Goal, Mode, NoPlan, PlanOptions, plan};

mod made;

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

/// What each job with GPUs holds, node by node; launchers hold none.
fn holdings(cluster: &Cluster) -> BTreeMap<String, BTreeMap<String, Vec<u8>>> {
    let mut all: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
    for job in cluster.job_ids().filter(|&job| cluster.job(job).runs()) {
        let name = cluster.whole_job_name(job);
        for instance in cluster.instances_of(job).map(|id| cluster.instance(id)).filter(|seat| seat.gpus() != 0) {
            let node = cluster.node_name(instance.node().unwrap()).to_owned();
            let devices = all.entry(name.to_owned()).or_default().entry(node).or_default();
            devices.extend(gpu_indices(instance.gpus()));
            devices.sort_unstable();
        }
    }
    all
}

#[test]
fn every_trap_in_one_file_is_told_apart() {
    expect_file!["../golden/kubernetes.txt"].assert_eq(&told(read(GOLDEN).unwrap()));
}

/// Keys come sorted, so that it is a list is told after its elements.
#[test]
fn yaml_that_is_cut_off_between_objects_is_told() {
    let node = |n: u32| {
        format!("- kind: Node\n  metadata: {{name: n{n}}}\n  status: {{allocatable: {{nvidia.com/gpu: \"8\"}}}}\n")
    };
    let cut = format!("apiVersion: v1\nitems:\n{}{}", node(0), node(1));
    let whole = format!("{cut}kind: List\nmetadata: {{resourceVersion: \"\"}}\n");
    let says = |text: &str| {
        let snapshot = read(text).unwrap().snapshot;
        (snapshot.cluster.nodes().len(), snapshot.notes.iter().any(|note| note.text.contains("cut off")))
    };
    assert_eq!(says(&whole), (2, false));
    assert_eq!(says(&cut), (2, true));
    // Documents of their own need no list.
    assert_eq!(says(&format!("---\n{}", node(0).replace("- ", "  "))), (1, false));
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
            "- {{kind: ResourceClaim, metadata: {{name: {name}, namespace: ml}}, spec: {{devices: {{requests: [{{name: gpus}}]}}}}, status: {{allocation: {{devices: {{results: \
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

/// Three nodes in two racks. Of a gang whose pods are unlike two run in one rack, which they must share; a pod of 8 GPUs waits.
const UNLIKE: &str = r#"items:
- {kind: Node, metadata: {name: n0, labels: {a.b/row: r, a.b/rack: k0}}, status: {allocatable: {nvidia.com/gpu: 8}}}
- {kind: Node, metadata: {name: n1, labels: {a.b/row: r, a.b/rack: k0}}, status: {allocatable: {nvidia.com/gpu: 8}}}
- {kind: Node, metadata: {name: n2, labels: {a.b/row: r, a.b/rack: k1}}, status: {allocatable: {nvidia.com/gpu: 8}}}
- {kind: Pod, metadata: {name: g0, ANN, labels: {ray.io/cluster: g}, ownerReferences: [{kind: RayCluster, name: g, uid: u}]}, spec: {nodeName: n0, containers: [{resources: {limits: {nvidia.com/gpu: 2}}}]}}
- {kind: Pod, metadata: {name: g1, ANN, labels: {ray.io/cluster: g}, ownerReferences: [{kind: RayCluster, name: g, uid: u}]}, spec: {nodeName: n1, containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}
- {kind: Pod, metadata: {name: x}, spec: {nodeName: n1, containers: [{resources: {limits: {nvidia.com/gpu: 6}}}]}}
- {kind: Pod, metadata: {name: y}, spec: {nodeName: n2, containers: [{resources: {limits: {nvidia.com/gpu: 6}}}]}}
- {kind: Pod, metadata: {name: w}, spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}}
"#;

#[test]
fn running_pods_of_a_gang_that_are_unlike_stay_together() {
    let keys: TopologyKeys = "a.b/row,a.b/rack".parse().unwrap();
    let planned = |annotation: &str| {
        let text = UNLIKE.replace("ANN", annotation);
        let mut import = read_kubernetes_from("dump", text.as_bytes(), Some(&keys)).unwrap();
        let mut cluster = std::mem::take(&mut import.snapshot.cluster);
        let (queue, _) = import.queue("dump", &mut cluster).unwrap();
        let whole = cluster.find_grouped_job("default/g").unwrap();
        assert_eq!(whole.jobs().map(|job| cluster.request_of(job).gpus).collect::<Vec<_>>(), [2, 1]);
        let job = queue[0].job();
        let options = PlanOptions::new(&cluster, Mode::StopFirst, Effort::new(100_000, None));
        let plan = plan(&cluster, Goal::Job(job), &options);
        assert!(plan.optimal, "{plan:?}");
        (plan.feasible, plan.why, plan.steps.len())
    };
    // Alone the two on n0 would go to the other rack; with the third they have no room there beside what is pinned.
    assert_eq!(planned("annotations: {}"), (Some(true), None, 1));
    let bound = "annotations: {kai.scheduler/topology-required-placement: a.b/rack}";
    assert_eq!(planned(bound), (Some(false), Some(NoPlan::Pinned), 0));
}

/// A dump of two kinds of nodes, and of pods of one gang that run: name, more of its metadata, more of its spec, and the node.
fn gang_of(pods: &[(&str, &str, &str, &str)]) -> Cluster {
    let mut text = "items:\n".to_owned();
    for (name, kind, row) in [("a0", "a", "x"), ("a1", "a", "x"), ("b0", "b", "y")] {
        writeln!(
            text,
            "- {{kind: Node, metadata: {{name: {name}, labels: {{kind: {kind}, row: {row}, rack: r}}}}, status: {{allocatable: \
             {{nvidia.com/gpu: 8}}}}}}"
        )
        .unwrap();
    }
    for (name, metadata, spec, node) in pods {
        writeln!(
            text,
            "- {{kind: Pod, metadata: {{name: {name}, labels: {{ray.io/cluster: g}}{metadata}}}, spec: {{nodeName: {node}{spec}, \
             containers: [{{resources: {{limits: {{nvidia.com/gpu: 2}}}}}}]}}}}"
        )
        .unwrap();
    }
    let keys: TopologyKeys = "row,rack".parse().unwrap();
    read_kubernetes_from("dump", text.as_bytes(), Some(&keys)).unwrap().snapshot.cluster
}

const OWNED: &str = ", ownerReferences: [{kind: RayCluster, name: g, uid: u}]";

#[test]
fn each_pod_of_a_running_gang_keeps_its_own_wishes_whichever_comes_first() {
    let bound = format!("{OWNED}, annotations: {{kai.scheduler/topology-required-placement: rack}}");
    let launcher = ("launcher", OWNED, "", "a0");
    let worker = ("worker", &*bound, ", nodeSelector: {kind: a}", "a1");
    for pods in [[launcher, worker], [worker, launcher]] {
        let cluster = gang_of(&pods);
        let whole = cluster.find_grouped_job("default/g").unwrap();
        let mut allowed: Vec<usize> =
            whole.jobs().map(|job| cluster.request_of(job).models.as_ref().map_or(0, |models| models.len())).collect();
        allowed.sort_unstable();
        assert_eq!(allowed, [0, 1], "any for the launcher, one for the worker");
        assert!(whole.jobs().all(|job| cluster.request_of(job).within == Some(Within::Rack)));
    }
}

#[test]
fn what_nothing_makes_again_or_what_ends_is_not_moved() {
    let ending = format!("{OWNED}, deletionTimestamp: 2026-01-01T00:00:00Z");
    for (metadata, moves) in [(OWNED, true), ("", false), (&ending, false)] {
        let cluster = gang_of(&[("one", metadata, "", "a0")]);
        let job = cluster.find_job("default/g").unwrap();
        assert_eq!(cluster.job(job).migratable(), moves, "{metadata:?}");
    }
}

/// A launcher without GPUs is one of its gang: it holds the others in its rack.
#[test]
fn a_running_launcher_without_gpus_stays_with_its_workers() {
    let node = |n: u32, rack: &str| {
        format!(
            "- kind: Node\n  metadata: {{name: n{n}, labels: {{example.com/row: w, example.com/rack: {rack}}}}}\n  \
             status: {{allocatable: {{nvidia.com/gpu: \"2\", cpu: \"8\"}}}}\n"
        )
    };
    let pod = |name: &str, node: &str, gpus: &str| {
        format!(
            "- kind: Pod\n  metadata: {{name: {name}, namespace: t, labels: {{scheduling.x-k8s.io/pod-group: g}}, annotations: \
             {{kai.scheduler/topology-required-placement: example.com/rack}}, ownerReferences: [{{kind: MPIJob, name: g, controller: true}}]}}\n  \
             spec: {{nodeName: {node}, containers: [{{resources: {{requests: {{cpu: \"1\"{gpus}}}}}}}]}}\n"
        )
    };
    let mut items: String = [(0, "r0"), (1, "r0"), (2, "r1"), (3, "r1")].map(|(n, rack)| node(n, rack)).concat();
    items += &pod("launcher", "n0", "");
    items += &pod("w0", "n0", ", nvidia.com/gpu: \"1\"");
    items += &pod("w1", "n1", ", nvidia.com/gpu: \"1\"");
    // A gang without GPUs, and a pod of none, only hold CPU.
    items += &pod("idle", "n2", "").replace("pod-group: g", "pod-group: h").replace("name: g,", "name: h,");
    let text = format!("kind: List\nitems:\n{items}");
    let keys: TopologyKeys = "example.com/row,example.com/rack".parse().unwrap();
    let import = read_kubernetes_from("dump", text.as_bytes(), Some(&keys)).unwrap();
    let cluster = import.snapshot.cluster;
    let parts: Vec<(u8, u32)> = cluster
        .job_ids()
        .filter(|&job| cluster.whole_job_name(job) == "t/g")
        .map(|job| (cluster.request_of(job).gpus, cluster.job(job).instances()))
        .collect();
    assert_eq!(parts, [(0, 1), (1, 2)]);
    let found = plan(
        &cluster,
        Goal::FreeRegion(Within::Rack),
        &PlanOptions::new(&cluster, Mode::StopFirst, Effort::new(1 << 20, None)),
    );
    assert_eq!(found.feasible, Some(true));
    let racks = found.after.as_ref().map(|after| {
        let seats =
            after.job_ids().filter(|&job| after.whole_job_name(job) == "t/g").flat_map(|job| after.instances_of(job));
        let racks: std::collections::BTreeSet<_> =
            seats.map(|seat| after.node(after.instance(seat).node().unwrap()).rack()).collect();
        racks.len()
    });
    assert_eq!(racks, Some(1), "{:?}", found.steps);
}

#[test]
fn labels_that_are_not_there_are_told() {
    let node = |name: &str, labels: &str| {
        format!(
            "- {{kind: Node, metadata: {{name: {name}, labels: {{{labels}}}}}, status: {{allocatable: {{nvidia.com/gpu: 8}}}}}}\n"
        )
    };
    let text = format!("items:\n{}{}{}", node("n0", "row: a, rack: r"), node("n1", "row: a"), node("n2", "rack: r"));
    let read = |keys: &str| {
        let import = read_kubernetes_from("dump", text.as_bytes(), Some(&keys.parse().unwrap())).unwrap();
        let cluster = &import.snapshot.cluster;
        let racks =
            cluster.node_ids().map(|node| cluster.node(node).region(Within::Rack).is_some()).collect::<Vec<_>>();
        (racks, import.snapshot.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    };
    let (racks, notes) = read("row,rack");
    assert_eq!(racks, [true, false, true]);
    assert!(notes.contains("nodes without one of the labels that say where nodes are"), "{notes}");
    let (racks, notes) = read("row,rakc");
    assert_eq!(racks, [true, true, false]);
    assert!(notes.contains("labels that would say where nodes are, and that no node has: 1 (rakc)"), "{notes}");
}
