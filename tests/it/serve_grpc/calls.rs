//! Every call, as it is meant.

use serde_json::Value;
use slotwise::cluster::{JobSpec, NodeId};
use slotwise::decide::PlaceOptions;
use slotwise::evaluate::Place;
use slotwise::formats::{EditSpec, GangSpec, SeatSpec, StartSpec, WaitSpec, WithinSpec, read_cluster};
use slotwise::serve::client::{Candidates, Submissions};
use slotwise::serve::grpc::generated::{PutClusterRequest, Reason, Status, put_cluster_request::Piece};
use slotwise::serve::{Client, Condition, Limits};
use slotwise::workload::synthetic::{ClusterOptions, synthetic_cluster};

use super::{Service, nodes, run, text_of};

fn start(job: &str, gpus: u8, seats: &[(&str, &[u64])]) -> EditSpec {
    let seat = |&(node, gpus): &(&str, &[u64])| SeatSpec { node: node.into(), gpus: Some(gpus.to_vec()) };
    EditSpec::Start(StartSpec {
        job: job.into(),
        gpus_per_instance: gpus,
        migratable: true,
        instances: seats.iter().map(seat).collect(),
        ..StartSpec::default()
    })
}

/// The cluster that is there, as text.
async fn text(client: &mut Client) -> String {
    text_of(&client.cluster().await.unwrap().1.cluster)
}

#[test]
fn a_cluster_comes_back_as_it_was_put() {
    run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        let golden = format!("{}/tests/golden/cluster.json", env!("CARGO_MANIFEST_DIR"));
        let options = ClusterOptions { gpus: 80_000, preload_percent: 60, ..ClusterOptions::default() };
        for cluster in
            [read_cluster(&golden).unwrap().cluster, synthetic_cluster(&options).unwrap(), nodes(0), nodes(3)]
        {
            let version = client.put(&cluster).await.unwrap();
            assert_eq!(client.version().await.unwrap(), version);
            assert!(text(&mut client).await == text_of(&cluster));
            let (of, names) = client.nodes().await.unwrap();
            assert_eq!(of, version);
            assert!(names.iter().map(String::as_str).eq(cluster.node_ids().map(|node| cluster.node_name(node))));
        }
        // The same as JSON, in pieces that break anywhere.
        let json = text_of(&read_cluster(&golden).unwrap().cluster);
        let pieces: Vec<_> = json.as_bytes().chunks(7).map(<[u8]>::to_vec).collect();
        let pieces = pieces.into_iter().map(|piece| PutClusterRequest { piece: Some(Piece::Json(piece)) });
        let mut raw =
            slotwise::serve::grpc::generated::slotwise_client::SlotwiseClient::connect(service.options.url.clone())
                .await
                .unwrap();
        let answer = raw.put_cluster(futures_util::stream::iter(pieces)).await.unwrap().into_inner();
        assert_eq!((answer.nodes, answer.gpus), (5, 35));
        assert_eq!(text(&mut client).await, json);
    });
}

#[test]
fn edits_are_done_once_and_in_order() {
    run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        let version = client.put(&nodes(4)).await.unwrap();
        let all = [
            start("a", 4, &[("n0", &[0, 1, 2, 3]), ("n1", &[4, 5, 6, 7])]),
            EditSpec::Wait(WaitSpec {
                job: "w".into(),
                gpus: 8,
                cpu_milli: 500,
                memory_mib: 7,
                gang: Some("g".into()),
                gang_size: Some(2),
            }),
            EditSpec::Gang(GangSpec { gang: "g".into(), size: Some(3), within: Some(WithinSpec::Rack) }),
            EditSpec::Cordon("n2".into()),
            start("b", 1, &[("n3", &[7])]),
            EditSpec::Moves(vec![slotwise::formats::MoveSpec {
                job: "a".into(),
                instance: 1,
                node: "n3".into(),
                from: Some("n1".into()),
                gpus: Some(vec![0, 1, 2, 3]),
            }]),
            EditSpec::End("b".into()),
            EditSpec::Uncordon("n2".into()),
        ];
        let condition = Condition { version: Some(version), id: Some("first".into()) };
        let changed = client.edit(&condition, &all).await.unwrap();
        assert!(!changed.repeated && changed.version != version);
        // The same again changes nothing, though its version has passed.
        let again = client.edit(&condition, &all).await.unwrap();
        assert_eq!((again.repeated, again.version), (true, changed.version));
        let text = text(&mut client).await;
        assert!(text.contains(r#"{"job":"a","gpus_per_instance":4,"instances":[{"node":"n0","gpus":[0,1,2,3]},{"node":"n3","gpus":[0,1,2,3]}]}"#));
        assert!(!text.contains("\"b\"") && !text.contains("schedulable"));
    });
}

