//! `/metrics`: what Prometheus can read, what agrees with an audit, and no more series than there may be.

mod exposition;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use slotwise::cluster::{ClusterBuilder, NodeSpec};
use slotwise::evaluate::Cpu;
use slotwise::serve::{Engine, Live, Metrics};

use super::Service;
use super::page::{HOSTILE, post, put_cluster};
use exposition::{Family, read};

fn scrape(service: &Service) -> BTreeMap<String, Family> {
    let reply = service.get("/metrics");
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    read(&reply.text())
}

/// The value of a sample whose labels these are.
fn value(families: &BTreeMap<String, Family>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let is_it = |found: &BTreeMap<String, String>| {
        found.len() == labels.len() && labels.iter().all(|(label, value)| found.get(*label).is_some_and(|v| v == value))
    };
    let samples = families.values().flat_map(|family| &family.samples);
    let found: Vec<f64> =
        samples.filter(|(of, found, _)| of == name && is_it(found)).map(|&(.., value)| value).collect();
    assert_eq!(found.len(), 1, "{name} {labels:?}");
    found[0]
}

#[test]
fn names_and_kinds_are_as_prometheus_has_them() {
    let service = Service::start(&["--cluster", "synthetic:800"]);
    post(
        &service,
        "/v1/place",
        &json!({"queue": [{"job": "a", "instances": 1, "gpus_per_instance": 2}, {"job": "b", "instances": 999, "gpus_per_instance": 8}]}),
    );
    service.get("/v1/page/state?since=7");
    let families = scrape(&service);
    for (name, family) in &families {
        assert!(name.starts_with("slotwise_") && !family.samples.is_empty(), "{name}");
        assert_eq!(name.ends_with("_total"), family.kind == "counter", "{name}");
        assert!(!name.contains("milli") && (family.kind != "histogram" || name.ends_with("_seconds")), "{name}");
        assert!(!family.samples.iter().any(|(_, labels, _)| labels.contains_key("job")), "{name}");
        if family.kind == "histogram" {
            is_cumulative(family);
        }
    }
    let place = [("method", "POST"), ("endpoint", "/v1/place"), ("outcome", "ok")];
    assert_eq!(value(&families, "slotwise_requests_total", &place), 1.0);
    assert_eq!(value(&families, "slotwise_request_duration_seconds_count", &place[..2]), 1.0);
    let refused = [("method", "GET"), ("endpoint", "/v1/page/state"), ("outcome", "bad-input")];
    assert_eq!(value(&families, "slotwise_requests_total", &refused), 1.0);
    for status in ["placed", "blocked"] {
        let decided = [("via", "place"), ("status", status)];
        assert_eq!(value(&families, "slotwise_decisions_total", &decided), 1.0);
    }
    assert_eq!(value(&families, "slotwise_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
    assert_eq!(value(&families, "slotwise_backend_info", &[("backend", "cpu")]), 1.0);
    assert!(value(&families, "slotwise_state_age_seconds", &[]) > 0.0);
}

fn is_cumulative(family: &Family) {
    let mut rows: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for (name, labels, value) in &family.samples {
        let mut labels = labels.clone();
        let bound = labels.remove("le");
        let key = format!("{labels:?}");
        if name.ends_with("_bucket") {
            rows.entry(key).or_default().push((bound.unwrap().parse().unwrap(), *value));
        } else if name.ends_with("_count") {
            counts.insert(key, *value);
        }
    }
    assert_eq!(rows.len(), counts.len());
    for (key, row) in rows {
        assert!(row.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{row:?}");
        assert_eq!(row.last(), Some(&(f64::INFINITY, counts[&key])));
    }
}

#[test]
fn the_gauges_are_what_an_audit_says() {
    let origin = "synthetic:2000:7";
    let service = Service::start(&["--cluster", origin]);
    // At random, so that there is something to say.
    let jobs: Vec<Value> =
        (0..60).map(|i| json!({"job": format!("j{i}"), "instances": 1, "gpus_per_instance": i % 7 + 1})).collect();
    post(&service, "/v1/place", &json!({"queue": jobs, "policy": "random", "commit": true}));
    post(&service, "/v1/edits", &json!({"edits": [{"cordon": "n3"}, {"cordon": "n249"}]}));
    let families = scrape(&service);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cluster.json");
    std::fs::write(&file, service.get("/v1/cluster").body).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_slotwise")).arg("audit").arg("--cluster").arg(&file).output().unwrap();
    let audit: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |key: &str| audit[key].as_f64().unwrap_or_else(|| panic!("{key}: {audit}"));
    for (name, labels, key) in [
        ("slotwise_nodes", &[("state", "empty")][..], "empty"),
        ("slotwise_nodes", &[("state", "partial")], "partial"),
        ("slotwise_nodes", &[("state", "full")], "full"),
        ("slotwise_sif_nodes", &[], "n_sif"),
        ("slotwise_phi_star_nodes", &[], "phi_star"),
        ("slotwise_gpus", &[("state", "allocated"), ("product", "H100")], "busy_gpus"),
    ] {
        assert_eq!(value(&families, name, labels), number(key), "{name} {labels:?}");
    }
    assert!(number("n_sif") > 1.0, "{audit}");
    for alike in audit["by_free"].as_array().unwrap() {
        let free = alike["free"].to_string();
        let schedulable = alike["nodes"].as_f64().unwrap() - alike["unschedulable"].as_f64().unwrap();
        assert_eq!(value(&families, "slotwise_free_nodes", &[("free_gpus", &free)]), schedulable);
    }
    for size in ["1", "2", "4", "8"] {
        let within = &audit["max_gang_within"];
        for (level, gangs) in
            [("cluster", &audit["max_gang"]), ("rack", &within["rack"]), ("domain", &within["domain"])]
        {
            let labels = [("level", level), ("gpus_per_instance", size)];
            let gpus = gangs[size].as_f64().unwrap() * size.parse::<f64>().unwrap();
            assert_eq!(value(&families, "slotwise_largest_gang_gpus", &labels), gpus, "{labels:?}");
        }
    }
    let gpus: f64 = families["slotwise_gpus"].samples.iter().map(|(.., value)| value).sum();
    assert_eq!(gpus, 2000.0);
    let of = |state: &str| value(&families, "slotwise_gpus", &[("state", state), ("product", "H100")]);
    assert_eq!(audit["stranded"]["usable"], of("free"));
    assert_eq!(audit["stranded"]["cordon"], of("unavailable"));
    assert_eq!(value(&families, "slotwise_unschedulable_nodes", &[]), 2.0);
}

#[test]
fn whatever_is_sent_makes_few_series() {
    let service = Service::start(&[]);
    let series = || scrape(&service).values().map(|family| family.samples.len()).sum::<usize>();
    assert_eq!(value(&scrape(&service), "slotwise_cluster_loaded", &[]), 0.0);
    for i in 0..50 {
        assert_eq!(service.get(&format!("/{i}/{}", "x".repeat(i))).status, 404);
    }
    let other = [("method", "GET"), ("endpoint", "other"), ("outcome", "not-found")];
    assert_eq!(value(&scrape(&service), "slotwise_requests_total", &other), 50.0);
    assert!(series() < 80, "{}", series());
    let nodes: Vec<Value> =
        (0..200).map(|i| json!({"name": format!("n{i}"), "gpus": 1, "model": format!("{HOSTILE}{i}")})).collect();
    put_cluster(&service, &json!({"nodes": nodes}));
    let families = scrape(&service);
    let gpus = &families["slotwise_gpus"].samples;
    assert_eq!(gpus.len(), 4 * 33);
    assert_eq!(gpus.iter().map(|(.., value)| value).sum::<f64>(), 200.0);
    assert_eq!(value(&families, "slotwise_gpus", &[("state", "free"), ("product", "other")]), 168.0);
    assert_eq!(value(&families, "slotwise_gpus", &[("state", "free"), ("product", &format!("{HOSTILE}0"))]), 1.0);
}

#[test]
fn the_board_asks_only_for_what_there_is() {
    let mut builder = ClusterBuilder::new();
    builder.add_node(&NodeSpec { name: "n", gpus: 8, ..NodeSpec::default() }).unwrap();
    let mut live = Live::new(Box::new(Cpu::new(1).unwrap()));
    live.put(builder.finish().unwrap());
    let picture = live.picture().unwrap();
    let (engine, thread) = Engine::start(live, 1).unwrap();
    let metrics = Metrics::new(engine);
    metrics.see(Some(picture), "cpu");
    metrics.request("GET", "/", "ok", 0.001);
    metrics.extender("filter", "placed", 0.001);
    metrics.decided("filter", "placed", 1);
    let families = read(&metrics.text().unwrap());
    drop(metrics);
    thread.join().unwrap();
    let there: Vec<&str> =
        families.values().flat_map(|family| &family.samples).map(|(name, ..)| name.as_str()).collect();

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/files/grafana-board.json");
    let board = std::fs::read_to_string(file).unwrap();
    let parsed: Value = serde_json::from_str(&board).unwrap();
    let mut asked = 0;
    for at in board.match_indices("slotwise_").map(|(at, _)| at) {
        let name: String = board[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        assert!(there.contains(&name.as_str()), "the board asks for {name}, there are {there:?}");
        asked += 1;
    }
    assert!(asked > 30, "{asked}");
    // Every family is on it, and every panel reads the data source that is chosen.
    for name in families.keys().filter(|name| *name != "slotwise_cluster_loaded") {
        assert!(board.contains(name), "{name} is not on the board");
    }
    assert_eq!(parsed["templating"]["list"][0]["type"], "datasource");
    for panel in parsed["panels"].as_array().unwrap() {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
    }
}
