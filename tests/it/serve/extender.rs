//! The scheduler extender: every row of what kube-scheduler sends and expects, and what was recorded of a real one.

mod begun;
mod gangs;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Service, start};

/// A pod with GPUs, of a gang if one is named.
fn pod(name: &str, gpus: u64, gang: Option<&str>) -> Value {
    let mut labels = json!({});
    if let Some(gang) = gang {
        labels["scheduling.x-k8s.io/pod-group"] = json!(gang);
    }
    json!({"metadata": {"name": name, "namespace": "s", "uid": name, "labels": labels},
           "spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": gpus.to_string()}}}]}})
}

fn names(nodes: usize) -> Vec<String> {
    (0..nodes).map(|n| format!("n{n}")).collect()
}

fn filter(service: &Service, pod: &Value, names: &[String]) -> Value {
    let reply = service.post("/v1/extender/filter", json!({"Pod": pod, "Nodes": null, "NodeNames": names}).to_string());
    assert_eq!(reply.status, 200);
    reply.json()
}

/// The one node that is left.
fn chosen(result: &Value) -> String {
    let names = result["NodeNames"].as_array().unwrap();
    assert_eq!((names.len(), &result["Error"]), (1, &json!("")), "{result}");
    names[0].as_str().unwrap().to_owned()
}

