//! The placement cases from public bug reports (`shared/cases`), decided by every policy, with the nodes in file order
//! and reversed. Skipped where the cases are not there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use slotwise::anchor::State;
use slotwise::cluster::{Cluster, gpu_indices};
use slotwise::decide::{Audit, CommitLoop, Decision, PlaceOptions, Policy, Status, Why, audit, why_blocked};
use slotwise::formats::{read_cluster_from, read_queue_from};
use slotwise::workload::{Queue, QueueEntry};

pub(crate) fn cases() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/cases");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: there is no {}", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &PathBuf| {
        let mut case: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        if let Some(rule) = case.get("generate") {
            case["cluster"] = generate(rule);
        }
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), case)
    };
    paths.iter().map(read).collect()
}

/// The cluster of a scale case: node i has gpus[i mod len] GPUs, of which (mul·i + add) mod (gpus + 1) are used, each by
/// its own 1-GPU job on the lowest indices; every run of `nodes_per_rack` nodes is one rack and one domain.
fn generate(rule: &Value) -> Value {
    let sizes: Vec<u64> = rule["gpus"].as_array().unwrap().iter().map(|size| size.as_u64().unwrap()).collect();
    let number = |value: &Value| value.as_u64().unwrap();
    let (mut nodes, mut running) = (Vec::new(), Vec::new());
    for i in 0..number(&rule["nodes"]) {
        let gpus = sizes[i as usize % sizes.len()];
        let name = format!("n{i:05}");
        let mut node = json!({"name": name, "gpus": gpus});
        if let Some(each) = rule.get("nodes_per_rack") {
            let rack = i / number(each);
            node["domain"] = format!("d{rack:04}").into();
            node["rack"] = format!("r{rack:04}").into();
        }
        nodes.push(node);
        for k in 0..(number(&rule["used"]["mul"]) * i + number(&rule["used"]["add"])) % (gpus + 1) {
            running.push(json!({"job": format!("j{i:05}-{k}"), "gpus_per_instance": 1, "migratable": true,
                "instances": [{"node": name, "gpus": [k]}]}));
        }
    }
    json!({"nodes": nodes, "running": running})
}

/// The state and queue of a case, or what its reader said.
pub(crate) fn load(case: &Value, reversed: bool) -> Result<(State, Queue), String> {
    let mut snapshot = case["cluster"].clone();
    if reversed {
        snapshot["nodes"].as_array_mut().unwrap().reverse();
    }
    let text = serde_json::to_vec(&snapshot).unwrap();
    let mut cluster = read_cluster_from("case", &text[..]).map_err(|error| error.to_string())?.cluster;
    let lines: Vec<String> = case["queue"].as_array().unwrap().iter().map(Value::to_string).collect();
    let text = lines.join("\n");
    let (queue, _) = read_queue_from("queue", text.as_bytes(), &mut cluster).map_err(|error| error.to_string())?;
    Ok((State::new(cluster), queue))
}

/// Which policies a list of words binds, in a run that migrated or not.
fn binds(words: &Value, policy: Policy, migrated: bool) -> bool {
    let words = words.as_array().map_or(&[][..], Vec::as_slice);
    words.iter().any(|word| match word.as_str() {
        Some("any") => true,
        Some("static") => !migrated,
        word => word == Some(policy.name()),
    })
}

/// Sorted node names, with the devices of each instance.
fn placement(cluster: &Cluster, decision: &Decision) -> Vec<(String, Vec<u8>)> {
    let seats = decision.placements.iter();
    let mut named: Vec<_> =
        seats.map(|&(node, gpus)| (cluster.node_name(node).to_owned(), gpu_indices(gpus).collect())).collect();
    named.sort();
    named
}

fn names(placement: &[(String, Vec<u8>)]) -> Value {
    placement.iter().map(|(name, _)| name.clone()).collect()
}

/// What is wrong with the decision on one job.
fn faults_of_job(expected: &Value, decision: &Decision, cluster: &Cluster) -> Vec<String> {
    let mut faults = Vec::new();
    let (status, why) = match decision.status {
        Status::Placed => ("placed", None),
        Status::Blocked(why) => ("blocked", Some(why.name())),
        Status::Removed => ("removed", None),
        Status::Absent => ("absent", None),
    };
    if expected["status"] != status {
        faults.push(format!("{status}, expected {}", expected["status"]));
    }
    if expected.get("why").is_some_and(|expected| Some(expected.as_str().unwrap()) != why) {
        faults.push(format!("why {why:?}, expected {}", expected["why"]));
    }
    let Some(acceptable) = expected.get("acceptable").and_then(Value::as_array) else { return faults };
    let placed = placement(cluster, decision);
    let Some(at) = acceptable.iter().position(|nodes| *nodes == names(&placed)) else {
        faults.push(format!("placed on {placed:?}, which is not acceptable"));
        return faults;
    };
    if let Some(gpus) = expected.get("gpus") {
        let devices: Value = placed.iter().map(|(_, gpus)| gpus.clone()).collect();
        if gpus[at] != devices {
            faults.push(format!("devices {devices}, expected {}", gpus[at]));
        }
    }
    faults
}

