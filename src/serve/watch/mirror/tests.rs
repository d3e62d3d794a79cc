//! What objects become, one rule each; and that it does not matter how they came to be what they are.

mod property;

use serde_json::{Value, json};

use super::*;

pub(super) const RACK: &str = "cloud.provider.com/topology-rack";

pub(super) fn node(name: &str, gpus: u8, cordoned: bool) -> Value {
    json!({"kind": "Node", "metadata": {"name": name}, "spec": {"unschedulable": cordoned},
           "status": {"allocatable": {"nvidia.com/gpu": gpus.to_string(), "cpu": "8", "memory": "8Gi"}}})
}

/// A pod with one CPU core.
pub(super) fn pod(name: &str, gpus: u8, node: &str) -> Value {
    json!({"kind": "Pod", "metadata": {"name": name, "namespace": "s"}, "spec": {"nodeName": node, "containers":
           [{"resources": {"requests": {"nvidia.com/gpu": gpus.to_string(), "cpu": "1"}}}]}})
}

pub(super) fn of_gang(mut pod: Value, gang: &str) -> Value {
    pod["metadata"]["labels"] = json!({"scheduling.x-k8s.io/pod-group": gang});
    pod
}

pub(super) fn group(name: &str, size: u32) -> Value {
    json!({"kind": "PodGroup", "metadata": {"name": name, "namespace": "s"}, "spec": {"minMember": size}})
}

/// A claim that was given devices of these minor numbers.
pub(super) fn claim(name: &str, minors: &[u8]) -> Value {
    let results: Vec<Value> =
        minors.iter().map(|n| json!({"driver": "gpu.nvidia.com", "device": format!("gpu-{n}")})).collect();
    json!({"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "s"},
           "spec": {"devices": {"requests": [{"name": "gpus"}]}}, "status": {"allocation": {"devices": {"results": results}}}})
}

pub(super) fn slice(name: &str, node: &str, gpus: u8) -> Value {
    let devices: Vec<Value> = (0..gpus).map(|n| json!({"name": format!("gpu-{n}")})).collect();
    json!({"kind": "ResourceSlice", "metadata": {"name": name}, "spec": {"nodeName": node, "driver": "gpu.nvidia.com",
           "pool": {"name": "p", "generation": 1}, "devices": devices}})
}

impl Mirror {
    pub(super) fn put(&mut self, kind: Kind, object: &Value) {
        self.apply(kind.read(object.to_string().as_bytes()).unwrap());
    }

    pub(super) fn list(&mut self, kind: Kind, objects: &[Value]) {
        self.begin(kind);
        objects.iter().for_each(|object| self.put(kind, object));
        self.end(kind);
    }
}

/// A mirror of these nodes and pods, and the edits with which it began.
fn known(nodes: &[Value], pods: &[Value]) -> (Mirror, Cluster, String) {
    let mut mirror = Mirror::new(None);
    mirror.list(Kind::Node, nodes);
    mirror.list(Kind::Pod, pods);
    let (cluster, edits) = mirror.cluster().unwrap().unwrap();
    (mirror, cluster, serde_json::to_string(&edits).unwrap())
}

/// What follows, in few words: what starts where with how many GPUs and milli-cores, waits, ends, and so on.
fn told(mirror: &mut Mirror) -> Vec<String> {
    let Change::Edits(edits) = mirror.change() else { return vec!["rebuild".to_owned()] };
    let word = |edit: &EditSpec| match edit {
        EditSpec::Start(job) => {
            let seat = &job.instances[0];
            let devices = seat.gpus.as_ref().map(|gpus| format!(" {gpus:?}")).unwrap_or_default();
            format!("{} on {}: {} {}{devices}", job.job, seat.node, job.gpus_per_instance, job.cpu_milli)
        }
        EditSpec::Wait(job) => format!("{} waits: {} {}", job.job, job.gpus, job.cpu_milli),
        EditSpec::End(name) => format!("{name} ends"),
        EditSpec::Gang(gang) => format!("{}: {:?} {:?}", gang.gang, gang.size, gang.within),
        EditSpec::Cordon(name) => format!("{name} closes"),
        EditSpec::Uncordon(name) => format!("{name} opens"),
        EditSpec::Moves(_) => "moves".to_owned(),
    };
    edits.iter().map(word).collect()
}

