//! Gangs of which some pods run: what they lack is kept for them, and they do not take it from each other.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::gangs::{runs, told};
use super::{chosen, edit, filter, names, pod, wait};
use crate::serve::{Service, start};

/// Of gangs that have begun the one that must stay in its rack has the first choice there, whatever they are called.
#[test]
fn a_begun_gang_with_a_choice_of_racks_leaves_the_other_its_own() {
    let service = Service::with_nodes(8, &[]);
    edit(&service, &[told("a", Some(2), None), told("b", Some(4), Some("rack"))]);
    edit(&service, &[runs("a0", 8, "a", "n7"), runs("b0", 8, "b", "n0")]);
    edit(&service, &[("a1", "a"), ("b1", "b"), ("b2", "b"), ("b3", "b")].map(|(pod, gang)| wait(pod, 8, gang, None)));
    let ask = |name: &str, gang: Option<&str>| chosen(&filter(&service, &pod(name, 8, gang), &names(8)));
    for member in ["b1", "b2", "b3"] {
        let node = ask(member, Some("b"));
        assert!(["n1", "n2", "n3"].contains(&node.as_str()), "{member}: {node}");
    }
    let others = [ask("a1", Some("a")), ask("single", None)];
    assert!(others.iter().all(|node| ["n4", "n5", "n6"].contains(&node.as_str())), "{others:?}");
}

