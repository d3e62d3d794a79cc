//! The page: its data, who gets it, and what a browser makes of it.

#[cfg(unix)]
mod browser;
#[cfg(unix)]
mod shown;

use std::path::PathBuf;

use serde_json::{Value, json};

use super::Service;

const TOKEN: &str = "0123456789abcdef-page";

/// A word from somebody else.
pub(super) const HOSTILE: &str = "<img src=x onerror=\"window.hacked=1\">\\\n";

fn state(service: &Service, query: &str) -> Value {
    service.get(&format!("/v1/page/state{query}")).json()
}

pub(super) fn post(service: &Service, path: &str, body: &Value) -> Value {
    let reply = service.post(path, body.to_string());
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

pub(super) fn put_cluster(service: &Service, snapshot: &Value) -> Value {
    let reply = service.put("/v1/cluster", snapshot.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// A file that holds a token, and the folder that goes with it.
fn token_file(token: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, token).unwrap();
    (folder, path)
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

#[test]
fn only_what_is_new_is_sent() {
    let service = Service::start(&["--cluster", "synthetic:800:3"]);
    let topology = service.get("/v1/page/cluster").json();
    assert_eq!(topology["nodes"].as_array().unwrap().len(), 100);
    assert_eq!(strings(&topology["models"]), ["H100"]);
    for column in ["rack", "domain", "model", "devices", "usable"] {
        assert_eq!(topology[column].as_array().unwrap().len(), 100, "{column}");
    }
    let first = state(&service, "");
    assert_eq!(first["topology"], topology["topology"]);
    assert_eq!(first["nodes"]["at"], Value::Null);
    assert_eq!(first["nodes"]["busy"].as_array().unwrap().len(), 100);
    assert_eq!(first["decisions"], json!({"next": 0, "items": []}));
    // The busy devices are those that the snapshot says.
    let snapshot = service.get("/v1/cluster").json();
    let mut busy = vec![0; 100];
    for job in snapshot["running"].as_array().unwrap() {
        for instance in job["instances"].as_array().unwrap() {
            let node: usize = instance["node"].as_str().unwrap()[1..].parse().unwrap();
            busy[node] |=
                instance["gpus"].as_array().unwrap().iter().fold(0, |mask, gpu| mask | 1 << gpu.as_u64().unwrap());
        }
    }
    assert_eq!(first["nodes"]["busy"], json!(busy));

    let since = |state: &Value| {
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let [version, samples, decisions] =
            [&state["version"], &state["samples"]["next"], &state["decisions"]["next"]].map(word);
        format!("?since={version}&samples={samples}&decisions={decisions}")
    };
    let same = state(&service, &since(&first));
    assert_eq!(same["nodes"], json!({"at": [], "busy": [], "anchors": [], "shared": [], "closed": []}));
    post(&service, "/v1/edits", &json!({"edits": [{"cordon": "n7"}]}));
    let queue = json!([
        {"job": "fits", "gpus_per_instance": 8, "instances": 2},
        {"job": "never", "gpus_per_instance": 8, "instances": 1000}]);
    let placed = post(&service, "/v1/place", &json!({"queue": queue, "policy": "best-fit", "commit": true}));
    let second = state(&service, &since(&first));
    assert_eq!(second["version"], placed["version"]);
    let instances = placed["decisions"][0]["instances"].as_array().unwrap();
    let mut touched: Vec<u64> =
        instances.iter().map(|seat| seat["node"].as_str().unwrap()[1..].parse().unwrap()).collect();
    touched.push(7);
    touched.sort_unstable();
    assert_eq!(second["nodes"]["at"], json!(touched));
    let closed: Vec<u8> = touched.iter().map(|&node| u8::from(node == 7)).collect();
    assert_eq!(second["nodes"]["closed"], json!(closed));
    // What was decided, and why.
    let decisions = second["decisions"]["items"].as_array().unwrap();
    let told: Vec<Value> =
        decisions.iter().map(|one| json!([one["job"], one["status"], one["why"], one["gpus"]])).collect();
    assert_eq!(told, [json!(["fits", "placed", null, 16]), json!(["never", "blocked", "capacity", 0])]);
    assert!(decisions.iter().all(|one| one["via"] == "place" && one["commit"] == true));
    assert_eq!(state(&service, &since(&second))["decisions"], json!({"next": 2, "items": []}));

    // Whoever knows another life of the service, or another cluster, gets all of it.
    let other = state(&service, "?since=0000000000000000-1&samples=900&decisions=900");
    assert_eq!((&other["nodes"]["at"], &other["decisions"]), (&Value::Null, &state(&service, "")["decisions"]));
    let put = put_cluster(&service, &snapshot);
    let third = state(&service, &since(&second));
    assert_eq!((&third["nodes"]["at"], &third["topology"]), (&Value::Null, &put["version"]));
    let refused = service.get("/v1/page/state?since=7");
    let body = refused.text();
    assert_eq!(refused.status, 400, "{body}");
    assert!(body.contains("bad-input") && body.contains("since"), "{body}");
}

#[test]
fn a_cluster_of_100_000_gpus_is_told_at_once() {
    let service = Service::start(&["--cluster", "synthetic:100000"]);
    // Each of these changes something, so that the columns and sums are made anew.
    for round in 0..20 {
        post(&service, "/v1/edits", &json!({"edits": [{"cordon": format!("n{round}")}]}));
        state(&service, "");
        service.get("/metrics");
    }
    service.get("/v1/page/cluster");
    let state = state(&service, "");
    for call in state["calls"].as_array().unwrap() {
        println!("{} calls of {}: p50 {} µs", call["calls"], call["endpoint"], call["p50_us"]);
        // A hundred times what it takes on an idle machine in a release build.
        assert!(call["p50_us"].as_u64() < Some(500_000), "{call}");
    }
}

#[test]
fn only_the_empty_page_is_for_everybody() {
    let (_folder, token) = token_file(TOKEN);
    let service = Service::start(&["--cluster", "synthetic:80", "--token-file", token.to_str().unwrap()]);
    for open in ["/", "/page/page.js", "/page/page.css", "/page/icon.svg"] {
        let reply = service.get(open);
        assert_eq!(reply.status, 200, "{open}");
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{open}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert!(!reply.text().contains("://") || open == "/page/icon.svg", "{open} names another place");
    }
    assert_eq!(service.get("/page/other.js").status, 404);
    let closed = ["/metrics", "/v1/page/state", "/v1/page/cluster"];
    for path in closed {
        assert_eq!(service.get(path).status, 401, "{path}");
    }
    let service = service.showing(TOKEN);
    for path in closed {
        assert_eq!(service.get(path).status, 200, "{path}");
    }
}
