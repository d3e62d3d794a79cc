//! Binds pods for the scheduler, by the API server.

use std::fmt;

use kube::Client;
use serde::Serialize;

/// Who can bind pods.
#[derive(Clone)]
pub struct Binder {
    client: Client,
}

impl fmt::Debug for Binder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Binder")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    target: Target<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
    uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target<'a> {
    api_version: &'static str,
    kind: &'static str,
    name: &'a str,
}

impl Binder {
    /// By this client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Makes the `Binding` of a pod. The uid makes sure that it is the pod that the scheduler means.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn bind(&self, namespace: &str, pod: &str, uid: &str, node: &str) -> Result<(), String> {
        // Names of objects are letters, digits, hyphens and dots; anything else would be another path.
        let is_name = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
        };
        if !is_name(namespace) || !is_name(pod) {
            return Err(format!("found the pod {namespace:?}/{pod:?}, expected names of objects"));
        }
        let binding = Binding {
            api_version: "v1",
            kind: "Binding",
            metadata: Metadata { name: pod, namespace, uid },
            target: Target { api_version: "v1", kind: "Node", name: node },
        };
        let body = serde_json::to_vec(&binding).map_err(|error| error.to_string())?;
        let request = axum::http::Request::post(format!("/api/v1/namespaces/{namespace}/pods/{pod}/binding"))
            .header(axum::http::header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| error.to_string())?;
        self.client.request_text(request).await.map(|_| ()).map_err(|error| error.to_string())
    }
}
