//! The scheduler extender of kube-scheduler, and that of Volcano: one pod a call, and a node for it.
//!
//! Whatever goes wrong, a scheduler gets a useful answer in time: without a decision `filter` passes all nodes on, and
//! `prioritize` prefers none. Only a body that is none of theirs is answered with an error. Every answer has status 200.

mod memo;
mod names;
mod preempt;
mod rehearsal;
mod seat;
mod volcano;
mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State as Shared};
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::post;

use self::memo::Memo;
use self::names::{Finder, NameList};
use self::seat::{Nowhere, PodAsk, Seat, seat};
use self::wire::{Args, BindingArgs, BindingResult, FilterResult, MAX_PRIORITY, NodesOut};
use super::fault::ServeError;
use super::http::{App, json, json_bytes};
use super::live::{Asks, Live};
use crate::cluster::{Cluster, MAX_GPUS, NodeId};
use crate::decide::Policy;
use crate::formats::{PodView, read_pod_view};

/// The longest namespace and name of an object, and more.
const LONGEST_NAME: usize = 512;

/// Nodes that are named as worth an eviction where a pod has no room.
const MOST_FAILED: usize = 16;

/// How the extender decides.
#[derive(Clone, Copy, Debug)]
pub struct ExtenderOptions {
    /// Who decides; where its own space refuses a pod that has room, best-fit. That is the default, too: what `compass`
    /// promises it keeps by moves, and an extender moves nothing.
    pub policy: Policy,
    /// When an answer goes out, decided or not: less than the scheduler's own timeout.
    pub deadline: Duration,
}

impl Default for ExtenderOptions {
    fn default() -> Self {
        Self { policy: Policy::BestFit, deadline: Duration::from_millis(150) }
    }
}

/// What the extender keeps from call to call, none of which shows in an answer.
#[derive(Debug, Default)]
pub(super) struct Kept {
    memo: Memo,
    finder: Finder,
}

/// The extender of an application.
#[derive(Debug, Default)]
pub struct Extender {
    pub(super) options: ExtenderOptions,
    kept: Arc<Mutex<Kept>>,
}

impl Extender {
    /// With these options.
    pub fn new(options: ExtenderOptions) -> Self {
        Self { options, kept: Arc::default() }
    }
}

/// The routes of the extender.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/extender/filter", post(filter))
        .route("/v1/extender/prioritize", post(prioritize))
        .route("/v1/extender/preempt", post(preempt::preempt))
        .route("/v1/extender/bind", post(bind))
        .route("/v1/volcano/prioritize", post(volcano::prioritize))
        .layer(axum::middleware::from_fn(timed))
}

/// Says in a header how many milliseconds an answer took, from the head of the request on.
async fn timed(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let mut response = next.run(request).await;
    let text = format!("total;dur={:.3}", started.elapsed().as_secs_f64() * 1e3);
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert("server-timing", value);
    }
    response
}

/// What a call is about: a pod that wants GPUs, or one that does not concern us.
enum Ask {
    /// Decide.
    Pod(PodAsk),
    /// All nodes are as good as ever.
    NotOurs,
}

fn ask(pod: PodView) -> Ask {
    let gpus = u8::try_from(pod.gpus).ok().filter(|gpus| (1..=MAX_GPUS as u8).contains(gpus));
    match gpus {
        Some(gpus) if !pod.parts && !pod.by_claim => {
            let asks = Asks { gpus, cpu_milli: pod.cpu_milli, memory_mib: pod.memory_mib };
            Ask::Pod(PodAsk { name: pod.name.into(), asks, gang: pod.gang.map(Into::into), gang_size: pod.gang_size })
        }
        _ => Ask::NotOurs,
    }
}

/// The pod and the names of the nodes of a call. Names that came as such are taken out of it.
fn question(args: &mut Args<'_>) -> Result<(Ask, NameList), String> {
    let pod = args.pod.ok_or("found no Pod, expected one")?;
    let pod = read_pod_view("Pod", pod.0.get().as_bytes()).map_err(|error| error.to_string())?;
    if pod.name.len() > LONGEST_NAME || pod.gang.as_ref().is_some_and(|gang| gang.len() > LONGEST_NAME) {
        return Err(format!("found a name of more than {LONGEST_NAME} bytes, which no object has"));
    }
    let names = match (args.names.take(), &args.nodes) {
        (Some(names), _) => {
            args.nodes = None;
            names
        }
        (None, Some(nodes)) => {
            let mut names = NameList::default();
            nodes.items.iter().for_each(|&node| names.push(&wire::name_of_node(node)));
            names
        }
        (None, None) => return Err("found neither Nodes nor NodeNames, expected one of them".to_owned()),
    };
    Ok((ask(pod), names))
}