/// Runs one policy on one case; what is wrong, and how many wishes (`desired`) came true of how many.
fn check_policy(case: &Value, policy: Policy, reversed: bool) -> (Vec<String>, (u32, u32)) {
    let (mut state, queue) = load(case, reversed).unwrap();
    let mut decisions: Vec<Decision> = Vec::new();
    let options = PlaceOptions { policy, threads: 1, seed: 11, ..PlaceOptions::default() };
    CommitLoop::new(&mut state, options).run(&queue, &mut |decision| decisions.push(decision.clone()));
    let cluster = state.cluster();
    cluster.check_books().unwrap();
    let migrated = decisions.iter().any(|decision| !decision.migrations.is_empty());
    let (mut faults, mut wishes) = (Vec::new(), (0, 0));
    let expect = &case["expect"];
    for decision in &decisions {
        let name = cluster.job_name(decision.job);
        let Some(expected) = expect["jobs"].get(name) else { continue };
        let found = faults_of_job(expected, decision, cluster);
        if binds(&expected["policies"], policy, migrated) {
            faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
        } else if binds(&expected["desired"], policy, migrated) {
            wishes.1 += 1;
            wishes.0 += u32::from(found.is_empty());
        }
    }
    for joint in expect["jointly"].as_array().unwrap_or(&Vec::new()) {
        let fits = |acceptable: &Value| {
            decisions.iter().all(|decision| {
                let wanted = acceptable.get(cluster.job_name(decision.job));
                wanted.is_none_or(|wanted| *wanted == names(&placement(cluster, decision)))
            })
        };
        if binds(&joint["policies"], policy, migrated) && !joint["acceptable"].as_array().unwrap().iter().any(fits) {
            let all: Vec<_> = decisions.iter().map(|decision| names(&placement(cluster, decision))).collect();
            faults.push(format!("jointly {all:?} is not acceptable"));
        }
    }
    (faults, wishes)
}

#[test]
fn every_policy_gives_acceptable_answers() {
    let mut faults = Vec::new();
    let mut wishes = (0, 0);
    for (name, case) in cases() {
        if case["expect"].get("error").is_some() {
            assert!(load(&case, false).is_err(), "{name} was read");
            continue;
        }
        for policy in Policy::ALL {
            for reversed in [false, true] {
                let (found, (fulfilled, of)) = check_policy(&case, policy, reversed);
                faults.extend(found.into_iter().map(|fault| format!("{name} {policy} reversed={reversed}: {fault}")));
                wishes = (wishes.0 + fulfilled, wishes.1 + of);
            }
        }
    }
    println!("wishes fulfilled: {} of {}", wishes.0, wishes.1);
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn jobs_alone_on_the_snapshot_fit_or_not() {
    for (name, case) in cases() {
        let Some(expected) = case["expect"].get("feasible_without_moves") else { continue };
        for reversed in [false, true] {
            let (state, queue) = load(&case, reversed).unwrap();
            for job in queue.into_iter().map(QueueEntry::job) {
                let Some(expected) = expected.get(state.cluster().job_name(job)) else { continue };
                let fits = why_blocked(&state, job) == Why::Space;
                assert_eq!(*expected, fits, "{name} {}", state.cluster().job_name(job));
            }
        }
    }
}

fn check_sizes(name: &str, what: &str, expected: Option<&Value>, found: &[(u8, u64)]) {
    for (size, count) in expected.and_then(Value::as_object).into_iter().flatten() {
        let size: u8 = size.parse().unwrap();
        let found = found.iter().find(|(other, _)| *other == size).map(|(_, count)| *count);
        assert_eq!(found, count.as_u64(), "{name}: {what} of {size}");
    }
}

#[test]
fn audits_are_right() {
    for (name, case) in cases() {
        if case["expect"].get("error").is_some() {
            continue;
        }
        let (mut state, _) = load(&case, false).unwrap();
        let Audit { total, findings, .. } = audit(&mut state, None);
        check_sizes(&name, "max_gang", case["expect"].get("max_gang"), &total.max_gang);
        check_sizes(&name, "max_gang_ideal", case["expect"].get("max_gang_ideal"), &total.max_gang_ideal);
        assert!(!findings.is_empty());
        if let Some(expected) = case["expect"].get("audit") {
            let found = json!({"empty": total.empty, "partial": total.partial, "full": total.full,
                "busy_gpus": total.busy_gpus, "phi_star": total.phi_star, "n_sif": total.n_sif()});
            assert_eq!(found, *expected, "{name}");
        }
        if name == "C32a.gen" {
            assert_eq!(findings[0], "3,110 of 3,111 partial nodes are avoidable: ideal packing leaves 1.");
            let gain = "1,555 more 8-GPU instances would fit after ideal packing: 445 now, 2,000 then.";
            assert_eq!(findings[1], gain);
        }
    }
}
