//! The scores are those of the command, column by column.

use std::fmt::Write as _;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use slotwise::cluster::{GpuMask, JobSpec, NodeId, gpu_indices};
use slotwise::evaluate::{Place, Reason};
use slotwise::serve::Limits;
use slotwise::serve::client::Candidates;
use slotwise::workload::synthetic::{ClusterOptions, synthetic_cluster};

use super::{Service, run, text_of};

#[test]
fn scores_are_those_of_the_command() {
    let options = ClusterOptions { gpus: 320, preload_percent: 70, ..ClusterOptions::default() };
    let cluster = synthetic_cluster(&options).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let nodes = cluster.nodes().len() as u32;
    let running: Vec<&str> = cluster.job_ids().map(|job| cluster.job_name(job)).collect();
    let (mut queue, mut lines, mut batch) = (String::new(), String::new(), Candidates::new());
    for (name, gpus, instances) in [("one", 1, 1), ("pair", 2, 2), ("gang", 8, 2), ("half", 4, 1)] {
        writeln!(queue, r#"{{"job":"{name}","gpus_per_instance":{gpus},"instances":{instances}}}"#).unwrap();
        let row = batch.job(&JobSpec { name, gpus, ..JobSpec::default() }, instances);
        for at in 0..100 {
            let mut place = || {
                let node = NodeId(random.random_range(0..nodes));
                // Mostly as many devices as there should be, the lowest free ones or some.
                let mask: GpuMask = random.random_range(1..256);
                let named = random.random_bool(0.5);
                Place { node, gpus: named.then_some(mask) }
            };
            let places: Vec<Place> = (0..instances).map(|_| place()).collect();
            let to = place();
            let moved = (at % 3 == 0).then(|| (running[random.random_range(0..running.len())], at % 4, to));
            let seat = |place: &Place| {
                let gpus = place.gpus.map(|mask| gpu_indices(mask).collect::<Vec<_>>());
                let gpus = gpus.map(|gpus| format!(",\"gpus\":{gpus:?}")).unwrap_or_default();
                format!("\"node\":\"{}\"{gpus}", cluster.node_name(place.node))
            };
            let seats: Vec<String> = places.iter().map(|place| format!("{{{}}}", seat(place))).collect();
            let moves =
                moved.map(|(job, instance, to)| format!(r#"{{"job":"{job}","instance":{instance},{}}}"#, seat(&to)));
            let (seats, moves) = (seats.join(","), moves.unwrap_or_default());
            writeln!(lines, r#"{{"job":"{name}","candidate":"{at}","place":[{seats}],"migrate":[{moves}]}}"#).unwrap();
            batch.candidate(row, &places, moved.as_slice());
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("cluster"), text_of(&cluster)).unwrap();
    std::fs::write(path("queue"), queue).unwrap();
    std::fs::write(path("candidates"), lines).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_slotwise"))
        .args(["score", "--cluster", "cluster", "--queue", "queue", "--candidates", "candidates", "--backend", "cpu"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let scores = run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        let version = client.put(&cluster).await.unwrap();
        client.score(Some(version), &batch).await.unwrap()
    });
    let mut feasible = 0;
    let text = String::from_utf8(output.stdout).unwrap();
    for (at, line) in text.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        let number = |column: i64| if line["feasible"] == true { Value::from(column) } else { Value::Null };
        let reason = Reason::from_number(scores.reason[at] as u32).map(|reason| Value::from(reason.name()));
        assert_eq!(line["reason"], reason.unwrap_or_default(), "{line}");
        let columns = [
            ("rank", i64::from(scores.rank[at])),
            ("delta_partial", i64::from(scores.delta_partial[at])),
            ("delta_phi_star", i64::from(scores.delta_phi_star[at])),
            ("delta_sif_nodes", i64::from(scores.delta_sif_nodes[at])),
            ("left_abs", i64::from(scores.left_abs[at])),
            ("moves", i64::from(scores.moves[at])),
            ("moved_gpus", i64::from(scores.moved_gpus[at])),
            ("empty_nodes_after", scores.empty_nodes_after[at]),
        ];
        for (name, column) in columns {
            assert_eq!(line[name], number(column), "{name} of {line}");
        }
        assert_eq!(line["in_abs"].as_bool().unwrap_or(false), scores.in_abs[at], "{line}");
        feasible += usize::from(scores.rank[at] > 0);
    }
    assert_eq!((text.lines().count(), scores.rank.len()), (400, 400));
    assert!(feasible > 20, "only {feasible} of 400 candidates are feasible");
}
