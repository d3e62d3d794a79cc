//! Volcano's own extender plugin: `prioritize`, one call a task. Its structs have no tags and no versions, so little is
//! asked of them: the pod of the task, and the names of the nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::response::Response;
use serde::Serialize;

use super::names::NameList;
use super::wire::{self, Prioritize};
use super::{Ask, ask, scores};
use crate::formats::read_pod_view;
use crate::serve::http::{App, json};

/// `PrioritizeResponse`. Without scores and without an error it would be a fault to Volcano.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Scores<'a> {
    node_score: BTreeMap<&'a str, i64>,
    error_message: &'a str,
}

/// Scores the nodes of a task: the chosen one highest, then what fits best.
pub(super) async fn prioritize(Shared(app): Shared<Arc<App>>, body: Bytes) -> Response {
    let started = Instant::now();
    let refuse = |error: &str| {
        app.count_extender("volcano-prioritize", "refused", started);
        json(&Scores { error_message: error, ..Scores::default() })
    };
    let args: Prioritize<'_> = match wire::read(&body) {
        Ok(args) => args,
        Err(error) => return refuse(&error),
    };
    let Some(pod) = args.task.pod else { return refuse("found no task with a Pod, expected one") };
    let pod = match read_pod_view("task.Pod", pod.0.get().as_bytes()) {
        Ok(pod) => pod,
        Err(error) => return refuse(&error.to_string()),
    };
    let mut names = NameList::default();
    args.nodes.iter().for_each(|node| names.push(&node.name));
    let names = Arc::new(names);
    let scores = match ask(pod) {
        Ask::NotOurs => vec![0; names.len()],
        Ask::Pod(pod) => match scores(&app, started, pod, Arc::clone(&names)).await {
            Ok(scores) => scores,
            Err(error) => {
                tracing::warn!("Volcano's nodes are all scored 0: {error}");
                vec![0; names.len()]
            }
        },
    };
    app.count_extender("volcano-prioritize", "scored", started);
    json(&Scores { node_score: names.iter().zip(scores).collect(), error_message: "" })
}
