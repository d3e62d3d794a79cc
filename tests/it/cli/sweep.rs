//! `sweep` and `merge` on the command line.

use std::path::Path;

use serde_json::Value;

use super::{run, text};

/// Cells on four days, some of them without a job.
const GRID: &str = "sweep --trace synthetic:300:3 --mix venus --load 8 --days 0..4 --eta 0.85,0.95 --move-cost 0,8 \
    --policy compass:when-blocked,best-fit,random --seed 4";
const CELLS: usize = 48;

fn rows(bytes: &[u8]) -> Vec<Value> {
    text(bytes).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ok(words: &str) -> Vec<u8> {
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{words}: {}", text(&output.stderr));
    output.stdout
}

fn fails(words: &str, code: i32, expected: &str) {
    let output = run(words);
    assert_eq!(output.status.code(), Some(code), "{words}: {}", text(&output.stderr));
    assert!(text(&output.stderr).contains(expected), "{words}: {}", text(&output.stderr));
    assert!(output.stdout.is_empty());
}

#[test]
fn every_cell_is_the_run_that_its_key_says() {
    let rows = rows(&ok(GRID));
    assert_eq!(rows.len(), CELLS);
    for (number, row) in rows.iter().enumerate() {
        assert_eq!((&row["cell"], &row["cells"]), (&number.into(), &CELLS.into()));
        if number % 5 > 0 {
            continue;
        }
        let single = format!(
            "simulate --trace synthetic:300:3 --mix venus --load 8 --day {} --eta {} --move-cost {} --policy {} --seed {}",
            row["day"],
            row["eta"],
            row["move_cost_s"],
            row["policy"].as_str().unwrap(),
            row["seed"]
        );
        let single: Value = serde_json::from_slice(&ok(&single)).unwrap();
        for same in ["nodes", "jobs", "finished", "afr", "agu", "ajct_s", "utilisation", "n_sif_max", "makespan_s"] {
            assert_eq!(row[same], single[same], "{same} of {row}");
        }
        assert_eq!(row["peak_n_sif_node_s"], single["sums"]["peak_n_sif_node_s"]);
        assert_eq!(row["migrations"], single["migrations"]["instances"]);
    }
    assert!(rows.iter().any(|row| row["migrations"].as_u64() > Some(0)), "nothing moved: the test has no teeth");
}

#[test]
fn threads_and_shards_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let whole = ok(&format!("{GRID} --threads 1"));
    assert!(text(&ok(&format!("{GRID} --threads 5"))) == text(&whole));
    let path = |i: usize| folder.path().join(format!("part-{i}")).display().to_string();
    for i in 1..=3 {
        ok(&format!("{GRID} --shard {i}/3 --out {}", path(i)));
    }
    let merged = ok(&format!("merge {} {} {}", path(3), path(1), path(2)));
    assert!(text(&merged) == text(&whole));
    // The same parts twice are no conflict.
    assert!(text(&ok(&format!("merge {0} {1} {2} {0}", path(2), path(3), path(1)))) == text(&whole));
    fails(&format!("merge {} {}", path(1), path(3)), 1, "16 of 48 cells are missing: 1, 4, 7,");
    assert_eq!(rows(&ok(&format!("merge {} {} --partial", path(1), path(3)))).len(), 32);
    // Ten rows: of the last comparison one policy of three. The table does not compare it, and both forms say so.
    let ten: String = text(&whole).lines().take(10).map(|line| format!("{line}\n")).collect();
    std::fs::write(path(4), ten).unwrap();
    for (format, expected, n) in [("table", "0 of 1", 1), ("json", "\"cell\":", 10)] {
        let part = run(&format!("merge {} --partial --format {format}", path(4)));
        assert!(
            text(&part.stderr).contains("some policies have rows and others have none: 1;"),
            "{}",
            text(&part.stderr)
        );
        assert_eq!(text(&part.stdout).matches(expected).count(), n, "{}", text(&part.stdout));
    }
    assert_eq!(
        text(&ok(&format!("merge {} {} {} --format table", path(1), path(2), path(3)))),
        text(&ok(&format!("{GRID} --format table")))
    );
}

#[test]
fn a_grid_is_not_larger_than_memory_holds() {
    let huge = "sweep --trace synthetic:10 --nodes 3 --seed 0..1000000 --move-cost 0..1000000";
    fails(huge, 2, "found a grid of");
    fails(&format!("{huge} --shard 1/1000000000000"), 2, "cells, expected at most");
}