fn edit(service: &Service, edits: &[String]) {
    let reply = service.post("/v1/edits", format!(r#"{{"edits":[{}]}}"#, edits.join(",")));
    assert_eq!(reply.status, 200, "{}", reply.text());
}

fn wait(pod: &str, gpus: u64, gang: &str, size: Option<u32>) -> String {
    json!({"wait": {"job": format!("s/{pod}"), "gpus": gpus, "gang": format!("s/{gang}"), "gang_size": size}})
        .to_string()
}

#[test]
fn filter_decides_and_answers_in_the_form_that_it_was_asked() {
    let service = Service::with_nodes(4, &[]);
    edit(&service, &[start("a", 4, "n2")]);
    let ask = pod("p", 4, None);
    assert_eq!(chosen(&filter(&service, &ask, &names(4))), "n2", "the partial node is filled");
    // Of the nodes that are offered, and in lower case.
    let lower = json!({"pod": ask, "nodes": null, "nodenames": ["n3", "n1"]}).to_string();
    let reply = service.post("/v1/extender/filter", lower);
    assert_eq!(reply.json()["NodeNames"], json!(["n1"]));
    assert!(reply.header("content-length").is_some() && reply.header("content-type") == Some("application/json"));
    // Whole nodes are answered by whole nodes, to the byte.
    let items: Vec<Value> =
        ["n2", "n0"].iter().map(|name| json!({"metadata": {"name": name, "x": [1.5, null]}})).collect();
    let whole = json!({"Pod": ask, "Nodes": {"kind": "NodeList", "items": items}, "NodeNames": null}).to_string();
    let result = service.post("/v1/extender/filter", whole).json();
    assert_eq!((&result["Nodes"]["items"], &result["NodeNames"]), (&json!([items[0]]), &Value::Null));
    // The same question has the same answer: asking reserves nothing.
    for _ in 0..5 {
        assert_eq!(chosen(&filter(&service, &ask, &names(4))), "n2");
    }
    // Bytes behind the first value are ignored, as Go does.
    let trailing = format!("{} trailing", json!({"Pod": ask, "NodeNames": ["n2"]}));
    assert_eq!(service.post("/v1/extender/filter", trailing).json()["NodeNames"], json!(["n2"]));
}

#[test]
fn what_is_not_understood_is_an_error_in_the_answer_and_never_a_status() {
    let service = Service::with_nodes(2, &[]);
    for body in [
        json!({"Pod": null, "NodeNames": ["n0"]}).to_string(),
        json!({"Pod": pod("p", 1, None), "Nodes": null, "NodeNames": null}).to_string(),
        json!({"NodeNames": []}).to_string(),
        "{}".to_owned(),
        String::new(),
        "[]".to_owned(),
        r#"{"Pod": {"spec": {"containers": 7}}, "NodeNames": ["n0"]}"#.to_owned(),
    ] {
        let reply = service.post("/v1/extender/filter", &body);
        let result = reply.json();
        assert_eq!(reply.status, 200);
        assert!(result["Error"].as_str().is_some_and(|error| !error.is_empty()), "{body}: {result}");
        assert_eq!(service.post("/v1/extender/prioritize", &body).json(), json!([]), "{body}");
        assert_eq!(service.post("/v1/extender/preempt", &body).json(), json!({"NodeNameToMetaVictims": {}}));
    }
    let bind = service.post("/v1/extender/bind", r#"{"PodName":"p","PodNamespace":"s","PodUID":"u","Node":"n0"}"#);
    assert!(bind.status == 200 && bind.json()["Error"].as_str().unwrap().contains("bindVerb"), "{}", bind.text());
}

#[test]
fn names_that_are_not_known_are_passed_through() {
    let service = Service::with_nodes(2, &[]);
    let offered: Vec<String> = ["new-1", "n1", "n0", "new-2"].map(str::to_owned).into();
    let result = filter(&service, &pod("p", 8, None), &offered);
    assert_eq!(result["NodeNames"], json!(["new-1", "n0", "new-2"]), "in the order that they came in");
    // Where nothing is known at all, everything is passed on, and nothing preferred.
    let empty = Service::start(&[]);
    assert_eq!(filter(&empty, &pod("p", 8, None), &offered)["NodeNames"], json!(offered));
    let body = json!({"Pod": pod("p", 8, None), "NodeNames": offered}).to_string();
    assert_eq!(empty.post("/v1/extender/prioritize", body).json(), json!([]));
}

#[test]
fn a_late_answer_is_the_fallback_and_comes_in_time() {
    let service = Service::with_nodes(4, &["--extender-deadline", "1"]);
    // The thread is busy with something large, or it is not: either way the answer is one that a scheduler can use.
    let queue: Vec<String> =
        (0..3000).map(|n| format!(r#"{{"job":"q{n}","instances":1,"gpus_per_instance":8}}"#)).collect();
    let busy = format!(r#"{{"queue":[{}]}}"#, queue.join(","));
    std::thread::scope(|scope| {
        scope.spawn(|| (0..10).for_each(|_| assert_eq!(service.post("/v1/place", &busy).status, 200)));
        for _ in 0..100 {
            let begun = std::time::Instant::now();
            let result = filter(&service, &pod("p", 8, None), &names(4));
            let kept = result["NodeNames"].as_array().unwrap().len();
            assert!((kept == 1 || kept == 4) && result["Error"] == "", "{result}");
            assert!(begun.elapsed() < Duration::from_secs(2));
        }
    });
}

#[test]
fn pods_that_want_no_whole_gpus_do_not_concern_us() {
    let service = Service::with_nodes(2, &[]);
    let mut mig = pod("p", 0, None);
    mig["spec"]["containers"][0]["resources"]["requests"] = json!({"nvidia.com/mig-1g.10gb": "1"});
    for ask in [pod("p", 0, None), pod("p", 17, None), mig] {
        assert_eq!(filter(&service, &ask, &names(2))["NodeNames"], json!(["n0", "n1"]));
    }
}

#[test]
fn a_pod_without_room_names_some_nodes_that_an_eviction_could_help() {
    let service = Service::with_nodes(40, &[]);
    let edits: Vec<String> = (0..40).map(|n| start(&format!("r{n}"), 1 + n % 2, &format!("n{n}"))).collect();
    edit(&service, &edits);
    let result = filter(&service, &pod("p", 8, None), &names(40));
    assert_eq!((&result["NodeNames"], &result["FailedAndUnresolvableNodes"]), (&json!([]), &json!({})));
    let failed = result["FailedNodes"].as_object().unwrap();
    assert_eq!(failed.len(), 16, "few, for the sake of the scheduler");
    assert!(failed.values().all(|reason| reason.as_str().unwrap().contains("enough free GPUs")), "{result}");
    assert!(failed.contains_key("n0") && !failed.contains_key("n1"), "those with the most free GPUs");
}

#[test]
fn prioritize_scores_every_node_with_plain_integers() {
    let service = Service::with_nodes(3, &[]);
    edit(&service, &[start("a", 4, "n1"), start("b", 8, "n2")]);
    let ask = pod("p", 2, None);
    let body = json!({"Pod": ask, "Nodes": null, "NodeNames": ["n0", "n1", "n2", "x"]}).to_string();
    let reply = service.post("/v1/extender/prioritize", body);
    assert_eq!(
        reply.text(),
        r#"[{"Host":"n0","Score":3},{"Host":"n1","Score":10},{"Host":"n2","Score":0},{"Host":"x","Score":0}]"#
    );
}

#[test]
fn preempt_keeps_victims_and_drops_nodes_that_could_never_hold_the_pod() {
    let service = Service::with_nodes(2, &[]);
    edit(&service, &[r#"{"cordon":"n1"}"#.to_owned()]);
    let meta = json!({"Pods": [{"UID": "u1"}, {"UID": "u2"}], "NumPDBViolations": 1});
    let body = json!({"Pod": pod("p", 8, None), "NodeNameToVictims": null,
                      "NodeNameToMetaVictims": {"n0": meta, "n1": meta, "new": meta}});
    let result = service.post("/v1/extender/preempt", body.to_string()).json();
    assert_eq!(result, json!({"NodeNameToMetaVictims": {"n0": meta, "new": meta}}));
    let whole = json!({"Pods": [{"metadata": {"uid": "u1"}}, {"metadata": {"uid": "u2"}}], "NumPDBViolations": 1});
    let body = json!({"Pod": pod("p", 8, None), "NodeNameToVictims": {"n0": whole}, "NodeNameToMetaVictims": null});
    let result = service.post("/v1/extender/preempt", body.to_string()).json();
    assert_eq!(result, json!({"NodeNameToMetaVictims": {"n0": meta}}), "the short form in both modes");
}

#[test]
fn the_members_of_a_gang_get_one_placement_whoever_asks_first() {
    let service = Service::with_nodes(6, &[]);
    let members: Vec<String> = (0..4).map(|n| format!("m{n}")).collect();
    edit(&service, &members.iter().map(|name| wait(name, 8, "g", None)).collect::<Vec<_>>());
    let ask = |name: &String| chosen(&filter(&service, &pod(name, 8, Some("g")), &names(6)));
    let places: BTreeMap<String, String> = members.iter().rev().map(|name| (name.clone(), ask(name))).collect();
    let mut nodes: Vec<&String> = places.values().collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 4, "no two in one place: {places:?}");
    // One by one they are bound; the others keep their places meanwhile.
    for (name, node) in &places {
        let running = json!({"start": {"job": format!("s/{name}"), "gpus_per_instance": 8, "gang": "s/g",
                                       "instances": [{"node": node}]}});
        edit(&service, &[running.to_string()]);
        for other in members.iter().filter(|other| *other > name) {
            assert_eq!(ask(other), places[other]);
        }
    }
}

#[test]
fn a_gang_starts_whole_or_not_and_what_it_lacks_is_kept_for_it() {
    let service = Service::with_nodes(4, &[]);
    let ask = |name: &str, gang: Option<&str>| filter(&service, &pod(name, 8, gang), &names(4));
    edit(&service, &(0..5).map(|n| wait(&format!("m{n}"), 8, "large", None)).collect::<Vec<_>>());
    let result = ask("m0", Some("large"));
    assert_eq!(result["NodeNames"], json!([]), "five do not fit on four nodes, so not one starts");
    edit(&service, &[r#"{"end":"s/m4"}"#.to_owned()]);
    assert_eq!(chosen(&ask("m0", Some("large"))), "n0");
    // Not all of it has come yet.
    edit(&service, &[wait("k0", 8, "small", Some(2))]);
    let result = ask("k0", Some("small"));
    assert_eq!(result["NodeNames"], json!([]));
    assert_eq!(result["FailedNodes"], json!({}), "no eviction helps that");
    edit(&service, &[wait("k1", 8, "small", Some(2))]);
    assert_eq!(chosen(&ask("k0", Some("small"))), "n0");
    // Once some of the large one run, the rest comes first.
    let first =
        json!({"start": {"job": "s/m0", "gpus_per_instance": 8, "gang": "s/large", "instances": [{"node": "n0"}]}});
    edit(&service, &[first.to_string()]);
    assert_eq!(ask("k0", Some("small"))["NodeNames"], json!([]));
    assert_eq!(ask("single", None)["NodeNames"], json!([]));
    assert_eq!(chosen(&ask("m1", Some("large"))), "n1");
    // If it gives up, others may.
    edit(&service, &(1..4).map(|n| format!(r#"{{"end":"s/m{n}"}}"#)).collect::<Vec<_>>());
    assert_eq!(chosen(&ask("k0", Some("small"))), "n1");
}

/// Thousands of names that nothing is known of cost no more than others.
#[test]
fn many_unknown_names_are_passed_through_in_time() {
    let service = Service::with_nodes(2, &[]);
    let mut offered: Vec<String> = (0..60_000).map(|n| format!("new-{n:06}")).collect();
    offered.push("n1".to_owned());
    let begun = std::time::Instant::now();
    let result = filter(&service, &pod("p", 8, None), &offered);
    assert_eq!(result["NodeNames"].as_array().unwrap().len(), offered.len());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// What is placed or ends by the batch API is known of a gang, too.
#[test]
fn placements_that_are_committed_change_gangs() {
    let service = Service::with_nodes(2, &[]);
    let start = json!({"start": {"job": "s/m0", "gpus_per_instance": 8, "gang": "s/g", "instances": [{"node": "n0"}]}});
    edit(&service, &[start.to_string(), wait("m1", 8, "g", None)]);
    let ask = || filter(&service, &pod("single", 8, None), &names(2));
    assert_eq!(ask()["NodeNames"], json!([]), "the rest of the gang comes first");
    let commit = |queue: &str| service.post("/v1/place", format!(r#"{{"commit":true,"queue":[{queue}]}}"#)).status;
    assert_eq!(commit(r#"{"remove":"s/m0"}"#), 200);
    assert_eq!(chosen(&ask()), "n0", "nothing of it runs any more");
    assert_eq!(commit(r#"{"job":"s/m1","instances":1,"gpus_per_instance":8}"#), 200);
    assert_eq!(chosen(&ask()), "n1", "it waits for nothing");
}

#[test]
fn volcano_is_answered_with_a_score_for_every_node() {
    let service = Service::with_nodes(3, &[]);
    edit(&service, &[start("a", 4, "n1")]);
    let body = json!({"task": {"Name": "p", "Pod": pod("p", 4, None)}, "nodes": [{"Name": "n0"}, {"Name": "n1"}]});
    let reply = service.post("/v1/volcano/prioritize", body.to_string());
    assert_eq!((reply.status, reply.json()), (200, json!({"nodeScore": {"n0": 5, "n1": 10}, "errorMessage": ""})));
    let bad = service.post("/v1/volcano/prioritize", "{}").json();
    assert!(!bad["errorMessage"].as_str().unwrap().is_empty());
}

/// Plays what a real scheduler asked, in both of its encodings: each pod gets a place that was offered, and what the
/// scheduler then bound is what the service is told.
#[test]
fn recorded_sessions_of_a_real_scheduler_are_answered() {
    for file in ["names.jsonl", "nodes.jsonl"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/extender").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["verb"], "cluster");
        let dump = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        std::fs::write(dump.path(), lines[0]["body"].to_string()).unwrap();
        let service = Service::start(&["--cluster", &format!("kubernetes:{}", dump.path().display())]);
        let (mut asked, mut gpus) = (0, BTreeMap::new());
        for line in &lines[1..] {
            let (verb, body) = (line["verb"].as_str().unwrap(), line["body"].to_string());
            let request = &line["body"];
            match verb {
                "bind" => {
                    let pod = format!(
                        "{}/{}",
                        request["PodNamespace"].as_str().unwrap(),
                        request["PodName"].as_str().unwrap()
                    );
                    let started = start(&pod, gpus[&pod], request["Node"].as_str().unwrap());
                    // Who was evicted for it is gone; the scheduler does not say so here.
                    let reply = service.post("/v1/edits", format!(r#"{{"edits":[{started}]}}"#));
                    assert!(reply.status == 200 || reply.text().contains("free devices"), "{}", reply.text());
                }
                _ => {
                    let reply = service.post(&format!("/v1/extender/{verb}"), &body);
                    assert_eq!(reply.status, 200);
                    let result = reply.json();
                    let offered: Vec<&str> = match (&request["NodeNames"], &request["Nodes"]) {
                        (Value::Array(names), _) => names.iter().filter_map(Value::as_str).collect(),
                        (_, nodes) => nodes["items"]
                            .as_array()
                            .into_iter()
                            .flatten()
                            .filter_map(|node| node["metadata"]["name"].as_str())
                            .collect(),
                    };
                    asked += 1;
                    match verb {
                        "filter" => {
                            let pod = &request["Pod"]["metadata"];
                            let name =
                                format!("{}/{}", pod["namespace"].as_str().unwrap(), pod["name"].as_str().unwrap());
                            let wants =
                                &request["Pod"]["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"];
                            gpus.insert(name, wants.as_str().unwrap().parse::<u8>().unwrap());
                            let kept: Vec<&str> = match &result["NodeNames"] {
                                Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                                _ => result["Nodes"]["items"]
                                    .as_array()
                                    .unwrap()
                                    .iter()
                                    .map(|node| node["metadata"]["name"].as_str().unwrap())
                                    .collect(),
                            };
                            assert_eq!(result["Error"], "", "{file}: {result}");
                            assert!(
                                kept.len() <= 1 && kept.iter().all(|name| offered.contains(name)),
                                "{file}: {kept:?}"
                            );
                        }
                        "prioritize" => {
                            let hosts: Vec<&str> =
                                result.as_array().unwrap().iter().map(|one| one["Host"].as_str().unwrap()).collect();
                            assert_eq!(hosts, offered);
                            assert!(result.as_array().unwrap().iter().any(|one| one["Score"] == 10));
                        }
                        _ => assert!(result["NodeNameToMetaVictims"].is_object()),
                    }
                }
            }
        }
        assert!(asked >= 6, "{file}: {asked} requests");
    }
}
