//! `plan` on the command line.

use expect_test::expect_file;
use serde_json::{Value, json};

use super::{golden, is_golden, pipe, run, text};

const SMALL: &str = "plan --cluster plan-cluster.json --queue plan-queue.jsonl";

fn json_of(words: &str) -> Value {
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{words}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn plans_print_what_they_printed() {
    is_golden(&format!("{SMALL} --job wide"), expect_file!["../../golden/plan.json"]);
    is_golden(&format!("{SMALL} --job wide --mode hitless --format table"), expect_file!["../../golden/plan.txt"]);
    is_golden(&format!("{SMALL} --job wide --pin solo-* --format table"), expect_file!["../../golden/plan-pinned.txt"]);
}

#[test]
fn the_answer_has_the_fields_of_the_contract() {
    let answer = json_of(&format!("{SMALL} --job wide"));
    for (field, value) in [
        ("job", json!("wide")),
        ("mode", json!("stop-first")),
        ("feasible", json!(true)),
        ("moves", json!(2)),
        ("optimal", json!(true)),
        ("lower_bound", json!(2)),
        ("moved_gpus", json!(3)),
        ("jobs_disturbed", json!(2)),
        ("why", json!(null)),
    ] {
        assert_eq!(answer[field], value, "{field}");
    }
    let step = &answer["steps"][0];
    assert!(step["job"].is_string() && step["instance"].is_u64() && step["from"].is_string() && step["to"].is_string());
    assert!(step["gpus"].is_array() && answer["place"][0]["node"].is_string() && answer["place"][0]["gpus"].is_array());
    let answer = json_of(&format!("{SMALL} --job whole-3"));
    for (field, value) in [
        ("feasible", json!(false)),
        ("moves", json!(null)),
        ("optimal", json!(true)),
        ("lower_bound", json!(null)),
        ("steps", json!([])),
        ("why", json!("capacity")),
    ] {
        assert_eq!(answer[field], value, "{field}");
    }
}

#[test]
fn limits_and_other_goals() {
    let answer = json_of(&format!("{SMALL} --job wide --max-moves 1"));
    assert_eq!((&answer["feasible"], &answer["why"]), (&json!(false), &json!("max-moves")));
    let answer = json_of(&format!("{SMALL} --job wide --max-jobs-disturbed 0"));
    assert_eq!((&answer["feasible"], &answer["why"]), (&json!(false), &json!("max-jobs-disturbed")));
    let answer = json_of("plan --cluster plan-cluster.json --free-nodes 1");
    assert_eq!((&answer["job"], &answer["why"]), (&json!(null), &json!("capacity")));
    let answer = json_of("plan --cluster synthetic:80 --free-nodes 5");
    assert_eq!((&answer["feasible"], &answer["optimal"]), (&json!(true), &json!(true)));
    let answer = json_of("plan --cluster plan-cluster.json --free-rack --cost gpus");
    assert_eq!(answer["goal"], json!("free_rack"));
}

#[test]
fn the_curve_leads_from_now_to_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("curve.svg");
    let nodes: Vec<Value> = (0..10).map(|i| json!({"name": format!("n{i}"), "gpus": 8})).collect();
    let job = |i: u32| json!({"job": format!("j{i}"), "gpus_per_instance": 2 + i % 2, "instances": [{"node": format!("n{}", i / 2)}]});
    let cluster = json!({"nodes": nodes, "running": (0..20).map(job).collect::<Vec<_>>()});
    let answer = of_cluster(&cluster, &format!("--target sif=0 --curve --svg {}", chart.display()));
    let curve = answer["curve"].as_array().unwrap();
    assert_eq!(curve.len() as u64, answer["moves"].as_u64().unwrap() + 1);
    for (point, when) in [(&curve[0], "before"), (&curve[curve.len() - 1], "after")] {
        for measure in ["n_sif", "partial", "phi_star"] {
            assert_eq!(point[measure], answer[measure][when], "{measure} {when}");
        }
    }
    assert!(curve.len() > 3 && curve.iter().all(|point| point["proved"] == json!(true)), "{answer}");
    let number = |point: &Value| point["n_sif"].as_i64().unwrap();
    assert!(curve.is_sorted_by(|a, b| number(a) >= number(b) && a["moves"].as_u64() < b["moves"].as_u64()));
    let svg = std::fs::read_to_string(chart).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert!(["N·SIF by moves", "all proved", "Φ*", "partial nodes"].iter().all(|part| svg.contains(part)), "{svg}");
    let table = pipe("plan --cluster - --target sif=0 --curve --format table", cluster.to_string().as_bytes());
    let rows = text(&table.stdout).split("UP TO MOVES").nth(1).unwrap().lines().skip(1);
    assert_eq!(rows.count(), curve.len());
    // With fewer moves allowed it is the beginning of the same curve.
    let shorter = of_cluster(&cluster, "--target sif=0 --curve --max-moves 2");
    assert_eq!(shorter["curve"].as_array().unwrap()[..], curve[..shorter["moves"].as_u64().unwrap() as usize + 1]);
    assert_eq!(of_cluster(&cluster, "--target sif=0").get("curve"), None);
}

