//! Follows a Kubernetes cluster: what the API server says of nodes and pods becomes the cluster here, and edits of it. So
//! does what it says of groups of pods, claims for devices and slices of them, where it serves these.
//!
//! That a pod has a place is learnt from `spec.nodeName` alone.

mod binder;
mod kinds;
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
use kinds::Kind;
use mirror::{Change, Mirror};

use super::engine::Engine;
use super::fault::ServeError;
use super::live::Condition;
use crate::formats::{EditSpec, TopologyKeys};

/// The least time between two times that the cluster is made anew.
const BETWEEN_REBUILDS: Duration = Duration::from_millis(500);

/// How long the first cluster waits, once nodes and pods are known, for an answer about all other kinds: without them a
/// pod may seem to hold nothing, or a gang to be smaller than it is.
const WAIT_FOR_OTHERS: Duration = Duration::from_secs(10);

/// How long after a kind was not served it is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(120);

/// After so long it is asked again whether a kind is served, where the API server did not say, or refuses it all at once.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// For so long what is known of a kind is kept while the API server refuses it, or says that it does not serve it: one that
/// has just started refuses what it will allow.
const KEEP: Duration = Duration::from_secs(120);

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

/// What is listed and watched, by API group and resource.
#[cfg(test)]
pub(in crate::serve) fn followed() -> Vec<(&'static str, String)> {
    Kind::CORE.into_iter().chain(Kind::OTHERS).map(Kind::resource).collect()
}

/// What the API server tells.
enum Told {
    Event(Kind, Box<Event<DynamicObject>>),
    /// It does not serve a kind any more, or never did.
    Gone(Kind),
    Error(Kind, WatchFault),
}

