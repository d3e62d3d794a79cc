//! Shares of GPUs, and the policies of FGD's simulator, on the command line.

use serde_json::Value;

use super::{pipe, refused, run, text};
use crate::traces::samples::PODS;

const NODES: &str = r#"{"schema":1,"nodes":[{"name":"n0","gpus":2},{"name":"n1","gpus":2,"schedulable":false}]}"#;

fn lines(bytes: &[u8]) -> Vec<Value> {
    text(bytes).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The devices on n0 of each job that was placed, or why it was not.
fn decisions(cluster: &str, queue: &str, more: &str) -> Vec<String> {
    let output = pipe(&format!("place --cluster {cluster} --queue - {more}"), queue.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told = |line: Value| match line["why"].as_str() {
        Some(why) => why.to_owned(),
        None => line["instances"]
            .as_array()
            .map_or(String::new(), |all| all.iter().map(|one| one["gpus"].to_string()).collect::<Vec<_>>().join(" ")),
    };
    lines(&output.stdout).into_iter().map(told).collect()
}

fn share(job: &str, instances: u32, gpu_milli: u32) -> String {
    format!("{{\"job\":\"{job}\",\"instances\":{instances},\"gpus_per_instance\":1,\"gpu_milli\":{gpu_milli}}}\n")
}

#[test]
fn shares_are_placed_blocked_kept_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, after) = (folder.path().join("c.json"), folder.path().join("after.json"));
    std::fs::write(&cluster, NODES).unwrap();
    let whole = "{\"job\":\"w\",\"instances\":1,\"gpus_per_instance\":1}\n";
    for policy in ["compass", "best-fit", "worst-fit", "first-fit", "random", "gpu-packing", "gpu-clustering"] {
        let first =
            share("a", 3, 400) + whole + &share("b", 1, 200) + &share("c", 1, 900) + whole.replace('w', "v").as_str();
        let more = format!("--policy {policy} --snapshot-out {}", after.display());
        // 800 and 400 of the two devices; then none is free, and b goes where the least is left.
        let told = decisions(&cluster.display().to_string(), &first, &more);
        assert_eq!(told, ["[0] [0] [1]", "capacity", "[0]", "capacity", "capacity"], "{policy}");
        let second = format!("{}{}{{\"remove\":\"a\"}}\n{}", share("d", 1, 600), share("e", 1, 1), share("f", 1, 900));
        let told = decisions(&after.display().to_string(), &second, &format!("--policy {policy}"));
        assert_eq!(told, ["[1]", "capacity", "", "fragmentation"], "{policy}");
    }
    let audit = run(&format!("audit --cluster {}", after.display()));
    let audit: Value = serde_json::from_slice(&audit.stdout).unwrap();
    assert_eq!((&audit["busy_gpus"], &audit["full"], &audit["partial"]), (&2.into(), &1.into(), &0.into()));
}

#[test]
fn fgd_places_what_is_typical_where_it_hurts_least() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("c.json"), NODES).unwrap();
    std::fs::write(at("pods.csv"), "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,0,0,2,1000\n").unwrap();
    // With pairs of whole GPUs in mind both devices are lost already; with its own kind in mind a rest of 200 would be.
    let queue = share("a", 1, 300) + &share("b", 1, 500);
    for policy in ["fgd", "fgd:peer"] {
        assert_eq!(decisions(&at("c.json"), &queue, &format!("--policy {policy}")), ["[0]", "[1]"]);
        let typical = format!("--policy {policy} --typical openb:{}", at("pods.csv"));
        assert_eq!(decisions(&at("c.json"), &queue, &typical), ["[0]", "[0]"]);
    }
    // What waits counts beside it for mcg, what runs for ca-fgd: nothing does at first.
    for (policy, told) in [("mcg", ["[0]", "[1]"]), ("ca-fgd", ["[0]", "[0]"])] {
        let typical = format!("--policy {policy} --typical openb:{} --window 1", at("pods.csv"));
        assert_eq!(decisions(&at("c.json"), &queue, &typical), told, "{policy}");
    }
    let running =
        r#","running":[{"job":"r","gpus_per_instance":1,"gpu_milli":500,"instances":[{"node":"n1","gpus":[0]}]}]}"#;
    std::fs::write(at("running.json"), NODES.trim_end_matches('}').to_owned() + running).unwrap();
    for (policy, told) in [("fgd", ["[0]", "[0]"]), ("ca-fgd", ["[0]", "[1]"])] {
        let typical = format!("--policy {policy} --typical openb:{}", at("pods.csv"));
        assert_eq!(decisions(&at("running.json"), &queue, &typical), told, "{policy}");
    }
    for (more, named) in [
        ("--policy compass --typical openb:x", ["--typical", "compass", "fgd"]),
        ("--policy fgd --typical openb:none", ["none", "no such file", "expected"]),
        ("--policy fgd --typical openb:-", ["-", "more than one input", "expected"]),
    ] {
        let words = format!("place --cluster {} --queue - {more}", at("c.json"));
        refused(more, &pipe(&words, queue.as_bytes()), &named);
    }
}