/// What the thread of the cluster says of a pod.
struct Decided {
    /// The place in the list of names of the node that it goes to, or why to none.
    node: Result<u32, String>,
    /// Places in the list of names that are no nodes here.
    unknown: Vec<u32>,
    /// Nodes on which an eviction could help, where the pod has no room.
    failed: Vec<String>,
}

/// The nodes that a call offers.
pub(super) struct Offer {
    /// Of each node, where it stands in the list of names.
    places: Vec<u32>,
}

impl Offer {
    const NOWHERE: u32 = u32::MAX;

    /// Those with these names; `unknown` is given the places of names that are no nodes here.
    fn new(cluster: &Cluster, finder: &mut Finder, names: &NameList, unknown: &mut Vec<u32>) -> Self {
        let mut places = vec![Self::NOWHERE; cluster.nodes().len()];
        finder.find(cluster, names, &mut |at, node| match node {
            Some(node) => places[node.index()] = at as u32,
            None => unknown.push(at as u32),
        });
        Self { places }
    }

    /// The nodes, each with where it stands in the list of names; where it stands last, if it is named more than once.
    fn nodes(&self) -> impl Iterator<Item = (NodeId, usize)> {
        let all = (0..).map(NodeId).zip(&self.places);
        all.filter(|&(_, &place)| place != Self::NOWHERE).map(|(node, &place)| (node, place as usize))
    }

    /// Whether a node is among them.
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.places[node.index()] != Self::NOWHERE
    }
}

async fn decide(app: &App, started: Instant, pod: PodAsk, names: Arc<NameList>) -> Result<Decided, ServeError> {
    let Extender { options, kept } = &app.extender;
    let (policy, kept) = (options.policy, Arc::clone(kept));
    let deadline = started.checked_add(options.deadline);
    let work = move |live: &mut Live| {
        // What is kept here shows in no answer, so it does not matter where a panic left it.
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { memo, finder } = &mut *kept;
        let mut unknown = Vec::new();
        let offer = Offer::new(live.state()?.cluster(), finder, &names, &mut unknown);
        let seat = seat(live, memo, policy, &pod, &offer, deadline)?;
        let cluster = live.state()?.cluster();
        let failed = match &seat {
            Seat::Nowhere(Nowhere::Blocked(_)) => worth_evicting(cluster, pod.asks.gpus, &offer),
            _ => Vec::new(),
        };
        let node = match seat {
            Seat::Node(node) => Ok(offer.places[node.index()]),
            Seat::Nowhere(why) => Err(why.to_string()),
        };
        Ok(Decided { node, unknown, failed })
    };
    app.engine.run(deadline, work).await
}

/// Of the nodes that are offered, those with the most free GPUs on which the pod could run if others went.
fn worth_evicting(cluster: &Cluster, gpus: u8, offer: &Offer) -> Vec<String> {
    let able = cluster.node_ids().filter(|&id| offer.has(id) && cluster.node(id).capacity() >= gpus);
    let mut nodes: Vec<(u8, NodeId)> = able.map(|id| (u8::MAX - cluster.node(id).free_gpus(), id)).collect();
    nodes.sort_unstable();
    nodes.truncate(MOST_FAILED);
    nodes.into_iter().map(|(_, node)| cluster.node_name(node).to_owned()).collect()
}

/// `filter`: the node that is chosen, and those that are not known here.
async fn filter(Shared(app): Shared<Arc<App>>, body: Bytes) -> Response {
    let started = Instant::now();
    let refuse = |error: &str| {
        app.count_extender("filter", "refused", started);
        json(&FilterResult { error, ..FilterResult::default() })
    };
    let mut args: Args<'_> = match wire::read(&body) {
        Ok(args) => args,
        Err(error) => return refuse(&error),
    };
    let (ask, names) = match question(&mut args) {
        Ok(question) => question,
        Err(error) => return refuse(&error),
    };
    if args.nodes.is_some() {
        tracing::warn!(
            "filter was sent whole nodes: set nodeCacheCapable to true, or the scheduler's own scores are wrong"
        );
    }
    let names = Arc::new(names);
    let pass_on = |outcome| {
        app.count_extender("filter", outcome, started);
        json(&answer(&args, &names, 0..names.len()))
    };
    let Ask::Pod(pod) = ask else { return pass_on("not-ours") };
    let (name, gpus) = (Arc::clone(&pod.name), pod.asks.gpus);
    let decided = match decide(&app, started, pod, Arc::clone(&names)).await {
        Ok(decided) => decided,
        Err(error) => {
            tracing::warn!(pod = &*name, "filter passes all nodes on: {error}");
            return pass_on(error.word());
        }
    };
    let (chosen, reason) = match &decided.node {
        Ok(at) => (Some(names.get(*at as usize)), ""),
        Err(reason) => (None, reason.as_str()),
    };
    app.count_extender("filter", if chosen.is_some() { "placed" } else { "blocked" }, started);
    app.decided_on_pod("filter", &name, gpus, chosen.ok_or(reason));
    tracing::debug!(pod = &*name, node = chosen, reason, "filter");
    let mut kept = decided.unknown;
    kept.extend(decided.node.as_ref().ok());
    kept.sort_unstable();
    let kept = kept.into_iter().map(|at| at as usize);
    let failed_nodes: BTreeMap<&str, &str> = decided.failed.iter().map(|node| (node.as_str(), reason)).collect();
    json(&FilterResult { failed_nodes, ..answer(&args, &names, kept) })
}

