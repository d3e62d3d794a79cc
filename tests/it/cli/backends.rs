//! Backends as users see them: `devices`, `verify`, `bench` and `--crossover`.

use std::process::Output;

use super::{refused, run, text};

fn lines(output: &Output) -> Vec<serde_json::Value> {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn devices_says_what_auto_takes_and_why_others_cannot_be_used() {
    let document = &lines(&run("devices"))[0];
    let devices = document["devices"].as_array().unwrap();
    for backend in ["cpu", "wgpu", "cuda"] {
        assert!(devices.iter().any(|device| device["backend"] == backend), "{backend}");
    }
    let auto: Vec<_> = devices.iter().filter(|device| device["auto"] == true).collect();
    assert!(auto.len() == 1 && auto[0]["backend"] == document["auto"] && auto[0]["software"] == false);
    assert!(!document["why_auto"].as_str().unwrap().is_empty());
    for device in devices {
        assert_eq!(device["usable"] == true, device["why"].is_null(), "{device}");
    }
    let table = run("devices --format table");
    let table = text(&table.stdout);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.contains(&format!("--backend auto takes {}: ", document["auto"].as_str().unwrap())), "{table}");
}

#[test]
fn verify_has_a_row_and_a_control_for_every_kernel() {
    let rows = lines(&run("verify --backend cpu --quick --seed 3"));
    let names = ["score_candidates", "best_candidate", "rank_nodes", "score_fgd", "apply_edits", "census"];
    let checks: Vec<&str> = rows.iter().map(|row| row["check"].as_str().unwrap()).collect();
    let controls: Vec<String> = names.iter().map(|name| format!("control: {name}")).collect();
    assert!(checks.iter().copied().eq(names.into_iter().chain(controls.iter().map(String::as_str))), "{checks:?}");
    for (at, row) in rows.iter().enumerate() {
        assert_eq!((&row["ok"], &row["backend"]), (&true.into(), &"cpu".into()), "{row}");
        assert_eq!(row["mismatches"].as_u64() > Some(0), at >= names.len(), "{row}");
        assert!(row["cases"].as_u64() > Some(5) && row["values"].as_u64() > Some(1000), "{row}");
    }
    let table = run("verify --backend cpu --quick --format table");
    assert!(text(&table.stdout).lines().all(|line| line.chars().count() <= 80), "{}", text(&table.stdout));
}

#[test]
fn bench_has_what_its_json_promises() {
    let output = run("bench --backend cpu --quick --threads 2");
    let rows = lines(&output);
    let of = |what: &str| rows.iter().filter(|row| row["what"] == what).collect::<Vec<_>>();
    for row in &rows {
        let figure = row["value"].as_f64();
        assert!(figure > Some(0.0) && row["backend"].is_string() && row["threads"].is_u64(), "{row}");
        let share = row["of_limit"].as_f64();
        assert_eq!(share.is_some(), row["bytes_per_s"].is_number() && row["limit_bytes_per_s"].is_number(), "{row}");
    }
    for what in ["score_candidates", "score_transfer"] {
        assert_eq!(of(what).len(), 8, "two numbers of threads, four mixes");
        assert!(of(what).iter().all(|row| row["unit"] == "touches/s" && row["candidates_per_s"].as_f64() > Some(0.0)));
    }
    assert_eq!(of("latency").iter().filter(|row| row["variant"] == "100 candidates" && row["unit"] == "µs").count(), 2);
    assert_eq!(of("score_fgd").len(), 2);
    assert_eq!((of("rank_nodes").len(), of("crossover").len(), of("phi_star").len()), (2, 0, 2));
    assert_eq!(of("place").iter().filter(|row| row["variant"] == "best-fit, CPU").count(), 2);
    // With NumPy, a row that is compared; without, a word about it.
    let numpy = of("score_numpy");
    assert!(numpy.iter().any(|row| row["backend"] == "numpy" && row["times_cpu"].is_number()) != numpy.is_empty());
    assert_eq!(numpy.is_empty(), text(&output.stderr).contains("no comparison with NumPy"));
    let table = run("bench --backend cpu --quick --format table");
    assert!(text(&table.stdout).lines().all(|line| line.chars().count() <= 100), "{}", text(&table.stdout));
}

#[test]
fn the_crossover_is_a_number_or_measured_and_does_not_show() {
    let place = "place --cluster synthetic:400:3 --queue synthetic:300:4 --policy best-fit";
    let expected = run(place).stdout;
    for crossover in ["auto", "0", "1000", "18446744073709551615"] {
        assert_eq!(run(&format!("{place} --crossover {crossover}")).stdout, expected);
    }
    for words in ["--crossover -1", "--crossover never", "--crossover 1.5"] {
        refused(words, &run(&format!("{place} {words}")), &[]);
    }
    assert!(text(&run(&format!("{place} --crossover never")).stderr).contains("expected an integer from 0, or auto"));
}
