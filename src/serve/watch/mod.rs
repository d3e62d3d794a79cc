//! Follows a Kubernetes cluster: what the API server says of nodes and pods becomes the cluster here, and edits of it.
//!
//! That a pod has a place is learnt from `spec.nodeName` alone. CPU and memory are not followed: the scheduler's own filters
//! have looked at them before it asks.

mod binder;
mod mirror;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt, stream};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config as WatchConfig, Error as WatchFault, Event, watcher};
use kube::{Api, Client, Config};

pub use binder::Binder;
use mirror::{Change, Mirror};

use super::engine::Engine;
use super::fault::ServeError;
use super::live::Condition;
use crate::formats::{EditSpec, NodeView, PodView, TopologyKeys, read_node_view, read_pod_view};

/// The least time between two times that the cluster is made anew.
const BETWEEN_REBUILDS: Duration = Duration::from_millis(500);

/// The most events that are taken together.
const MOST_TOGETHER: usize = 1024;

/// Which cluster is followed.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// The kubeconfig; without, the usual places, and the service account of a pod.
    pub kubeconfig: Option<std::path::PathBuf>,
    /// The labels that say where nodes are; without, the first preset that is in use.
    pub topology: Option<TopologyKeys>,
}

/// The API server cannot be talked to.
#[derive(Debug, thiserror::Error)]
#[error("Kubernetes: {0}")]
pub struct WatchError(String);

/// A client of the API server.
///
/// # Errors
/// If there is no configuration, or it is malformed.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, WatchError> {
    let wrong = |error: &dyn std::fmt::Display| WatchError(error.to_string());
    let config = match kubeconfig {
        None => Config::infer().await.map_err(|error| wrong(&error))?,
        Some(path) => {
            // What is wrong with it may be that it is another file, with secrets in it: its text is not repeated.
            let read = kube::config::Kubeconfig::read_from(path).map_err(|error| match error {
                kube::config::KubeconfigError::ReadConfig(error, _) => {
                    WatchError(format!("{}: {error}", path.display()))
                }
                _ => WatchError(format!("{}: found no kubeconfig, expected one in YAML", path.display())),
            })?;
            Config::from_custom_kubeconfig(read, &Default::default()).await.map_err(|error| wrong(&error))?
        }
    };
    Client::try_from(config).map_err(|error| wrong(&error))
}

/// What the API server tells.
enum Told {
    Node(Event<DynamicObject>),
    Pod(Event<DynamicObject>),
    Error(WatchFault),
}

/// Follows the cluster until the service ends. Watches that break are begun anew, with growing pauses, and lists that are too
/// old are listed again.
pub async fn follow(engine: Engine, client: Client, topology: Option<TopologyKeys>) {
    let mut told = tell(client).ready_chunks(MOST_TOGETHER);
    let mut mirror = Mirror::new(topology);
    let mut rebuilt: Option<Instant> = None;
    loop {
        // A cluster that has to be made anew waits for more of what changes it, but not long.
        let events = match mirror.must_rebuild() {
            true => {
                let wait = rebuilt.map_or(Duration::ZERO, |at| BETWEEN_REBUILDS.saturating_sub(at.elapsed()));
                tokio::time::timeout(wait, told.next()).await.ok()
            }
            false => Some(told.next().await),
        };
        let mut edits = Vec::new();
        match events {
            // The streams never end by themselves.
            Some(None) => return,
            Some(Some(events)) => events.into_iter().for_each(|event| take(&mut mirror, event, &mut edits)),
            None => {}
        }
        let is_due = rebuilt.is_none_or(|at| at.elapsed() >= BETWEEN_REBUILDS);
        let done = if mirror.must_rebuild() {
            if !is_due {
                continue;
            }
            rebuilt = Some(Instant::now());
            rebuild(&engine, &mut mirror).await
        } else {
            edit(&engine, &mut mirror, edits).await
        };
        if let Err(error) = done {
            if matches!(error, ServeError::Closing) {
                return;
            }
            tracing::warn!("the cluster is made anew: {error}");
            mirror.rebuild();
        }
    }
}

