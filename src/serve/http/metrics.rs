//! `GET /metrics`, and what measures every request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State as Shared};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::App;
use super::answer::Fault;
use crate::serve::fault::ServeError;

/// How long a scrape waits for the cluster. After that it shows what was last seen, and how old that is.
const PATIENCE: Duration = Duration::from_millis(250);

/// `GET /metrics`.
pub(super) async fn metrics(Shared(app): Shared<Arc<App>>) -> Response {
    let deadline = Instant::now().checked_add(PATIENCE);
    if let Ok((picture, backend)) = app.engine.run(deadline, |live| Ok((live.picture().ok(), live.backend()))).await {
        app.metrics.see(picture, backend);
    }
    match app.metrics.text() {
        Ok(text) => {
            let kind = HeaderValue::from_static(prometheus_client::encoding::prometheus_text::CONTENT_TYPE);
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => ServeError::Failed(error.to_string()).into_response(),
    }
}

/// Counts a request and measures how long it took.
pub(super) async fn measure(Shared(app): Shared<Arc<App>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = method(request.method());
    let start = Instant::now();
    let response = next.run(request).await;
    let seconds = start.elapsed().as_secs_f64();
    // What was typed is not to be trusted: it could be anything, and ever anew.
    let endpoint = route.as_ref().map_or("other", MatchedPath::as_str);
    app.metrics.request(method, endpoint, outcome(&response), seconds);
    if route.is_some() {
        app.history.took(endpoint, seconds);
    }
    response
}

fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        _ => "other",
    }
}

/// The word of an error where there is one, else what the status says.
fn outcome(response: &Response) -> &'static str {
    match (response.extensions().get::<Fault>(), response.status()) {
        (Some(Fault(word)), _) => word,
        (None, StatusCode::UNAUTHORIZED) => "unauthorized",
        (None, StatusCode::NOT_FOUND) => "not-found",
        (None, status) if status.is_server_error() => "failed",
        (None, status) if status.is_client_error() => "bad-input",
        (None, _) => "ok",
    }
}