/// Follows the cluster until the service ends. Watches that break are begun anew, with growing pauses, and lists that are too
/// old are listed again.
pub async fn follow(engine: Engine, client: Client, topology: Option<TopologyKeys>) {
    let mut told = tell(&client).ready_chunks(MOST_TOGETHER);
    let mut mirror = Mirror::new(topology);
    let mut is_first = true;
    // When the cluster may be made anew, once nodes and pods are known.
    let mut earliest: Option<Instant> = None;
    loop {
        // A cluster that has to be made anew waits for more of what changes it, but not long.
        let events = match mirror.must_rebuild() {
            true => {
                let at = *earliest.get_or_insert_with(|| Instant::now() + WAIT_FOR_OTHERS);
                let at = if is_first && mirror.is_whole() { Instant::now() } else { at };
                tokio::time::timeout_at(at.into(), told.next()).await.ok()
            }
            false => Some(told.next().await),
        };
        match events {
            // The streams never end by themselves.
            Some(None) => return,
            Some(Some(events)) => events.into_iter().for_each(|event| take(&mut mirror, event)),
            None => {}
        }
        let is_time = earliest.is_some_and(|at| at <= Instant::now()) || is_first && mirror.is_whole();
        let done = match mirror.change() {
            Change::Edits(edits) if !mirror.must_rebuild() => edit(&engine, edits).await,
            _ if !mirror.must_rebuild() || !is_time => continue,
            _ => {
                if is_first && !mirror.is_whole() {
                    tracing::warn!("not all kinds of objects are known yet: the cluster is made without them");
                }
                (is_first, earliest) = (false, Some(Instant::now() + BETWEEN_REBUILDS));
                rebuild(&engine, &mut mirror).await
            }
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

fn tell(client: &Client) -> impl Stream<Item = Told> + Unpin + use<> {
    let core = Kind::CORE.map(|kind| events(client, kind, &kind.core_resource()).boxed());
    let others = Kind::OTHERS.map(|kind| where_served(client.clone(), kind).boxed());
    stream::select_all(core.into_iter().chain(others))
}

/// What happens to the objects of a kind.
fn events(client: &Client, kind: Kind, resource: &ApiResource) -> impl Stream<Item = Told> + Send + use<> {
    let config = match kind {
        // Those that have ended hold nothing, and there may be very many.
        Kind::Pod => WatchConfig::default().fields("status.phase!=Succeeded,status.phase!=Failed"),
        _ => WatchConfig::default(),
    };
    let api = Api::<DynamicObject>::all_with(client.clone(), resource);
    let events = watcher(api, config).default_backoff();
    events.map(move |event| {
        event.map_or_else(|error| Told::Error(kind, error), |event| Told::Event(kind, Box::new(event)))
    })
}

/// The same of a kind that the API server need not serve, and may serve later or no more: that is looked up now and then.
fn where_served(client: Client, kind: Kind) -> impl Stream<Item = Told> + Send {
    let follower = Follower { client, kind, now: Now::Look, is_known: false, refused: None };
    stream::unfold(follower, |mut follower| async move { Some((follower.next().await, follower)) })
}

/// Who follows a kind where it is served.
struct Follower {
    client: Client,
    kind: Kind,
    now: Now,
    /// What there is of the kind has been told.
    is_known: bool,
    /// Since when the API server refuses it, where it does.
    refused: Option<Instant>,
}

/// What it does.
enum Now {
    Look,
    Wait(Duration),
    Follow(stream::BoxStream<'static, Told>),
}

impl Follower {
    async fn next(&mut self) -> Told {
        let kind = self.kind;
        loop {
            match &mut self.now {
                Now::Wait(time) => {
                    tokio::time::sleep(*time).await;
                    self.now = Now::Look;
                }
                Now::Look => match kind.served(&self.client).await {
                    Ok(Some(resource)) => {
                        tracing::info!("{kind} is followed, as {}", resource.api_version);
                        self.now = Now::Follow(events(&self.client, kind, &resource).boxed());
                    }
                    Ok(None) => {
                        if let Some(gone) = self.refuse(&"it is not served") {
                            return gone;
                        }
                    }
                    Err(error) => {
                        tracing::debug!("whether {kind} is served is not known: {error}");
                        self.now = Now::Wait(ASK_AGAIN);
                    }
                },
                Now::Follow(events) => match events.next().await {
                    Some(Told::Error(_, error)) if is_absent(&error) => {
                        if let Some(gone) = self.refuse(&error) {
                            return gone;
                        }
                    }
                    Some(told) => {
                        if matches!(&told, Told::Event(_, event) if matches!(**event, Event::InitDone)) {
                            (self.is_known, self.refused) = (true, None);
                        }
                        return told;
                    }
                    None => self.now = Now::Wait(LOOK_AGAIN),
                },
            }
        }
    }

    /// Asks again soon if something of the kind is known, which is kept for so long; else tells that it has gone.
    fn refuse(&mut self, why: &dyn std::fmt::Display) -> Option<Told> {
        let kind = self.kind;
        let since = *self.refused.get_or_insert_with(Instant::now);
        if self.is_known && since.elapsed() < KEEP {
            tracing::warn!("{kind} is refused, what is known of it is kept for now: {why}");
            self.now = Now::Wait(ASK_AGAIN);
            return None;
        }
        tracing::info!("{kind} is not followed: {why}");
        (self.now, self.is_known, self.refused) = (Now::Wait(LOOK_AGAIN), false, None);
        Some(Told::Gone(kind))
    }
}

/// Whether a kind is not served, or not to us.
fn is_absent(error: &WatchFault) -> bool {
    let (WatchFault::InitialListFailed(kube::Error::Api(status))
    | WatchFault::WatchStartFailed(kube::Error::Api(status))) = error
    else {
        return false;
    };
    matches!(status.code, 403 | 404)
}

fn take(mirror: &mut Mirror, told: Told) {
    match told {
        Told::Error(kind, error) => tracing::warn!("{kind} cannot be watched, trying again: {error}"),
        Told::Gone(kind) => {
            mirror.begin(kind);
            mirror.end(kind);
        }
        Told::Event(kind, event) => match *event {
            Event::Init => mirror.begin(kind),
            Event::InitDone => mirror.end(kind),
            Event::Delete(object) => mirror.delete(kind, &kind.name_of(&object)),
            Event::InitApply(object) | Event::Apply(object) => {
                let Ok(json) = serde_json::to_vec(&object) else { return };
                match kind.read(&json) {
                    Ok(read) => mirror.apply(read),
                    Err(error) => tracing::warn!("{} is passed over: {error}", kind.name_of(&object)),
                }
            }
        },
    }
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

async fn edit(engine: &Engine, edits: Vec<EditSpec>) -> Result<(), ServeError> {
    if edits.is_empty() {
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
