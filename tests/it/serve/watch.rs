//! `--watch kubernetes` against an API server that is played: what it serves, what it does not, and what follows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Service;

/// What it has: lists by path, null where it cannot answer now, and events that are told once a watch asks for them. What
/// is not here is not served.
#[derive(Default)]
struct Api {
    lists: BTreeMap<String, Value>,
    events: BTreeMap<String, Vec<Value>>,
    /// What was asked for, in that order.
    asked: Vec<String>,
}

type Shared = Arc<Mutex<Api>>;

async fn answer(
    State(api): State<Shared>,
    uri: axum::http::Uri,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let path = uri.path().to_owned();
    let watches = query.get("watch").is_some_and(|flag| flag == "true" || flag == "1");
    if !watches {
        let mut api = api.lock().unwrap();
        api.asked.push(path.clone());
        return match api.lists.get(&path) {
            Some(Value::Null) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            Some(list) => axum::Json(list.clone()).into_response(),
            None => {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
                                    "message": "the server could not find the requested resource", "code": 404});
                (StatusCode::NOT_FOUND, axum::Json(status)).into_response()
            }
        };
    }
    // Told as they come, for as long as somebody listens.
    let events = futures_util::stream::unfold((api, path), |(api, path)| async move {
        loop {
            let event = api.lock().unwrap().events.get_mut(&path).and_then(|events| {
                let is_there = !events.is_empty();
                is_there.then(|| events.remove(0))
            });
            if let Some(event) = event {
                return Some((Ok::<_, std::io::Error>(format!("{event}\n")), (api, path)));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    axum::body::Body::from_stream(events).into_response()
}

/// An API server, for as long as the runtime lives, and the file that says where it is.
fn start(lists: &[(&str, Value)]) -> (tokio::runtime::Runtime, Shared, tempfile::NamedTempFile) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let lists = lists.iter().map(|(path, list)| ((*path).to_owned(), list.clone())).collect();
    let api = Arc::new(Mutex::new(Api { lists, ..Api::default() }));
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback(answer).with_state(Arc::clone(&api));
    runtime.spawn(async move { axum::serve(listener, app).await });
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]});
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), config.to_string()).unwrap();
    (runtime, api, file)
}

fn list(kind: &str, items: &[Value]) -> Value {
    json!({"kind": format!("{kind}List"), "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

fn node(name: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": "1"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}})
}

fn pod(name: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "s", "resourceVersion": "2",
           "labels": {"scheduling.x-k8s.io/pod-group": "g"}}, "spec": {"nodeName": node, "containers":
           [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "8"}}}]}})
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn filter(service: &Service, pod: &Value) -> usize {
    let body = json!({"Pod": pod, "NodeNames": ["n0", "n1"]}).to_string();
    let result = service.post("/v1/extender/filter", body).json();
    result["NodeNames"].as_array().unwrap().len()
}

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/pods";

#[test]
fn kinds_that_are_not_served_are_done_without() {
    let (_runtime, api, config) = start(&[
        (NODES, list("Node", &[node("n0"), node("n1")])),
        (PODS, list("Pod", &[pod("a", "")])),
        ("/apis", json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})),
    ]);
    let service = Service::start(&["--watch", "kubernetes", "--kubeconfig", config.path().to_str().unwrap()]);
    until("it is ready", || service.get("/readyz").status == 200);
    assert_eq!(filter(&service, &pod("a", "")), 1, "nobody says how large its gang is");
    let told = json!({"type": "ADDED", "object": pod("b", "n0")});
    api.lock().unwrap().events.entry(PODS.to_owned()).or_default().push(told);
    until("the pod is known", || service.get("/v1/cluster").text().contains("s/b"));
    assert!(api.lock().unwrap().asked.iter().all(|path| !path.contains("podgroups")));
}

const GROUPS: &str = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups";

fn group(size: u32) -> Value {
    json!({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {"minMember": size},
           "metadata": {"name": "g", "namespace": "s", "resourceVersion": "1"}})
}

