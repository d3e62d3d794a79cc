//! Jobs of several groups on the command line.

use expect_test::expect_file;
use serde_json::Value;

use super::{is_golden, refused, run, text};

const SMALL: &str = "--cluster cluster.json --queue groups.jsonl";

#[test]
fn groups_print_what_they_printed() {
    is_golden(&format!("place {SMALL} --policy best-fit"), expect_file!["../../golden/place-groups.jsonl"]);
    let output = run(&format!("place {SMALL} --policy best-fit --format table"));
    let lines = text(&output.stdout).lines().filter(|line| !line.starts_with("time "));
    let table: String = lines.map(|line| format!("{line}\n")).collect();
    expect_file!["../../golden/place-groups.txt"].assert_eq(&table);
    let audit = run(&format!("audit {SMALL} --format json"));
    let audit: Value = serde_json::from_slice(&audit.stdout).unwrap();
    let pending = serde_json::to_string_pretty(&audit["pending"]).unwrap();
    expect_file!["../../golden/audit-groups.json"].assert_eq(&format!("{pending}\n"));
}

#[test]
fn every_line_has_its_groups_beside_its_instances() {
    for policy in ["compass", "best-fit", "random", "fgd", "make-room"] {
        let output = run(&format!("place {SMALL} --policy {policy}"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        for line in text(&output.stdout).lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let is_groups = ["g1", "g2", "wide", "shares", "large"].contains(&line["job"].as_str().unwrap());
            if line["status"] == "removed" || line["status"] == "absent" {
                assert!(line["groups"].is_null());
                continue;
            }
            assert_eq!(line["groups"].is_array(), is_groups, "{line}");
            assert_eq!(line["proven"].is_boolean(), is_groups && line["status"] == "blocked", "{line}");
            if is_groups {
                let groups = line["groups"].as_array().unwrap().iter();
                let of_groups: Vec<&Value> = groups.flat_map(|group| group["instances"].as_array().unwrap()).collect();
                assert_eq!(of_groups, line["instances"].as_array().unwrap().iter().collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn a_snapshot_keeps_the_groups_of_a_job_together() {
    let folder = tempfile::tempdir().unwrap();
    let [after, queue, again] = ["after.json", "q.jsonl", "again.json"].map(|name| folder.path().join(name));
    let output = run(&format!("place {SMALL} --policy best-fit --snapshot-out {}", after.display()));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let snapshot: Value = serde_json::from_slice(&std::fs::read(&after).unwrap()).unwrap();
    let of_g2 = |job: &&Value| job["group_of"] == "g2";
    let names: Vec<&Value> =
        snapshot["running"].as_array().unwrap().iter().filter(of_g2).map(|job| &job["job"]).collect();
    assert_eq!(names, ["g2/1", "g2/2"]);
    // An empty queue changes nothing; one that ends the job ends all of it.
    std::fs::write(&queue, "").unwrap();
    let words = |policy: &str| {
        let (after, queue, again) = (after.display(), queue.display(), again.display());
        format!("place --cluster {after} --queue {queue} --policy {policy} --snapshot-out {again}")
    };
    assert_eq!(run(&words("best-fit")).status.code(), Some(0));
    assert_eq!(std::fs::read(&after).unwrap(), std::fs::read(&again).unwrap());
    std::fs::write(&queue, "{\"remove\":\"g2\"}\n").unwrap();
    let output = run(&words("best-fit"));
    assert_eq!(text(&output.stdout), "{\"job\":\"g2\",\"status\":\"removed\",\"migrations\":[]}\n");
    assert!(!std::fs::read_to_string(&again).unwrap().contains("g2"));
}

#[test]
fn what_does_not_take_groups_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let candidates = folder.path().join("k.jsonl");
    std::fs::write(&candidates, "\n{\"job\":\"g1\",\"candidate\":\"c\",\"place\":[]}\n").unwrap();
    let output = run(&format!("score {SMALL} --candidates {}", candidates.display()));
    refused("score", &output, &["k.jsonl:2: job:", "\"g1\" of several groups"]);
    for command in ["plan", "explain"] {
        refused(command, &run(&format!("{command} {SMALL} --job g2")), &["\"g2\" of groups that ask for unlike GPUs"]);
        refused(command, &run(&format!("{command} {SMALL} --job g2/1")), &["\"g2/1\", expected a job that"]);
    }
    refused(
        "place",
        &run(&format!("place {SMALL} --explain=g1")),
        &["--explain: found \"g1\", a job of several groups"],
    );
    // All blocked jobs are told of, those of several groups in a line.
    let output = run(&format!("place {SMALL} --policy best-fit --explain --format table"));
    assert!(text(&output.stdout).contains("large, 100 × 8 + 1 × 0 GPUs: blocked by capacity\n"));
}

/// What is planned for the most of each group is enough for all of them.
#[test]
fn groups_of_the_same_gpus_are_planned_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let cluster = write(
        "c.json",
        r#"{"nodes": [{"name": "a", "gpus": 8, "cpu_milli": 900}, {"name": "b", "gpus": 8, "cpu_milli": 900}],
        "running": [{"job": "r", "gpus_per_instance": 1, "instances": [{"node": "a"}]},
                    {"job": "s", "gpus_per_instance": 1, "instances": [{"node": "b"}]}]}"#,
    );
    let queue = write("q.jsonl", r#"{"job": "g", "groups": [{"instances": 1, "gpus_per_instance": 0, "cpu_milli": 1},
        {"instances": 1, "gpus_per_instance": 7, "cpu_milli": 100}, {"instances": 1, "gpus_per_instance": 7, "cpu_milli": 200}]}"#.replace('\n', " ").as_str());
    let output = run(&format!("plan --cluster {cluster} --queue {queue} --format json"));
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&plan["moves"], &plan["job"]), (&serde_json::json!(0), &serde_json::json!("g (as one group)")));
    assert_eq!(plan["place"].as_array().unwrap().len(), 2);
    assert!(text(&output.stderr).contains("\"g\" has several groups"), "{}", text(&output.stderr));
    assert!(run(&format!("explain --cluster {cluster} --queue {queue}")).status.success());
}
