//! How many connections there may be at a time.

use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum_server::accept::Accept;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

/// Takes connections as long as there is room for them; others are closed at once.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    room: Arc<Semaphore>,
}

impl Gate {
    pub(super) fn new(most: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(most)) }
    }
}

impl<S> Accept<TcpStream, S> for Gate {
    type Stream = TcpStream;
    type Service = Held<S>;
    type Future = Ready<io::Result<(TcpStream, Held<S>)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
            tracing::warn!("a connection is closed: there are as many as there may be");
            return ready(Err(io::ErrorKind::ConnectionRefused.into()));
        };
        // An answer is one write: to wait for more would only cost time.
        ready(stream.set_nodelay(true).map(|()| (stream, Held { service, _place: Arc::new(place) })))
    }
}

/// The service of one connection, which holds its place as long as it lives.
#[derive(Clone, Debug)]
pub(super) struct Held<S> {
    service: S,
    _place: Arc<OwnedSemaphorePermit>,
}

impl<R, S: Service<R>> Service<R> for Held<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.service.call(request)
    }
}
