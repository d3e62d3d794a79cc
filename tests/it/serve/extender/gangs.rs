//! Gangs of which more is told than their pods say: sizes, domains and racks, CPU.

use serde_json::{Value, json};

use super::{chosen, edit, filter, names, pod, wait};
use crate::serve::{Service, start};

pub(super) fn told(gang: &str, size: Option<u32>, within: Option<&str>) -> String {
    let mut spec = json!({"gang": format!("s/{gang}")});
    if let Some(size) = size {
        spec["size"] = json!(size);
    }
    if let Some(within) = within {
        spec["within"] = json!(within);
    }
    json!({"gang": spec}).to_string()
}

pub(super) fn runs(pod: &str, gpus: u64, gang: &str, node: &str) -> String {
    json!({"start": {"job": format!("s/{pod}"), "gpus_per_instance": gpus, "gang": format!("s/{gang}"),
                     "instances": [{"node": node}]}})
    .to_string()
}

#[test]
fn a_member_whose_siblings_nobody_told_of_waits_for_them_where_the_size_is_known() {
    let service = Service::with_nodes(4, &[]);
    let ask = |name: &str, gang: &str| filter(&service, &pod(name, 8, Some(gang)), &names(4));
    edit(&service, &[told("g", Some(2), None)]);
    let result = ask("m0", "g");
    assert_eq!((&result["NodeNames"], &result["FailedNodes"]), (&json!([]), &json!({})), "{result}");
    edit(&service, &[wait("m1", 8, "g", None)]);
    assert_eq!(chosen(&ask("m0", "g")), "n0", "m1 is told of, so there are two");
    // A pod that says the size itself.
    let mut own = pod("k0", 8, Some("h"));
    own["metadata"]["annotations"] = json!({"pod-group-size": "2"});
    assert_eq!(filter(&service, &own, &names(4))["NodeNames"], json!([]));
    // Where nobody says it, it is alone.
    assert_eq!(chosen(&ask("k0", "h")), "n0");
    // What is told of a gang counts more than what its pods say, and can be taken back.
    edit(&service, &[told("h", Some(1), None)]);
    assert_eq!(chosen(&filter(&service, &own, &names(4))), "n0");
    edit(&service, &[told("h", None, None), r#"{"end":"s/m1"}"#.to_owned()]);
    assert_eq!(filter(&service, &own, &names(4))["NodeNames"], json!([]));
}

/// Racks of four nodes.
#[test]
fn a_gang_within_a_rack_stays_in_one_also_with_those_that_run() {
    let service = Service::with_nodes(12, &[]);
    let rack = |node: &str| node[1..].parse::<u32>().unwrap() / 4;
    let ask = |name: &str| filter(&service, &pod(name, 8, Some("g")), &names(12));
    edit(&service, &[start("a", 8, "n0"), start("b", 1, "n5"), start("c", 1, "n6"), told("g", Some(4), Some("rack"))]);
    edit(&service, &(0..4).map(|n| wait(&format!("m{n}"), 8, "g", None)).collect::<Vec<_>>());
    let places: Vec<String> = (0..4).map(|n| chosen(&ask(&format!("m{n}")))).collect();
    assert!(places.iter().all(|node| rack(node) == 2), "four whole nodes are free in one rack alone: {places:?}");
    // Two of them run. That another rack has room does not matter, nor that nodes elsewhere are fuller.
    edit(&service, &[runs("m0", 8, "g", &places[0]), runs("m1", 8, "g", &places[1])]);
    edit(&service, &[r#"{"end":"a"}"#.to_owned()]);
    for name in ["m2", "m3"] {
        assert_eq!(rack(&chosen(&ask(name))), 2);
    }
    let single = chosen(&filter(&service, &pod("single", 8, None), &names(12)));
    assert_ne!(rack(&single), 2, "what it lacks is kept for it");
    // One of those nodes is taken: the other two racks are of no use.
    edit(&service, &[start("d", 1, &places[2])]);
    let result = ask("m2");
    assert_eq!(result["NodeNames"], json!([]), "{result}");
    assert!(result["FailedNodes"].as_object().is_some_and(|failed| !failed.is_empty()), "an eviction helps");
    // Those that run are in two racks: what is broken already binds nobody.
    edit(&service, &[runs("m2", 8, "g", "n4")]);
    assert_eq!(chosen(&ask("m3")), "n0");
}

#[test]
fn nodes_that_lack_cpu_are_chosen_for_no_member() {
    let service = Service::start(&[]);
    let node = |n: u32, cpu: u32| json!({"name": format!("n{n}"), "gpus": 8, "cpu_milli": cpu, "memory_mib": 1000});
    let nodes: Vec<Value> = (0..4).map(|n| node(n, if n % 2 == 0 { 3000 } else { 64_000 })).collect();
    assert_eq!(service.put("/v1/cluster", json!({"nodes": nodes}).to_string()).status, 200);
    let member = |name: &str, gpus: u64, cpu: &str| {
        let mut pod = pod(name, gpus, Some("g"));
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
        pod
    };
    let waits = |name: &str, gpus: u8, cpu: u32| {
        json!({"wait": {"job": format!("s/{name}"), "gpus": gpus, "cpu_milli": cpu, "gang": "s/g"}}).to_string()
    };
    // The sizes are unlike, and so is what they ask for: all are placed together.
    edit(&service, &[waits("a", 8, 4000), waits("b", 8, 4000), waits("c", 4, 2000), waits("d", 4, 1000)]);
    let place = |name: &str, gpus: u64, cpu: &str| chosen(&filter(&service, &member(name, gpus, cpu), &names(4)));
    let mut large = [place("a", 8, "4"), place("b", 8, "4")];
    large.sort();
    assert_eq!(large, ["n1", "n3"]);
    let small = [place("c", 4, "2"), place("d", 4, "1")];
    assert!(small.iter().all(|node| ["n0", "n2"].contains(&node.as_str())), "{small:?}");
    // Something without GPUs holds CPU there.
    let cpu = |job: &str, node: &str| json!({"start": {"job": job, "gpus_per_instance": 0, "cpu_milli": 2500, "instances": [{"node": node}]}});
    edit(&service, &[cpu("x", "n0").to_string(), cpu("y", "n2").to_string()]);
    let result = filter(&service, &member("c", 4, "2"), &names(4));
    assert_eq!(result["NodeNames"], json!([]), "{result}");
}