/// The nodes at these places, in the form that they came in.
fn answer<'a>(args: &Args<'a>, names: &'a NameList, kept: impl Iterator<Item = usize>) -> FilterResult<'a> {
    match &args.nodes {
        Some(nodes) => {
            let items = kept.map(|at| nodes.items[at].0).collect();
            FilterResult { nodes: Some(NodesOut { items, ..NodesOut::default() }), ..FilterResult::default() }
        }
        None => {
            let node_names = Some(kept.map(|at| names.get(at)).collect());
            FilterResult { node_names, ..FilterResult::default() }
        }
    }
}

/// The score of each name that is a node here, and of all others 0.
async fn scores(app: &App, started: Instant, pod: PodAsk, names: Arc<NameList>) -> Result<Vec<i64>, ServeError> {
    let Extender { options, kept } = &app.extender;
    let (policy, kept) = (options.policy, Arc::clone(kept));
    let deadline = started.checked_add(options.deadline);
    let work = move |live: &mut Live| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { memo, finder } = &mut *kept;
        let offer = Offer::new(live.state()?.cluster(), finder, &names, &mut Vec::new());
        let seat = seat(live, memo, policy, &pod, &offer, deadline)?;
        let cluster = live.state()?.cluster();
        let mut scores = vec![0; names.len()];
        for (node, at) in offer.nodes() {
            let left = cluster.node(node).free_gpus().checked_sub(pod.asks.gpus);
            scores[at] = match (&seat, left) {
                (Seat::Node(chosen), _) if *chosen == node => MAX_PRIORITY,
                // The tighter the better, as best-fit has it.
                (_, Some(left)) => (MAX_PRIORITY - 1 - i64::from(left)).max(1),
                (_, None) => 0,
            };
        }
        Ok(scores)
    };
    app.engine.run(deadline, work).await
}

/// `prioritize`: the chosen node first, then what fits best.
async fn prioritize(Shared(app): Shared<Arc<App>>, body: Bytes) -> Response {
    let started = Instant::now();
    let none = |outcome| {
        app.count_extender("prioritize", outcome, started);
        json_bytes(wire::host_priorities(&NameList::default(), &[]))
    };
    let Ok(mut args) = wire::read::<Args<'_>>(&body) else { return none("refused") };
    let Ok((ask, names)) = question(&mut args) else { return none("refused") };
    let names = Arc::new(names);
    let Ask::Pod(pod) = ask else { return none("not-ours") };
    match scores(&app, started, pod, Arc::clone(&names)).await {
        Err(error) => none(error.word()),
        Ok(scores) => {
            app.count_extender("prioritize", "scored", started);
            json_bytes(wire::host_priorities(&names, &scores))
        }
    }
}

/// `bind`: what `spec.nodeName` says is what counts here, so binding is left to who watches the API server.
async fn bind(Shared(app): Shared<Arc<App>>, body: Bytes) -> Response {
    let started = Instant::now();
    let error = match (wire::read::<BindingArgs<'_>>(&body), &app.binder) {
        (Err(error), _) => error,
        (Ok(_), None) => "bind is offered with --watch kubernetes alone: leave bindVerb empty".to_owned(),
        (Ok(args), Some(binder)) => {
            let deadline = tokio::time::Instant::now() + app.limits.call;
            let bound = binder.bind(&args.namespace, &args.pod, &args.uid, &args.node);
            match tokio::time::timeout_at(deadline, bound).await {
                Ok(Ok(())) => String::new(),
                Ok(Err(error)) => error,
                Err(_) => "the API server does not answer in time".to_owned(),
            }
        }
    };
    app.count_extender("bind", if error.is_empty() { "bound" } else { "failed" }, started);
    json(&BindingResult { error: &error })
}
