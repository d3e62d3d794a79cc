//! Jobs of several groups on every way in: HTTP, columns, edits and snapshots give the same cluster.

use serde_json::{Value, json};
use slotwise::cluster::{Cluster, JobSpec, Within};
use slotwise::decide::PlaceOptions;
use slotwise::formats::{EditSpec, GroupSpec, SeatSpec, StartSpec, WithinSpec};
use slotwise::serve::grpc::generated::{
    ApplyEditsRequest, Jobs, Nodes, PlaceRequest, PutClusterRequest, Running, ScoreRequest, Seats, Status,
    Within as In, put_cluster_request::Piece, slotwise_client::SlotwiseClient,
};
use slotwise::serve::{Client, Condition, Limits, client::Submissions};

use super::calls::{answered, http};
use super::{Service, nodes, run, text_of};

/// What waits, as a queue has it.
const TRAIN: &str = r#"{"job":"train","within":"rack","migratable":false,"groups":[
    {"instances":1,"gpus_per_instance":0,"cpu_milli":4000},{"instances":2,"gpus_per_instance":8,"models":["H100"]},
    {"instances":3,"gpus_per_instance":1,"gpu_milli":250}]}"#;

fn submissions() -> Submissions {
    let whole = JobSpec { within: Some(Within::Rack), pinned: true, ..JobSpec::default() };
    let groups = [
        (JobSpec { cpu_milli: 4000, ..whole.clone() }, 1),
        (JobSpec { gpus: 8, models: &["H100"], ..whole.clone() }, 2),
        (JobSpec { gpus: 1, gpu_milli: 250, ..whole.clone() }, 3),
    ];
    Submissions::new()
        .submit_groups("train", &groups)
        .submit(&JobSpec { name: "small", gpus: 2, ..JobSpec::default() }, 1)
}

/// The edit that tells of a decision on a line of a queue: each group with its instances for their number.
fn started(line: &str, decision: &Value) -> Value {
    let mut job: Value = serde_json::from_str(line).unwrap();
    let seats = |instances: &Value| {
        let mut seats = instances.clone();
        for seat in seats.as_array_mut().unwrap() {
            seat.as_object_mut().unwrap().remove("gpu_milli");
        }
        seats
    };
    assert_eq!((&decision["status"], &decision["job"]), (&json!("placed"), &job["job"]));
    match job.get("groups") {
        None => job["instances"] = seats(&decision["instances"]),
        Some(_) => {
            for (at, group) in decision["groups"].as_array().unwrap().iter().enumerate() {
                job["groups"][at]["instances"] = seats(&group["instances"]);
            }
        }
    }
    json!({ "start": job })
}

async fn snapshot(service: &Service) -> String {
    http(service, "GET", "/v1/cluster", "").await
}

async fn cluster(client: &mut Client) -> Cluster {
    client.cluster().await.unwrap().1.cluster
}

