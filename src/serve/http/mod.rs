//! The service over HTTP: routes, and what they have in common.

mod answer;
mod aside;
mod batch;
mod body;
mod guard;
mod health;
mod metrics;
mod outgoing;
mod page;
mod told;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post, put};

use super::engine::Engine;
use super::extender::{self, Extender, ExtenderOptions};
use super::fault::ServeError;
use super::grpc;
use super::history::{Decided, History};
use super::metrics::Metrics;
use super::options::{Limits, Token};
use super::watch::Binder;
pub(super) use answer::{json, json_bytes};
pub(super) use batch::{condition, policy_and_trigger};
pub(super) use body::{lines, read};
pub use outgoing::Outgoing;

/// The header by which a caller says how many milliseconds it will wait.
pub const DEADLINE_HEADER: &str = "slotwise-deadline-ms";

/// What every handler may use.
#[derive(Debug)]
pub struct App {
    /// The way to the cluster.
    pub engine: Engine,
    /// What clients may ask of the service.
    pub limits: Limits,
    /// What a caller must show, if anything.
    pub token: Option<Token>,
    /// Permits for work on copies of the cluster: plans, audits.
    pub aside: Arc<tokio::sync::Semaphore>,
    /// Permits for snapshots that are read or written.
    pub snapshots: Arc<tokio::sync::Semaphore>,
    /// Permits for calls, so that memory stays bounded: a body may be as large as the limit.
    pub calls: Arc<tokio::sync::Semaphore>,
    /// Room for answers that are on their way.
    pub outgoing: Outgoing,
    /// What is counted and measured.
    pub metrics: Metrics,
    /// What has happened lately.
    pub history: History,
    /// The scheduler extender.
    pub extender: Extender,
    /// Whether anybody on this machine may call, and so a browser that some page has sent here.
    pub open_to_browsers: bool,
    /// Whether a Kubernetes cluster is followed: clients change nothing then.
    pub follows: bool,
    /// Who can bind pods, where somebody can.
    pub binder: Option<Binder>,
    /// Set when the service is about to end.
    pub closing: std::sync::atomic::AtomicBool,
}

impl App {
    /// Around an engine.
    pub fn new(engine: Engine, limits: Limits, token: Option<Token>, extender: ExtenderOptions) -> Self {
        Self {
            metrics: Metrics::new(engine.clone()),
            history: History::default(),
            engine,
            limits,
            token,
            aside: Arc::new(tokio::sync::Semaphore::new(limits.aside)),
            snapshots: Arc::new(tokio::sync::Semaphore::new(limits.aside)),
            calls: Arc::new(tokio::sync::Semaphore::new(limits.calls)),
            outgoing: Outgoing::new(limits.answers, limits.answer_time),
            extender: Extender::new(extender),
            open_to_browsers: false,
            follows: false,
            binder: None,
            closing: std::sync::atomic::AtomicBool::new(false),
        }
    }

    /// Whether a caller shows the token, where one is asked for.
    pub(super) fn knows(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        self.token.as_ref().is_none_or(|token| shown.is_some_and(|shown| token.is_shown_by(shown)))
    }

    /// Whether a client may change the cluster.
    ///
    /// # Errors
    /// If somebody else alone does.
    pub fn may_change(&self) -> Result<(), ServeError> {
        if self.follows { Err(ServeError::Follows) } else { Ok(()) }
    }

    /// Counts a call of the extender.
    pub(super) fn count_extender(&self, verb: &'static str, outcome: &'static str, started: Instant) {
        self.metrics.extender(verb, outcome, started.elapsed().as_secs_f64());
        tracing::debug!(verb, outcome, micros = started.elapsed().as_micros() as u64, "extender");
    }

    /// Tells those who watch where a pod goes, or why it goes nowhere.
    pub(super) fn decided_on_pod(&self, via: &'static str, pod: &str, gpus: u8, node: Result<&str, &str>) {
        let decided = Decided::pod(via, pod, gpus, node);
        self.metrics.decided(via, decided.status, 1);
        self.history.decided([decided]);
    }

    /// The deadline of a call by its headers: what the caller says, and no later than the service allows.
    ///
    /// # Errors
    /// If the header holds no number.
    pub fn deadline(&self, headers: &HeaderMap) -> Result<Option<Instant>, ServeError> {
        let asked = match headers.get(DEADLINE_HEADER) {
            None => self.limits.call,
            Some(value) => {
                let millis = value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
                let millis = millis.ok_or_else(|| {
                    ServeError::Input(format!("{DEADLINE_HEADER}: found {value:?}, expected a number of milliseconds"))
                })?;
                self.limits.call.min(Duration::from_millis(millis))
            }
        };
        Ok(Instant::now().checked_add(asked))
    }
}

/// All routes.
pub fn router(app: &Arc<App>) -> Router {
    let read = Router::new()
        .route("/v1/version", get(batch::version))
        .route("/v1/cluster", get(batch::get_cluster))
        .route("/v1/score", post(batch::score))
        .route("/v1/page/cluster", get(page::cluster))
        .route("/v1/page/state", get(page::state))
        .route("/v1/plan", post(aside::plan))
        .route("/v1/explain", post(aside::explain))
        .route("/v1/audit", get(aside::audit).post(aside::audit));
    let write = Router::new()
        .route("/v1/cluster", put(batch::put_cluster))
        .route("/v1/edits", post(batch::edit))
        .route("/v1/place", post(batch::place));
    let open = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/", get(page::index))
        .route("/page/{file}", get(page::part));
    let admitted =
        read.merge(write).merge(extender::routes()).route_layer(from_fn_with_state(Arc::clone(app), guard::admit));
    // Those who measure must see a service that is full, too.
    let measured = Router::new().route("/metrics", get(metrics::metrics));
    let known = admitted.merge(measured).route_layer(from_fn_with_state(Arc::clone(app), guard::identify));
    known
        .merge(open)
        .merge(grpc::routes(app))
        .layer(DefaultBodyLimit::max(app.limits.body))
        .layer(from_fn_with_state(Arc::clone(app), outgoing::bounded))
        .layer(from_fn(guard::catch_panic))
        .layer(from_fn(guard::trace))
        .layer(from_fn_with_state(Arc::clone(app), metrics::measure))
        .with_state(Arc::clone(app))
}
