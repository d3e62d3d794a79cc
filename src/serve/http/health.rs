//! Whether the process lives, and whether it is of use.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State as Shared;
use axum::response::{IntoResponse, Response};

use super::App;
use crate::serve::fault::ServeError;

/// `GET /healthz`: the process answers.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: there is a cluster, and its thread answers in time.
pub(super) async fn readyz(Shared(app): Shared<Arc<App>>) -> Response {
    if app.closing.load(Ordering::Relaxed) {
        return not_ready(&ServeError::Closing);
    }
    let deadline = std::time::Instant::now().checked_add(app.limits.call);
    match app.engine.run(deadline, |live| live.check(None)).await {
        Ok(()) => "ok\n".into_response(),
        Err(error) => not_ready(&error),
    }
}

fn not_ready(error: &ServeError) -> Response {
    (axum::http::StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response()
}
