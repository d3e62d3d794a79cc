//! No body makes a handler of the batch API or of the scheduler extender panic: that would be a 500.
#![no_main]

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use slotwise::evaluate::Cpu;
use slotwise::serve::http::{App, router};
use slotwise::serve::{Engine, ExtenderOptions, Limits, Live};
use slotwise_fuzz::cluster;
use tower::ServiceExt;

/// What takes a body.
const ROUTES: [(&str, &str); 12] = [
    ("PUT", "/v1/cluster"),
    ("POST", "/v1/edits"),
    ("POST", "/v1/score"),
    ("POST", "/v1/place"),
    ("POST", "/v1/plan"),
    ("POST", "/v1/explain"),
    ("POST", "/v1/audit"),
    ("POST", "/v1/extender/filter"),
    ("POST", "/v1/extender/prioritize"),
    ("POST", "/v1/extender/preempt"),
    ("POST", "/v1/extender/bind"),
    ("POST", "/v1/volcano/prioritize"),
];

struct World {
    runtime: tokio::runtime::Runtime,
    app: Arc<App>,
}

thread_local! {
    static WORLD: World = {
        let live = Live::new(Box::new(Cpu::new(1).unwrap()));
        let (engine, _) = Engine::start(live, 8).unwrap();
        let limits = Limits { call: std::time::Duration::from_secs(2), ..Limits::default() };
        World {
            runtime: tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap(),
            app: Arc::new(App::new(engine, limits, None, ExtenderOptions::default())),
        }
    };
}

// The first byte says which call the others are the body of.
fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    let (method, path) = ROUTES[usize::from(kind) % ROUTES.len()];
    WORLD.with(|World { runtime, app }| {
        runtime.block_on(async {
            app.engine.run(None, |live| Ok(live.put(cluster()))).await.unwrap();
            let request = Request::builder().method(method).uri(path).body(Body::from(bytes.to_vec())).unwrap();
            let status = router(app).oneshot(request).await.unwrap().status();
            assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{method} {path}");
            app.engine.run(None, |live| Ok(live.state()?.cluster().check_books().unwrap())).await.unwrap();
        });
    });
});
