//! The program as its users see it: exit codes, what is printed where, files that appear whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use expect_test::{ExpectFile, expect_file};

mod agree;
mod audit;
mod backends;
mod explain;
mod fgd;
mod groups;
mod job_names;
mod options;
mod page;
#[cfg(unix)]
mod pipes_and_disks;
mod plan;
mod plan_commands;
mod simulate;
mod sweep;

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotwise"));
    // Mesa's drivers complain on standard error where a user has no such folder.
    command.env("XDG_RUNTIME_DIR", std::env::temp_dir());
    command
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Runs the program in the folder of the golden files. A word is an argument.
fn run(words: &str) -> Output {
    program().args(words.split_whitespace()).current_dir(golden("")).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs it with `input` as standard input.
fn pipe(words: &str, input: &[u8]) -> Output {
    let mut command = program();
    command.args(words.split_whitespace()).current_dir(golden(""));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A program that refuses its input may not read all of it.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn is_golden(words: &str, expected: ExpectFile) {
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{words}: {}", text(&output.stderr));
    expected.assert_eq(text(&output.stdout));
}

const SMALL: &str = "--cluster cluster.json --queue queue.jsonl";

#[test]
fn small_runs_print_what_they_printed() {
    is_golden(&format!("place {SMALL}"), expect_file!["../golden/place.jsonl"]);
    is_golden(&format!("place {SMALL} --policy best-fit"), expect_file!["../golden/place-best-fit.jsonl"]);
    let score = format!("score {SMALL} --candidates candidates.jsonl");
    is_golden(&score, expect_file!["../golden/score.jsonl"]);
    is_golden(&format!("{score} --format table"), expect_file!["../golden/score.txt"]);
    is_golden("phi-star --demand 1:10,3:4,5:2", expect_file!["../golden/phi-star.json"]);
    is_golden("generate queue --jobs 5 --gpus 64", expect_file!["../golden/generate-queue.jsonl"]);
}

#[test]
fn the_summary_of_a_queue_is_golden_but_for_the_time() {
    let output = run(&format!("place {SMALL} --format table"));
    let lines = text(&output.stdout).lines().filter(|line| !line.starts_with("time "));
    expect_file!["../golden/place.txt"].assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn every_command_has_a_help_with_examples() {
    for command in [
        "",
        "score",
        "place",
        "audit",
        "phi-star",
        "devices",
        "stress",
        "verify",
        "bench",
        "import slurm",
        "import kubernetes",
        "plan",
        "explain",
    ] {
        let output = run(&format!("{command} --help"));
        assert_eq!(output.status.code(), Some(0));
        let help = text(&output.stdout);
        assert!(help.contains("slotwise") && help.contains("Usage:"), "{help}");
        assert!(command.is_empty() || help.contains("Examples:"), "{command} has no examples");
    }
    let bare = run("");
    assert_eq!(bare.status.code(), Some(0));
    assert!(text(&bare.stdout).contains("Usage: slotwise"));
    assert_eq!(text(&run("--version").stdout), concat!("slotwise ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn results_depend_on_no_thread_and_no_window() {
    let place = "place --cluster synthetic:400:3 --queue synthetic:300:4 --policy";
    for policy in [
        "compass",
        "compass-paper",
        "best-fit",
        "worst-fit",
        "first-fit",
        "random",
        "fgd",
        "gpu-packing",
        "ca-fgd",
        "mcg",
    ] {
        let expected = run(&format!("{place} {policy}")).stdout;
        assert!(!expected.is_empty());
        for how in ["--threads 1", "--window 1", "--window 7 --threads 3", "--backend cpu"] {
            assert_eq!(run(&format!("{place} {policy} {how}")).stdout, expected, "{policy} {how}");
        }
    }
}

#[test]
fn usage_errors_exit_2() {
    for words in [
        "frobnicate",
        "place",
        "audit",
        "audit --cluster cluster.json --frobnicate",
        "place --cluster cluster.json --queue queue.jsonl --policy nobody",
        "place --cluster cluster.json --queue queue.jsonl --backend tpu",
        "place --cluster cluster.json --queue queue.jsonl --migration-budget -1",
        "place --cluster cluster.json --queue queue.jsonl --window 0",
        "place --cluster - --queue -",
        "place --cluster cluster.json --queue queue.jsonl --load 95",
        "place --cluster cluster.json --queue queue.jsonl --out x.tmp --snapshot-out x.tmp",
        "place --cluster cluster.json --queue queue.jsonl --out x.tmp --snapshot-out ./x.tmp",
        "place --cluster cluster.json --queue queue.jsonl --snapshot-out -",
        "audit --cluster synthetic:0",
        "audit --cluster synthetic:x",
        "audit --cluster slurm:nodes.json",
        "audit --cluster philly:nodes.json",
        "phi-star --demand 1:1,1:2",
        "phi-star --demand 9:1",
        "phi-star --demand 0:1",
        "phi-star --demand 1:-1",
        "phi-star --demand 1:99999999999999999999",
        "phi-star --capacity 0 --demand 1:1",
        "phi-star --capacity 17 --demand 1:1",
        "generate cluster --gpus 0",
        "stress --jobs 0",
    ] {
        refused(words, &run(words), &[]);
    }
}

/// Exit code 2, nothing on standard output, and an error that names these.
fn refused(what: &str, output: &Output, named: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{what}: {error}");
    assert!(output.stdout.is_empty(), "{what} printed {}", text(&output.stdout));
    for name in named {
        assert!(error.contains(name), "{what}: expected {name:?} in {error}");
    }
    assert!(error.starts_with("slotwise: "), "{what}: {error}");
    if !named.is_empty() {
        assert!(error.lines().count() == 1, "{what}: {error}");
    }
}

/// A cluster of two nodes with these running jobs.
fn two_nodes(running: &str) -> String {
    format!(r#"{{"schema":1,"nodes":[{{"name":"n0","gpus":8}},{{"name":"n1","gpus":4}}],"running":[{running}]}}"#)
}

#[test]
fn bad_clusters_exit_2_and_say_where() {
    let job = |name: &str, gpus: u8, instances: &str| {
        format!(r#"{{"job":"{name}","gpus_per_instance":{gpus},"instances":[{instances}]}}"#)
    };
    let node = |rest: &str| format!(r#"{{"schema":1,"nodes":[{{"name":"n0",{rest}}}],"running":[]}}"#);
    let held_twice = job("a", 1, r#"{"node":"n0","gpus":[1]},{"node":"n0","gpus":[1]}"#);
    let cases: Vec<(String, &[&str])> = vec![
        (two_nodes(&held_twice), &["running[0].instances[1]", "n0"]),
        (two_nodes(&job("a", 1, r#"{"node":"n1","gpus":[4]}"#)), &["running[0].instances[0]", "n1"]),
        (two_nodes(&job("a", 1, r#"{"node":"n9"}"#)), &["running[0].instances[0]", "n9"]),
        (two_nodes(&job("a", 5, r#"{"node":"n1"}"#)), &["running[0]", "n1"]),
        (two_nodes(&job("a", 2, r#"{"node":"n1","gpus":[1]}"#)), &["running[0].instances[0]"]),
        (two_nodes(&[job("a", 1, r#"{"node":"n0"}"#), job("a", 1, r#"{"node":"n0"}"#)].join(",")), &["running[1]"]),
        (two_nodes(&job("a", 17, r#"{"node":"n0"}"#)), &["running[0]", "17"]),
        (two_nodes(&job("a", 1, "")), &["running[0]"]),
        (r#"{"schema":1,"nodes":[{"name":"n","gpus":8},{"name":"n","gpus":8}]}"#.to_owned(), &["nodes[1]"]),
        (node(r#""gpus":0"#), &["nodes[0]", "0"]),
        (node(r#""gpus":17"#), &["nodes[0]", "17"]),
        (node(r#""gpus":-1"#), &["nodes[0]", "-1"]),
        (node(r#""gpus":1e300"#), &["nodes[0]"]),
        (node(r#""gpus":99999999999999999999"#), &["nodes[0]"]),
        (node(r#""gpus":"8""#), &["nodes[0]"]),
        (node(r#""gpus":8,"color":"red""#), &["nodes[0]", "color"]),
        (node(r#""gpus":8,"unavailable":[8]"#), &["nodes[0]", "8"]),
        (node(r#""gpus":8,"cpu_milli":-5"#), &["nodes[0]", "-5"]),
        (r#"{"schema":2,"nodes":[]}"#.to_owned(), &["schema"]),
        (r#"{"schema":1,"nodes":[],"nodez":[]}"#.to_owned(), &["nodez"]),
        (r#"{"schema":1,"nodes":[{"name":"n0","#.to_owned(), &["1:"]),
        ("[]".to_owned(), &[]),
        ("not json".to_owned(), &[]),
        (String::new(), &["empty"]),
    ];
    for (cluster, named) in cases {
        let named: Vec<&str> = named.iter().copied().chain(["standard input"]).collect();
        refused(&cluster, &pipe("audit --cluster -", cluster.as_bytes()), &named);
    }
}

#[test]
fn bad_queues_and_candidates_exit_2_and_say_where() {
    let place = "place --cluster cluster.json --queue -";
    let line = |rest: &str| format!("{{\"job\":\"q\",\"instances\":1,\"gpus_per_instance\":1}}\n{rest}\n");
    for (second, named) in [
        (r#"{"job":"q","instances":1,"gpus_per_instance":1}"#, "q"),
        (r#"{"job":"a","instances":1,"gpus_per_instance":1}"#, "a"),
        (r#"{"job":"r","instances":0,"gpus_per_instance":1}"#, "0"),
        (r#"{"job":"r","instances":-1,"gpus_per_instance":1}"#, "-1"),
        (r#"{"job":"r","instances":1,"gpus_per_instance":17}"#, "17"),
        (r#"{"job":"r","instances":99999999999,"gpus_per_instance":1}"#, "99999999999"),
        (r#"{"job":"r","instances":1,"gpus_per_instance":1,"priority":3}"#, "priority"),
        (r#"{"job":"r","instances":1,"gpus_per_instance":1,"within":"row"}"#, "row"),
        (r#"{"job":"r","instances":"1","gpus_per_instance":1}"#, "instances"),
        (r#"{"job":"r","instances":1}"#, "gpus_per_instance"),
        (r#"{"job":"r","instances":1,"gpus_per_in"#, ""),
        (r#"{"remove":"nobody"}"#, "nobody"),
        (r#"[1]"#, ""),
    ] {
        refused(second, &pipe(place, line(second).as_bytes()), &["standard input:2", named]);
    }
    let score = "score --cluster cluster.json --queue queue.jsonl --candidates -";
    for (bad, named) in [
        (r#"{"job":"q","candidate":"c"}"#, "place"),
        (r#"{"job":"q","candidate":"c","place":[{"node":"n0","gpus":[-1]}]}"#, "place[0].gpus[0]"),
        (r#"{"job":"q","candidate":"c","place":[{"nod":"n0"}]}"#, "nod"),
        (r#"{"job":"q","candidate":"c","place":{}}"#, "place"),
        ("{", ""),
    ] {
        refused(bad, &pipe(score, bad.as_bytes()), &["standard input:1", named]);
    }
}

#[test]
fn what_is_no_file_exits_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    refused("a folder", &run(&format!("audit --cluster {}", path(""))), &["directory"]);
    refused("no file", &run(&format!("audit --cluster {}", path("none"))), &["none", "no such file"]);
    std::fs::write(path("empty"), "").unwrap();
    refused("an empty file", &run(&format!("audit --cluster {}", path("empty"))), &["empty"]);

    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&std::fs::read(golden("cluster.json")).unwrap()).unwrap();
    let packed = packed.finish().unwrap();
    std::fs::write(path("cluster.gz"), &packed).unwrap();
    let whole = run(&format!("audit --cluster {}", path("cluster.gz")));
    assert_eq!(whole.stdout, run("audit --cluster cluster.json").stdout);
    std::fs::write(path("short.gz"), &packed[..packed.len() / 2]).unwrap();
    refused("half a gzip", &run(&format!("audit --cluster {}", path("short.gz"))), &["short.gz", "gzip"]);
}

/// Another program's table without its format in front is the likeliest slip there is.
#[test]
fn a_table_that_is_no_json_is_told_how_to_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("nodes.csv").display().to_string();
    std::fs::write(&table, "sn,gpu\nn0,8\n").unwrap();
    for words in [
        format!("audit --cluster {table}"),
        format!("place --cluster cluster.json --queue {table}"),
        format!("score --cluster cluster.json --queue queue.jsonl --candidates {table}"),
        format!("simulate --trace {table}"),
    ] {
        refused(&words, &run(&words), &["nodes.csv:1: found a file that starts with 's'", "alibaba-2026:FILE"]);
    }
}

#[test]
fn options_without_an_effect_are_told() {
    let place = "place --cluster cluster.json --queue queue.jsonl --policy best-fit";
    assert!(!text(&run(place).stderr).contains("moves nothing"));
    for option in ["--compact never", "--migration-budget 3"] {
        let error = run(&format!("{place} {option}")).stderr;
        assert!(text(&error).contains("warning: best-fit moves nothing"), "{}", text(&error));
    }
}

#[test]
fn an_empty_queue_is_no_error() {
    for (words, input) in
        [("place --cluster cluster.json --queue -", ""), ("place --cluster cluster.json --queue -", "\n")]
    {
        let output = pipe(words, input.as_bytes());
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), ""), "{}", text(&output.stderr));
    }
    assert_eq!(text(&run("phi-star --demand=").stdout), text(&run("phi-star --demand= --capacity 8").stdout));
    assert!(text(&run("phi-star --demand=").stdout).starts_with("{\"phi_star\":0,"));
}

#[test]
fn the_snapshot_afterwards_can_be_read_and_is_inside_the_space() {
    let folder = tempfile::tempdir().unwrap();
    let (lines, after) = (folder.path().join("lines"), folder.path().join("after.json"));
    let words = format!("place {SMALL} --out {} --snapshot-out {}", lines.display(), after.display());
    let output = run(&words);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), ""), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(lines).unwrap(), std::fs::read(golden("place.jsonl")).unwrap());
    let audit = run(&format!("audit --cluster {}", after.display()));
    assert!(text(&audit.stdout).contains("\"outside_abs\":[]"), "{}", text(&audit.stdout));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_backend_that_is_not_there_exits_1() {
    let output = run("verify --backend cuda --quick");
    // Where there is one, it passes.
    assert!(matches!(output.status.code(), Some(0 | 1)));
    if output.status.code() == Some(1) {
        assert!(text(&output.stderr).contains("cuda") && output.stdout.is_empty());
    }
}

#[test]
fn suites_run_small() {
    for words in [
        "verify --quick --threads 2",
        "stress --gpus 800 --jobs 500",
        "stress --gpus 800 --jobs 500 --policy best-fit --mix hard --seed 3",
        "bench --quick --threads 1",
        "devices",
    ] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(0), "{words}: {}", text(&output.stderr));
        for line in text(&output.stdout).lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(value.is_object(), "{line}");
        }
        assert!(!run(&format!("{words} --format table")).stdout.is_empty());
    }
}

#[test]
fn quiet_says_nothing_but_errors() {
    let loud = run("generate queue --jobs 3");
    assert!(text(&loud.stderr).contains("seed 1"));
    let quiet = run("generate queue --jobs 3 --quiet");
    assert_eq!((text(&quiet.stderr), quiet.stdout), ("", loud.stdout));
}

#[test]
fn an_import_writes_a_snapshot_and_a_queue_that_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    for (program, file) in [
        ("slurm", seeds.join("slurm.json")),
        ("slurm", seeds.join("slurm.txt")),
        ("kubernetes", golden("kubernetes.yaml")),
    ] {
        let file = file.to_str().unwrap();
        let (cluster, queue) = (at("c.json"), at("q.jsonl"));
        let output = run(&format!("import {program} {file} --out {cluster} --queue-out {queue}"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(std::fs::read_to_string(&cluster).unwrap().contains("\"index_source\":\""));
        let placed = run(&format!("place --cluster {cluster} --queue {queue} --snapshot-out {}", at("after.json")));
        assert_eq!(placed.status.code(), Some(0), "{}", text(&placed.stderr));
        let straight = run(&format!("place --cluster {program}:{file} --queue {program}:{file}"));
        assert!(!placed.stdout.is_empty() && placed.stdout == straight.stdout);
        // What was assumed stays in the snapshot.
        assert!(std::fs::read_to_string(at("after.json")).unwrap().contains("index_source"));
    }
    let stdin = std::fs::read(seeds.join("slurm.txt")).unwrap();
    assert_eq!(pipe("audit --cluster slurm:-", &stdin).status.code(), Some(0));
    for words in [
        "import",
        "import kubernetes none --topology-keys x",
        "import slurm",
        "import slurm - -",
        "import slurm none",
        "audit --cluster slurm:-,-",
    ] {
        assert_eq!(run(words).status.code(), Some(2), "{words}");
    }
    let twice = format!(
        "import slurm {} --out {1}/x --queue-out {1}/x",
        seeds.join("slurm.txt").display(),
        folder.path().display()
    );
    assert_eq!(run(&twice).status.code(), Some(2));
}
