//! The batch API for people and simple programs: our own formats, in JSON.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::App;
use super::answer::{json, json_bytes, listed};
use super::body::{lines, read};
use super::told::Told;
use crate::anchor::Trigger;
use crate::decide::{PlaceOptions, Policy};
use crate::formats::{
    CandidateSpec, EditSpec, FormatError, Snapshot, read_candidates_from, read_cluster_from, read_queue_from,
};
use crate::report::{ScoreRows, decision_json};
use crate::serve::fault::ServeError;
use crate::serve::live::{Condition, PlaceCall, ScoreCall, resolve_candidates};
use crate::serve::version::Version;

type Answer = Result<Response, ServeError>;

/// The header that says which version a body is of.
const VERSION_HEADER: HeaderName = HeaderName::from_static("slotwise-version");

/// The longest name for a change.
const LONGEST_ID: usize = 128;

/// `GET /v1/version`.
pub(super) async fn version(Shared(app): Shared<Arc<App>>, headers: HeaderMap) -> Answer {
    #[derive(Serialize)]
    struct Out {
        version: Version,
    }
    let deadline = app.deadline(&headers)?;
    let version = app.engine.run(deadline, |live| live.check(None).map(|()| live.version())).await?;
    Ok(json(&Out { version }))
}

/// `PUT /v1/cluster`: a snapshot in place of what is here.
pub(super) async fn put_cluster(Shared(app): Shared<Arc<App>>, headers: HeaderMap, body: Bytes) -> Answer {
    #[derive(Serialize)]
    struct Out<'a> {
        version: Version,
        nodes: usize,
        gpus: u64,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notes: Vec<&'a str>,
    }
    app.may_change()?;
    let deadline = app.deadline(&headers)?;
    // Reading takes a while, and needs nothing that the others wait for.
    let snapshot = app.on_a_snapshot(deadline, move || Ok(read_cluster_from("body", &body[..])?)).await?;
    let Snapshot { cluster, notes, .. } = snapshot;
    let (nodes, gpus) = (cluster.nodes().len(), cluster.gpus());
    let version = app.engine.run(deadline, move |live| Ok(live.put(cluster))).await?;
    let notes = notes.iter().map(|note| note.text.as_str()).collect();
    Ok(json(&Out { version, nodes, gpus, notes }))
}

