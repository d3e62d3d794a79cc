//! What Prometheus is told. Every label has few values, whatever clients send: no job, no node, no path as it was typed.

mod scrape;

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::{EncodeLabelSet, prometheus_text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::engine::Engine;
use super::live::Picture;
use scrape::Scrape;

/// Upper bounds of the buckets of durations, in seconds: from what an answer from memory takes to what nobody waits for. A
/// scheduler that is configured as this program prints it waits for 0.25 s.
const SECONDS: [f64; 15] = [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    endpoint: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Endpoint {
    method: &'static str,
    endpoint: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Verb {
    verb: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbOutcome {
    verb: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    via: &'static str,
    status: &'static str,
}

/// What was last seen of the cluster.
#[derive(Clone, Debug, Default)]
struct Seen {
    picture: Option<Arc<Picture>>,
    backend: &'static str,
}

/// What the service counts and measures.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    request_seconds: Family<Endpoint, Histogram>,
    extender_requests: Family<VerbOutcome, Counter>,
    extender_seconds: Family<Verb, Histogram>,
    decisions: Family<Outcome, Counter>,
    seen: Arc<Mutex<Seen>>,
}

impl Metrics {
    /// Of the cluster behind this engine.
    pub fn new(engine: Engine) -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS);
        let mut registry = Registry::with_prefix("slotwise");
        let requests = Family::default();
        registry.register("requests", "Requests by route and outcome", requests.clone());
        let request_seconds = Family::new_with_constructor(seconds);
        let help = "How long requests took, from their head to their answer";
        registry.register_with_unit("request_duration", help, Unit::Seconds, request_seconds.clone());
        let extender_requests = Family::default();
        let help = "Requests of Kubernetes schedulers by verb and outcome";
        registry.register("extender_requests", help, extender_requests.clone());
        let extender_seconds = Family::new_with_constructor(seconds);
        let help = "How long requests of Kubernetes schedulers took";
        registry.register_with_unit("extender_request_duration", help, Unit::Seconds, extender_seconds.clone());
        let decisions = Family::default();
        registry.register("decisions", "Decisions by who asked and what became of it", decisions.clone());
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program", build);
        let seen = Arc::new(Mutex::new(Seen::default()));
        registry.register_collector(Box::new(Scrape { engine, seen: Arc::clone(&seen) }));
        Self { registry, requests, request_seconds, extender_requests, extender_seconds, decisions, seen }
    }

    /// A request was answered: by which method, on which route, with which outcome, after how long. All three words are of
    /// few.
    pub fn request(&self, method: &'static str, endpoint: &str, outcome: &'static str, seconds: f64) {
        let endpoint = endpoint.to_owned();
        self.requests.get_or_create(&Request { method, endpoint: endpoint.clone(), outcome }).inc();
        self.request_seconds.get_or_create(&Endpoint { method, endpoint }).observe(seconds);
    }

    /// A call of a Kubernetes scheduler was answered, after so many seconds.
    pub fn extender(&self, verb: &'static str, outcome: &'static str, seconds: f64) {
        self.extender_requests.get_or_create(&VerbOutcome { verb, outcome }).inc();
        self.extender_seconds.get_or_create(&Verb { verb }).observe(seconds);
    }

    /// So many jobs had the same fate, `placed` or `blocked` and the like; `via` says who asked.
    pub fn decided(&self, via: &'static str, status: &'static str, n: u64) {
        self.decisions.get_or_create(&Outcome { via, status }).inc_by(n);
    }

    /// The cluster looks like this now; `None` if there is none.
    pub fn see(&self, picture: Option<Arc<Picture>>, backend: &'static str) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen { picture, backend };
    }

    /// All of it, in the text format of Prometheus.
    ///
    /// # Errors
    /// If formatting fails.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        prometheus_text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
