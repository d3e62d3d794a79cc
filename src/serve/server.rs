//! The process: listens, serves, and ends in order.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use tokio::time::MissedTickBehavior;

use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};

use super::connections::Gate;
use super::engine::Engine;
use super::history::{SAMPLE_EVERY, Sample};
use super::http::{App, router};
use super::live::Live;
use super::options::ServeOptions;
use super::tls;
use super::watch::{self, Binder, WatchError};

/// Why the service cannot run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Anybody on the network could change what it holds.
    #[error(
        "found --listen {0} without --token-file and without --tls-client-ca, expected one of them beyond loopback"
    )]
    Unsafe(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// A certificate or key is no good.
    #[error("{0}")]
    Tls(String),
    /// The API server of the cluster that is to be followed is not known.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// Threads cannot be started, or the like.
    #[error("cannot start: {0}")]
    Io(#[from] std::io::Error),
}

/// Runs the service until it is told to end by SIGINT or SIGTERM; calls in flight get their answers then. `listening` is
/// told the address once it is open.
///
/// # Errors
/// If it cannot start, or its listener fails.
pub fn run(live: Live, options: ServeOptions, listening: impl FnOnce(SocketAddr)) -> Result<(), StartError> {
    if !options.is_safe() {
        return Err(StartError::Unsafe(options.listen));
    }
    let tls = options.tls.as_ref().map(tls::config).transpose()?;
    let listener = TcpListener::bind(options.listen).map_err(|error| StartError::Listen(options.listen, error))?;
    let address = listener.local_addr()?;
    let (engine, thread) = Engine::start(live, options.limits.waiting)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut app = App::new(engine, options.limits, options.token, options.extender);
    app.open_to_browsers = app.token.is_none() && options.tls.as_ref().is_none_or(|tls| tls.client_ca.is_none());
    if let Some(watch) = options.watch {
        let client = runtime.block_on(watch::connect(watch.kubeconfig.as_deref()))?;
        app.follows = true;
        app.binder = Some(Binder::new(client.clone()));
        runtime.spawn(watch::follow(app.engine.clone(), client, watch.topology));
    }
    let app = Arc::new(app);
    let served = runtime.block_on(serve(Arc::clone(&app), listener, tls, || listening(address)));
    // What still runs aside is of use to nobody.
    runtime.shutdown_background();
    drop(app);
    drop(thread);
    Ok(served?)
}

async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    tls: Option<RustlsConfig>,
    listening: impl FnOnce(),
) -> std::io::Result<()> {
    let handle = axum_server::Handle::new();
    let (stopping, limits) = (handle.clone(), app.limits);
    let service = router(&app).into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(sample(Arc::downgrade(&app)));
    // Listens for the signals before anybody is told that the service is there.
    let signals = signals()?;
    tokio::spawn(async move {
        signals.await;
        tracing::info!("ending: calls in flight are answered first");
        app.closing.store(true, Ordering::Relaxed);
        stopping.graceful_shutdown(Some(limits.grace));
    });
    listening();
    macro_rules! serve {
        ($server:expr) => {{
            let mut server = $server.handle(handle).first_request_timeout(limits.head_time);
            server.http_builder().http1().header_read_timeout(limits.head_time).max_buf_size(64 << 10);
            server.http_builder().http2().max_concurrent_streams(limits.calls as u32).max_header_list_size(64 << 10);
            // A peer that is gone without a word must not keep its streams.
            server.http_builder().http2().keep_alive_interval(limits.head_time).keep_alive_timeout(limits.head_time);
            server.serve(service).await
        }};
    }
    let server = axum_server::from_tcp(listener)?;
    let gate = Gate::new(limits.connections);
    match tls {
        None => serve!(server.acceptor(gate)),
        Some(config) => {
            let tls = RustlsAcceptor::new(config).handshake_timeout(limits.head_time);
            serve!(server.acceptor(tls.acceptor(gate)))
        }
    }
}

/// Samples the cluster from time to time, as long as the service is there.
async fn sample(app: Weak<App>) {
    let mut turn = tokio::time::interval(SAMPLE_EVERY);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turn.tick().await;
        let Some(app) = app.upgrade() else { return };
        let deadline = Instant::now().checked_add(SAMPLE_EVERY);
        if let Ok(picture) = app.engine.run(deadline, Live::picture).await {
            app.history.sample(Sample::of(&picture, app.engine.waiting()));
        }
    }
}

/// Resolves when the process is told to end.
fn signals() -> std::io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