#[test]
fn lists_make_a_cluster_and_events_edit_it() {
    let mut mirror = Mirror::new(None);
    mirror.list(Kind::Node, &[node("b", 8, false), node("a", 4, true), node("cpu", 0, false)]);
    assert!(!mirror.must_rebuild() && mirror.cluster().unwrap().is_none(), "the pods have not been listed");
    let pods = [pod("w", 2, ""), pod("r", 8, "b"), pod("elsewhere", 1, "cpu"), pod("none", 0, "b")];
    mirror.list(Kind::Pod, &pods);
    let (cluster, edits) = mirror.cluster().unwrap().unwrap();
    assert_eq!((cluster.nodes().len(), cluster.node_name(crate::cluster::NodeId(0))), (2, "a"));
    assert!(!cluster.node(crate::cluster::NodeId(0)).schedulable() && edits.len() == 3, "{edits:?}");
    // The same again is nothing new.
    pods.iter().for_each(|pod| mirror.put(Kind::Pod, pod));
    mirror.put(Kind::Node, &node("b", 8, false));
    mirror.list(Kind::Pod, &pods);
    assert_eq!(told(&mut mirror), [""; 0]);
    mirror.put(Kind::Node, &node("b", 8, true));
    mirror.put(Kind::Node, &node("a", 4, false));
    assert_eq!(told(&mut mirror), ["a opens", "b closes"]);
    mirror.put(Kind::Pod, &pod("w", 2, "a"));
    assert_eq!(told(&mut mirror), ["s/w on a: 2 1000"], "in one step");
    mirror.delete(Kind::Pod, "s/w");
    mirror.delete(Kind::Pod, "s/w");
    mirror.delete(Kind::Node, "cpu");
    assert_eq!(told(&mut mirror), ["s/w ends"]);
    for change in [
        (|mirror: &mut Mirror| mirror.put(Kind::Node, &node("b", 7, true))) as fn(&mut Mirror),
        |mirror| mirror.delete(Kind::Node, "a"),
        |mirror| mirror.put(Kind::Node, &node("new", 8, false)),
    ] {
        change(&mut mirror);
        assert_eq!(told(&mut mirror), ["rebuild"]);
        assert!(mirror.cluster().unwrap().is_some());
    }
}

#[test]
fn a_list_that_comes_again_replaces_what_was() {
    let (mut mirror, ..) = known(&[node("n", 8, false)], &[pod("p0", 1, "n"), pod("p1", 1, "n")]);
    mirror.list(Kind::Pod, &[pod("p1", 1, "n"), pod("p2", 2, "n")]);
    assert_eq!(told(&mut mirror), ["s/p0 ends", "s/p2 on n: 2 1000"]);
    mirror.list(Kind::Node, &[node("n", 8, false)]);
    assert_eq!(told(&mut mirror), [""; 0]);
    mirror.list(Kind::Node, &[]);
    assert_eq!(told(&mut mirror), ["rebuild"]);
}