#[test]
fn thousands_of_edits_go_on_one_stream() {
    run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        let version = client.put(&nodes(8)).await.unwrap();
        let stream = &mut client.edits().await.unwrap();
        let n = 6000;
        let mut last = version;
        for at in 0..n {
            let node = format!("n{}", at / 2 % 8);
            let edit = [if at % 2 == 0 { EditSpec::Cordon(node) } else { EditSpec::Uncordon(node) }];
            if at == 0 {
                stream.send(&Condition { version: Some(version), id: None }, &edit).await.unwrap();
            } else {
                stream.send_next(Some(format!("edit-{at}")), &edit).await.unwrap();
            }
            if at >= 500 {
                last = stream.answer().await.unwrap().version;
            }
        }
        for _ in 0..500 {
            last = stream.answer().await.unwrap().version;
        }
        assert_eq!((last.epoch, last.generation), (version.epoch, version.generation + n));
        assert_eq!(client.version().await.unwrap(), last);
        assert_eq!(text(&mut client).await, text_of(&nodes(8)));
    });
}

#[test]
fn jobs_are_placed_to_see_or_for_good() {
    run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        let version = client.put(&nodes(4)).await.unwrap();
        let gang = JobSpec { name: "gang", gpus: 8, ..JobSpec::default() };
        let small = JobSpec { name: "small", gpus: 2, models: &["H100", "B200"], ..JobSpec::default() };
        let huge = JobSpec { name: "huge", gpus: 8, ..JobSpec::default() };
        let later = JobSpec { name: "later", gpus: 8, ..JobSpec::default() };
        let queue = || {
            let first = Submissions::new().submit(&gang, 3).submit(&small, 2).submit(&huge, 2);
            first.remove("gang").submit(&later, 2)
        };
        let condition = Condition { version: Some(version), id: Some("place".into()) };
        let options = PlaceOptions::default();
        let seen = client.place(&condition, queue(), &options, false).await.unwrap();
        assert_eq!(seen.job, ["gang", "small", "huge", "gang", "later"]);
        let status: Vec<Status> = seen.status().collect();
        use Status::{BlockedCapacity, Placed, Removed};
        assert_eq!(status, [Placed, Placed, BlockedCapacity, Removed, Placed]);
        assert_eq!((&seen.n_places[..], seen.place.as_ref().unwrap().node.len()), (&[3, 2, 0, 0, 2][..], 7));
        assert_eq!(client.version().await.unwrap(), version);
        // For good it is the same, and then it is so.
        let done = client.place(&condition, queue(), &options, true).await.unwrap();
        assert_eq!((&done.place, &done.status, done.repeated), (&seen.place, &seen.status, false));
        let again = client.place(&condition, queue(), &options, true).await.unwrap();
        assert_eq!((again.place, again.repeated, &again.version), (done.place, true, &done.version));
        assert_eq!(client.version().await.unwrap().to_string(), done.version);
        let text = text(&mut client).await;
        assert!(text.contains("\"later\"") && text.contains("\"small\"") && !text.contains("\"gang\""));
    });
}

