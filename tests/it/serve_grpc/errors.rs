//! Every error, by its code and its word.

use std::sync::atomic::Ordering;
use std::time::Duration;

use slotwise::cluster::JobSpec;
use slotwise::decide::PlaceOptions;
use slotwise::formats::EditSpec;
use slotwise::serve::client::{Candidates, Submissions};
use slotwise::serve::grpc::generated::slotwise_client::SlotwiseClient;
use slotwise::serve::grpc::generated::{
    ApplyEditsRequest, DocumentRequest, GetVersionRequest, Jobs, Moves, Nodes, PlaceRequest, PutClusterRequest,
    Running, ScoreRequest, Seats, put_cluster_request::Piece,
};
use slotwise::serve::http::router;
use slotwise::serve::{ClientError, Condition, Limits, Live, Version};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::{Service, nodes, run};

async fn raw(service: &Service) -> SlotwiseClient<Channel> {
    SlotwiseClient::connect(service.options.url.clone()).await.unwrap()
}

/// A call whose answer is wanted soon.
fn soon<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("grpc-timeout", "50m".parse().unwrap());
    request
}

fn told(status: &Status) -> (Code, &str) {
    (status.code(), status.metadata().get("slotwise-error").map_or("", |word| word.to_str().unwrap()))
}

#[test]
fn without_a_cluster_every_call_says_so() {
    run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        let is = |error: Option<ClientError>| assert!(matches!(error, Some(ClientError::NoCluster)), "{error:?}");
        is(client.version().await.err());
        is(client.nodes().await.err());
        is(client.cluster().await.err());
        is(client.edit(&Condition::default(), &[]).await.err());
        is(client.score(None, &Candidates::new()).await.err());
        is(client.place(&Condition::default(), Submissions::new(), &PlaceOptions::default(), false).await.err());
        is(client.plan(r#"{"free_nodes":1}"#).await.err());
        is(client.audit("").await.err());
        let status = raw(&service).await.get_version(GetVersionRequest {}).await.unwrap_err();
        assert_eq!(told(&status), (Code::FailedPrecondition, "no-cluster"));
        // And is of use again as soon as there is one.
        client.put(&nodes(1)).await.unwrap();
        client.version().await.unwrap();
    });
}