#[test]
fn pods_without_gpus_hold_cpu_together() {
    let (mut mirror, _, edits) = known(&[node("n", 8, false)], &[pod("a", 0, "n"), pod("b", 0, "n"), pod("w", 0, "")]);
    assert!(edits.contains(r#""job":"n (pods without GPUs)","gpus_per_instance":0,"cpu_milli":2000"#), "{edits}");
    mirror.put(Kind::Pod, &pod("c", 0, "n"));
    mirror.delete(Kind::Pod, "s/a");
    assert_eq!(told(&mut mirror), [""; 0], "one for another");
    mirror.put(Kind::Pod, &pod("d", 1, "n"));
    mirror.delete(Kind::Pod, "s/b");
    mirror.delete(Kind::Pod, "s/c");
    assert_eq!(told(&mut mirror), ["n (pods without GPUs) ends", "s/d on n: 1 1000"]);
    // More than the node has is as much as it has.
    (0..9).for_each(|n| mirror.put(Kind::Pod, &pod(&format!("x{n}"), 0, "n")));
    assert_eq!(told(&mut mirror), ["n (pods without GPUs) on n: 0 7000"]);
}

#[test]
fn a_gang_is_as_large_as_its_group_says_whenever_that_comes() {
    let [zero, two] = [Kind::Group(0), Kind::Group(2)];
    let worker = |name: &str, node: &str| of_gang(pod(name, 8, node), "g");
    let (mut mirror, ..) = known(&[node("n", 8, false), node("cpu", 0, false)], &[worker("a", "")]);
    mirror.list(two, &[group("g", 4)]);
    assert_eq!(told(&mut mirror), ["s/g: Some(4) None"], "after its pod");
    mirror.list(zero, &[group("h", 2)]);
    mirror.put(Kind::Pod, &of_gang(pod("b", 8, ""), "h"));
    assert_eq!(told(&mut mirror), ["s/b waits: 8 1000", "s/h: Some(2) None"]);
    // Its own group of Kubernetes is believed before that of others.
    mirror.put(zero, &group("g", 3));
    assert_eq!(told(&mut mirror), ["s/g: Some(3) None"]);
    mirror.delete(zero, "s/g");
    // A launcher that needs no GPUs is there, whether it waits or runs, and is not the cluster's.
    mirror.put(Kind::Pod, &of_gang(pod("launcher", 0, ""), "g"));
    assert_eq!(told(&mut mirror), ["s/g: Some(3) None",][..0], "four, of which one is there elsewhere");
    mirror.put(Kind::Pod, &of_gang(pod("launcher", 0, "cpu"), "g"));
    mirror.put(Kind::Pod, &worker("a", "n"));
    assert_eq!(told(&mut mirror), ["s/a on n: 8 1000"]);
    mirror.delete(Kind::Pod, "s/launcher");
    assert_eq!(told(&mut mirror), ["s/g: Some(4) None"]);
    // The kind is not served any more.
    mirror.list(two, &[]);
    assert_eq!(told(&mut mirror), ["s/g: None None"]);
    mirror.delete(Kind::Pod, "s/a");
    assert_eq!(told(&mut mirror), ["s/a ends"]);
}

#[test]
fn what_pods_say_of_their_gang_counts_where_no_group_does() {
    let mut nodes = [node("n", 8, false)];
    nodes[0]["metadata"]["labels"] = json!({RACK: "r"});
    let mut worker = of_gang(pod("a", 8, ""), "g");
    worker["metadata"]["annotations"] = json!({"pod-group-size": "2", "kueue.x-k8s.io/podset-required-topology": RACK});
    let (mut mirror, _, edits) = known(&nodes, &[worker]);
    assert!(edits.contains(r#"{"gang":{"gang":"s/g","size":2,"within":"rack"}}"#), "{edits}");
    let mut wish = group("g", 3);
    wish["spec"]["schedulingConstraints"] = json!({"topology": [{"key": "nvidia.com/gpu.clique"}]});
    mirror.put(Kind::Group(0), &wish);
    assert_eq!(told(&mut mirror), ["s/g: Some(3) Some(Domain)"]);
    wish["spec"]["schedulingConstraints"]["topology"][0]["key"] = json!("example.com/room");
    mirror.put(Kind::Group(0), &wish);
    assert_eq!(told(&mut mirror), ["s/g: Some(3) None"], "no level here");
}

#[test]
fn claims_say_which_devices_a_pod_has_whichever_comes_first() {
    let mut with_claim = pod("p", 0, "n");
    with_claim["spec"]["resourceClaims"] = json!([{"resourceClaimName": "c"}]);
    let (mut mirror, ..) = known(&[node("n", 8, false)], &[with_claim.clone(), pod("x", 2, "n")]);
    mirror.list(Kind::Claim, &[claim("c", &[0, 1])]);
    // What was given to the other one may be these.
    let expected = ["n (pods without GPUs) ends", "s/x ends", "s/p on n: 2 1000 [0, 1]", "s/x on n: 2 1000"];
    assert_eq!(told(&mut mirror), expected);
    // Another pod of the same claim holds nothing of it, until it is the first.
    with_claim["metadata"]["name"] = json!("q");
    mirror.put(Kind::Pod, &with_claim);
    assert_eq!(told(&mut mirror), ["n (pods without GPUs) on n: 0 1000"]);
    mirror.delete(Kind::Pod, "s/p");
    let expected =
        ["n (pods without GPUs) ends", "s/p ends", "s/x ends", "s/q on n: 2 1000 [0, 1]", "s/x on n: 2 1000"];
    assert_eq!(told(&mut mirror), expected);
    mirror.put(Kind::Claim, &claim("c", &[5]));
    let expected = ["s/q ends", "s/x ends", "s/q on n: 1 1000 [5]", "s/x on n: 2 1000"];
    assert_eq!(told(&mut mirror), expected);
    mirror.delete(Kind::Claim, "s/c");
    assert_eq!(told(&mut mirror), ["s/q ends", "n (pods without GPUs) on n: 0 1000"]);
}

#[test]
fn nodes_have_what_slices_offer_where_they_name_no_gpus() {
    let mut bare = node("n", 0, false);
    bare["status"]["allocatable"].as_object_mut().unwrap().remove("nvidia.com/gpu");
    let (mut mirror, cluster, _) = known(&[bare.clone(), node("m", 8, false)], &[pod("p", 1, "n")]);
    assert_eq!(cluster.nodes().len(), 1);
    mirror.list(Kind::Slice, &[slice("x", "n", 4), slice("y", "m", 4)]);
    assert_eq!(told(&mut mirror), ["rebuild"]);
    let (cluster, edits) = mirror.cluster().unwrap().unwrap();
    let gpus: Vec<u8> = cluster.nodes().iter().map(crate::cluster::Node::capacity).collect();
    assert_eq!((gpus, edits.len()), (vec![8, 4], 1));
    mirror.put(Kind::Node, &bare);
    assert_eq!(told(&mut mirror), [""; 0], "what is offered is known already");
    mirror.list(Kind::Slice, &[]);
    assert_eq!(told(&mut mirror), ["rebuild"]);
}