fn tell(client: Client) -> impl Stream<Item = Told> + Unpin {
    let resource = |kind: &str, plural: &str| ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    let nodes = Api::<DynamicObject>::all_with(client.clone(), &resource("Node", "nodes"));
    let pods = Api::<DynamicObject>::all_with(client, &resource("Pod", "pods"));
    // Those that have ended hold nothing, and there may be very many.
    let living = WatchConfig::default().fields("status.phase!=Succeeded,status.phase!=Failed");
    let nodes = watcher(nodes, WatchConfig::default()).default_backoff();
    let pods = watcher(pods, living).default_backoff();
    let nodes = nodes.map(|event| event.map_or_else(Told::Error, Told::Node));
    let pods = pods.map(|event| event.map_or_else(Told::Error, Told::Pod));
    Box::pin(stream::select(nodes, pods))
}

fn take(mirror: &mut Mirror, told: Told, edits: &mut Vec<EditSpec>) {
    let change = match told {
        Told::Error(error) => {
            tracing::warn!("the API server cannot be watched, trying again: {error}");
            return;
        }
        Told::Node(event) => match event {
            Event::Init => mirror.begin_nodes(),
            Event::InitApply(object) | Event::Apply(object) => match node(&object) {
                Some(view) => mirror.apply_node(view),
                None => return,
            },
            Event::InitDone => mirror.end_nodes(),
            Event::Delete(object) => mirror.delete_node(&object.metadata.name.unwrap_or_default()),
        },
        Told::Pod(event) => match event {
            Event::Init => mirror.begin_pods(),
            Event::InitApply(object) | Event::Apply(object) => match pod(&object) {
                Some(view) => mirror.apply_pod(view),
                None => return,
            },
            Event::InitDone => mirror.end_pods(),
            Event::Delete(object) => {
                let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
                mirror.delete_pod(&format!("{namespace}/{}", object.metadata.name.unwrap_or_default()))
            }
        },
    };
    match change {
        Change::Edits(more) => edits.extend(more),
        Change::Rebuild => mirror.rebuild(),
    }
}

fn node(object: &DynamicObject) -> Option<NodeView> {
    let json = serde_json::to_vec(object).ok()?;
    read_node_view("node", &json).inspect_err(|error| tracing::warn!("a node is passed over: {error}")).ok()
}

fn pod(object: &DynamicObject) -> Option<PodView> {
    let json = serde_json::to_vec(object).ok()?;
    read_pod_view("pod", &json).inspect_err(|error| tracing::warn!("a pod is passed over: {error}")).ok()
}

/// Makes the cluster anew from all that is known, pods included.
async fn rebuild(engine: &Engine, mirror: &mut Mirror) -> Result<(), ServeError> {
    let Some((cluster, edits)) = mirror.cluster().map_err(|error| ServeError::Failed(error.to_string()))? else {
        return Ok(());
    };
    let (nodes, pods) = (cluster.nodes().len(), edits.len());
    let cluster = Arc::new(cluster);
    let edits: Arc<[EditSpec]> = edits.into();
    let refused = patiently(engine, || {
        let (cluster, edits) = (Arc::clone(&cluster), Arc::clone(&edits));
        move |live: &mut super::live::Live| {
            live.put((*cluster).clone());
            // One by one: a pod that contradicts the others must not hide them.
            let refused = edits.iter().filter_map(|edit| {
                live.edit(&Condition::default(), std::slice::from_ref(edit)).err().map(|error| error.to_string())
            });
            Ok(refused.collect::<Vec<String>>())
        }
    });
    let refused = refused.await?;
    for error in &refused {
        tracing::warn!("a pod is passed over: {error}");
    }
    tracing::info!(nodes, pods, refused = refused.len(), "the cluster is known");
    Ok(())
}

async fn edit(engine: &Engine, mirror: &mut Mirror, edits: Vec<EditSpec>) -> Result<(), ServeError> {
    if edits.is_empty() || !mirror.is_known() {
        return Ok(());
    }
    let edits: Arc<[EditSpec]> = edits.into();
    patiently(engine, || {
        let edits = Arc::clone(&edits);
        move |live: &mut super::live::Live| live.edit(&Condition::default(), &edits).map(|_| ())
    })
    .await
}

/// Asks again as long as too many others wait: what has happened must be told.
async fn patiently<R, W>(engine: &Engine, mut work: impl FnMut() -> W) -> Result<R, ServeError>
where
    R: Send + 'static,
    W: FnOnce(&mut super::live::Live) -> Result<R, ServeError> + Send + 'static,
{
    loop {
        match engine.run(None, work()).await {
            Err(ServeError::Busy) => tokio::time::sleep(Duration::from_millis(5)).await,
            answer => return answer,
        }
    }
}
