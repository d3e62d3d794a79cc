//! What stands before every call: who may call, how many at a time, and until when.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::extract::{Request, State as Shared};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use crate::serve::fault::ServeError;
use crate::serve::http::App;

/// What a call was let in with: its place among those at a time, which a stream keeps as long as it is open, and when it
/// must end.
#[derive(Clone, Debug)]
pub(super) struct Admitted {
    _permit: Arc<OwnedSemaphorePermit>,
    /// What the caller said, if anything.
    asked: Option<Instant>,
    /// How long the service works on one message.
    most: Duration,
}

impl Admitted {
    /// When the answer to a message that came now is of no use any more.
    pub(super) fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.most).into_iter().chain(self.asked).min()
    }
}

/// Lets a call in that shows the token, while there is room for it.
pub(super) async fn admit(Shared(app): Shared<Arc<App>>, mut request: Request, next: Next) -> Response {
    let admitted = match admitted(&app, request.headers()) {
        Ok(admitted) => admitted,
        Err(status) => return status.into_http(),
    };
    // A body that does not come must not hold its place for ever; what a stream says once it is open is its own.
    let most = app.limits.call + app.limits.body_time;
    request.extensions_mut().insert(admitted.clone());
    match tokio::time::timeout(most, std::panic::AssertUnwindSafe(next.run(request)).catch_unwind()).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => Status::from(ServeError::Failed("a handler panicked".to_owned())).into_http(),
        Err(_) => Status::from(ServeError::Late).into_http(),
    }
}

fn admitted(app: &App, headers: &HeaderMap) -> Result<Admitted, Status> {
    if !app.knows(headers) {
        return Err(Status::unauthenticated("a bearer token is expected"));
    }
    if app.closing.load(Ordering::Relaxed) {
        return Err(ServeError::Closing.into());
    }
    let asked = match headers.get("grpc-timeout") {
        None => None,
        Some(value) => {
            let timeout = value.to_str().ok().and_then(timeout).ok_or_else(|| {
                let expected = "expected up to 8 digits and one of H, M, S, m, u and n";
                ServeError::Input(format!("grpc-timeout: found {value:?}, {expected}"))
            })?;
            Instant::now().checked_add(timeout)
        }
    };
    let permit = Arc::clone(&app.calls).try_acquire_owned().map_err(|_| ServeError::Busy)?;
    Ok(Admitted { _permit: Arc::new(permit), asked, most: app.limits.call })
}

/// What `grpc-timeout` says.
fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let n: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(n * 3600),
        "M" => Duration::from_secs(n * 60),
        "S" => Duration::from_secs(n),
        "m" => Duration::from_millis(n),
        "u" => Duration::from_micros(n),
        "n" => Duration::from_nanos(n),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read() {
        assert_eq!(timeout("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(timeout("99999999n"), Some(Duration::from_nanos(99_999_999)));
        assert_eq!(timeout("1500m"), Some(Duration::from_millis(1500)));
        for bad in ["", "1", "m", "123456789m", "-1m", "1x", "+1m", "1é"] {
            assert_eq!(timeout(bad), None, "{bad}");
        }
    }
}
