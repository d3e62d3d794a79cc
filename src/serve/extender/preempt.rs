//! `preempt`: on which of the nodes the eviction that the scheduler has in mind would really make room.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::response::Response;

use super::wire::{self, MetaPod, MetaVictims, PreemptionArgs, PreemptionResult, Victims};
use super::{Ask, ask};
use crate::formats::read_pod_view;
use crate::serve::fault::ServeError;
use crate::serve::http::{App, json};
use crate::serve::live::Live;

type ByNode<'a> = BTreeMap<Cow<'a, str>, Victims<'a>>;

/// Keeps the nodes whose GPUs, with those that run there gone, are enough for the pod; those that are not known here are
/// kept too. Victims are never added or left out: who must go is the scheduler's to say.
pub(super) async fn preempt(Shared(app): Shared<Arc<App>>, body: Bytes) -> Response {
    let started = Instant::now();
    let args: PreemptionArgs<'_> = match wire::read(&body) {
        Ok(args) => args,
        Err(_) => {
            app.count_extender("preempt", "refused", started);
            return json(&PreemptionResult::default());
        }
    };
    let by_node = args.meta_victims.as_ref().or(args.victims.as_ref());
    let pod = args.pod.and_then(|pod| read_pod_view("Pod", pod.0.get().as_bytes()).ok()).map(ask);
    let (Some(by_node), Some(Ask::Pod(pod))) = (by_node, pod) else {
        app.count_extender("preempt", "not-ours", started);
        return json(&by_node.map(|by_node| kept(by_node, &|_| true)).unwrap_or_default());
    };
    let nodes: Vec<String> = by_node.keys().map(|node| node.clone().into_owned()).collect();
    let deadline = started.checked_add(app.extender.options.deadline);
    let hopeless = app.engine.run(deadline, move |live| hopeless(live, &nodes, pod.asks.gpus)).await;
    let hopeless = match hopeless {
        Ok(hopeless) => {
            app.count_extender("preempt", "answered", started);
            hopeless
        }
        Err(error) => {
            app.count_extender("preempt", error.word(), started);
            Vec::new()
        }
    };
    // In the order of the nodes, as they were asked about.
    json(&kept(by_node, &|node| hopeless.binary_search_by(|other| other.as_str().cmp(node)).is_err()))
}

/// The nodes that could never hold the pod: too few devices, or closed.
fn hopeless(live: &mut Live, nodes: &[String], gpus: u8) -> Result<Vec<String>, ServeError> {
    let cluster = live.state()?.cluster();
    let is_hopeless = |name: &&String| {
        cluster.find_node(name).is_some_and(|id| {
            let node = cluster.node(id);
            node.capacity() < gpus || !node.schedulable()
        })
    };
    Ok(nodes.iter().filter(is_hopeless).cloned().collect())
}

fn kept<'a>(by_node: &'a ByNode<'_>, keeps: &dyn Fn(&str) -> bool) -> PreemptionResult<'a> {
    let mut result = PreemptionResult::default();
    for (node, victims) in by_node.iter().filter(|(node, _)| keeps(node)) {
        let uid =
            |victim: &'a wire::Victim<'_>| if victim.uid.is_empty() { &*victim.metadata.uid } else { &*victim.uid };
        let pods = victims.pods.iter().map(|victim| MetaPod { uid: uid(victim) }).collect();
        let victims = MetaVictims { pods, violations: victims.violations };
        result.node_name_to_meta_victims.insert(node, victims);
    }
    result
}
