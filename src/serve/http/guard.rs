//! What stands before every handler: who may call, and how many at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::{Request, State as Shared};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tracing::Instrument;

use super::App;
use super::answer::problem;
use crate::serve::fault::ServeError;

/// Lets a call in that shows the token.
pub(super) async fn identify(Shared(app): Shared<Arc<App>>, request: Request, next: Next) -> Response {
    if !app.knows(request.headers()) {
        let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
        return (challenge, problem(StatusCode::UNAUTHORIZED, "unknown-caller", "a bearer token is expected"))
            .into_response();
    }
    if app.open_to_browsers && !is_from_here(&request) {
        return problem(StatusCode::FORBIDDEN, "unknown-caller", "a page from elsewhere may not call; use a token");
    }
    next.run(request).await
}

/// Whether a call without a secret is none that a page from elsewhere has made a browser send: it is sent to an address
/// or to `localhost`, not to a name that somebody gave this machine, and not by a page of another origin.
fn is_from_here(request: &Request) -> bool {
    let header = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    // Programs send what they like; browsers do not.
    let by_browser = header(header::ORIGIN).is_some()
        || request.headers().contains_key("sec-fetch-site")
        || header(header::USER_AGENT).is_some_and(|agent| agent.starts_with("Mozilla/"));
    if !by_browser {
        return true;
    }
    let host = header(header::HOST).or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    let Some(host) = host else { return true };
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_address = address.parse::<std::net::IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost");
    let same_origin = header(header::ORIGIN).is_none_or(|origin| origin.split("://").nth(1) == Some(host));
    is_address && same_origin
}

/// Lets a call in while there is room for it.
pub(super) async fn admit(Shared(app): Shared<Arc<App>>, request: Request, next: Next) -> Response {
    if app.closing.load(Ordering::Relaxed) {
        return ServeError::Closing.into_response();
    }
    let Ok(_permit) = app.calls.try_acquire() else { return ServeError::Busy.into_response() };
    // A body that does not come must not hold its place for ever.
    match tokio::time::timeout(app.limits.call + app.limits.body_time, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ServeError::Late.into_response(),
    }
}

/// Puts a call in a span, under the trace that its caller says it is of (`traceparent` of W3C Trace Context). What callers
/// are known by is not part of it.
pub(super) async fn trace(request: Request, next: Next) -> Response {
    let parent = request.headers().get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let span = tracing::debug_span!("call", method = %request.method(), path = request.uri().path(), trace = parent);
    let answer = async {
        let started = std::time::Instant::now();
        let response = next.run(request).await;
        let (status, micros) = (response.status().as_u16(), started.elapsed().as_micros() as u64);
        tracing::debug!(status, micros, "answered");
        response
    };
    answer.instrument(span).await
}

/// The same answer, in the form of all others where the library gave a bare one.
fn told(response: Response) -> Response {
    if response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json") {
        return response;
    }
    match response.status() {
        StatusCode::NOT_FOUND => problem(StatusCode::NOT_FOUND, "no-such-path", "there is nothing at this path"),
        StatusCode::PAYLOAD_TOO_LARGE => {
            problem(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "the body is larger than --max-body allows")
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            let mut answer = problem(StatusCode::METHOD_NOT_ALLOWED, "no-such-method", "this path has other methods");
            if let Some(allowed) = response.headers().get(header::ALLOW) {
                answer.headers_mut().insert(header::ALLOW, allowed.clone());
            }
            answer
        }
        _ => response,
    }
}

/// A fault of the program is an answer, not the end of a connection.
pub(super) async fn catch_panic(request: Request, next: Next) -> Response {
    match std::panic::AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => told(response),
        Err(_) => ServeError::Failed("a handler panicked".to_owned()).into_response(),
    }
}
