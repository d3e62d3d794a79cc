//! How many connections there may be at a time, and a way to end one.

use std::future::{Ready, ready};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::http::Request;
use axum_server::accept::Accept;
use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
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
    type Stream = Connection;
    type Service = Held<S>;
    type Future = Ready<io::Result<(Connection, Held<S>)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
            tracing::warn!("a connection is closed: there are as many as there may be");
            return ready(Err(io::ErrorKind::ConnectionRefused.into()));
        };
        let cut = Arc::new(Cut::default());
        let held = Held { service, cut: Arc::clone(&cut), _place: Arc::new(place) };
        // An answer is one write: to wait for more would only cost time.
        ready(stream.set_nodelay(true).map(|()| (Connection { stream, cut }, held)))
    }
}

/// Ends a connection from elsewhere; each request knows that of its own.
#[derive(Debug, Default)]
pub(super) struct Cut {
    done: AtomicBool,
    /// Who waits until more can be written: whoever does not is not held up by its client.
    writer: AtomicWaker,
}

impl Cut {
    /// Ends the connection, and with it whatever is on its way there.
    pub(super) fn cut(&self) {
        self.done.store(true, Ordering::Release);
        self.writer.wake();
    }

    /// Fails once the connection is to end; its writer is woken then.
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        self.writer.register(context.waker());
        if self.done.load(Ordering::Acquire) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

/// A connection that can be cut.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    cut: Arc<Cut>,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.cut.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.cut.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A client of HTTP/2 that takes no more leaves nothing to write, only to flush.
        self.cut.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The service of one connection, which holds its place as long as it lives.
#[derive(Clone, Debug)]
pub(super) struct Held<S> {
    service: S,
    cut: Arc<Cut>,
    _place: Arc<OwnedSemaphorePermit>,
}

impl<B, S: Service<Request<B>>> Service<Request<B>> for Held<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        request.extensions_mut().insert(Arc::clone(&self.cut));
        self.service.call(request)
    }
}