#[test]
fn another_version_is_stale_and_the_current_one_is_told() {
    run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        let old = client.put(&nodes(2)).await.unwrap();
        let current = client.put(&nodes(2)).await.unwrap();
        let condition = Condition { version: Some(old), id: None };
        let is = |error: Option<ClientError>| {
            let is = matches!(&error, Some(ClientError::Stale { current: told }) if *told == current);
            assert!(is, "{error:?}");
        };
        is(client.edit(&condition, &[EditSpec::Cordon("n0".into())]).await.err());
        is(client.score(Some(old), &Candidates::new()).await.err());
        is(client.place(&condition, Submissions::new(), &PlaceOptions::default(), true).await.err());
        is(client.plan(&format!(r#"{{"version":"{old}","free_nodes":1}}"#)).await.err());
        is(client.audit(&format!(r#"{{"version":"{old}"}}"#)).await.err());
        let request = ScoreRequest { version: old.to_string(), ..ScoreRequest::default() };
        let status = raw(&service).await.score(request).await.unwrap_err();
        assert_eq!(told(&status), (Code::Aborted, "stale"));
        let version = status.metadata().get("slotwise-version").unwrap().to_str().unwrap();
        assert_eq!(version.parse::<Version>(), Ok(current));
    });
}

#[test]
fn the_first_edit_that_fails_ends_its_stream() {
    run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        client.put(&nodes(2)).await.unwrap();
        let mut stream = client.edits().await.unwrap();
        let any = Condition::default();
        let cordon = |node: &str| EditSpec::Cordon(node.into());
        stream.send(&any, &[cordon("n0")]).await.unwrap();
        stream.send(&any, &[cordon("n1"), EditSpec::End("nobody".into())]).await.unwrap();
        stream.send(&any, &[EditSpec::Uncordon("n0".into())]).await.unwrap();
        let done = stream.answer().await.unwrap();
        let error = stream.answer().await.unwrap_err();
        assert!(
            matches!(&error, ClientError::Refused(text) if text.contains("edits[1]") && text.contains("nobody")),
            "{error:?}"
        );
        assert_eq!(client.version().await.unwrap(), done.version);
        let snapshot = client.cluster().await.unwrap().1.cluster;
        let schedulable: Vec<bool> = snapshot.nodes().iter().map(|node| node.schedulable()).collect();
        assert_eq!(schedulable, [false, true]);
        assert!(
            matches!(stream.send(&any, &[cordon("n9")]).await, Err(ClientError::UnknownNode(name)) if name == "n9")
        );
    });
}

#[test]
fn bad_columns_are_named() {
    run(async {
        let service = Service::start(Limits::default()).await;
        service.client().await.put(&nodes(2)).await.unwrap();
        let mut raw = raw(&service).await;
        let jobs = || Jobs { name: vec!["j".into()], gpus_per_instance: vec![2], ..Jobs::default() };
        let seats = |node: u32, gpus: u32| Some(Seats { node: vec![node], gpus: vec![gpus] });
        let score = || ScoreRequest { jobs: Some(jobs()), job: vec![0], place: seats(0, 0), ..ScoreRequest::default() };
        let scores = [
            (ScoreRequest { version: "x".into(), ..score() }, "version: "),
            (ScoreRequest { job: vec![1], ..score() }, "job[0]: found 1, expected less than 1"),
            (ScoreRequest { place: seats(2, 0), ..score() }, "place.node[0]: found 2, expected less than 2"),
            (ScoreRequest { place: seats(0, 1 << 16), ..score() }, "place.gpus[0]: found 65536"),
            (ScoreRequest { place: None, ..score() }, "place: found 0 rows, expected more"),
            (ScoreRequest { n_places: vec![0], ..score() }, "place: found 1 rows, expected 0"),
            (ScoreRequest { n_moves: vec![1], ..score() }, "moves: found 0 rows"),
            (ScoreRequest { n_moves: vec![1, 2], ..score() }, "n_moves: found 2 elements, expected 1"),
            (
                ScoreRequest { moves: Some(Moves { job: vec!["a".into()], ..Moves::default() }), ..score() },
                "moves.instance: ",
            ),
            (
                ScoreRequest { jobs: Some(Jobs { gpus_per_instance: vec![17], ..jobs() }), ..score() },
                "jobs.gpus_per_instance[0]: found 17",
            ),
            (
                ScoreRequest { jobs: Some(Jobs { gpus_per_instance: vec![], ..jobs() }), ..score() },
                "jobs.gpus_per_instance: found 0",
            ),
            (
                ScoreRequest { jobs: Some(Jobs { instances: vec![0], ..jobs() }), ..score() },
                "jobs.instances[0]: found 0",
            ),
            (ScoreRequest { jobs: Some(Jobs { within: vec![9], ..jobs() }), ..score() }, "jobs.within[0]: found 9"),
            (ScoreRequest { jobs: Some(Jobs { models: vec![0], ..jobs() }), ..score() }, "jobs.models[0]: found 0"),
            (ScoreRequest { jobs: Some(Jobs { gpu_milli: vec![500], ..jobs() }), ..score() }, "jobs.name[0]: "),
            (
                ScoreRequest { jobs: Some(Jobs { cpu_milli: vec![u32::MAX], ..jobs() }), ..score() },
                "jobs.cpu_milli[0]: ",
            ),
        ];
        for (request, expected) in scores {
            let status = raw.score(request).await.unwrap_err();
            assert_eq!(told(&status), (Code::InvalidArgument, "bad-input"), "{expected}");
            assert!(status.message().starts_with(expected), "{} is not {expected}", status.message());
        }
        let edits = [
            (ApplyEditsRequest { follows: true, ..ApplyEditsRequest::default() }, "follows: "),
            (ApplyEditsRequest { id: "x".repeat(129), ..ApplyEditsRequest::default() }, "id: "),
            (ApplyEditsRequest { kind: vec![0], ..ApplyEditsRequest::default() }, "kind[0]: found 0"),
            (ApplyEditsRequest { kind: vec![2], ..ApplyEditsRequest::default() }, "end: found 0 rows"),
            (ApplyEditsRequest { node: vec![1], ..ApplyEditsRequest::default() }, "node: found 1 rows, expected 0"),
            (ApplyEditsRequest { kind: vec![4], node: vec![2], ..ApplyEditsRequest::default() }, "node[0]: found 2"),
            (
                ApplyEditsRequest {
                    kind: vec![1],
                    start: Some(Running { jobs: Some(jobs()), ..Running::default() }),
                    ..ApplyEditsRequest::default()
                },
                "start.seats: found 0 rows",
            ),
        ];
        for (request, expected) in edits {
            let mut answers = raw.apply_edits(futures_util::stream::iter([request])).await.unwrap().into_inner();
            let status = answers.message().await.unwrap_err();
            assert_eq!(told(&status), (Code::InvalidArgument, "bad-input"), "{expected}");
            assert!(status.message().starts_with(expected), "{} is not {expected}", status.message());
        }
        let places = [
            (PlaceRequest { policy: "best".into(), ..PlaceRequest::default() }, "policy: found \"best\""),
            (PlaceRequest { remove: vec!["x".into()], ..PlaceRequest::default() }, "remove[0]: found job \"x\""),
            (PlaceRequest { entry: vec![0], ..PlaceRequest::default() }, "jobs: found 0 rows"),
            (PlaceRequest { entry: vec![7], ..PlaceRequest::default() }, "entry[0]: found 7"),
        ];
        for (request, expected) in places {
            let status = raw.place(request).await.unwrap_err();
            assert_eq!(told(&status), (Code::InvalidArgument, "bad-input"), "{expected}");
            assert!(status.message().starts_with(expected), "{} is not {expected}", status.message());
        }
        let named = |name: &str| Nodes { name: vec![name.into()], gpus: vec![8], ..Nodes::default() };
        let on = |node| {
            let running = Running { jobs: Some(jobs()), seats: seats(node, 0), ..Running::default() };
            Piece::Running(running)
        };
        let puts = [
            (vec![None], "found an empty piece"),
            (vec![Some(Piece::Json(b"{}".to_vec())), Some(Piece::Nodes(named("a")))], "found columns and JSON"),
            (
                vec![Some(Piece::Nodes(named("a"))), Some(Piece::Nodes(named("a")))],
                "nodes.name[0]: node \"a\" is there twice",
            ),
            (
                vec![Some(Piece::Nodes(Nodes { model: vec![1], ..named("a") }))],
                "nodes.model[0]: found 1, expected at most 0",
            ),
            (vec![Some(Piece::Nodes(Nodes { gpus: vec![17], ..named("a") }))], "nodes.gpus[0]: found 17"),
            (vec![Some(Piece::Nodes(named("a"))), Some(on(1))], "running.seats.node[0]: found 1"),
            (vec![Some(on(0))], "running.seats.node[0]: found 0"),
            (vec![Some(Piece::Json(b"{\"schema\":1}".to_vec()))], "json:1:12: "),
        ];
        for (pieces, expected) in puts {
            let pieces: Vec<_> = pieces.into_iter().map(|piece| PutClusterRequest { piece }).collect();
            let status = raw.put_cluster(futures_util::stream::iter(pieces)).await.unwrap_err();
            assert_eq!(told(&status), (Code::InvalidArgument, "bad-input"), "{expected}");
            assert!(status.message().starts_with(expected), "{} is not {expected}", status.message());
        }
        for (json, expected) in [
            ("{}", "found none, expected one of job"),
            (r#"{"free_nodes":0}"#, "free_nodes: "),
            (r#"{"free_nodes":1,"free_rack":true}"#, "found free_nodes and free_rack"),
            (r#"{"free_domain":true}"#, "free_domain: found no node"),
            (r#"{"target":"sif=1"}"#, "target: "),
            (r#"{"free_nodes":1,"pin":["nobody"]}"#, "pin[0]: "),
            (r#"{"free_nodes":1,"cost":"money"}"#, "cost: found \"money\""),
            (r#"{"job":{"remove":"x"}}"#, "job"),
            (r#"{"free":1}"#, "unknown field `free`"),
        ] {
            let status = raw.plan(DocumentRequest { json: json.into() }).await.unwrap_err();
            assert_eq!(told(&status), (Code::InvalidArgument, "bad-input"), "{expected}");
            assert!(status.message().contains(expected), "{} is not {expected}", status.message());
        }
    });
}

#[test]
fn limits_are_kept() {
    run(async {
        let limits = Limits { calls: 1, body: 64 << 10, ..Limits::default() };
        let service = Service::start(limits).await;
        let mut client = service.client().await;
        client.put(&nodes(1)).await.unwrap();
        // An open stream is a call; when it ends there is room again.
        let stream = client.edits().await.unwrap();
        let status = raw(&service).await.get_version(GetVersionRequest {}).await.unwrap_err();
        assert_eq!(told(&status), (Code::ResourceExhausted, "busy"));
        drop(stream);
        let mut asked = 0;
        while client.version().await.is_err() {
            asked += 1;
            assert!(asked < 1000, "a stream that has ended keeps its place");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // A message, and all pieces of a cluster, are bounded.
        let large = DocumentRequest { json: vec![b' '; 65 << 10] };
        assert_eq!(raw(&service).await.plan(large).await.unwrap_err().code(), Code::OutOfRange);
        let piece = PutClusterRequest { piece: Some(Piece::Json(vec![b' '; 10 << 10])) };
        let pieces = futures_util::stream::iter(vec![piece; 7]);
        let status = raw(&service).await.put_cluster(pieces).await.unwrap_err();
        assert_eq!(told(&status), (Code::InvalidArgument, "bad-input"));
        assert!(status.message().starts_with("found more than 65536 bytes"), "{}", status.message());
        client.version().await.unwrap();
    });
}

#[test]
fn deadlines_are_kept() {
    run(async {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        client.put(&nodes(1)).await.unwrap();
        // The thread is held up, so that nobody else can be answered.
        let engine = service.app.engine.clone();
        let ((go_on, wait), (begun, begins)) = (std::sync::mpsc::channel::<()>(), tokio::sync::oneshot::channel());
        let hold = move |_: &mut Live| Ok(begun.send(()).is_ok() && wait.recv().is_ok());
        let held = tokio::spawn(async move { engine.run(None, hold).await });
        begins.await.unwrap();
        // Without a network, so that it is the service and not the client's transport that gives up.
        let mut direct = SlotwiseClient::new(router(&service.app));
        let status = direct.get_version(soon(GetVersionRequest {})).await.unwrap_err();
        assert_eq!(told(&status), (Code::DeadlineExceeded, "late"));
        let status = direct.score(soon(ScoreRequest::default())).await.unwrap_err();
        assert_eq!(told(&status), (Code::DeadlineExceeded, "late"));
        go_on.send(()).unwrap();
        assert!(held.await.unwrap().unwrap());
        let mut request = Request::new(GetVersionRequest {});
        request.metadata_mut().insert("grpc-timeout", "soon".parse().unwrap());
        let status = direct.get_version(request).await.unwrap_err();
        assert_eq!(told(&status), (Code::InvalidArgument, "bad-input"));
        // A snapshot whose rest does not come is given up, too.
        let status = direct.put_cluster(soon(futures_util::stream::pending())).await.unwrap_err();
        assert_eq!(told(&status), (Code::DeadlineExceeded, "late"));
    });
}

#[test]
fn callers_must_show_the_token() {
    run(async {
        let service = Service::with(Limits::default(), Some("0123456789abcdef"), |_| {}).await;
        assert_eq!(
            raw(&service).await.get_version(GetVersionRequest {}).await.unwrap_err().code(),
            Code::Unauthenticated
        );
        let mut options = service.options.clone();
        for (token, known) in [("0123456789abcdeF", false), ("0123456789abcdef", true)] {
            options.token = Some(token.to_owned());
            let mut client = slotwise::serve::Client::connect(&options).await.unwrap();
            let put = client.put(&nodes(1)).await;
            assert!(if known { put.is_ok() } else { matches!(put, Err(ClientError::Unauthenticated)) }, "{put:?}");
        }
    });
}

#[test]
fn a_service_that_follows_or_ends_changes_nothing() {
    run(async {
        let service = Service::with(Limits::default(), None, |app| app.follows = true).await;
        let mut client = service.client().await;
        assert!(matches!(client.put(&nodes(1)).await, Err(ClientError::Follows(_))));
        let condition = Condition::default();
        let queue = Submissions::new().submit(&JobSpec { name: "j", gpus: 1, ..JobSpec::default() }, 1);
        let placed = client.place(&condition, queue, &PlaceOptions::default(), true).await;
        assert!(matches!(placed, Err(ClientError::Follows(_))));
        service.app.engine.run(None, |live| Ok(live.put(nodes(1)))).await.unwrap();
        let edited = client.edit(&condition, &[EditSpec::Cordon("n0".into())]).await;
        assert!(matches!(edited, Err(ClientError::Follows(_))));

        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        client.put(&nodes(1)).await.unwrap();
        let mut stream = client.edits().await.unwrap();
        service.app.closing.store(true, Ordering::Relaxed);
        // What is open hears of it, what is new is not let in.
        assert!(matches!(stream.answer().await, Err(ClientError::Closing)));
        assert!(matches!(client.version().await, Err(ClientError::Closing)));
        let status = raw(&service).await.get_version(GetVersionRequest {}).await.unwrap_err();
        assert_eq!(told(&status), (Code::Unavailable, "closing"));
    });
}