#[test]
fn an_id_of_a_place_is_one_over_both_protocols() {
    run(async {
        let [first, second] = [Service::start(Limits::default()).await, Service::start(Limits::default()).await];
        for service in [&first, &second] {
            let mut client = service.client().await;
            client.put(&nodes(4)).await.unwrap();
            // The end of one of them makes the other move.
            let all = [
                start("a", 1, &[("n0", &[0])]),
                start("b", 1, &[("n1", &[3])]),
                start("c", 5, &[("n2", &[0, 1, 2, 4, 5])]),
            ];
            client.edit(&Condition::default(), &all).await.unwrap();
        }
        let queue = || {
            let all = Submissions::new().submit(&JobSpec { name: "x", gpus: 2, ..JobSpec::default() }, 2).remove("c");
            let huge = JobSpec { name: "y", gpus: 8, ..JobSpec::default() };
            all.submit(&huge, 9).submit(&JobSpec { name: "z", gpus: 1, gpu_milli: 300, ..JobSpec::default() }, 1)
        };
        let body = r#"{"commit":true,"id":"p","queue":[{"job":"x","instances":2,"gpus_per_instance":2},{"remove":"c"},
            {"job":"y","instances":9,"gpus_per_instance":8},
            {"job":"z","instances":1,"gpus_per_instance":1,"gpu_milli":300}]}"#;
        let condition = Condition { id: Some("p".into()), ..Condition::default() };
        let options = PlaceOptions::default();
        let http = async |service: &Service| -> Value {
            serde_json::from_str(&http(service, "POST", "/v1/place", body).await).unwrap()
        };
        let by_http = http(&first).await;
        let by_grpc = second.client().await.place(&condition, queue(), &options, true).await.unwrap();
        assert!(!by_grpc.from.is_empty() && by_grpc.status().count() == 4, "nothing moves: {by_grpc:?}");
        // What one was told by the one protocol the other is told by the other.
        let again = first.client().await.place(&condition, queue(), &options, true).await.unwrap();
        assert_eq!((again.repeated, &again.version), (true, &by_http["version"].as_str().unwrap().to_owned()));
        let version = by_grpc.version.clone();
        assert_eq!(slotwise::serve::grpc::generated::PlaceResponse { version, repeated: false, ..again }, by_grpc);
        let again = http(&second).await;
        assert_eq!((&again["repeated"], &again["decisions"]), (&true.into(), &by_http["decisions"]));
        // An edit has ids of its own.
        let refused = first.client().await.edit(&condition, &[]).await.unwrap_err();
        assert!(refused.to_string().contains("another kind of call"), "{refused}");
    });
}

#[test]
fn candidates_are_scored_in_one_call_or_many() {
    run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        client.put(&nodes(4)).await.unwrap();
        let version = client.edit(&Condition::default(), &[start("a", 2, &[("n0", &[0, 1])])]).await.unwrap().version;
        let place = |node, gpus| Place { node: NodeId(node), gpus };
        let mut batch = Candidates::new();
        let job = batch.job(&JobSpec { name: "j", gpus: 2, ..JobSpec::default() }, 1);
        batch.candidate(job, &[place(0, None)], &[]);
        batch.candidate(job, &[place(1, Some(0b11))], &[]);
        batch.candidate(job, &[place(0, Some(0b11))], &[]);
        batch.candidate(job, &[place(1, None)], &[("a", 0, place(1, None))]);
        batch.candidate(job, &[place(1, None)], &[("nobody", 0, place(1, None))]);
        batch.candidate(job, &[], &[]);
        let scores = client.score(Some(version), &batch).await.unwrap();
        assert_eq!(scores.version, version.to_string());
        use Reason::{Feasible, GpuBusy, NotRunning, WrongCount};
        let reasons: Vec<Reason> = scores.reason().collect();
        assert_eq!(reasons, [Feasible, Feasible, GpuBusy, Feasible, NotRunning, WrongCount]);
        assert_eq!(scores.delta_partial, [0, 1, 0, 0, 0, 0]);
        assert_eq!(scores.moves, [0, 0, 0, 1, 0, 0]);
        assert_eq!(scores.empty_nodes_after, [3, 2, 0, 3, 0, 0]);
        assert_eq!(scores.rank[0], 1);
        let many = client.score_all(None, vec![batch.clone(); 300]).await.unwrap();
        assert!(many.len() == 300 && many.iter().all(|one| *one == scores));
    });
}

