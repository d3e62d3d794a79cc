//! The page for people, and what it is filled with.

use std::sync::Arc;

use axum::extract::{Path, Query, State as Shared};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::App;
use super::answer::json;
use crate::cluster::GpuMask;
use crate::serve::fault::ServeError;
use crate::serve::history::{Decided, Sample, Since, Took};
use crate::serve::live::{Picture, Totals};
use crate::serve::version::Version;

/// A file of the page: its name, its type, its text.
type File = (&'static str, &'static str, &'static str);

const INDEX: File = ("index.html", "text/html; charset=utf-8", include_str!("../page/index.html"));

const FILES: [File; 6] = [
    ("page.css", "text/css; charset=utf-8", include_str!("../page/page.css")),
    ("page.js", "text/javascript; charset=utf-8", include_str!("../page/page.js")),
    ("map.js", "text/javascript; charset=utf-8", include_str!("../page/map.js")),
    ("layout.js", "text/javascript; charset=utf-8", include_str!("../page/layout.js")),
    ("chart.js", "text/javascript; charset=utf-8", include_str!("../page/chart.js")),
    ("icon.svg", "image/svg+xml", include_str!("../page/icon.svg")),
];

/// What the page may do: run what comes from here, ask here, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /`.
pub(super) async fn index() -> Response {
    file(&INDEX)
}

/// `GET /page/{file}`.
pub(super) async fn part(Path(name): Path<String>) -> Response {
    FILES.iter().find(|(known, ..)| *known == name).map_or_else(|| StatusCode::NOT_FOUND.into_response(), file)
}

fn file(&(_, kind, text): &File) -> Response {
    let headers: [(HeaderName, HeaderValue); 5] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        // Another version of the service has other files under the same names.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text).into_response()
}

/// `GET /v1/page/cluster`: what stays as it is until another snapshot is put.
pub(super) async fn cluster(Shared(app): Shared<Arc<App>>, headers: HeaderMap) -> Result<Response, ServeError> {
    let topology = app.engine.run(app.deadline(&headers)?, |live| live.topology()).await?;
    Ok(json(&*topology))
}

/// What the page knows already.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// The version whose nodes it has.
    since: Option<Version>,
    /// The numbers of the next sample and of the next decision.
    #[serde(default)]
    samples: u64,
    #[serde(default)]
    decisions: u64,
}

/// `GET /v1/page/state?since=VERSION&samples=N&decisions=N`: what is new.
pub(super) async fn state(
    Shared(app): Shared<Arc<App>>,
    headers: HeaderMap,
    known: Result<Query<Known>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, ServeError> {
    let Query(known) = known.map_err(|error| ServeError::Input(error.body_text()))?;
    let look = |live: &mut crate::serve::Live| Ok((live.picture()?, live.backend()));
    let (picture, backend) = app.engine.run(app.deadline(&headers)?, look).await?;
    // Numbers of another life say nothing about this one.
    let is_of_now = known.since.is_some_and(|since| since.epoch == picture.version.epoch);
    let number = |number: u64| if is_of_now { number } else { 0 };
    Ok(json(&State {
        version: picture.version,
        topology: picture.topology,
        backend,
        age_s: picture.since.elapsed().as_secs_f64(),
        waiting: app.engine.waiting(),
        totals: &picture.totals,
        nodes: Nodes::since(&picture, known.since),
        samples: app.history.samples_since(number(known.samples)),
        decisions: app.history.decisions_since(number(known.decisions)),
        calls: app.history.calls(),
    }))
}

#[derive(Serialize)]
struct State<'a> {
    version: Version,
    topology: Version,
    backend: &'static str,
    /// Seconds since the cluster last changed.
    age_s: f64,
    waiting: usize,
    totals: &'a Totals,
    nodes: Nodes,
    samples: Since<Sample>,
    decisions: Since<Decided>,
    calls: Vec<Took>,
}

/// Columns of nodes.
#[derive(Default, Serialize)]
struct Nodes {
    /// Which nodes; `null` for all, in their order.
    at: Option<Vec<u32>>,
    busy: Vec<GpuMask>,
    anchors: Vec<GpuMask>,
    shared: Vec<GpuMask>,
    /// 1 where nothing may be placed.
    closed: Vec<u8>,
}

impl Nodes {
    fn since(picture: &Picture, version: Option<Version>) -> Self {
        let at = version.and_then(|version| picture.changed_since(version));
        let at: Option<Vec<u32>> = at.map(|nodes| nodes.map(|node| node.0).collect());
        let mut nodes = Self::default();
        let mut push = |row: &crate::serve::live::NodeRow| {
            nodes.busy.push(row.busy);
            nodes.anchors.push(row.anchors);
            nodes.shared.push(row.shared);
            nodes.closed.push(u8::from(!row.schedulable));
        };
        match &at {
            Some(at) => at.iter().for_each(|&node| push(&picture.rows[node as usize])),
            None => picture.rows.iter().for_each(push),
        }
        Self { at, ..nodes }
    }
}