#[test]
fn a_sweep_that_was_cut_short_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("rows.jsonl");
    let partial = folder.path().join("rows.jsonl.partial");
    let whole = ok(GRID);
    let sweep = format!("{GRID} --out {}", out.display());
    let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    for cut in [0, 10, ends[0], ends[0] + 1, ends[20] - 7, ends[47]] {
        std::fs::write(&partial, &whole[..cut]).unwrap();
        fails(&sweep, 2, "--resume");
        assert_eq!(std::fs::read(&partial).unwrap(), &whole[..cut]);
        // The lines that are whole can be merged as they lie there.
        let lines = text(&whole[..cut]).matches('\n').count();
        assert_eq!(rows(&ok(&format!("merge {} --partial", partial.display()))).len(), lines);
        let output = run(&format!("{sweep} --resume"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let kept = ends.iter().filter(|&&end| end < cut).count();
        assert!(text(&output.stderr).contains(&format!("{kept} of 48 cells")), "{}", text(&output.stderr));
        assert!(std::fs::read(&out).unwrap() == whole);
        assert!(!partial.exists());
        std::fs::remove_file(&out).unwrap();
    }
    // What is done already is not done again, and a file that lacks rows is completed.
    std::fs::write(&out, &whole[..=ends[30]]).unwrap();
    let again = run(&format!("{sweep} --resume"));
    assert!(text(&again.stderr).contains("31 of 48 cells"), "{}", text(&again.stderr));
    assert!(std::fs::read(&out).unwrap() == whole);
}

#[test]
fn rows_of_something_else_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("rows.jsonl");
    let partial = folder.path().join("rows.jsonl.partial");
    let whole = String::from_utf8(ok(GRID)).unwrap();
    let first = whole.lines().next().unwrap();
    let resume = format!("{GRID} --out {} --resume", out.display());
    let write = |path: &Path, text: &str| std::fs::write(path, format!("{text}\n")).unwrap();
    // Another trace: one job more. Other options: another cost.
    for other in [GRID.replace("synthetic:300:3", "synthetic:301:3"), GRID.replace("0,8", "0,9")] {
        let other = String::from_utf8(ok(&other)).unwrap();
        write(&partial, other.lines().next().unwrap());
        fails(&resume, 2, "the trace, the events, the options or the version differ");
        assert!(partial.exists() && !out.exists());
        write(&out, &format!("{first}\n{}", other.lines().nth(1).unwrap()));
        fails(&format!("merge {}", out.display()), 2, "rows.jsonl:2: found a row of the sweep");
        std::fs::remove_file(&out).unwrap();
    }
    write(&partial, &first.replace("\"cell\":0", "\"cell\":0,\"more\":1"));
    fails(&resume, 2, "unknown field `more`");
    write(&out, first);
    write(&partial, &first.replace("\"finished\":", "\"finished\":1"));
    fails(&resume, 2, "cell 0 again with another result");
    std::fs::remove_file(&partial).unwrap();
    write(&out, "no row");
    fails(&resume, 2, "rows.jsonl:1");
    // A journal that was made in vain does not stay.
    assert!(!partial.exists());
}

#[test]
fn what_is_wrong_with_a_sweep_is_told() {
    for (words, expected) in [
        ("sweep --trace trace.jsonl --policy compass,compass", "found compass twice"),
        ("sweep --trace trace.jsonl --policy compass:often", "often"),
        ("sweep --trace trace.jsonl --policy compass:never:many", "many"),
        ("sweep --trace trace.jsonl --eta 0.9,0.90", "found 0.90 twice"),
        ("sweep --trace trace.jsonl --nodes 3,4,3", "found 3 twice"),
        ("sweep --trace trace.jsonl --days 3..1", "3..1"),
        ("sweep --trace trace.jsonl --days some", "or all"),
        ("sweep --trace trace.jsonl --shard 3/2", "I from 1 to N"),
        ("sweep --trace trace.jsonl --resume", "--resume without --out"),
        ("sweep --trace trace.jsonl --out x --format table", "merge makes a table"),
        ("sweep --trace trace.jsonl --cluster cluster.json --policy sif-opt", "sif-opt"),
        ("merge", "FILE"),
        ("merge none.jsonl", "no such file"),
        ("merge - -", "more than one input"),
    ] {
        fails(words, 2, expected);
    }
}

const EVENTS: &str = r#"{"at_s":20000,"node":"n1","event":"fail"}
{"at_s":60000,"node":"n0","event":"drain"}
{"at_s":90000,"node":"n1","event":"return"}
{"at_s":100000,"node":"n0","event":"fail"}
{"at_s":130000,"node":"n0","event":"return"}
"#;