#[test]
fn the_policies_are_played_over_time() {
    let folder = tempfile::tempdir().unwrap();
    let pods = folder.path().join("pods.csv");
    std::fs::write(&pods, PODS).unwrap();
    let policies =
        "fgd,fgd:peer,dot-product,dot-product:peer,gpu-packing:peer,gpu-clustering,best-fit:peer,compass,ca-fgd,mcg";
    let words = format!("simulate --trace openb:{0} --nodes 3 --policy {policies}", pods.display());
    for more in [String::new(), format!(" --typical openb:{}", pods.display())] {
        let output = run(&format!("{words}{more}"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let runs = lines(&output.stdout);
        assert_eq!(runs.iter().map(|run| run["policy"].as_str().unwrap()).collect::<Vec<_>>().join(","), policies);
        assert!(
            runs.iter().all(|run| run["finished"] == 5 && run["utilisation"].as_f64().is_none_or(|all| all <= 1.0))
        );
    }
}

#[test]
fn a_workload_is_inflated_to_a_share_of_the_gpus() {
    let folder = tempfile::tempdir().unwrap();
    let pods = folder.path().join("pods.csv");
    std::fs::write(&pods, PODS).unwrap();
    let words = |more: &str| format!("generate queue --from openb:{} {more}", pods.display());
    let of = |more: &str| {
        let output = run(&words(more));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        output.stdout
    };
    let queue = of("--gpus 100 --inflate 130 --seed 7");
    assert_eq!(queue, of("--gpus 100 --inflate 130 --seed 7"));
    assert_ne!(queue, of("--gpus 100 --inflate 130 --seed 8"));
    let milli = |line: &Value| line["gpus_per_instance"].as_u64().unwrap() * line["gpu_milli"].as_u64().unwrap_or(1000);
    let demand: u64 = lines(&queue).iter().map(milli).sum();
    // The largest pod asks for 8 GPUs.
    assert!((122_001..=130_000).contains(&demand), "{demand}");
    for bad in [words("--jobs 5"), words("--load 50"), "generate queue --inflate 130".to_owned()] {
        let output = run(&bad);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{bad}");
        assert!(text(&output.stderr).contains("--from"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_blocked_share_is_explained_in_thousandths() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = folder.path().join("c.json").display().to_string();
    std::fs::write(&cluster, NODES).unwrap();
    // Rests of 200 and 600 are left: 800 are enough for 700, and are not on one device.
    let queue = share("a", 3, 400) + &share("b", 1, 700);
    let place = |more: &str| {
        let output = pipe(&format!("place --cluster {cluster} --queue - --policy best-fit {more}"), queue.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let explained = place("--explain --format table");
    assert!(
        explained.starts_with("b, 1 × 0.7 GPUs: blocked by fragmentation; 0.800 GPUs free, 0.700 asked for\n"),
        "{explained}"
    );
    let line = place("--explain --format json");
    let numbers = r#""free_gpus":0,"asks_gpus":1,"free_gpu_milli":800,"asks_gpu_milli":700"#;
    assert!(line.lines().nth(1).unwrap().contains(numbers), "{line}");
    let table = place("--format table");
    assert!(table.contains("a    3 × 0.4  placed") && table.contains("b            1 × 0.7  fragmentation"), "{table}");
    // The sum of shares is rounded up to whole GPUs.
    let first = place("--explain a --format json");
    assert!(first.contains(r#""free_gpus":2,"asks_gpus":2,"free_gpu_milli":2000,"asks_gpu_milli":1200"#), "{first}");
}
