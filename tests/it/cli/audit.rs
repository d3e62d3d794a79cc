//! `audit` on the command line.

use expect_test::expect_file;
use serde_json::{Value, json};

use super::{is_golden, pipe, run, text};

const SMALL: &str = "audit --cluster cluster.json";

fn json_of(words: &str) -> Value {
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{words}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn audits_print_what_they_printed() {
    is_golden(SMALL, expect_file!["../../golden/audit.json"]);
    is_golden(&format!("{SMALL} --format table"), expect_file!["../../golden/audit.txt"]);
    let waiting = format!("{SMALL} --queue queue.jsonl --format table");
    is_golden(&waiting, expect_file!["../../golden/audit-queue.txt"]);
}

#[test]
fn who_waits_though_gpus_are_free() {
    let answer = json_of(&format!("{SMALL} --queue queue.jsonl"));
    let pending = &answer["pending"];
    let counts =
        ["jobs", "startable", "capacity", "fragmentation", "constraint"].map(|field| pending[field].as_u64().unwrap());
    assert_eq!(counts, [6, 2, 1, 2, 1]);
    let waiting = |job: &str, instances: u32, gpus: u32, why: &str| json!({"job": job, "instances": instances, "gpus_per_instance": gpus, "why": why});
    let expected = [
        waiting("big", 1, 8, "fragmentation"),
        waiting("odd", 1, 2, "constraint"),
        waiting("late", 1, 8, "fragmentation"),
    ];
    assert_eq!(pending["though_free"], json!(expected));
    assert_eq!(json_of(SMALL).get("pending"), None);
}

#[test]
fn every_free_gpu_has_one_cause() {
    for words in [SMALL.to_owned(), format!("{SMALL} --queue queue.jsonl"), "audit --cluster synthetic:4000".to_owned()]
    {
        let answer = json_of(&words);
        for figures in std::iter::once(&answer).chain(answer["pools"].as_array().unwrap()) {
            let causes = figures["stranded"].as_object().unwrap().values();
            assert_eq!(Some(causes.map(|n| n.as_u64().unwrap()).sum()), figures["free_gpus"].as_u64(), "{words}");
        }
    }
}

#[test]
fn shares_of_a_gpu_count_as_one_busy_gpu() {
    let cluster = json!({"nodes": [{"name": "a", "gpus": 2, "domain": "d"}], "running": [
        {"job": "x", "gpus_per_instance": 1, "gpu_milli": 300, "instances": [{"node": "a", "gpus": [0]}, {"node": "a", "gpus": [0]}]}]});
    let output = pipe("audit --cluster -", cluster.to_string().as_bytes());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["busy_gpus"], &answer["partial"], &answer["phi_star"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!((&answer["domains"][0]["free_gpus"], &answer["stranded"]["usable"]), (&json!(1), &json!(1)));
}

#[test]
fn thresholds_exit_3_after_the_result() {
    for (limits, crossed) in [
        ("--fail-above 0.6", None),
        ("--fail-above 0.59", Some("found sif = 3/5, expected at most 0.59")),
        ("--fail-above n-sif=3 --fail-above outside-abs=0", Some("found outside-abs = 1, expected at most 0")),
        ("--fail-above f=0.8 --fail-above stranded=6", None),
        ("--fail-above stranded=5.9", Some("found stranded = 6")),
        ("--queue queue.jsonl --fail-above pending=3", None),
        ("--queue queue.jsonl --fail-above pending=2", Some("found pending = 3")),
        ("--max-sif-nodes 0", Some("expected at most 0")),
    ] {
        let output = run(&format!("{SMALL} {limits}"));
        assert_eq!(output.status.code(), Some(if crossed.is_some() { 3 } else { 0 }), "{limits}");
        assert!(text(&output.stderr).contains(crossed.unwrap_or_default()), "{}", text(&output.stderr));
        assert!(!output.stdout.is_empty());
    }
    for (limits, part) in [("--fail-above much", "found \"much\""), ("--fail-above pending=0", "--queue")] {
        let output = run(&format!("{SMALL} {limits}"));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{limits}");
        assert!(text(&output.stderr).contains(part), "{}", text(&output.stderr));
    }
}

#[test]
fn a_large_cluster_is_told_in_80_columns() {
    let output = run("audit --cluster synthetic:100000 --queue synthetic:200 --format table");
    let table = text(&output.stdout);
    let long: Vec<&str> = table.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(long.is_empty(), "{long:?}");
    // 3,125 domains and 782 racks take a few lines.
    assert!(table.contains("\n3,125: ") && table.lines().count() < 120, "{table}");
}
