//! `simulate` on the command line.

use expect_test::expect_file;

use super::super::traces::samples::{HELIOS, KALOS, PHILLY, PHILLY_LOG, PODS, SACCT, SPOT, SWF};
use super::{golden, is_golden, pipe, run, text};

const SMALL: &str = "simulate --trace trace.jsonl --nodes 3 --policy compass,compass:when-blocked,best-fit,sif-opt";

#[test]
fn a_small_comparison_prints_what_it_printed() {
    is_golden(SMALL, expect_file!["../../golden/simulate.jsonl"]);
    is_golden(&format!("{SMALL} --format table"), expect_file!["../../golden/simulate.txt"]);
    // The head asks a whole GPU: it waits until the last share of one has ended, and a share behind it waits too.
    is_golden("simulate --trace shares.jsonl --nodes 1", expect_file!["../../golden/simulate-shares.jsonl"]);
    is_golden("generate trace --jobs 4 --gpus 64", expect_file!["../../golden/generate-trace.jsonl"]);
}

#[test]
fn arrivals_change_the_times_alone() {
    let made = |arrivals: &str| -> Vec<serde_json::Value> {
        let output = run(&format!("generate trace --jobs 200 --gpus 64 --seed 5 --arrivals {arrivals}"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let poisson = made("poisson");
    for arrivals in ["diurnal", "bursts"] {
        let mut other = made(arrivals);
        assert_ne!(other, poisson);
        assert_eq!(other, made(arrivals));
        assert!(other.is_sorted_by_key(|job| job["submit_s"].as_u64()));
        for (job, there) in other.iter_mut().zip(&poisson) {
            job["submit_s"] = there["submit_s"].clone();
        }
        assert_eq!(other, poisson);
    }
}

#[test]
fn threads_and_the_way_in_change_nothing() {
    let one = run("simulate --trace synthetic:400:3 --nodes 12 --policy random,compass,worst-fit --seed 9 --threads 1");
    let two = run("simulate --trace synthetic:400:3 --nodes 12 --policy random,compass,worst-fit --seed 9 --threads 3");
    assert_eq!(one.status.code(), Some(0), "{}", text(&one.stderr));
    assert_eq!(text(&one.stdout), text(&two.stdout));
    let trace = run("generate trace --jobs 400 --gpus 96 --seed 3");
    let piped = pipe("simulate --trace - --nodes 12 --policy random,compass,worst-fit --seed 9", &trace.stdout);
    let renamed = text(&piped.stdout).replace(r#""trace":"-""#, r#""trace":"synthetic:400:3""#);
    assert_eq!(text(&one.stdout), renamed);
}

#[test]
fn the_series_adds_up_to_the_sums() {
    let folder = tempfile::tempdir().unwrap();
    let series = folder.path().join("series.csv");
    let output = run(&format!("{SMALL} --discipline easy --series {}", series.display()));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let rows = std::fs::read_to_string(&series).unwrap();
    for line in text(&output.stdout).lines() {
        let result: serde_json::Value = serde_json::from_str(line).unwrap();
        let mut name = result["policy"].as_str().unwrap().to_owned();
        if result["compact"] == "when-blocked" {
            name += ":when-blocked";
        }
        let (mut busy, mut peak) = (0, 0);
        for row in rows.lines().filter(|row| row.starts_with(&format!("{name},"))) {
            let cells: Vec<u64> = row.split(',').skip(1).map(|cell| cell.parse().unwrap()).collect();
            busy += (cells[1] - cells[0]) * cells[4];
            peak += if cells[3] > 0 { cells[1] - cells[0] } else { 0 };
        }
        assert_eq!(result["sums"]["busy_gpu_s"], busy, "{name}");
        assert_eq!(result["sums"]["peak_s"], peak, "{name}");
    }
}

#[test]
fn minutes_and_jobs_are_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let output = run(&format!("{SMALL} --minutes {} --jobset {}", path("minutes"), path("jobset")));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(output.stdout, run(SMALL).stdout);
    expect_file!["../../golden/simulate-minutes.csv"].assert_eq(&std::fs::read_to_string(path("minutes")).unwrap());
    expect_file!["../../golden/simulate-jobset.csv"].assert_eq(&std::fs::read_to_string(path("jobset")).unwrap());
    // A name may hold what a CSV has to quote.
    let job = br#"{"job":"a,\"b\"","submit_s":0,"duration_s":6000000000,"gpus_per_instance":2}"#;
    let words = format!("simulate --trace - --nodes 1 --policy sif-opt --jobset {}", path("quoted"));
    assert_eq!(pipe(&words, job).status.code(), Some(0));
    let rows = std::fs::read_to_string(path("quoted")).unwrap();
    let expected = "\"a,\"\"b\"\"\",sif-opt,0,2,6000000000,1,0,6000000000,6000000000,0,6000000000,1.000000,";
    assert_eq!(rows.lines().nth(1).unwrap(), expected);
    // That many minutes are no file.
    let job = br#"{"job":"a","submit_s":0,"duration_s":9000000000,"gpus_per_instance":2}"#;
    let output = pipe(&format!("simulate --trace - --nodes 1 --policy sif-opt --minutes {}", path("long")), job);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("150000000 minutes"), "{}", text(&output.stderr));
    assert!(!std::path::Path::new(&path("long")).exists());
}

#[test]
fn windows_take_what_was_submitted_in_them() {
    let jobs = |options: &str| {
        let output = run(&format!("simulate --trace trace.jsonl --policy best-fit {options}"));
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let numbers = ["jobs", "rejected", "nodes"].map(|field| result[field].as_u64().unwrap());
        (numbers[0], numbers[1], numbers[2])
    };
    assert_eq!(jobs("--nodes 3 --window 5..12"), (2, 0, 3));
    assert_eq!(jobs("--nodes 3 --window 12..13"), (2, 1, 3));
    assert_eq!(jobs("--nodes 3 --day 0"), (6, 1, 3));
    assert_eq!(jobs("--nodes 3 --day 1"), (0, 0, 3));
    // The largest job of the window needs nine nodes.
    assert_eq!(jobs("--eta 0.5"), (6, 0, 9));
    // 22 GPUs in [10, 45) of [5, 60).
    assert_eq!(jobs("--eta 1 --window 5..12"), (2, 0, 3));
    assert_eq!(jobs("--cluster cluster.json --window 60..61").0, 1);
}

#[test]
fn what_is_wrong_is_told_and_nothing_is_written() {
    for (words, expected) in [
        ("simulate --trace trace.jsonl --policy compass,compass", "found compass twice, expected it once"),
        ("simulate --trace trace.jsonl --policy compass,compass:every-event", "found compass"),
        ("simulate --trace trace.jsonl --policy fdg", "there is no policy \"fdg\""),
        ("simulate --trace trace.jsonl --policy best-fit:never", "found a trigger for \"best-fit\""),
        ("simulate --trace trace.jsonl --eta 1.5", "1.5"),
        ("simulate --trace trace.jsonl --eta 0.9 --nodes 3", "cannot be used with"),
        ("simulate --trace trace.jsonl --window 9..9", "FROM below TO"),
        ("simulate --trace trace.jsonl --window 1..9 --day 1", "cannot be used with"),
        ("simulate --trace trace.jsonl --series -", "--series"),
        ("simulate --trace trace.jsonl --minutes x.tmp --jobset ./x.tmp", "--minutes and --jobset"),
        ("simulate --trace queue.jsonl", "queue.jsonl"),
        ("simulate --trace alibaba-2026:none.csv", "no such file"),
        ("simulate --trace swf:none.swf", "--gpus-per-proc"),
        ("simulate --trace slurm:x", "a dump, which has no times"),
        ("simulate --trace trace.jsonl --cluster cluster.json --policy sif-opt", "sif-opt"),
    ] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(text(&output.stderr).contains(expected), "{words}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{words}");
    }
}

#[test]
fn a_wait_is_told_under_each_policy() {
    let words = "simulate --trace synthetic:400:3 --nodes 12 --policy compass,best-fit,fft,sif-opt --explain job-200";
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    for line in &lines {
        let seconds = |key: &str| line[key].as_u64().unwrap();
        let waited: u64 = line["waits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|wait| wait["to_s"].as_u64().unwrap() - wait["from_s"].as_u64().unwrap())
            .sum();
        assert_eq!((&line["job"], waited), (&"job-200".into(), seconds("start_s") - seconds("submit_s")));
        let nodes: u64 =
            line["first_try"]["nodes"].as_array().unwrap().iter().map(|one| one["nodes"].as_u64().unwrap()).sum();
        assert_eq!(nodes, if line["policy"] == "sif-opt" { 0 } else { 12 });
    }
    let table = run(&format!("{words} --format table"));
    for expected in ["policy     compass", "ALLOWED", "At its first try"] {
        assert!(text(&table.stdout).contains(expected), "{expected}: {}", text(&table.stdout));
    }
    let output = run("simulate --trace trace.jsonl --nodes 3 --explain nobody");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("nobody"));
}

#[test]
fn who_is_held_back_is_told() {
    // Nine nodes, one of them empty: the job of 1 GPU would break it, until a place beside the 7 is free at 20.
    let mut jobs = vec![(0, 1000, 8); 7];
    jobs.extend([(0, 1000, 7), (0, 20, 1), (10, 50, 1), (15, 50, 8)]);
    let line = |(number, (submit_s, duration_s, gpus)): (usize, (u64, u64, u8))| {
        let job = serde_json::json!({"job": format!("j{number}"), "submit_s": submit_s, "duration_s": duration_s,
            "gpus_per_instance": gpus});
        format!("{job}\n")
    };
    let trace: String = jobs.into_iter().enumerate().map(line).collect();
    for (job, from, behind, told) in [("j9", 10, None, "held back"), ("j10", 15, Some("j9"), "that was held back")] {
        let words = format!("simulate --trace - --nodes 9 --policy ca-fgd --explain {job}");
        let output = pipe(&words, trace.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut wait = serde_json::json!({"from_s": from, "to_s": 20, "why": "held"});
        if let Some(behind) = behind {
            wait["behind"] = behind.into();
        }
        assert_eq!(found["waits"], serde_json::json!([wait]));
        let table = pipe(&format!("{words} --format table"), trace.as_bytes());
        assert!(text(&table.stdout).contains(told), "{}", text(&table.stdout));
    }
}

#[test]
fn place_tells_which_nodes_a_job_could_have_had() {
    let plain = run("place --cluster cluster.json --queue queue.jsonl");
    let told = run("place --cluster cluster.json --queue queue.jsonl --explain");
    assert_eq!(told.status.code(), Some(0), "{}", text(&told.stderr));
    let (mut explained, mut nodes) = (0, 0);
    for (line, plain) in text(&told.stdout).lines().zip(text(&plain.stdout).lines()) {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        let plain: serde_json::Value = serde_json::from_str(plain).unwrap();
        assert_eq!(line["explain"].is_object(), line["status"] == "blocked", "{line}");
        if let Some(explain) = line.as_object_mut().unwrap().remove("explain") {
            explained += 1;
            nodes = explain["nodes"].as_array().unwrap().iter().map(|one| one["nodes"].as_u64().unwrap()).sum();
        }
        assert_eq!(line, plain);
    }
    assert!(explained > 0, "no job was blocked: the test has no teeth");
    let cluster: serde_json::Value = serde_json::from_slice(&std::fs::read(golden("cluster.json")).unwrap()).unwrap();
    assert_eq!(nodes as usize, cluster["nodes"].as_array().unwrap().len());
    let table = run("place --cluster cluster.json --queue queue.jsonl --explain --format table");
    assert!(text(&table.stdout).contains("blocked by"), "{}", text(&table.stdout));
    let output = run("place --cluster cluster.json --queue queue.jsonl --explain nobody");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn events_of_nodes_are_played_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.jsonl");
    let path = file.display();
    std::fs::write(
        &file,
        "{\"at_s\":8,\"node\":\"n0\",\"event\":\"fail\"}\n{\"at_s\":90,\"node\":\"n0\",\"event\":\"return\"}\n",
    )
    .unwrap();
    let words = format!("simulate --trace trace.jsonl --nodes 3 --policy compass,best-fit --events {path}");
    let output = run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for line in text(&output.stdout).lines() {
        let result: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(result["failures"]["node_events"], path.to_string());
        assert!(result["failures"]["runs_killed"].as_u64() > Some(0), "{line}");
        assert!(result["failures"]["gpu_seconds_lost"].as_u64() > Some(0), "{line}");
    }
    let table = run(&format!("{words} --format table"));
    assert!(text(&table.stdout).contains("GPU-H KILLED"));
    std::fs::write(&file, "{\"at_s\":8,\"node\":\"n3\",\"event\":\"fail\"}").unwrap();
    let output = run(&words);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("events.jsonl:1:"), "{}", text(&output.stderr));
    std::fs::write(&file, "{\"at_s\":8,\"node\":\"n1\",\"event\":\"fail\"}").unwrap();
    let output = run(&words.replace("best-fit", "sif-opt"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("events of nodes"), "{}", text(&output.stderr));
}

#[test]
fn traces_of_others_are_played() {
    let folder = tempfile::tempdir().unwrap();
    for (prefix, sample, jobs) in [
        ("philly", PHILLY, 2),
        ("philly", PHILLY_LOG, 2),
        ("openb", PODS, 5),
        ("alibaba-2026", SPOT, 3),
        ("helios", HELIOS, 5),
        ("acme", KALOS, 2),
        ("swf", SWF, 2),
        ("sacct", SACCT, 5),
    ] {
        let file = folder.path().join(prefix);
        std::fs::write(&file, sample).unwrap();
        // The oracle packs whole GPUs alone, and some pods ask for shares.
        let policies = if prefix == "openb" { "compass,best-fit" } else { "compass,sif-opt" };
        let words = |policies: &str| {
            format!("simulate --trace {prefix}:{} --gpus-per-proc 1/8 --policy {policies}", file.display())
        };
        if prefix == "openb" {
            let refused = run(&words("sif-opt"));
            assert_eq!(refused.status.code(), Some(2));
            assert!(text(&refused.stderr).contains("sif-opt packs whole GPUs"), "{}", text(&refused.stderr));
        }
        let output = run(&words(policies));
        assert_eq!(output.status.code(), Some(0), "{prefix}: {}", text(&output.stderr));
        for line in text(&output.stdout).lines() {
            let result: serde_json::Value = serde_json::from_str(line).unwrap();
            let numbers =
                ["jobs", "finished", "rejected", "waiting", "running"].map(|name| result[name].as_u64().unwrap());
            assert_eq!(numbers, [jobs, jobs, 0, 0, 0], "{prefix}: {line}");
        }
    }
}

#[test]
fn a_trace_that_asks_for_too_much_is_no_cluster() {
    let job = br#"{"job":"a","submit_s":0,"duration_s":1,"gpus_per_instance":8,"instances":4000000000}"#;
    let output = pipe("simulate --trace -", job);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("4000000000 nodes"), "{}", text(&output.stderr));
    let output = pipe("simulate --trace - --nodes 2", job);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(r#""rejected":1"#));
}

/// The whole Philly trace, against what an independent simulator measured on it (AFR, AGU, AJCT). Policies that leave
/// choices open differ in the last digits; the others may not.
#[test]
fn the_philly_trace_gives_the_published_figures() {
    let path = golden("../../../shared/data/philly-2017/jobs.csv.gz");
    if !path.is_file() {
        println!("skipped: {} is not there", path.display());
        return;
    }
    let policies = "compass,compass-paper,compass:when-blocked,best-fit,worst-fit,sif-opt";
    let output = run(&format!("simulate --trace philly:{} --eta 0.90 --policy {policies}", path.display()));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    // Expected AFR, AJCT, and by how much each may be off.
    let expected = [
        (0.0033, 17_635.0, 0.0001, 1.0),
        (0.0064, 17_661.0, 0.0005, 40.0),
        (0.0135, 17_630.0, 0.0010, 1.0),
        (0.1715, 24_020.0, 0.00005, 0.5),
        (0.3990, 164_799.0, 0.00005, 0.5),
        (0.0, 17_320.0, 0.0, 0.5),
    ];
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), expected.len());
    for (line, (afr, ajct, afr_off, ajct_off)) in lines.into_iter().zip(expected) {
        let result: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&result["nodes"], &result["finished"]), (&89.into(), &82_240.into()));
        assert!((result["afr"].as_f64().unwrap() - afr).abs() <= afr_off, "{line}");
        assert!((result["ajct_s"].as_f64().unwrap() - ajct).abs() <= ajct_off, "{line}");
        assert_eq!(result["wcc_coverage"], 1.0);
    }
}
