//! The kinds of objects that are followed: nodes and pods, and others where the API server serves them.

use kube::api::{ApiResource, DynamicObject};
use kube::{Client, discovery};

use crate::formats::{
    ClaimView, FormatError, NodeView, PodGroupView, PodView, SliceView, read_claim_view, read_node_view,
    read_pod_group_view, read_pod_view, read_slice_view,
};

/// The API groups that have a kind `PodGroup`; the first that knows a gang is believed. Those of Kubernetes itself, of
/// Volcano and of coscheduling.
const POD_GROUPS: [&str; GROUPS] = ["scheduling.k8s.io", "scheduling.volcano.sh", "scheduling.x-k8s.io"];

/// How many they are.
pub(super) const GROUPS: usize = 3;

/// A kind of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Node,
    Pod,
    /// Groups of pods that start together, by the place of their API group.
    Group(usize),
    Claim,
    Slice,
}

/// An object, as far as it matters.
#[derive(Debug)]
pub(super) enum Object {
    Node(NodeView),
    Pod(PodView),
    Group(usize, PodGroupView),
    Claim(ClaimView),
    Slice(SliceView),
}

impl Kind {
    /// Those that every API server serves.
    pub(super) const CORE: [Self; 2] = [Self::Node, Self::Pod];

    /// Those that it may serve.
    pub(super) const OTHERS: [Self; 5] = [Self::Group(0), Self::Group(1), Self::Group(2), Self::Claim, Self::Slice];

    /// The API group and the kind.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Node => ("", "Node"),
            Self::Pod => ("", "Pod"),
            Self::Group(at) => (POD_GROUPS[at], "PodGroup"),
            Self::Claim => ("resource.k8s.io", "ResourceClaim"),
            Self::Slice => ("resource.k8s.io", "ResourceSlice"),
        }
    }

    /// The API group, and what the API server calls the objects of the kind.
    pub(super) fn resource(self) -> (&'static str, String) {
        let (group, kind) = self.names();
        (group, format!("{}s", kind.to_ascii_lowercase()))
    }

    /// How the API server names a core kind.
    pub(super) fn core_resource(self) -> ApiResource {
        let ((group, kind), (_, plural)) = (self.names(), self.resource());
        ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural,
        }
    }

    /// How the API server names a kind, if it serves it: in the most stable version that has it.
    ///
    /// # Errors
    /// If it does not answer.
    pub(super) async fn served(self, client: &Client) -> Result<Option<ApiResource>, kube::Error> {
        let (group, kind) = self.names();
        match discovery::oneshot::group(client, group).await {
            Ok(group) => {
                let mut served = group.resources_by_stability().into_iter().map(|(resource, _)| resource);
                Ok(served.find(|resource| resource.kind == kind))
            }
            Err(kube::Error::Discovery(_)) => Ok(None),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What matters of an object.
    ///
    /// # Errors
    /// If it is malformed.
    pub(super) fn read(self, json: &[u8]) -> Result<Object, FormatError> {
        let (_, name) = self.names();
        Ok(match self {
            Self::Node => Object::Node(read_node_view(name, json)?),
            Self::Pod => Object::Pod(read_pod_view(name, json)?),
            Self::Group(at) => Object::Group(at, read_pod_group_view(name, json)?),
            Self::Claim => Object::Claim(read_claim_view(name, json)?),
            Self::Slice => Object::Slice(read_slice_view(name, json)?),
        })
    }

    /// The name by which an object of this kind is known here.
    pub(super) fn name_of(self, object: &DynamicObject) -> String {
        let name = object.metadata.name.clone().unwrap_or_default();
        match self {
            Self::Node | Self::Slice => name,
            Self::Pod | Self::Group(_) | Self::Claim => {
                format!("{}/{name}", object.metadata.namespace.as_deref().unwrap_or("default"))
            }
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.names() {
            ("", kind) => f.write_str(kind),
            (group, kind) => write!(f, "{kind}.{group}"),
        }
    }
}