#[test]
fn a_cell_has_the_events_of_nodes_that_a_run_has() {
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events.jsonl").display().to_string();
    std::fs::write(&events, EVENTS).unwrap();
    let trace = folder.path().join("trace.jsonl").display().to_string();
    std::fs::write(&trace, ok("generate trace --jobs 300 --seed 3 --mix venus --load 8")).unwrap();
    let sweep = format!("sweep --trace {trace} --events {events} --days 0..3 --nodes 14,20 --policy compass,best-fit");
    let rows = rows(&ok(&sweep));
    assert_eq!(rows.len(), 12);
    for row in &rows {
        let (day, nodes, policy) = (&row["day"], &row["nodes"], row["policy"].as_str().unwrap());
        let single =
            format!("simulate --trace {trace} --events {events} --day {day} --nodes {nodes} --policy {policy}");
        let single: Value = serde_json::from_slice(&ok(&single)).unwrap();
        for same in ["jobs", "finished", "waiting", "afr", "agu", "ajct_s", "n_sif_max", "makespan_s"] {
            assert_eq!(row[same], single[same], "{same} of {row}");
        }
        assert_eq!(row["runs_killed"], single["failures"]["runs_killed"]);
        assert_eq!(row["gpu_seconds_lost_by_failures"], single["failures"]["gpu_seconds_lost"]);
    }
    assert!(rows.iter().any(|row| row["runs_killed"].as_u64() > Some(0)), "nothing was killed: the test has no teeth");
    let table = ok(&format!("{sweep} --format table"));
    assert!(
        text(&table).contains(&format!("events    {events}\n")) && text(&table).contains("KILLED"),
        "{}",
        text(&table)
    );
    let quiet = text(&ok(&sweep.replace(&format!("--events {events} "), ""))).to_owned();
    assert!(!quiet.contains("events") && !quiet.contains("killed"), "{quiet}");
}

#[test]
fn rows_of_other_events_are_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("events.jsonl"), EVENTS).unwrap();
    std::fs::write(at("same.jsonl"), EVENTS.lines().rev().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    std::fs::write(at("other.jsonl"), EVENTS.replace("20000", "20001")).unwrap();
    let sweep = |events: &str| format!("{GRID} {events} --out {} --resume", at("rows.jsonl"));
    let grid = |events: &str| sweep(&format!("--events {}", at(events))).replace("--eta 0.85,0.95", "--nodes 20,24");
    let none = sweep("").replace("--eta 0.85,0.95", "--nodes 20,24");
    let whole = {
        ok(&grid("events.jsonl"));
        std::fs::read_to_string(at("rows.jsonl")).unwrap()
    };
    let half: String = whole.lines().take(20).map(|line| format!("{line}\n")).collect();
    std::fs::remove_file(at("rows.jsonl")).unwrap();
    std::fs::write(at("rows.jsonl.partial"), &half).unwrap();
    for other in [grid("other.jsonl"), none] {
        fails(&other, 2, "the trace, the events, the options or the version differ");
        assert_eq!(std::fs::read_to_string(at("rows.jsonl.partial")).unwrap(), half);
    }
    // The same events in another order of lines, and elsewhere, are the same sweep.
    let output = run(&grid("same.jsonl"));
    assert!(text(&output.stderr).contains("20 of 48 cells"), "{}", text(&output.stderr));
    let unnamed = |rows: &str| rows.replace("same.jsonl", "events.jsonl");
    assert_eq!(unnamed(&std::fs::read_to_string(at("rows.jsonl")).unwrap()), whole);
}

#[test]
fn events_are_of_nodes_that_every_cell_has() {
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events.jsonl").display().to_string();
    std::fs::write(&events, "{\"at_s\":1,\"node\":\"n5\",\"event\":\"fail\"}\n").unwrap();
    let sweep = format!("sweep --trace trace.jsonl --policy best-fit --events {events}");
    ok(&format!("{sweep} --nodes 6,7"));
    fails(&format!("{sweep} --nodes 6,5"), 2, "node: found string \"n5\", expected the name of a node");
    fails(&format!("{sweep} --nodes 6,5"), 2, "the smallest cluster has 5");
    fails(&format!("{sweep} --nodes 6 --policy sif-opt"), 2, "sif-opt puts nothing on any node");
    fails(&format!("{sweep} --cluster cluster.json"), 2, "events.jsonl:1:");
    fails("sweep --trace - --events - --nodes 6", 2, "more than one input");
}

#[test]
fn all_days_are_those_with_a_job() {
    let whole = rows(&ok("sweep --trace trace.jsonl --nodes 3 --days all --policy best-fit"));
    let days: Vec<&Value> = whole.iter().map(|row| &row["day"]).collect();
    assert_eq!(days, [&Value::from(0)]);
    let none = rows(&ok("sweep --trace trace.jsonl --nodes 3 --policy best-fit"));
    assert_eq!((none.len(), &none[0]["day"], &none[0]["jobs"]), (1, &Value::Null, &whole[0]["jobs"]));
}
