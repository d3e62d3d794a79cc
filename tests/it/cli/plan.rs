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
