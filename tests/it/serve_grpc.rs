//! The batch API over gRPC, and the client of it, on services that run within the test.

mod calls;
mod errors;
mod go_example;
mod groups;
mod interleaved;
mod mutated;
mod same_scores;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use slotwise::cluster::{Cluster, ClusterBuilder, NodeSpec};
use slotwise::evaluate::Cpu;
use slotwise::formats::write_cluster;
use slotwise::serve::http::{App, router};
use slotwise::serve::{Client, ClientOptions, Engine, ExtenderOptions, Limits, Live, Token};

/// A service on a port of its own, for as long as the runtime lives.
struct Service {
    app: Arc<App>,
    options: ClientOptions,
}

impl Service {
    async fn start(limits: Limits) -> Self {
        Self::with(limits, None, |_| {}).await
    }

    async fn with(limits: Limits, token: Option<&str>, change: impl FnOnce(&mut App)) -> Self {
        let live = Live::new(Box::new(Cpu::new(1).unwrap()));
        let (engine, _) = Engine::start(live, limits.waiting).unwrap();
        let mut app = App::new(engine, limits, token.map(|text| Token::new(text).unwrap()), ExtenderOptions::default());
        change(&mut app);
        let app = Arc::new(app);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = router(&app).into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Self { app, options: ClientOptions::new(&format!("http://{address}")) }
    }

    async fn client(&self) -> Client {
        Client::connect(&self.options).await.unwrap()
    }
}

fn run<R>(test: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

/// `n` empty nodes of 8 GPUs, four to a rack.
fn nodes(n: usize) -> Cluster {
    let mut builder = ClusterBuilder::new();
    for at in 0..n {
        let (name, rack) = (format!("n{at}"), format!("r{}", at / 4));
        let spec = NodeSpec { name: &name, gpus: 8, model: Some("H100"), rack: Some(&rack), ..NodeSpec::default() };
        builder.add_node(&spec).unwrap();
    }
    builder.finish().unwrap()
}

fn text_of(cluster: &Cluster) -> String {
    let mut bytes = Vec::new();
    write_cluster(cluster, None, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// What is checked in is what the definition gives.
#[test]
fn the_generated_code_is_that_of_the_definition() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/grpc");
    let set = protox::compile(["slotwise.proto"], [&folder]).unwrap();
    let out = tempfile::tempdir().unwrap();
    let builder = tonic_prost_build::configure().out_dir(out.path()).emit_rerun_if_changed(false);
    builder.compile_fds(set).unwrap();
    let made = std::fs::read_to_string(out.path().join("slotwise.v1.rs")).unwrap();
    let kept = std::fs::read_to_string(folder.join("generated.rs")).unwrap();
    if made != kept {
        let place = std::env::temp_dir().join("slotwise-generated.rs");
        std::fs::write(&place, made).unwrap();
        panic!("src/serve/grpc/generated.rs is not that of slotwise.proto: what is, lies at {}", place.display());
    }
}
