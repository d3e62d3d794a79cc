//! The page of `simulate --html` and the pictures of `--svg`.

use std::path::Path;
use std::process::{Command, Stdio};

use scraper::{ElementRef, Html, Selector};
use serde_json::Value;

use super::{program, run, text};

const SMALL: &str = "simulate --trace trace.jsonl --nodes 3 --policy compass,compass:when-blocked,best-fit,sif-opt";

/// A comparison: what it printed, and its page.
struct Comparison {
    runs: Vec<Value>,
    source: String,
    page: Html,
}

fn compare(words: &str) -> Comparison {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let output = run(&format!("{words} --html {}", file.display()));
    assert_eq!(output.status.code(), Some(0), "{words}: {}", text(&output.stderr));
    let runs = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let source = std::fs::read_to_string(&file).unwrap();
    let page = Html::parse_document(&source);
    Comparison { runs, source, page }
}

fn all<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).unwrap()).collect()
}

fn words_of(element: ElementRef<'_>) -> String {
    element.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn embedded(page: &Html, id: &str) -> Value {
    serde_json::from_str(&all(page, &format!("script#{id}"))[0].text().collect::<String>()).unwrap()
}

#[test]
fn the_page_says_what_the_json_says() {
    let Comparison { runs, page, .. } = compare(SMALL);
    assert_eq!(embedded(&page, "runs"), Value::Array(runs.clone()));
    let columns = [
        ("AFR", "/afr"),
        ("AGU", "/agu"),
        ("AJCT", "/ajct_s"),
        ("WAIT P50", "/wait_s/p50"),
        ("MAKESPAN", "/makespan_s"),
        ("BUSY", "/utilisation"),
        ("SAT", "/allocation_at_saturation"),
        ("FRAG", "/blocked_by_fragmentation"),
        ("CAP", "/blocked_by_capacity"),
        ("N·SIF ≤", "/n_sif_max"),
        ("EMPTY", "/empty_nodes_mean"),
        ("WCC", "/wcc_coverage"),
        ("MOVES", "/migrations/instances"),
        ("A JOB", "/migrations/pauses_per_job/mean"),
        ("GPU-H LOST", "/migrations/gpu_seconds_lost"),
    ];
    let names: Vec<String> = all(&page, ".comparison thead th").into_iter().map(words_of).collect();
    let rows = all(&page, ".comparison tbody tr");
    assert_eq!(rows.len(), runs.len());
    let cells = Selector::parse("th, td").unwrap();
    let data = Selector::parse("data").unwrap();
    for (row, run) in rows.iter().zip(&runs) {
        let cells: Vec<ElementRef<'_>> = row.select(&cells).collect();
        assert!(words_of(cells[0]).starts_with(run["policy"].as_str().unwrap()));
        for (name, key) in columns {
            let cell = cells[names.iter().position(|column| column == name).unwrap()];
            let value = cell.select(&data).next().unwrap().value().attr("value").unwrap();
            assert_eq!(serde_json::from_str::<Value>(value).unwrap(), *run.pointer(key).unwrap(), "{name}");
        }
    }
}

#[test]
fn the_best_values_are_marked_and_the_bound_takes_no_part() {
    let Comparison { page, .. } = compare(SMALL);
    let best = |row: usize| -> Vec<String> {
        all(&page, &format!(".comparison tbody tr:nth-child({row}) td.best data")).into_iter().map(words_of).collect()
    };
    // COMPASS keeps room that the job of 12 would need; best-fit finishes earlier in every respect and moves nothing.
    assert_eq!(best(1), Vec::<String>::new());
    assert_eq!(best(3), ["0.792", "55", "0", "35", "35", "100", "0.575", "0.000", "0", "0.00"]);
    assert_eq!(best(4), Vec::<String>::new());
}

#[test]
fn the_series_adds_up_to_the_json() {
    let Comparison { runs, page, .. } =
        compare("simulate --trace synthetic:3000:4 --nodes 12 --policy compass,worst-fit");
    let series = embedded(&page, "series");
    for (run, series) in runs.iter().zip(series.as_array().unwrap()) {
        let seconds = series["seconds"].as_array().unwrap();
        assert!((257..=512).contains(&seconds.len()), "{}", seconds.len());
        let sum = |values: &[Value]| values.iter().map(|value| value.as_u64().unwrap()).sum::<u64>();
        assert_eq!(run["makespan_s"], sum(seconds));
        for (gauge, key) in [(0, "n_sif_node_s"), (1, "busy_gpu_s"), (2, "empty_node_s")] {
            let extents = series["gauges"][gauge].as_array().unwrap();
            let sums: Vec<Value> = extents.iter().map(|extent| extent[0].clone()).collect();
            assert_eq!(run["sums"][key], sum(&sums), "{key}");
        }
        let most = series["gauges"][0].as_array().unwrap().iter().map(|extent| extent[2].as_u64().unwrap()).max();
        assert_eq!(run["n_sif_max"].as_u64(), most);
    }
}

#[test]
fn the_page_is_whole_and_fetches_nothing() {
    for words in [
        SMALL,
        "simulate --trace synthetic:300:1 --nodes 40 --policy random,first-fit --discipline easy",
        // No job at all, and a cluster of two pools.
        "simulate --trace trace.jsonl --nodes 3 --window 70..80",
        "simulate --trace trace.jsonl --cluster cluster.json --policy compass,fgd",
    ] {
        let Comparison { source, page, .. } = compare(words);
        assert_eq!(page.errors, Vec::<String>::new(), "{words}");
        for outside in ["http:", "https:", "//", "src=", "@import", "url("] {
            assert!(!source.contains(outside), "{words}: found {outside}");
        }
        assert_eq!(all(&page, "figure").len() - all(&page, ".maps figure").len(), 8, "{words}");
        // Every picture says what it is, and every chart has its numbers in a table.
        assert_eq!(all(&page, "svg").len(), all(&page, r#"svg[role="img"][aria-label]"#).len());
        assert_eq!(all(&page, ".charts figure details table thead").len(), 8);
    }
}

#[test]
fn what_comes_from_outside_is_text() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = folder.path().join(r#""><script>alert(1)<"#).join("script>&amp;'$(x) .jsonl");
    std::fs::create_dir(hostile.parent().unwrap()).unwrap();
    // Out of order, so that a note names the file.
    let jobs = r#"{"job":"</script><b>","submit_s":9,"duration_s":5,"gpus_per_instance":2}
        {"job":"b","submit_s":1,"duration_s":5,"gpus_per_instance":8}"#;
    std::fs::write(&hostile, jobs.replace("\n        ", "\n")).unwrap();
    let file = folder.path().join("page.html");
    let mut command = program();
    command.args(["simulate", "--nodes", "1", "--trace"]).arg(&hostile).arg("--html").arg(&file);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let source = std::fs::read_to_string(&file).unwrap();
    let page = Html::parse_document(&source);
    assert_eq!(page.errors, Vec::<String>::new());
    assert!(!source.contains("<script>alert") && !source.contains("<b>"));
    assert_eq!(all(&page, "script").len(), 3);
    let name = hostile.display().to_string();
    let shown =
        |selector: &str| all(&page, selector).iter().map(|element| element.text().collect()).collect::<Vec<String>>();
    assert!(shown(".facts dd").contains(&name));
    assert!(shown("title")[0].contains(&name));
    assert!(shown(".notes li")[0].starts_with(&name), "{:?}", shown(".notes li"));
    assert_eq!(embedded(&page, "runs")[0]["trace"], *name);
    // A shell that reads the command finds the words that were given.
    let command = &shown("pre code")[0];
    let echoed = Command::new("sh").arg("-c").arg(format!("printf '%s\n' {command}")).output().unwrap();
    let words = ["slotwise", "simulate", "--nodes", "1", "--trace", &name, "--html", &file.display().to_string()];
    assert_eq!(text(&echoed.stdout).lines().collect::<Vec<_>>(), words);
}

#[test]
fn a_longer_run_is_no_larger_page() {
    let size = |jobs: u32| {
        let words = format!("simulate --trace synthetic:{jobs}:5 --nodes 125 --policy compass,best-fit,worst-fit");
        compare(&words).source.len()
    };
    let (short, long) = (size(4000), size(16_000));
    // Four times the jobs; what grows a little are the digits, and how many different values there are.
    assert!(long < short * 3 / 2, "{short} and {long} bytes");
    assert!(long < 150_000 * 3, "{long} bytes");
}

#[test]
fn every_picture_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let names = |folder: &Path| {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let svg = folder.path().join("new/pictures");
    let words = "simulate --trace trace.jsonl --nodes 3 --policy compass:when-blocked,sif-opt";
    let output = run(&format!("{words} --svg {}", svg.display()));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let charts = [
        "allocation-by-load.svg",
        "completion-times.svg",
        "empty-nodes.svg",
        "fragmentation-by-load.svg",
        "map-compass-when-blocked-busiest.svg",
        "map-compass-when-blocked-most-fragmented.svg",
        "map-compass-when-blocked-peak-demand.svg",
        "n-sif.svg",
        "queue.svg",
        "utilisation.svg",
        "waits.svg",
    ];
    assert_eq!(names(&svg), charts);
    for name in charts {
        let source = std::fs::read_to_string(svg.join(name)).unwrap();
        let document = roxmltree::Document::parse(&source).unwrap();
        let root = document.root_element();
        assert_eq!((root.tag_name().name(), root.tag_name().namespace()), ("svg", Some("http://www.w3.org/2000/svg")));
        assert!(!source.contains("href") && !source.contains("url("), "{name}");
        let says = |what: &str| document.descendants().any(|node| node.text().is_some_and(|text| text.contains(what)));
        assert!(says("compass:when-blocked"), "{name} does not name a policy");
    }
    // A folder that cannot be made fails before anything runs.
    std::fs::write(folder.path().join("file"), "").unwrap();
    let output = run(&format!("{words} --svg {}/file/x", folder.path().display()));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot make the folder"), "{}", text(&output.stderr));
}

#[test]
fn what_never_leaves_is_on_a_map() {
    let folder = tempfile::tempdir().unwrap();
    let pods = folder.path().join("pods");
    std::fs::write(&pods, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,8,1000\nb,1,1,3,1000\n").unwrap();
    let words = format!("simulate --trace openb:{} --nodes 2 --policy best-fit", pods.display());
    let Comparison { page, .. } = compare(&words);
    let maps: Vec<String> = all(&page, ".maps figcaption").into_iter().map(words_of).collect();
    assert!(maps.iter().any(|map| map.starts_with("best-fit at the end")), "{maps:?}");
}

#[test]
fn what_a_failing_node_ends_has_columns() {
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events.jsonl");
    std::fs::write(&events, "{\"at_s\":20,\"node\":\"n0\",\"event\":\"fail\"}\n").unwrap();
    let words = format!("simulate --trace trace.jsonl --nodes 3 --policy best-fit --events {}", events.display());
    let Comparison { runs, page, .. } = compare(&words);
    let names: Vec<String> = all(&page, ".comparison thead th").into_iter().map(words_of).collect();
    let at = names.iter().position(|name| name == "KILLED").unwrap();
    let row = all(&page, ".comparison tbody tr:first-child > *");
    assert_eq!(words_of(row[at]), runs[0]["failures"]["runs_killed"].to_string());
    assert!(runs[0]["failures"]["runs_killed"].as_u64() > Some(0), "{}", runs[0]);
    assert!(names.iter().any(|name| name == "NEVER RAN"), "{names:?}");
}

/// Renders a page in a browser, and returns the document as it is then, and what was said on the console.
fn render(browser: &str, file: &Path, profile: &Path) -> (String, String) {
    let flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
         --disable-component-update --disable-sync --enable-logging=stderr --dump-dom";
    let output = Command::new(browser)
        .args(flags.split_whitespace())
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let console = text(&output.stderr).lines().filter(|line| line.contains(":CONSOLE"));
    (text(&output.stdout).to_owned(), console.collect::<Vec<_>>().join("\n"))
}

#[test]
fn a_browser_renders_it_without_a_complaint() {
    let there = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"].iter().find(there) else {
        println!("skipped: there is no chromium");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let output = run(&format!("{SMALL} --html {}", file.display()));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let (document, console) = render(browser, &file, &folder.path().join("profile"));
    assert_eq!(console, "");
    // The script came to its end: each chart over time has a cursor.
    assert_eq!(all(&Html::parse_document(&document), ".plot .cursor").len(), 4, "{document}");
    // And a complaint would have been seen.
    let source = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, source.replace("\"use strict\";", "throw 1;")).unwrap();
    assert!(render(browser, &file, &folder.path().join("profile")).1.contains("Uncaught"));
}
