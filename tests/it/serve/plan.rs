//! Plans: what is asked with them, and what becomes of their answers.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Service, start};

/// A service with half of each of `nodes` nodes held by a job, j0 and so on.
fn half_full(nodes: usize) -> Service {
    let service = Service::with_nodes(nodes, &[]);
    let edits: Vec<String> = (0..nodes).map(|at| start(&format!("j{at}"), 4, &format!("n{at}"))).collect();
    assert_eq!(service.post("/v1/edits", format!(r#"{{"edits":[{}]}}"#, edits.join(","))).status, 200);
    service
}

fn plan(service: &Service, question: Value) -> Value {
    let reply = service.post("/v1/plan", question.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

#[test]
fn the_steps_of_a_plan_are_edits_as_they_are() {
    for mode in ["stop-first", "hitless"] {
        let service = half_full(6);
        let planned = plan(&service, json!({"free_nodes": 3, "mode": mode}));
        let steps = planned["steps"].as_array().unwrap().clone();
        assert_eq!((steps.len(), &planned["moves"]), (3, &json!(3)), "{planned}");
        let edits: Value = match mode {
            "hitless" => steps.iter().map(|step| json!({ "moves": [step] })).collect(),
            _ => json!([{ "moves": steps }]),
        };
        let version = planned["version"].clone();
        let done = service.post("/v1/edits", json!({"version": version, "edits": edits}).to_string());
        assert_eq!(done.status, 200, "{}", done.text());
        assert_eq!(plan(&service, json!({"free_nodes": 3}))["moves"], 0);
        // Once more they are not there.
        let again = service.post("/v1/edits", json!({ "edits": edits }).to_string());
        assert_eq!(again.status, 422, "{}", again.text());
        assert!(again.text().contains("where it is"), "{}", again.text());
        // So are candidates that move what is elsewhere, or as told.
        let step = &steps[0];
        let back = json!({"job": step["job"], "instance": 0, "from": step["to"], "to": step["from"]});
        let score = |moved: &Value| {
            let candidate =
                json!({"job": "x", "candidate": "c", "place": [{"node": step["from"]}], "migrate": [moved]});
            let queue = json!([{"job": "x", "instances": 1, "gpus_per_instance": 1}]);
            service.post("/v1/score", json!({"queue": queue, "candidates": [candidate]}).to_string()).json()
        };
        assert_eq!(score(&back)["rows"][0]["feasible"], true);
        assert_eq!(score(step)["rows"][0]["reason"], "not-running");
    }
}

#[test]
fn disruption_budgets_are_stated_with_the_question() {
    let service = half_full(4);
    let ask = |budgets: Value, mode: &str| plan(&service, json!({"free_nodes": 2, "mode": mode, "budgets": budgets}));
    let budget = |allowed: u64, jobs: &[&str]| json!([{"name": "b", "allowed": allowed, "jobs": jobs}]);
    assert_eq!(ask(json!([]), "stop-first")["moves"], 2);
    // Two must stop at once, of whom a budget allows one.
    let one = ask(budget(1, &["*"]), "stop-first");
    assert_eq!((&one["feasible"], &one["moves"]), (&Value::Null, &Value::Null), "{one}");
    assert_eq!(ask(budget(2, &["*"]), "stop-first")["moves"], 2);
    // One after another, one at a time is enough.
    assert_eq!(ask(budget(1, &["*"]), "hitless")["moves"], 2);
    // Those that may not be stopped stay; a budget for nobody that runs binds nobody.
    for mode in ["stop-first", "hitless"] {
        let planned = ask(budget(0, &["j0", "j?0", "none"]), mode);
        let jobs: Vec<&str> = planned["steps"].as_array().unwrap().iter().map(|s| s["job"].as_str().unwrap()).collect();
        assert!(jobs.len() == 2 && !jobs.contains(&"j0"), "{jobs:?}");
        assert_eq!(ask(budget(0, &["*"]), mode)["feasible"], false);
    }
    // So it is with a question why a job waits.
    let job = json!({"job": "w", "instances": 2, "gpus_per_instance": 8});
    let explain =
        |budgets: Value| service.post("/v1/explain", json!({"job": job, "budgets": budgets}).to_string()).json();
    assert_eq!(explain(json!([]))["plan"]["moves"], 2);
    assert_eq!(explain(budget(1, &["*"]))["plan"]["moves"], Value::Null);
    for (budgets, says) in [
        (json!({}), "budgets"),
        (json!([["b", 1, []]]), "expected an object"),
        (json!([{"name": "b", "jobs": []}]), "allowed"),
        (json!([{"allowed": 1, "jobs": [], "pods": []}]), "unknown field `pods`"),
    ] {
        let reply = service.post("/v1/plan", json!({"free_nodes": 1, "budgets": budgets}).to_string());
        assert!(reply.status == 400 && reply.text().contains(says), "{}", reply.text());
    }
}

#[test]
fn a_curve_is_for_few_partial_nodes_by_moves() {
    let service = half_full(4);
    let planned = plan(&service, json!({"target": "sif=0", "curve": true}));
    let points = planned["curve"].as_array().unwrap();
    assert_eq!(points.iter().map(|point| &point["moves"]).collect::<Vec<_>>(), [0, 1, 2], "{planned}");
    assert_eq!(points.iter().map(|point| &point["partial"]).collect::<Vec<_>>(), [4, 2, 0], "{planned}");
    assert!(plan(&service, json!({"target": "sif=0"})).get("curve").is_none());
    for (question, says) in [
        (json!({"free_nodes": 1, "curve": true}), "curve: found another goal"),
        (json!({"target": "sif=0", "curve": true, "cost": "gpus"}), "curve: found cost"),
    ] {
        let reply = service.post("/v1/plan", question.to_string());
        assert!(reply.status == 400 && reply.text().contains(says), "{}", reply.text());
    }
}

#[test]
fn a_plan_is_there_by_its_deadline_or_not_at_all() {
    let generate = "generate cluster --gpus 40000 --mix hard --busy 70 --scattered --seed 2";
    let made = Command::new(assert_cmd::cargo::cargo_bin!("slotwise")).args(generate.split(' ')).output().unwrap();
    assert!(made.status.success());
    let service = Service::start(&[]);
    assert_eq!(service.put("/v1/cluster", &made.stdout).status, 200);
    for deadline in [50, 1500] {
        let begun = Instant::now();
        let question = r#"{"target":"sif=0","curve":true}"#;
        let reply = service.post_with("/v1/plan", question, &[("slotwise-deadline-ms", &deadline.to_string())]);
        let took = begun.elapsed();
        assert!([200, 504].contains(&reply.status), "{}", reply.text());
        assert!(took < Duration::from_millis(deadline + 700), "{took:?} for {deadline} ms");
    }
}

#[test]
fn documents_are_objects() {
    let service = half_full(2);
    for (path, body) in [
        ("/v1/edits", r#"[null,null,[]]"#),
        ("/v1/edits", r#"{"edits":[{"start":["a",1]}]}"#),
        ("/v1/edits", r#"{"edits":[{"moves":[["j0",0,"n1"]]}]}"#),
        ("/v1/edits", r#"{"edits":[{"wait":["a",1]}]}"#),
        ("/v1/edits", r#"{"edits":[{"start":{"job":"a","gpus_per_instance":1,"instances":[["n0"]]}}]}"#),
        ("/v1/score", r#"[null,[],[]]"#),
        ("/v1/score", r#"{"queue":[],"candidates":[["j","c",[]]]}"#),
        ("/v1/score", r#"{"queue":[["a",1,1]],"candidates":[]}"#),
        ("/v1/place", r#"[null,null,[]]"#),
        ("/v1/place", r#"{"queue":[["a",1,1]]}"#),
        ("/v1/plan", r#"[null,null,1]"#),
        ("/v1/explain", r#"[null,{"job":"w","instances":1,"gpus_per_instance":8}]"#),
        ("/v1/audit", r#"[null,[]]"#),
    ] {
        let reply = service.post(path, body);
        assert_eq!((reply.status, reply.json()["error"].as_str()), (400, Some("bad-input")), "{path} {body}");
    }
}

#[test]
fn a_misspelt_log_level_is_refused() {
    for (filter, is_good) in [("nope", false), ("info,slotwise=nope", false), ("warn,slotwise=debug", true)] {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("slotwise"));
        let output = command.args(["serve", "--print", "proto", "--log", filter]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(if is_good { 0 } else { 2 }), "{filter}: {text}");
        assert!(is_good || text.contains("expected one of off, error, warn, info, debug, trace"), "{text}");
    }
}