#[test]
fn whoever_tells_of_groups_and_however_the_cluster_is_the_same() {
    run(async {
        let [by_http, by_grpc, by_edits, by_columns, by_put] = [(); 5].map(|()| Service::start(Limits::default()));
        let small = r#"{"job":"small","instances":1,"gpus_per_instance":2}"#;
        let (by_http, by_grpc, by_edits) = (by_http.await, by_grpc.await, by_edits.await);
        let (by_columns, by_put) = (by_columns.await, by_put.await);
        for service in [&by_http, &by_grpc, &by_edits, &by_columns] {
            service.client().await.put(&nodes(8)).await.unwrap();
        }
        // Placed over HTTP and over gRPC.
        let body = format!(r#"{{"commit":true,"queue":[{TRAIN},{small}]}}"#);
        let placed: Value = serde_json::from_str(&http(&by_http, "POST", "/v1/place", &body).await).unwrap();
        let (condition, options) = (Condition::default(), PlaceOptions::default());
        let rows = by_grpc.client().await.place(&condition, submissions(), &options, true).await.unwrap();
        assert_eq!((&rows.job[..], &rows.n_places[..]), (&["train".to_owned(), "small".to_owned()][..], &[6, 1][..]));
        assert!(rows.status().all(|status| status == Status::Placed));
        // Told of as JSON.
        let edits =
            json!({"edits": [started(TRAIN, &placed["decisions"][0]), started(small, &placed["decisions"][1])]});
        http(&by_edits, "POST", "/v1/edits", &edits.to_string()).await;
        // Told of in columns, by the client that reads the same edits.
        let specs: Vec<EditSpec> = serde_json::from_value(edits["edits"].clone()).unwrap();
        by_columns.client().await.edit(&condition, &specs).await.unwrap();
        // Put in columns, groups and all.
        let all = cluster(&mut by_http.client().await).await;
        by_put.client().await.put(&all).await.unwrap();
        let expected = snapshot(&by_http).await;
        assert!(expected.contains(r#""group_of":"train""#) && expected.contains(r#""job":"train/3""#), "{expected}");
        for (service, who) in [(&by_grpc, "gRPC"), (&by_edits, "edits"), (&by_columns, "columns"), (&by_put, "put")] {
            assert_eq!(snapshot(service).await, expected, "{who}");
        }
        // The whole ends by its name, on all of them alike; a group of it does not.
        for service in [&by_http, &by_grpc, &by_edits, &by_columns, &by_put] {
            let refused = answered(service, "POST", "/v1/edits", r#"{"edits":[{"end":"train/2"}]}"#).await;
            assert!(refused.contains("a group of the job"), "{refused}");
            let ends = [EditSpec::End("train".into()), EditSpec::End("small".into())];
            service.client().await.edit(&condition, &ends).await.unwrap();
            let left = cluster(&mut service.client().await).await;
            assert_eq!(text_of(&left), text_of(&nodes(8)));
        }
        // By gRPC it is removed as over HTTP.
        let client = &mut by_grpc.client().await;
        client.place(&condition, submissions(), &options, true).await.unwrap();
        let removed =
            client.place(&condition, Submissions::new().remove("train").remove("small"), &options, true).await.unwrap();
        assert_eq!((removed.status().collect::<Vec<_>>(), &removed.job[0][..]), (vec![Status::Removed; 2], "train"));
        let part = client.place(&condition, submissions().remove("train/1"), &options, true).await.unwrap_err();
        assert!(part.to_string().contains("a group of the job"), "{part}");
    });
}

/// A job of two groups on two nodes.
fn pair() -> StartSpec {
    let seat = |node: &str| SeatSpec { node: node.into(), gpus: None };
    let group =
        |gpus_per_instance, node| GroupSpec { gpus_per_instance, instances: vec![seat(node)], ..GroupSpec::default() };
    let groups = vec![group(2, "n0"), group(8, "n1")];
    StartSpec { job: "p".into(), migratable: true, within: Some(WithinSpec::Rack), groups, ..StartSpec::default() }
}

#[test]
fn a_start_of_groups_is_all_or_nothing_and_its_names_are_reserved() {
    run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        client.put(&nodes(4)).await.unwrap();
        let mut edit = async |edits: &[EditSpec]| {
            client.edit(&Condition::default(), edits).await.map(|_| ()).map_err(|error| error.to_string())
        };
        let plain = |job: &str, node: &str, gpus| {
            let instances = vec![SeatSpec { node: node.into(), gpus: None }];
            let alone =
                StartSpec { job: job.into(), gpus_per_instance: gpus, migratable: true, ..StartSpec::default() };
            EditSpec::Start(StartSpec { instances, ..alone })
        };
        let before = snapshot(&service).await;
        for (edits, says) in [
            // The second group finds no room, so the first has none either.
            (vec![plain("a", "n1", 1), EditSpec::Start(pair())], "7 free devices"),
            (vec![plain("p/2", "n3", 1), EditSpec::Start(pair())], "p/2"),
            (vec![plain("p", "n3", 1), EditSpec::Start(pair())], "p"),
            (vec![EditSpec::Start(pair()), plain("p/1", "n3", 1)], "p/1"),
            (vec![EditSpec::Start(pair()), EditSpec::End("p/1".into())], "a group of the job"),
            (vec![EditSpec::Start(pair()), EditSpec::End("p".into()), EditSpec::End("p".into())], "p"),
        ] {
            let refused = edit(&edits).await.unwrap_err();
            assert!(refused.contains(&format!("edits[{}]", edits.len() - 1)) && refused.contains(says), "{refused}");
            assert_eq!(snapshot(&service).await, before);
        }
        // Again and again, in one message and many; the instances of a group move by its name.
        for _ in 0..3 {
            edit(&[EditSpec::Start(pair()), EditSpec::End("p".into()), EditSpec::Start(pair())]).await.unwrap();
            let step = r#"{"moves":[{"job":"p/1","instance":0,"from":"n0","to":"n2","gpus":[4,5]}]}"#;
            edit(&[serde_json::from_str(step).unwrap()]).await.unwrap();
            let again = edit(&[serde_json::from_str(step).unwrap()]).await.unwrap_err();
            assert!(again.contains(r#"found from "n0", expected "n2""#), "{again}");
            assert!(snapshot(&service).await.contains(r#""instances":[{"node":"n2","gpus":[4,5]}]"#));
            let waits = r#"{"wait":{"job":"p","gpus":1}}"#;
            assert!(edit(&[serde_json::from_str(waits).unwrap()]).await.unwrap_err().contains("does not run"));
            edit(&[EditSpec::End("p".into())]).await.unwrap();
        }
        assert_eq!(snapshot(&service).await, before);
    });
}

#[test]
fn bad_columns_of_groups_are_named() {
    run(async {
        let service = Service::start(Limits::default()).await;
        service.client().await.put(&nodes(2)).await.unwrap();
        let mut raw = SlotwiseClient::connect(service.options.url.clone()).await.unwrap();
        let jobs = || Jobs {
            name: vec!["g/1".into(), "g/2".into()],
            gpus_per_instance: vec![1, 2],
            group_of: vec!["g".into(), "g".into()],
            ..Jobs::default()
        };
        let seats = || Some(Seats { node: vec![0, 1], gpus: vec![] });
        let running = |jobs: Jobs| Running { jobs: Some(jobs), seats: seats(), ..Running::default() };
        let wrong = [
            (Jobs { group_of: vec!["g".into()], ..jobs() }, "jobs.group_of: found 1 elements, expected 2"),
            (Jobs { group_of: vec!["g".into(), String::new()], ..jobs() }, "jobs.group_of[0]: found \"g\" in one row"),
            (
                Jobs { name: vec!["g/1".into(), "g/3".into()], ..jobs() },
                "jobs.name[1]: found \"g/3\", expected \"g/2\"",
            ),
            (Jobs { within: vec![0, In::Rack as i32], ..jobs() }, "jobs.within[1]: found another"),
            (Jobs { pinned: vec![true, false], ..jobs() }, "jobs.pinned[1]: found another"),
        ];
        for (jobs, expected) in wrong {
            let place = PlaceRequest { jobs: Some(jobs.clone()), ..PlaceRequest::default() };
            let status = raw.place(place).await.unwrap_err();
            assert!(status.message().starts_with(expected), "{} is not {expected}", status.message());
            let start = ApplyEditsRequest { kind: vec![1], start: Some(running(jobs)), ..ApplyEditsRequest::default() };
            let mut answers = raw.apply_edits(futures_util::stream::iter([start])).await.unwrap().into_inner();
            let status = answers.message().await.unwrap_err();
            let expected = format!("start.{expected}");
            assert!(status.message().starts_with(&expected), "{} is not {expected}", status.message());
        }
        for (start, expected) in [
            (Running { remaining_s: vec![5, 6], ..running(jobs()) }, "start.remaining_s[1]: found other times"),
            (
                Running { gang: vec!["x".into(), String::new()], ..running(jobs()) },
                "start.gang[0]: found one for a group",
            ),
        ] {
            let start = ApplyEditsRequest { kind: vec![1], start: Some(start), ..ApplyEditsRequest::default() };
            let mut answers = raw.apply_edits(futures_util::stream::iter([start])).await.unwrap().into_inner();
            let status = answers.message().await.unwrap_err();
            assert!(status.message().starts_with(expected), "{} is not {expected}", status.message());
        }
        // One start of two rows, and no more.
        let start = |kind| ApplyEditsRequest { kind, start: Some(running(jobs())), ..ApplyEditsRequest::default() };
        let mut answers = raw.apply_edits(futures_util::stream::iter([start(vec![1, 1])])).await.unwrap().into_inner();
        assert!(answers.message().await.unwrap_err().message().starts_with("start.jobs: found 2 rows, expected more"));
        let score = ScoreRequest { jobs: Some(jobs()), ..ScoreRequest::default() };
        let status = raw.score(score).await.unwrap_err();
        assert!(status.message().starts_with("jobs.group_of[0]: found a group of \"g\""), "{}", status.message());
        let place = PlaceRequest { jobs: Some(jobs()), entry: vec![0, 0], ..PlaceRequest::default() };
        let status = raw.place(place).await.unwrap_err();
        assert!(status.message().starts_with("jobs: found 2 rows, expected more"), "{}", status.message());
        let nodes = Nodes { name: vec!["a".into(), "b".into()], gpus: vec![8, 8], ..Nodes::default() };
        let others = Jobs { name: vec!["g/2".into(), "g/1".into()], ..jobs() };
        let pieces = [Piece::Nodes(nodes), Piece::Running(running(others))];
        let pieces = pieces.map(|piece| PutClusterRequest { piece: Some(piece) });
        let status = raw.put_cluster(futures_util::stream::iter(pieces)).await.unwrap_err();
        assert!(status.message().starts_with("running.jobs[0]: "), "{}", status.message());
    });
}