#[test]
fn wrong_usage_is_told() {
    for (words, part) in [
        ("plan --cluster plan-cluster.json", "required"),
        (SMALL, "--job"),
        (&format!("{SMALL} --job none"), "\"none\""),
        (&format!("{SMALL} --job wide --pin none"), "--pin"),
        (&format!("{SMALL} --job wide --cost seconds"), "move_cost_s"),
        (&format!("{SMALL} --job wide --free-nodes 1"), "cannot be used with"),
        (&format!("{SMALL} --job wide --time-limit 0"), "--time-limit"),
        (&format!("{SMALL} --job wide --mode swift"), "stop-first"),
        (&format!("{SMALL} --job wide --curve"), "--target"),
        ("plan --cluster synthetic:80 --target sif=0 --svg x.svg", "--curve"),
        ("plan --cluster synthetic:80 --target sif=0 --curve --svg -", "the name of a file"),
        ("plan --cluster synthetic:80 --target sif=0 --curve --cost gpus", "expected moves"),
        ("plan --cluster synthetic:80 --target sif=0 --curve --commands", "cannot be used with"),
    ] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(text(&output.stderr).contains(part), "{words}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn inputs_may_be_piped() {
    let cluster = std::fs::read(golden("plan-cluster.json")).unwrap();
    let output = pipe("plan --cluster - --queue plan-queue.jsonl --job wide", &cluster);
    assert_eq!(output.stdout, run(&format!("{SMALL} --job wide")).stdout);
}

/// The answer for a cluster of these nodes and running jobs.
fn of_cluster(cluster: &Value, options: &str) -> Value {
    let output = pipe(&format!("plan --cluster - {options}"), cluster.to_string().as_bytes());
    assert_eq!(output.status.code(), Some(0), "{options}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn where_all_costs_differ_there_is_a_plan_all_the_same() {
    let nodes: Vec<Value> = (0..20).map(|i| json!({"name": format!("n{i}"), "gpus": 8})).collect();
    let job = |i: u32| {
        json!({"job": format!("j{i}"), "gpus_per_instance": 1, "remaining_s": 1000 + i,
               "instances": [{"node": format!("n{i}")}]})
    };
    let cluster = json!({"nodes": nodes, "running": (0..20).map(job).collect::<Vec<_>>()});
    for mode in ["stop-first", "hitless"] {
        let answer = of_cluster(&cluster, &format!("--cost seconds --free-nodes 1 --mode {mode}"));
        assert_eq!((&answer["feasible"], &answer["moves"]), (&json!(true), &json!(1)), "{answer}");
        // It may not be the cheapest, and says so then.
        let seconds = answer["lower_bound"].as_u64().unwrap();
        assert!(seconds <= 1000 && (answer["optimal"] == json!(false) || seconds == 1000), "{answer}");
    }
}

#[test]
fn nothing_is_claimed_of_partial_nodes_that_are_cordoned() {
    let node = |name: &str, schedulable: bool| json!({"name": name, "gpus": 8, "schedulable": schedulable});
    let job = |name: &str, node: &str| json!({"job": name, "gpus_per_instance": 4, "instances": [{"node": node}]});
    let cluster = |cordoned: bool| json!({"nodes": [node("a", true), node("b", !cordoned)], "running": [job("x", "a"), job("y", "b")]});
    let open = of_cluster(&cluster(false), "--target sif=0");
    assert_eq!((&open["moves"], &open["optimal"]), (&json!(1), &json!(true)));
    assert_eq!(of_cluster(&cluster(true), "--target sif=0")["optimal"], json!(false));
}

#[test]
fn a_region_is_made_free_only_where_there_are_some() {
    let cluster = json!({"nodes": [{"name": "a", "gpus": 8}]}).to_string();
    for (option, part) in
        [("--free-rack", "found no node with a rack"), ("--free-domain", "found no node with a domain")]
    {
        let output = pipe(&format!("plan --cluster - {option}"), cluster.as_bytes());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        assert!(text(&output.stderr).contains(part), "{}", text(&output.stderr));
    }
}

#[test]
fn the_best_of_plans_that_are_as_good_is_told_and_the_same_everywhere() {
    let nodes = json!([{"name": "empty", "gpus": 4}, {"name": "half", "gpus": 8}, {"name": "full", "gpus": 8}]);
    let job = |name: &str, node: &str, gpus: u32, migratable: bool| json!({"job": name, "gpus_per_instance": gpus, "migratable": migratable, "instances": [{"node": node}]});
    let cluster = json!({"nodes": nodes, "running": [job("stays", "half", 4, false), job("moves", "full", 2, true)]});
    let folder = tempfile::tempdir().unwrap();
    let queue = folder.path().join("queue.jsonl");
    std::fs::write(&queue, "{\"job\": \"waits\", \"instances\": 1, \"gpus_per_instance\": 8}\n").unwrap();
    let words = format!("--queue {}", queue.display());
    let answer = of_cluster(&cluster, &words);
    assert_eq!((&answer["moves"], &answer["steps"][0]["to"]), (&json!(1), &json!("half")), "{answer}");
    let choice = &answer["choice"];
    assert!(choice["chosen"].as_u64() > Some(0) && choice["chosen"].as_u64() < choice["candidates"].as_u64());
    let n_sif = |when: &str| answer["n_sif"][when].as_i64().unwrap();
    assert_eq!(choice["left_abs"], json!(0));
    assert_eq!(choice["delta_sif_nodes"], json!(n_sif("after") - n_sif("before")));
    for options in ["--backend cpu", "--backend auto --crossover 0", "--threads 2", "--crossover auto"] {
        assert_eq!(of_cluster(&cluster, &format!("{words} {options}")), answer, "{options}");
    }
    let table = pipe(&format!("plan --cluster - {words} --format table"), cluster.to_string().as_bytes());
    assert!(text(&table.stdout).contains("no node leaves Σ, N·ΔSIF"), "{}", text(&table.stdout));
}

#[test]
fn that_there_is_no_order_comes_with_its_evidence() {
    let nodes = json!([{"name": "a", "gpus": 8}, {"name": "b", "gpus": 8}]);
    let job = |name: &str, node: &str, gpus: u32| json!({"job": name, "gpus_per_instance": gpus, "instances": [{"node": node}]});
    let running = json!([job("five", "a", 5), job("two", "a", 2), job("four", "b", 4), job("three", "b", 3)]);
    let cluster = json!({"nodes": nodes, "running": running}).to_string();
    let folder = tempfile::tempdir().unwrap();
    let queue = folder.path().join("queue.jsonl");
    std::fs::write(&queue, "{\"job\": \"waits\", \"instances\": 1, \"gpus_per_instance\": 2}\n").unwrap();
    let words = format!("plan --cluster - --queue {} --mode hitless", queue.display());
    let output = pipe(&words, cluster.as_bytes());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["feasible"], &answer["why"]), (&json!(false), &json!("hitless-order")), "{answer}");
    assert_eq!(answer["evidence"], json!({"what": "stuck", "instances": 4, "of": 4}));
    let table = pipe(&format!("{words} --format table"), cluster.as_bytes());
    assert!(text(&table.stdout).contains("4 of 4 instances that may move never find a free place"));
}

