//! What the commands say of the same thing is the same.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{run, text};

fn lines(words: &str) -> Vec<Value> {
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{words}: {}", text(&output.stderr));
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A fragmented cluster and a queue of a few jobs, and what a policy made of them.
struct Case {
    folder: tempfile::TempDir,
    inputs: String,
    decisions: Vec<Value>,
}

impl Case {
    fn new(seed: u32, policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let (before, queue) = (file("before"), file("queue"));
        run(&format!("generate cluster --gpus 203 --busy 70 --scattered --mix hard --seed {seed} --out {before}"));
        run(&format!("generate queue --gpus 60 --jobs 40 --mix hard --seed {seed} --no-removals --out {queue}"));
        let inputs = format!("--cluster {before} --queue {queue}");
        let decisions = lines(&format!("place {inputs} --policy {policy} --snapshot-out {}", file("after")));
        Self { folder, inputs, decisions }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn avoidable(&self, cluster: &str) -> i64 {
        lines(&format!("audit --cluster {}", self.file(cluster)))[0]["n_sif"].as_i64().unwrap()
    }

    /// Which devices each running instance holds.
    fn held(&self, cluster: &str) -> HashMap<(String, u64), (String, Value)> {
        let snapshot: Value = serde_json::from_slice(&std::fs::read(self.file(cluster)).unwrap()).unwrap();
        let name = |value: &Value| value.as_str().unwrap().to_owned();
        let mut held = HashMap::new();
        for job in snapshot["running"].as_array().unwrap() {
            for (i, seat) in (0..).zip(job["instances"].as_array().unwrap()) {
                held.insert((name(&job["job"]), i), (name(&seat["node"]), seat["gpus"].clone()));
            }
        }
        held
    }
}

#[test]
fn decisions_and_audits_agree() {
    for seed in 1..6 {
        for policy in ["compass", "best-fit", "random"] {
            let case = Case::new(seed, policy);
            let sum: i64 = case.decisions.iter().filter_map(|line| line["delta_sif_nodes"].as_i64()).sum();
            assert_eq!(case.avoidable("after") - case.avoidable("before"), sum, "seed {seed}, {policy}");
        }
    }
}

fn first_decision_is_scored_as_decided(policy: &str) {
    for seed in 1..6 {
        let case = Case::new(seed, policy);
        let Some(first) = case.decisions.iter().find(|line| line["status"] == "placed") else { continue };
        let moved = first["migrations"].as_array().unwrap();
        let migrate = |one: &Value| json!({"job": one["job"], "instance": one["instance"], "node": one["to"], "gpus": one["gpus"]});
        let migrate: Vec<Value> = moved.iter().map(migrate).collect();
        let candidate = json!({"job": first["job"], "candidate": "c", "place": first["instances"], "migrate": migrate});
        std::fs::write(case.file("candidate"), candidate.to_string()).unwrap();
        let score = &lines(&format!("score {} --candidates {}", case.inputs, case.file("candidate")))[0];
        assert_eq!(score["feasible"], true, "seed {seed}, {policy}: {score}");
        assert_eq!(score["delta_sif_nodes"], first["delta_sif_nodes"], "seed {seed}, {policy}: {score}");
        assert_eq!(score["in_abs"], first["in_abs"], "seed {seed}, {policy}: {score}");
        assert_eq!(score["moves"].as_u64().unwrap() as usize, moved.len());
    }
}

#[test]
fn decisions_and_scores_agree() {
    first_decision_is_scored_as_decided("best-fit");
    first_decision_is_scored_as_decided("random");
}

#[test]
fn decisions_with_moves_and_scores_agree() {
    first_decision_is_scored_as_decided("compass");
}

#[test]
fn the_lines_lead_from_one_snapshot_to_the_next() {
    for seed in 1..6 {
        let case = Case::new(seed, "compass");
        let mut held = case.held("before");
        let name = |value: &Value| value.as_str().unwrap().to_owned();
        for line in &case.decisions {
            for one in line["migrations"].as_array().unwrap() {
                let instance = (name(&one["job"]), one["instance"].as_u64().unwrap());
                held.insert(instance, (name(&one["to"]), one["gpus"].clone()));
            }
            for (i, seat) in (0..).zip(line["instances"].as_array().unwrap()) {
                held.insert((name(&line["job"]), i), (name(&seat["node"]), seat["gpus"].clone()));
            }
        }
        assert_eq!(held, case.held("after"), "seed {seed}");
    }
}