/// `GET /v1/cluster`: a snapshot of what is here.
pub(super) async fn get_cluster(Shared(app): Shared<Arc<App>>, headers: HeaderMap) -> Answer {
    let deadline = app.deadline(&headers)?;
    let (version, bytes) = app.written(deadline).await?;
    let mut response = json_bytes(bytes);
    if let Ok(value) = HeaderValue::from_str(&version.to_string()) {
        response.headers_mut().insert(VERSION_HEADER, value);
    }
    Ok(response)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditsIn {
    version: Option<Version>,
    id: Option<String>,
    edits: Vec<EditSpec>,
}

/// `POST /v1/edits`: what has happened since.
pub(super) async fn edit(Shared(app): Shared<Arc<App>>, headers: HeaderMap, body: Bytes) -> Answer {
    #[derive(Serialize)]
    struct Out {
        version: Version,
        repeated: bool,
    }
    app.may_change()?;
    let EditsIn { version, id, edits } = read(&body)?;
    let condition = condition(version, id)?;
    let changed = app.engine.run(app.deadline(&headers)?, move |live| live.edit(&condition, &edits)).await?;
    Ok(json(&Out { version: changed.version, repeated: changed.repeated }))
}

pub(in crate::serve) fn condition(version: Option<Version>, id: Option<String>) -> Result<Condition, ServeError> {
    match &id {
        Some(id) if id.is_empty() || id.len() > LONGEST_ID => {
            let n = id.len();
            Err(ServeError::Input(format!("id: found a text of {n} bytes, expected 1 to {LONGEST_ID}")))
        }
        _ => Ok(Condition { version, id }),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScoreIn<'a> {
    version: Option<Version>,
    #[serde(borrow)]
    queue: Vec<&'a RawValue>,
    #[serde(borrow)]
    candidates: Vec<&'a RawValue>,
}

/// `POST /v1/score`: candidates of jobs that wait.
pub(super) async fn score(Shared(app): Shared<Arc<App>>, headers: HeaderMap, body: Bytes) -> Answer {
    let deadline = app.deadline(&headers)?;
    let ScoreIn { version, queue, candidates } = read(&body)?;
    let queue = lines(&queue);
    let specs: Arc<[CandidateSpec]> = read_candidates_from("candidates", &lines(&candidates)[..])?.into();
    let named = Arc::clone(&specs);
    let call = ScoreCall {
        version,
        candidates: Box::new(move |cluster| {
            let (queue, _) = read_queue_from("queue", &queue[..], cluster)?;
            if let Some(spec) = named.iter().find(|spec| cluster.find_grouped_job(&spec.job).is_some()) {
                let text = format_args!(
                    "found a candidate for the job {:?} of several groups, which are not scored, expected a job of one",
                    spec.job
                );
                return Err(FormatError::new("candidates", text));
            }
            let sets = resolve_candidates(cluster, &queue, &named);
            Ok(sets)
        }),
    };
    let scored = app.engine.score(deadline, call).await?;
    let rows = ScoreRows::new(&specs, &scored.batch, &scored.scores, scored.empty_nodes);
    let mut lines = Vec::new();
    for index in 0..rows.len() {
        rows.append_json(&mut lines, index).map_err(|error| ServeError::Failed(error.to_string()))?;
    }
    Ok(listed(scored.version, "rows", &lines, ""))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaceIn<'a> {
    version: Option<Version>,
    id: Option<String>,
    #[serde(borrow)]
    queue: Vec<&'a RawValue>,
    policy: Option<String>,
    compact: Option<String>,
    migration_budget: Option<u32>,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    commit: bool,
}

/// `POST /v1/place`: where the jobs of a queue go, for good or to see.
pub(super) async fn place(Shared(app): Shared<Arc<App>>, headers: HeaderMap, body: Bytes) -> Answer {
    let deadline = app.deadline(&headers)?;
    let PlaceIn { version, id, queue, policy, compact, migration_budget, seed, commit } = read(&body)?;
    if commit {
        app.may_change()?;
    }
    let (policy, trigger) = policy_and_trigger(policy.as_deref(), compact.as_deref())?;
    let options = PlaceOptions { policy, trigger, migration_budget, seed, threads: 1, ..PlaceOptions::default() };
    let call = PlaceCall { condition: condition(version, id)?, options, commit };
    let queue = lines(&queue);
    let told = Arc::clone(&app);
    let changed = app
        .engine
        .run(deadline, move |live| {
            let read = |cluster: &mut _| Ok(read_queue_from("queue", &queue[..], cluster)?.0);
            let mut told = Told::new(&told, "place", commit);
            live.place(&call, read, &mut |out, cluster, decision| {
                told.keep(cluster, decision);
                decision_json(out, cluster, decision).map_err(|error| ServeError::Failed(error.to_string()))
            })
        })
        .await?;
    let repeated = if changed.repeated { ",\"repeated\":true" } else { "" };
    Ok(listed(changed.version, "decisions", changed.answer.as_deref().unwrap_or_default(), repeated))
}

/// Who decides, and when it compacts, by their words.
pub(in crate::serve) fn policy_and_trigger(
    policy: Option<&str>,
    compact: Option<&str>,
) -> Result<(Policy, Trigger), ServeError> {
    let known = |what: &str, found: &str, expected: Vec<&str>| {
        ServeError::Input(format!("{what}: found {found:?}, expected one of {}", expected.join(", ")))
    };
    let policy = match policy {
        None => Policy::default(),
        Some(name) => {
            name.parse().map_err(|_| known("policy", name, Policy::ALL.iter().map(|policy| policy.name()).collect()))?
        }
    };
    let trigger = match compact {
        None => Trigger::default(),
        Some(name) => Trigger::from_name(name)
            .ok_or_else(|| known("compact", name, Trigger::ALL.iter().map(|trigger| trigger.name()).collect()))?,
    };
    Ok((policy, trigger))
}