#[test]
fn missing_gpus_are_those_that_the_job_may_use() {
    let nodes = json!([{"name": "a", "gpus": 8, "model": "A"}, {"name": "b", "gpus": 8, "model": "B"}]);
    let running = |migratable: bool| json!([{"job": "on-b", "gpus_per_instance": 8, "migratable": migratable, "instances": [{"node": "b"}]}]);
    let folder = tempfile::tempdir().unwrap();
    let queue = folder.path().join("queue.jsonl");
    let line = json!({"job": "waits", "instances": 3, "gpus_per_instance": 8, "models": ["B"]});
    std::fs::write(&queue, format!("{line}\n")).unwrap();
    // 24 are asked for and 8 are free, but of another model; whoever may leave frees as many.
    for (migratable, gpus) in [(true, 16), (false, 24)] {
        let cluster = json!({"nodes": nodes, "running": running(migratable)});
        let answer = of_cluster(&cluster, &format!("--queue {}", queue.display()));
        assert_eq!((&answer["why"], &answer["relax"][0]["gpus"]), (&json!("capacity"), &json!(gpus)), "{answer}");
    }
}

/// A rack with a closed node is none to free: what the others lack is told in GPUs.
#[test]
fn a_rack_that_nothing_can_free_lacks_gpus() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.json");
    let text = r#"{"nodes": [{"name": "a", "gpus": 8, "rack": "r0"}, {"name": "b", "gpus": 8, "rack": "r1", "schedulable": false}],
        "running": [{"job": "j", "gpus_per_instance": 4, "instances": [{"node": "a"}]}]}"#;
    std::fs::write(&path, text).unwrap();
    let output = run(&format!("plan --cluster {} --free-rack --format json", path.display()));
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&plan["feasible"], &plan["why"]),
        (&serde_json::json!(false), &serde_json::json!("capacity")),
        "{plan}"
    );
    assert_eq!(plan["relax"].as_array().unwrap().len(), 1, "{plan}");
}