#[test]
fn documents_are_those_of_the_commands_with_a_version() {
    run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        let golden = format!("{}/tests/golden", env!("CARGO_MANIFEST_DIR"));
        let snapshot = read_cluster(&format!("{golden}/plan-cluster.json")).unwrap();
        let version = client.put(&snapshot.cluster).await.unwrap();
        let queue = std::fs::read_to_string(format!("{golden}/plan-queue.jsonl")).unwrap();
        let job = queue.lines().next().unwrap();
        let name = serde_json::from_str::<Value>(job).unwrap()["job"].as_str().unwrap().to_owned();
        let options = format!("--cluster {golden}/plan-cluster.json --queue {golden}/plan-queue.jsonl --job {name}");
        let command = |words: &str| -> Value {
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_slotwise"))
                .args(words.split_whitespace())
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice(&output.stdout).unwrap()
        };
        let versioned = |document: &[u8]| -> Value {
            let mut value: Value = serde_json::from_slice(document).unwrap();
            assert_eq!(value.as_object_mut().unwrap().remove("version"), Some(version.to_string().into()));
            value
        };
        let plan = client.plan(&format!("{{\"version\":\"{version}\",\"job\":{job}}}")).await.unwrap();
        assert_eq!(versioned(&plan), command(&format!("plan {options}")));
        let explained = client.explain(&format!("{{\"job\":{job},\"mode\":\"hitless\"}}")).await.unwrap();
        assert_eq!(versioned(&explained), command(&format!("explain {options} --mode hitless")));
        let packed = client.plan(r#"{"target":"sif=0","max_moves":1}"#).await.unwrap();
        let words = format!("plan --cluster {golden}/plan-cluster.json --target sif=0 --max-moves 1");
        assert_eq!(versioned(&packed), command(&words));
        let curve = client.plan(r#"{"target":"sif=0","curve":true}"#).await.unwrap();
        let words = format!("plan --cluster {golden}/plan-cluster.json --target sif=0 --curve");
        assert_eq!(versioned(&curve), command(&words));
        let bound = client.plan(r#"{"free_nodes":1,"budgets":[{"allowed":0,"jobs":["*"]}]}"#).await.unwrap();
        let words = format!("plan --cluster {golden}/plan-cluster.json --free-nodes 1 --pin *");
        assert_eq!(versioned(&bound)["feasible"], command(&words)["feasible"]);
        let audit = client.audit("").await.unwrap();
        assert_eq!(versioned(&audit), command(&format!("audit --cluster {golden}/plan-cluster.json")));
        let lines: Vec<&str> = queue.lines().collect();
        let waiting = client.audit(&format!("{{\"queue\":[{}]}}", lines.join(","))).await.unwrap();
        let words = format!("audit --cluster {golden}/plan-cluster.json --queue {golden}/plan-queue.jsonl");
        assert_eq!(versioned(&waiting), command(&words));
        // The same over HTTP, by its documented paths.
        for (method, path, body) in
            [("POST", "/v1/plan", format!("{{\"job\":{job}}}")), ("GET", "/v1/audit", String::new())]
        {
            let answered = http(&service, method, path, &body).await;
            let expected = if method == "GET" { &audit } else { &plan };
            assert_eq!(answered, String::from_utf8_lossy(expected), "{path}");
        }
    });
}

/// The body that is answered to a call that is done.
pub(super) async fn http(service: &Service, method: &str, path: &str, body: &str) -> String {
    let answer = answered(service, method, path, body).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// All that is answered, done or not.
pub(super) async fn answered(service: &Service, method: &str, path: &str, body: &str) -> String {
    use std::io::{Read, Write};
    let address = service.options.url.strip_prefix("http://").unwrap().to_owned();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    let request = format!("{head}{body}");
    let asked = tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    asked.await.unwrap()
}
