//! `explain`, and `place --explain`, on the command line.

use std::path::Path;

use expect_test::expect_file;
use serde_json::{Value, json};

use super::{golden, is_golden, run, text};

const SMALL: &str = "explain --cluster cluster.json --queue queue.jsonl";

fn json_of(words: &str) -> Value {
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{words}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs `words` on a cluster and a queue in files of their own.
fn of_files(cluster: &Value, queue: &[Value], words: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (c, q) = (folder.path().join("c.json"), folder.path().join("q.jsonl"));
    std::fs::write(&c, cluster.to_string()).unwrap();
    std::fs::write(&q, queue.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let output = run(&format!("{words} --cluster {} --queue {}", c.display(), q.display()));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

#[test]
fn reasons_print_what_they_printed() {
    is_golden(&format!("{SMALL} --job big"), expect_file!["../../golden/explain.json"]);
    is_golden(&format!("{SMALL} --job big --format table"), expect_file!["../../golden/explain.txt"]);
    is_golden(&format!("{SMALL} --job odd --format table"), expect_file!["../../golden/explain-odd.txt"]);
}

#[test]
fn every_node_has_one_reason() {
    for (job, why, binding) in [
        ("q", Value::Null, json!([])),
        ("big", json!("fragmentation"), Value::Null),
        ("huge", json!("capacity"), Value::Null),
        ("odd", json!("constraint"), json!(["model"])),
        ("light", Value::Null, json!([])),
    ] {
        let answer = json_of(&format!("{SMALL} --job {job}"));
        assert_eq!((&answer["why"], &answer["binding"]), (&why, &binding), "{job}");
        assert_eq!(answer["fits"], json!(why.is_null()), "{job}");
        let nodes = answer["nodes"].as_array().unwrap().iter().map(|class| class["nodes"].as_u64().unwrap());
        assert_eq!(nodes.sum::<u64>(), 5, "{job}");
        // The plan is that of the command of this name.
        let plan = json_of(&format!("plan --cluster cluster.json --queue queue.jsonl --job {job}"));
        assert_eq!(answer["plan"], plan, "{job}");
    }
}

/// Racks of 18 nodes of 4 GPUs, each rack one NVLink domain; `busy` nodes of each are held by a job of their own.
fn nvl72(busy: &[u32]) -> Value {
    let (mut nodes, mut running) = (Vec::new(), Vec::new());
    for (rack, &busy) in busy.iter().enumerate() {
        for at in 0..18 {
            let name = format!("r{rack}-n{at}");
            if at < busy {
                let instance = json!({"node": name});
                running.push(json!({"job": format!("j{rack}-{at}"), "gpus_per_instance": 4, "instances": [instance]}));
            }
            nodes.push(json!({"name": name, "gpus": 4, "rack": format!("r{rack}"), "domain": "nvl"}));
        }
    }
    json!({"nodes": nodes, "running": running})
}

#[test]
fn a_gang_that_lacks_one_node_of_its_rack() {
    let queue = [json!({"job": "train", "instances": 18, "gpus_per_instance": 4, "within": "rack"})];
    let cluster = nvl72(&[3, 1, 2]);
    let answer: Value = serde_json::from_str(&of_files(&cluster, &queue, "explain")).unwrap();
    assert_eq!((&answer["why"], &answer["binding"]), (&json!("constraint"), &json!(["rack"])));
    let nearest = &answer["nearest"];
    assert_eq!((&nearest["rack"], &nearest["fit"], &nearest["of"]), (&json!("r1"), &json!(17), &json!(18)));
    assert_eq!(answer["regions"][0], json!({"rack": "r1", "nodes": 18, "fit": 17, "free_gpus": 68}));
    assert_eq!((&answer["plan"]["moves"], &answer["plan"]["optimal"]), (&json!(1), &json!(true)));
    let table = of_files(&cluster, &queue, "explain --format table");
    for part in [
        "blocked by constraint: rack.",
        "Without its one rack it would fit.",
        "17 of 18 instances fit now in rack r1",
        "takes 1 move, stop-first",
    ] {
        assert!(table.contains(part), "{part}:\n{table}");
    }
    let pinned = of_files(&cluster, &queue, "explain --pin j*");
    assert!(pinned.contains("\"why\":\"pinned\""), "{pinned}");
}

#[test]
fn shares_are_counted_in_thousandths() {
    let instances = [json!({"node": "a", "gpus": [0]}), json!({"node": "a", "gpus": [1]})];
    let cluster = json!({"nodes": [{"name": "a", "gpus": 2}], "running": [
        {"job": "x", "gpus_per_instance": 1, "gpu_milli": 700, "instances": instances}]});
    let share =
        |name: &str, milli: u32| json!({"job": name, "instances": 3, "gpus_per_instance": 1, "gpu_milli": milli});
    let answer: Value = serde_json::from_str(&of_files(&cluster, &[share("s", 250)], "explain")).unwrap();
    assert_eq!(
        (&answer["free_gpu_milli"], &answer["asks_gpu_milli"], &answer["why"]),
        (&json!(600), &json!(750), &json!("capacity"))
    );
    assert_eq!(answer["nearest"], json!({"fit": 2, "of": 3, "place": [{"node": "a", "instances": 2}]}));
    let table = of_files(&cluster, &[share("s", 150)], "explain --format table");
    assert!(table.contains("0.600 GPUs are free on schedulable nodes, 0.450 are asked for."), "{table}");
    // A share that is placed says how much of its device it got.
    let placed: Value = serde_json::from_str(&of_files(&cluster, &[share("s", 150)], "place")).unwrap();
    assert_eq!(placed["instances"][2], json!({"node": "a", "gpus": [1], "gpu_milli": 150}));
    let table = of_files(&cluster, &[share("s", 150)], "place --format table");
    assert!(table.contains("left of shared GPUs   0.600  0.150  -0.450"), "{table}");
    // So are they by `place --explain`.
    let placed: Value = serde_json::from_str(&of_files(&cluster, &[share("s", 250)], "place --explain")).unwrap();
    let told = &placed["explain"];
    assert_eq!((&told["free_gpus"], &told["asks_gpus"]), (&json!(0), &json!(1)));
    assert_eq!((&told["free_gpu_milli"], &told["asks_gpu_milli"]), (&json!(600), &json!(750)));
    assert_eq!((&told["nodes"][0]["kind"], &told["nodes"][0]["fit"]), (&json!("shared"), &json!(1)));
    let table = of_files(&cluster, &[share("s", 250)], "place --explain --format table");
    assert!(table.contains("0.600 GPUs free, 0.750 asked for"), "{table}");
}

#[test]
fn dumps_of_other_schedulers_are_explained_too() {
    let slurm = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/slurm.json");
    for (program, file) in [("slurm", slurm), ("kubernetes", golden("kubernetes.yaml"))] {
        let source = format!("{program}:{}", file.display());
        let audit = json_of(&format!("audit --cluster {source} --queue {source}"));
        let waiting = audit["pending"]["jobs"].as_u64().unwrap();
        let output = run(&format!("place --cluster {source} --queue {source}"));
        let jobs: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(waiting > 0 && jobs.len() as u64 == waiting, "{program}");
        // Jobs of several groups are not explained.
        let job = jobs.iter().find(|job| job["groups"].is_null()).unwrap()["job"].as_str().unwrap();
        let answer = json_of(&format!("explain --cluster {source} --queue {source} --job {job}"));
        let nodes = answer["nodes"].as_array().unwrap().iter().map(|class| class["nodes"].as_u64().unwrap());
        assert_eq!(Some(nodes.sum()), audit["nodes"].as_u64(), "{program}");
    }
}

#[test]
fn wrong_usage_is_told() {
    for (words, part) in [
        ("explain --cluster cluster.json", "--queue"),
        (SMALL, "--job"),
        (&format!("{SMALL} --job none"), "\"none\""),
        (&format!("{SMALL} --job big --pin none"), "--pin"),
        ("explain --cluster - --queue -", "more than one input"),
    ] {
        let output = run(words);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{words}");
        assert!(text(&output.stderr).contains(part), "{words}: {}", text(&output.stderr));
    }
}
