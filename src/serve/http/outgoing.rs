//! Answers that clients are slow to read: how many bytes of them there may be, and for how long.
//!
//! What is counted are the bytes themselves: they hold their permit until the connection has sent them, or is gone.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tonic::Code;

use super::App;
use crate::serve::connections::Cut;
use crate::serve::fault::ServeError;
use crate::serve::grpc::ERROR_KEY;

/// Answers up to here are not counted: a connection takes as much into its buffer.
const SMALL: usize = 4096;

/// The unit of what is counted, for permits are numbers of 32 bits.
const UNIT: usize = 1024;

/// Room for answers that are on their way.
#[derive(Clone, Debug)]
pub struct Outgoing {
    room: Arc<Semaphore>,
    units: u32,
    time: Duration,
}

impl Outgoing {
    /// For so many bytes at a time, each of which its client has so much time to take.
    pub fn new(bytes: usize, time: Duration) -> Self {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        Self { room: Arc::new(Semaphore::new(units as usize)), units, time }
    }

    /// The same bytes, counted until they are let go of; `None` if there is no room for them. One answer that is larger than
    /// all the room has it alone. Where they are still there when the time is over, their connection is cut.
    fn take(&self, bytes: Bytes, cut: Option<&Arc<Cut>>) -> Option<Bytes> {
        if bytes.len() <= SMALL {
            return Some(bytes);
        }
        let units = u32::try_from(bytes.len().div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units);
        let permit = Arc::clone(&self.room).try_acquire_many_owned(units).ok()?;
        let (time, cut) = (self.time, cut.cloned());
        let timer = cut.map(|cut| {
            let late = tokio::spawn(async move {
                tokio::time::sleep(time).await;
                tracing::warn!("a connection is closed: its client is too slow to read");
                cut.cut();
            });
            late.abort_handle()
        });
        Some(Bytes::from_owner(Held { bytes, timer, _permit: permit }))
    }
}

/// Bytes that are on their way.
struct Held {
    bytes: Bytes,
    timer: Option<AbortHandle>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.timer.iter().for_each(AbortHandle::abort);
    }
}

/// Lets answers out as long as there is room for them; others are told to come again.
pub(super) async fn bounded(Shared(app): Shared<Arc<App>>, request: Request, next: Next) -> Response {
    let cut = request.extensions().get::<Arc<Cut>>().cloned();
    let (head, body) = next.run(request).await.into_parts();
    let outgoing = app.outgoing.clone();
    match body.size_hint().exact() {
        Some(bytes) if bytes <= SMALL as u64 => Response::from_parts(head, body),
        Some(_) => {
            // All of it is there already.
            let Ok(bytes) = to_bytes(body, usize::MAX).await else {
                return ServeError::Failed("an answer broke off".to_owned()).into_response();
            };
            match outgoing.take(bytes, cut.as_ref()) {
                Some(bytes) => Response::from_parts(head, Body::from(bytes)),
                None => ServeError::Busy.into_response(),
            }
        }
        None => {
            let kind = head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
            let is_grpc = kind.starts_with(b"application/grpc");
            Response::from_parts(head, Body::new(Counted { body, outgoing, cut, is_grpc, refused: false }))
        }
    }
}

/// A body whose pieces are counted as they come.
struct Counted {
    body: Body,
    outgoing: Outgoing,
    cut: Option<Arc<Cut>>,
    is_grpc: bool,
    refused: bool,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        if self.refused {
            return Poll::Ready(None);
        }
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else { return Poll::Ready(None) };
        let bytes = match frame?.into_data() {
            Ok(bytes) => bytes,
            Err(others) => return Poll::Ready(Some(Ok(others))),
        };
        if let Some(bytes) = self.outgoing.take(bytes, self.cut.as_ref()) {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        self.refused = true;
        let end = if self.is_grpc { Ok(Frame::trailers(busy())) } else { Err(ServeError::Busy.into()) };
        Poll::Ready(Some(end))
    }

    fn is_end_stream(&self) -> bool {
        self.refused || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// How a call over gRPC ends whose answer has no room.
fn busy() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(Code::ResourceExhausted as i32));
    trailers.insert("grpc-message", HeaderValue::from_static("clients are slow to read: come again later"));
    trailers.insert(ERROR_KEY, HeaderValue::from_static("busy"));
    trailers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_until_they_are_let_go_of() {
        let outgoing = Outgoing::new(100 * UNIT, Duration::from_secs(1));
        let take = |n: usize| outgoing.take(Bytes::from(vec![7; n]), None);
        let small: Vec<_> = (0..1000).map(|_| take(SMALL).unwrap()).collect();
        let first = take(60 * UNIT).unwrap();
        assert!(take(60 * UNIT).is_none());
        let second = take(40 * UNIT).unwrap();
        assert!(take(SMALL + 1).is_none());
        // A piece of them is what keeps them.
        let piece = first.slice(..1);
        drop(first);
        assert!(take(60 * UNIT).is_none());
        drop((piece, second));
        // One that is too large for all the room has it alone.
        let large = take(1000 * UNIT).unwrap();
        assert!(large.iter().all(|&byte| byte == 7) && take(SMALL + 1).is_none());
        drop((large, small));
        assert_eq!(outgoing.room.available_permits(), 100);
    }
}
