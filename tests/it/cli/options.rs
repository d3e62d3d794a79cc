//! Options that are given what is no value of theirs.

use super::{refused, run, text};

#[test]
fn a_number_out_of_range_is_refused_by_the_option_with_its_range() {
    let (place, plan) =
        ("place --cluster cluster.json --queue queue.jsonl", "plan --cluster cluster.json --free-nodes 1");
    for (command, option, value, expected) in [
        ("audit --cluster cluster.json", "--max-sif-nodes", "0.5", "an integer from 0"),
        ("audit --cluster cluster.json", "--max-sif-nodes", "-1", "an integer from 0"),
        ("audit --cluster cluster.json", "--fail-above", "-1", "a decimal number such as 0.05"),
        ("audit --cluster cluster.json", "--threads", "1025", "an integer from 0 to 1024"),
        ("plan --cluster cluster.json", "--free-nodes", "0", "an integer from 1"),
        ("plan --cluster cluster.json", "--free-nodes", "-3", "an integer from 1"),
        (plan, "--max-moves", "-1", "an integer from 0"),
        (plan, "--max-jobs-disturbed", "1e3", "an integer from 0"),
        (plan, "--time-limit", "-0.5", "an integer from 1 to 4294967296"),
        (place, "--migration-budget", "-1", "an integer from 0"),
        (place, "--seed", "-1", "an integer from 0"),
        (place, "--first", "-1", "an integer from 0"),
        (place, "--window", "0", "an integer from 1 to 1048576"),
        (place, "--crossover", "-1", "an integer from 0, or auto"),
        (place, "--load", "1001", "an integer from 1 to 1000"),
        ("phi-star --demand 1:1", "--capacity", "-1", "an integer from 1 to 16"),
        ("generate cluster", "--busy", "-5", "an integer from 0 to 100"),
        ("simulate --trace trace.jsonl", "--eta", "-1", "a decimal fraction above 0"),
        ("simulate --trace trace.jsonl", "--day", "-1", "an integer from 0"),
        ("sweep --trace trace.jsonl", "--nodes", "3,-4", "an integer from 1 to"),
        ("sweep --trace trace.jsonl", "--move-cost", "-8", "integers up to"),
    ] {
        let output = run(&format!("{command} {option} {value}"));
        refused(option, &output, &[]);
        let told = text(&output.stderr);
        let first = told.lines().next().unwrap();
        let item = value.rsplit(',').next().unwrap();
        for part in [&format!("'{item}' for '{option} <"), &format!("expected {expected}")] {
            assert!(first.contains(part), "{part}: {told}");
        }
    }
}