/// What was asked before, of other nodes, is no part of an answer.
#[test]
fn the_same_question_has_the_same_answer_whatever_was_asked_before() {
    let nodes = json!({"nodes": [{"name": "n1", "gpus": 8}, {"name": "n6", "gpus": 16}]}).to_string();
    let with_cpu = |mut edit: Value| {
        edit["cpu_milli"] = json!(16_000);
        edit
    };
    let waits = |pod: &str, gang: &str| json!({"job": format!("s/{pod}"), "gpus": 4, "gang": format!("s/{gang}")});
    let runs = |pod: &str, gang: &str| json!({"job": format!("s/{pod}"), "gpus_per_instance": 4, "gang": format!("s/{gang}"), "instances": [{"node": "n6"}]});
    let edits = [
        json!({"wait": waits("g1-1", "g1")}),
        json!({"wait": with_cpu(waits("g1-2", "g1"))}),
        json!({"start": with_cpu(runs("g1-0", "g1"))}),
        json!({"wait": with_cpu(waits("g2-1", "g2"))}),
        json!({"wait": waits("g2-2", "g2")}),
        json!({"start": runs("g2-0", "g2")}),
    ];
    let service = Service::start(&[]);
    assert_eq!(service.put("/v1/cluster", nodes).status, 200);
    edit(&service, &edits.map(|edit| edit.to_string()));
    let mut with_much = pod("g2-1", 4, Some("g2"));
    with_much["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("16");
    let all = ["n1", "n6"].map(str::to_owned);
    let before = filter(&service, &with_much, &all);
    filter(&service, &pod("g2-2", 4, Some("g2")), &all[..1]);
    assert_eq!(filter(&service, &with_much, &all), before);
    // How large a gang is, the pod itself may say, whatever another call said.
    let service = Service::with_nodes(2, &[]);
    let all = names(2);
    let asks = |size: Option<&str>| {
        let mut pod = pod("g3-0", 1, Some("g3"));
        if let Some(size) = size {
            pod["metadata"]["annotations"] = json!({"pod-group-size": size});
        }
        filter(&service, &pod, &all)["NodeNames"].as_array().unwrap().len()
    };
    edit(&service, &[wait("g3-0", 1, "g3", None), wait("g3-1", 1, "g3", None)]);
    assert_eq!([asks(Some("3")), asks(None), asks(Some("3"))], [0, 1, 0]);
}

/// Names are whatever a client says.
#[test]
fn no_name_of_a_job_keeps_pods_from_their_place() {
    let service = Service::with_nodes(4, &[]);
    let odd = |name: String| {
        json!({"start": {"job": name, "gpus_per_instance": 1, "instances": [{"node": "n0"}]}}).to_string()
    };
    edit(&service, &(0..8).map(|n| odd(format!("\0{n}"))).collect::<Vec<_>>());
    assert_eq!(chosen(&filter(&service, &pod("a", 1, None), &names(4))), "n1");
}

/// With hundreds of begun gangs that cannot go on, each bound to its rack, calls are still decided, and decided well.
#[test]
fn many_begun_gangs_keep_no_call_from_its_answer() {
    const NODES: usize = 5000;
    let service = Service::with_nodes(NODES, &["--extender-deadline", "1000"]);
    // Of each rack of four nodes two are full; the gang runs on the third and lacks two: one in all is left.
    for rack in 0..NODES / 4 {
        let node = |n: usize| format!("n{}", 4 * rack + n);
        let mut edits = vec![start(&format!("x{rack}"), 8, &node(0)), start(&format!("y{rack}"), 8, &node(1))];
        let gang = format!("g{rack}");
        edits.push(told(&gang, Some(3), Some("rack")));
        edits.push(runs(&format!("{gang}-0"), 8, &gang, &node(2)));
        edits.push(wait(&format!("{gang}-1"), 8, &gang, None));
        // One in two could go on if its sizes were alike.
        edits.push(wait(&format!("{gang}-2"), if rack % 2 == 0 { 8 } else { 1 }, &gang, None));
        if rack < 500 {
            edit(&service, &edits);
        }
    }
    // The gangs lack what is not there, so nobody waits for them.
    assert_eq!(chosen(&filter(&service, &pod("single", 8, None), &names(NODES))), "n3");
    let blocked = filter(&service, &pod("g7-1", 8, Some("g7")), &names(NODES));
    assert_eq!(blocked["NodeNames"], json!([]), "{blocked}");
    // One of them gets room, which is kept for it.
    edit(&service, &[r#"{"end":"x9"}"#.to_owned()]);
    let places: BTreeSet<String> = ["g9-1", "g9-2"]
        .map(|name| {
            chosen(&filter(&service, &pod(name, if name == "g9-1" { 8 } else { 1 }, Some("g9")), &names(NODES)))
        })
        .into();
    assert_eq!(places, ["n36", "n39"].map(str::to_owned).into());
}

#[derive(Clone, Debug)]
struct GangPlan {
    within: Option<&'static str>,
    sizes: Vec<u64>,
}

fn gang_plan() -> impl Strategy<Value = GangPlan> {
    let within = prop_oneof![Just(None), Just(Some("rack")), Just(Some("domain"))];
    let size = prop_oneof![Just(1u64), Just(2), Just(4), Just(8)];
    let sizes = prop_oneof![prop::collection::vec(size, 2..7), (2usize..7).prop_map(|n| vec![8; n])];
    (within, sizes).prop_map(|(within, sizes)| GangPlan { within, sizes })
}

/// Racks of four nodes, of two domains each.
fn cluster(nodes: usize) -> String {
    let node = |n: usize| json!({"name": format!("n{n}"), "gpus": 8, "rack": format!("r{}", n / 4), "domain": format!("d{}", n / 2)});
    json!({"nodes": (0..nodes).map(node).collect::<Vec<Value>>()}).to_string()
}

/// Asks for pods in a random order, and starts those that get a place; no gang that begins stays in part.
fn play(service: &Service, nodes: usize, running: &[(u64, usize)], gangs: &[GangPlan], asks: &[usize]) {
    assert_eq!(service.put("/v1/cluster", cluster(nodes)).status, 200);
    let mut free = vec![8; nodes];
    for (n, &(gpus, node)) in running.iter().enumerate() {
        if free[node % nodes] >= gpus {
            free[node % nodes] -= gpus;
            edit(service, &[start(&format!("x{n}"), gpus as u8, &format!("n{}", node % nodes))]);
        }
    }
    let mut waiting: Vec<(String, Option<usize>, u64)> = Vec::new();
    for (number, gang) in gangs.iter().enumerate() {
        let name = format!("g{number}");
        let mut edits = vec![told(&name, Some(gang.sizes.len() as u32), gang.within)];
        for (member, &gpus) in gang.sizes.iter().enumerate() {
            let pod = format!("{name}-{member}");
            edits.push(wait(&pod, gpus, &name, None));
            waiting.push((pod, Some(number), gpus));
        }
        edit(service, &edits);
    }
    waiting.extend((0..4).map(|n| (format!("single{n}"), None, [1, 2, 4, 8][n])));
    let mut bound: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    // Some pods at random, and then all that wait, until nobody gets a place any more.
    let mut random = asks.iter();
    let (mut at, mut refused) = (0, 0);
    while refused < waiting.len() {
        match random.next() {
            Some(&ask) => (at, refused) = (ask % waiting.len(), 0),
            None => at = (at + 1) % waiting.len(),
        }
        let (name, gang, gpus) = waiting[at].clone();
        let of = gang.map(|number| format!("g{number}"));
        let result = filter(service, &pod(&name, gpus, of.as_deref()), &names(nodes));
        if result["NodeNames"] == json!([]) {
            refused += 1;
            continue;
        }
        refused = 0;
        let node = chosen(&result);
        edit(
            service,
            &[match &of {
                Some(gang) => runs(&name, gpus, gang, &node),
                None => start(&format!("s/{name}"), gpus as u8, &node),
            }],
        );
        if let Some(number) = gang {
            bound.entry(number).or_default().push(node[1..].parse().unwrap());
        }
        waiting.remove(at);
    }
    for (number, nodes) in bound {
        let gang = &gangs[number];
        assert_eq!(nodes.len(), gang.sizes.len(), "gang {number} stays in part: {waiting:?}");
        let width = match gang.within {
            None => continue,
            Some("rack") => 4,
            Some(_) => 2,
        };
        let regions: BTreeSet<usize> = nodes.iter().map(|node| node / width).collect();
        assert_eq!(regions.len(), 1, "gang {number} is on {nodes:?}");
    }
}

#[test]
fn whoever_asks_when_no_gang_that_begins_stays_in_part() {
    let cases = if std::env::var_os("SLOTWISE_NIGHTLY").is_some() { 2000 } else { 100 };
    let service = Service::start(&[]);
    let world = (
        prop_oneof![Just(8usize), Just(16)],
        prop::collection::vec((prop_oneof![Just(1u64), Just(2), Just(4), Just(8)], 0usize..16), 0..14),
        prop::collection::vec(gang_plan(), 1..4),
        prop::collection::vec(0usize..64, 0..40),
    );
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let outcome = runner.run(&world, |(nodes, running, gangs, asks)| {
        play(&service, nodes, &running, &gangs, &asks);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
