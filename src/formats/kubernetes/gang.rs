//! Which pods are one job.

use super::object::{Metadata, Texts};
use super::pod::namespace;

/// A gang that a pod is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Gang {
    /// Namespace and name.
    pub(super) name: String,
    /// What said so.
    pub(super) by: &'static str,
}

/// Annotations and labels that name the gang of a pod, the most telling first.
const NAMES: [(&str, Where); 12] = [
    ("scheduling.k8s.io/group-name", Where::Annotation),
    ("scheduling.volcano.sh/group-name", Where::Annotation),
    ("pod-group-name", Where::Annotation),
    ("scheduling.x-k8s.io/pod-group", Where::Label),
    ("kueue.x-k8s.io/pod-group-name", Where::Label),
    ("kueue.x-k8s.io/pod-group-name", Where::Annotation),
    ("jobset.sigs.k8s.io/jobset-name", Where::Label),
    ("leaderworkerset.sigs.k8s.io/name", Where::Label),
    ("training.kubeflow.org/job-name", Where::Label),
    ("ray.io/cluster", Where::Label),
    ("batch.kubernetes.io/job-name", Where::Label),
    ("job-name", Where::Label),
];

/// Each group of a leader and its workers is a gang of its own.
const LEADER_GROUP: &str = "leaderworkerset.sigs.k8s.io/group-index";

/// Annotations and labels that say how many pods a gang needs to start.
const SIZES: [(&str, Where); 5] = [
    ("scheduling.volcano.sh/group-min-member", Where::Annotation),
    ("pod-group.scheduling.sigs.k8s.io/min-available", Where::Label),
    ("kueue.x-k8s.io/pod-group-total-count", Where::Annotation),
    ("leaderworkerset.sigs.k8s.io/size", Where::Annotation),
    ("pod-group-size", Where::Annotation),
];

/// Makers whose pods start and stop one by one.
const ONE_BY_ONE: [&str; 7] =
    ["ReplicaSet", "ReplicationController", "StatefulSet", "Deployment", "DaemonSet", "Node", "CronJob"];

#[derive(Clone, Copy)]
enum Where {
    Annotation,
    Label,
}

impl Where {
    fn texts(self, metadata: &Metadata) -> &Texts {
        match self {
            Where::Annotation => &metadata.annotations,
            Where::Label => &metadata.labels,
        }
    }
}

/// How many pods must be there for the gang of a pod to start, if the pod says so.
pub(super) fn gang_size(metadata: &Metadata) -> Option<u32> {
    SIZES.iter().find_map(|&(key, place)| place.texts(metadata).get(key)?.0.parse().ok())
}

impl Gang {
    /// The gang of a pod: the group of its own field, else the first name that is known, else its maker, unless that
    /// makes pods that stand alone.
    pub(super) fn of(metadata: &Metadata, group: &str) -> Option<Self> {
        let space = namespace(metadata);
        let named = |name: &str, by| Some(Self { name: format!("{space}/{name}"), by });
        if !group.is_empty() {
            return named(group, "spec.schedulingGroup");
        }
        for (key, place) in NAMES {
            let Some(name) = place.texts(metadata).get(key).filter(|name| !name.0.is_empty()) else { continue };
            return match metadata.labels.get(LEADER_GROUP).filter(|_| key.starts_with("leaderworkerset")) {
                Some(index) => named(&format!("{}-{}", name.0, index.0), key),
                None => named(&name.0, key),
            };
        }
        let makers = &metadata.owner_references;
        let maker = makers.iter().find(|maker| !ONE_BY_ONE.contains(&maker.kind.as_str()) && !maker.name.is_empty())?;
        named(&maker.name, "its owner")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_telling_name_counts() {
        let of = |text: &str, group: &str| {
            let metadata: Metadata = serde_json::from_str(text).unwrap();
            Gang::of(&metadata, group).map(|gang| (gang.name, gang.by))
        };
        let gang = |name: &str, by| Some((name.to_owned(), by));
        let all = r#"{"name":"p","namespace":"a","labels":{"job-name":"j","scheduling.x-k8s.io/pod-group":"c"},
            "annotations":{"scheduling.volcano.sh/group-name":"v"},"ownerReferences":[{"kind":"Job","name":"o"}]}"#;
        assert_eq!(of(all, "g"), gang("a/g", "spec.schedulingGroup"));
        assert_eq!(of(all, ""), gang("a/v", "scheduling.volcano.sh/group-name"));
        let label = r#"{"labels":{"job-name":"j","scheduling.x-k8s.io/pod-group":"c"}}"#;
        assert_eq!(of(label, ""), gang("default/c", "scheduling.x-k8s.io/pod-group"));
        let leader =
            r#"{"labels":{"leaderworkerset.sigs.k8s.io/name":"l","leaderworkerset.sigs.k8s.io/group-index":"2"}}"#;
        assert_eq!(of(leader, ""), gang("default/l-2", "leaderworkerset.sigs.k8s.io/name"));
        assert_eq!(of(r#"{"ownerReferences":[{"kind":"PyTorchJob","name":"t"}]}"#, ""), gang("default/t", "its owner"));
        for alone in
            [r#"{"ownerReferences":[{"kind":"ReplicaSet","name":"r"}]}"#, "{}", r#"{"labels":{"job-name":""}}"#]
        {
            assert_eq!(of(alone, ""), None, "{alone}");
        }
    }
}