/// An API server with two nodes and no pod that serves groups of pods, with this list of them.
fn start_with_groups(groups: Value) -> (tokio::runtime::Runtime, Shared, tempfile::NamedTempFile) {
    let version = json!({"groupVersion": "scheduling.x-k8s.io/v1alpha1", "version": "v1alpha1"});
    // A kind that is said to be served, and is not (claims), hinders nobody.
    let claims = json!({"groupVersion": "resource.k8s.io/v1", "version": "v1"});
    let served = |version: &Value, name: &str, kind: &str| {
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version["groupVersion"], "resources":
               [{"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list", "watch"]}]})
    };
    let all = json!([{"name": "scheduling.x-k8s.io", "versions": [version], "preferredVersion": version},
                     {"name": "resource.k8s.io", "versions": [claims], "preferredVersion": claims}]);
    start(&[
        (NODES, list("Node", &[node("n0"), node("n1")])),
        (PODS, list("Pod", &[])),
        ("/apis", json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": all})),
        ("/apis/scheduling.x-k8s.io/v1alpha1", served(&version, "podgroups", "PodGroup")),
        ("/apis/resource.k8s.io/v1", served(&claims, "resourceclaims", "ResourceClaim")),
        (GROUPS, groups),
    ])
}

#[test]
fn groups_of_pods_are_followed_where_they_are_served() {
    let (_runtime, api, config) = start_with_groups(list("PodGroup", &[group(2)]));
    let service = Service::start(&["--watch", "kubernetes", "--kubeconfig", config.path().to_str().unwrap()]);
    until("it is ready", || service.get("/readyz").status == 200);
    assert_eq!(filter(&service, &pod("a", "")), 0, "the size is known before any pod");
    let tell = |path: &str, what: &str, object: Value| {
        api.lock().unwrap().events.entry(path.to_owned()).or_default().push(json!({"type": what, "object": object}));
    };
    tell(PODS, "ADDED", pod("b", ""));
    until("two are there", || filter(&service, &pod("a", "")) == 1);
    tell(GROUPS, "MODIFIED", group(3));
    until("it has grown", || filter(&service, &pod("a", "")) == 0);
    tell(GROUPS, "DELETED", group(3));
    until("it is told of no more", || filter(&service, &pod("a", "")) == 1);
}

#[test]
fn the_first_cluster_waits_for_all_kinds_but_not_for_ever() {
    let (_runtime, api, config) = start_with_groups(Value::Null);
    let service = Service::start(&["--watch", "kubernetes", "--kubeconfig", config.path().to_str().unwrap()]);
    until("nodes and pods are listed", || {
        let api = api.lock().unwrap();
        [NODES, PODS, GROUPS].iter().all(|path| api.asked.iter().any(|asked| asked == path))
    });
    let (begun, mut refused) = (Instant::now(), 0);
    until("it is ready", || {
        let is_ready = service.get("/readyz").status == 200;
        refused += u32::from(!is_ready);
        is_ready
    });
    assert!(refused > 2 && begun.elapsed() > Duration::from_secs(3), "{refused} in {:?}", begun.elapsed());
    // What comes later is still learnt.
    assert_eq!(filter(&service, &pod("a", "")), 1);
    api.lock().unwrap().lists.insert(GROUPS.to_owned(), list("PodGroup", &[group(2)]));
    until("the size is known", || filter(&service, &pod("a", "")) == 0);
}

/// An API server that has just started refuses what it will allow.
#[test]
fn what_is_known_of_a_kind_outlives_that_it_is_refused() {
    let (_runtime, api, config) = start_with_groups(list("PodGroup", &[group(2)]));
    let service = Service::start(&["--watch", "kubernetes", "--kubeconfig", config.path().to_str().unwrap()]);
    until("it is ready", || service.get("/readyz").status == 200);
    assert_eq!(filter(&service, &pod("a", "")), 0);
    let times = |api: &Shared| api.lock().unwrap().asked.iter().filter(|path| *path == GROUPS).count();
    let before = times(&api);
    {
        let mut api = api.lock().unwrap();
        api.lists.remove(GROUPS);
        let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "message": "too old", "code": 410});
        api.events.entry(GROUPS.to_owned()).or_default().push(json!({"type": "ERROR", "object": gone}));
    }
    until("it was refused twice", || times(&api) >= before + 2);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(filter(&service, &pod("a", "")), 0, "the size is still known");
    api.lock().unwrap().lists.insert(GROUPS.to_owned(), list("PodGroup", &[group(1)]));
    until("it is followed again", || filter(&service, &pod("a", "")) == 1);
}
