//! What tells nodes apart for pods, in the one word that a cluster has for it: the model.
//!
//! Nodes of one GPU product are one model unless a pod with GPUs sees a difference: a label that one selects by, or a taint
//! that some tolerate and others do not. A pod may have the models that its selectors, its required affinity and its
//! tolerations leave it, so that no plan takes it where it may not be.

use std::collections::{BTreeMap, BTreeSet};

use super::node::NodeRecord;
use super::object::{Expression, Taint, Term, Text, Toleration};
use super::pod::PodRecord;
use super::resource::{Resource, resource};

/// The label of a node's name; a pod that selects by it names nodes.
const HOST: &str = "kubernetes.io/hostname";

/// The model of GPUs that have no product.
const UNNAMED: &str = "gpu";

/// What tells nodes apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    product: String,
    /// The labels that pods select by; absent ones are missing.
    labels: BTreeMap<String, String>,
    /// The taints that some pods tolerate and others do not.
    taints: BTreeSet<Triple>,
}

/// The key, value and effect of a taint.
type Triple = (String, String, String);

/// All kinds of nodes, and their models.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    selected: BTreeSet<String>,
    /// How many of the pods tolerate each taint, and how many pods there are.
    tolerated: BTreeMap<Triple, usize>,
    pods: usize,
    models: BTreeMap<Kind, String>,
}

/// Where a pod may go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// Nodes of these models; empty for every node.
    These(Vec<String>),
    /// No node is as it asks.
    Nowhere,
    /// It names nodes, or asks in a way that is not understood.
    Certain,
}

impl Kinds {
    /// Of these nodes, as these pods with GPUs see them.
    pub(super) fn new(nodes: &[NodeRecord], pods: &[&PodRecord]) -> Self {
        let mut kinds = Self { pods: pods.len(), ..Self::default() };
        for taint in nodes.iter().flat_map(|node| &node.taints) {
            let tolerated = || pods.iter().filter(|pod| tolerates(pod, taint)).count();
            kinds.tolerated.entry(triple(taint)).or_insert_with(tolerated);
        }
        for pod in pods {
            kinds.selected.extend(pod.selector.keys().cloned());
            let expressions = pod.terms.iter().flat_map(|term| &term.match_expressions);
            kinds.selected.extend(expressions.map(|expression| expression.key.clone()));
        }
        kinds.selected.remove(HOST);
        let seen: BTreeSet<Kind> = nodes.iter().map(|node| kinds.kind(node)).collect();
        for kind in &seen {
            let alike: Vec<&Kind> = seen.iter().filter(|other| other.product == kind.product).collect();
            let mut parts = Vec::new();
            for key in &kinds.selected {
                let value = kind.labels.get(key);
                if alike.iter().any(|other| other.labels.get(key) != value) {
                    parts.extend(value.map(|value| format!("{key}={value}")));
                }
            }
            if alike.iter().any(|other| other.taints != kind.taints) {
                parts.extend(kind.taints.iter().map(|(key, value, _)| format!("{key}={value}")));
            }
            let model =
                if parts.is_empty() { kind.product.clone() } else { format!("{}/{}", kind.product, parts.join(",")) };
            kinds.models.insert(kind.clone(), model);
        }
        kinds
    }

    fn kind(&self, node: &NodeRecord) -> Kind {
        let product = ["nvidia.com/gpu.product", "amd.com/gpu.product-name", "node.kubernetes.io/instance-type"];
        let product = product.iter().map(|key| node.label(key)).find(|value| !value.is_empty()).unwrap_or(UNNAMED);
        let labels = self.selected.iter().filter_map(|key| Some((key.clone(), node.labels.get(key)?.0.clone())));
        let tells = |taint: &&Taint| {
            let tolerated = self.tolerated(taint);
            is_hard(taint) && !is_passing(taint) && 0 < tolerated && tolerated < self.pods
        };
        Kind {
            product: product.to_owned(),
            labels: labels.collect(),
            taints: node.taints.iter().filter(tells).map(triple).collect(),
        }
    }

    /// The model of a node.
    pub(super) fn model(&self, node: &NodeRecord) -> Option<String> {
        self.models.get(&self.kind(node)).cloned()
    }

    fn tolerated(&self, taint: &Taint) -> usize {
        self.tolerated.get(&triple(taint)).copied().unwrap_or(0)
    }

    /// Why a node takes no new pods, if it takes none.
    pub(super) fn closed(&self, node: &NodeRecord) -> Option<&'static str> {
        let no_entry = |taint: &Taint| {
            let nobody = self.tolerated(taint) == 0 && resource(&taint.key) != Resource::Gpu;
            is_hard(taint) && (is_passing(taint) || nobody)
        };
        if node.cordoned {
            Some("nodes that are cordoned: they take no new pods")
        } else if !node.ready {
            Some("nodes that are not ready: they take no new pods")
        } else if node.taints.iter().any(no_entry) {
            Some("nodes with a taint that no listed pod with GPUs tolerates: they take no new pods")
        } else {
            None
        }
    }

    /// The models that a pod may have.
    pub(super) fn allowed(&self, pod: &PodRecord) -> Allowed {
        let named = |expression: &Expression| expression.key == HOST;
        let certain = |term: &Term| !term.match_fields.is_empty() || term.match_expressions.iter().any(named);
        if pod.selector.contains_key(HOST) || pod.terms.iter().any(certain) {
            return Allowed::Certain;
        }
        let mut models = Vec::new();
        for (kind, model) in &self.models {
            let taint = |(key, value, effect): &Triple| Taint {
                key: key.clone(),
                value: Text(value.clone()),
                effect: effect.clone(),
            };
            let selected = pod.selector.iter().all(|(key, value)| kind.labels.get(key) == Some(&value.0));
            let wanted = pod.terms.is_empty() || pod.terms.iter().any(|term| holds(term, &kind.labels));
            if selected && wanted && kind.taints.iter().map(taint).all(|taint| tolerates(pod, &taint)) {
                models.push(model.clone());
            }
        }
        match models.len() {
            0 => Allowed::Nowhere,
            all if all == self.models.len() => Allowed::These(Vec::new()),
            _ => Allowed::These(models),
        }
    }
}

fn triple(taint: &Taint) -> Triple {
    (taint.key.clone(), taint.value.0.clone(), taint.effect.clone())
}

/// A taint that keeps pods from being placed.
fn is_hard(taint: &Taint) -> bool {
    matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
}

/// A taint that says how the node is at the moment; that a pod tolerates it does not mean that it may be placed there.
fn is_passing(taint: &Taint) -> bool {
    let key = taint.key.as_str();
    key.starts_with("node.kubernetes.io/")
        || key.starts_with("node.cloudprovider.kubernetes.io/")
        || key == "ToBeDeletedByClusterAutoscaler"
}

/// Whether a pod does not mind a taint. Who asks for a resource may go to nodes that are kept for it: the API server adds
/// that toleration, which a dump made by hand may lack.
fn tolerates(pod: &PodRecord, taint: &Taint) -> bool {
    let minds_not = |toleration: &Toleration| {
        let effect = toleration.effect.is_empty() || toleration.effect == taint.effect;
        let key = match toleration.operator.as_str() {
            "Exists" => toleration.key.is_empty() || toleration.key == taint.key,
            _ => toleration.key == taint.key && toleration.value == taint.value,
        };
        effect && key
    };
    resource(&taint.key) == Resource::Gpu || pod.tolerations.iter().any(minds_not)
}

/// Whether labels are as a term wants them.
fn holds(term: &Term, labels: &BTreeMap<String, String>) -> bool {
    // A term without a condition matches nothing.
    !term.match_expressions.is_empty()
        && term.match_expressions.iter().all(|expression| {
            let value = labels.get(&expression.key);
            let listed = |value: &String| expression.values.iter().any(|listed| listed.0 == *value);
            let number = |text: &str| text.parse::<i64>().ok();
            let bound = expression.values.first().and_then(|bound| number(&bound.0));
            match expression.operator.as_str() {
                "In" => value.is_some_and(listed),
                "NotIn" => !value.is_some_and(listed),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                "Gt" => value.and_then(|value| number(value)).zip(bound).is_some_and(|(value, bound)| value > bound),
                "Lt" => value.and_then(|value| number(value)).zip(bound).is_some_and(|(value, bound)| value < bound),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::super::object::{Metadata, Spec, Status};
    use super::*;

    fn node(labels: &str, taints: &str) -> NodeRecord {
        let metadata: Metadata = serde_json::from_str(&format!(r#"{{"name":"n","labels":{labels}}}"#)).unwrap();
        let spec: Spec = serde_json::from_str(&format!(r#"{{"taints":{taints}}}"#)).unwrap();
        NodeRecord::new(metadata, spec, &Status::default()).unwrap()
    }

    fn pod(spec: &str) -> PodRecord {
        let spec: Spec = serde_json::from_str(spec).unwrap();
        PodRecord {
            selector: spec.node_selector,
            tolerations: spec.tolerations,
            terms: spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms,
            ..PodRecord::default()
        }
    }

    #[test]
    fn selectors_and_taints_split_models_only_where_pods_see_a_difference() {
        let team =
            r#"[{"key":"team","value":"a","effect":"NoSchedule"},{"key":"nvidia.com/gpu","effect":"NoSchedule"}]"#;
        let soft = r#"[{"key":"x","effect":"PreferNoSchedule"}]"#;
        let h100 = r#"{"nvidia.com/gpu.product":"H100","disk":"ssd","rank":"7"}"#;
        let nodes = [node(h100, "[]"), node(h100, team), node(r#"{"nvidia.com/gpu.product":"A100"}"#, soft)];
        let plain = pod("{}");
        let tolerant = pod(r#"{"tolerations":[{"key":"team","operator":"Exists"}]}"#);
        let ssd = pod(r#"{"nodeSelector":{"disk":"ssd"}}"#);
        let term = |expression: &str| {
            pod(&format!(
                r#"{{"affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":
                {{"nodeSelectorTerms":[{{"matchExpressions":[{expression}]}}]}}}}}}}}"#
            ))
        };
        let (gt, not) = (
            term(r#"{"key":"rank","operator":"Gt","values":["6"]}"#),
            term(r#"{"key":"disk","operator":"NotIn","values":["ssd"]}"#),
        );
        let host = term(r#"{"key":"kubernetes.io/hostname","operator":"In","values":["n"]}"#);
        let pods = [&plain, &tolerant, &ssd, &gt, &not, &host];
        let kinds = Kinds::new(&nodes, &pods);
        let models: Vec<String> = nodes.iter().map(|node| kinds.model(node).unwrap()).collect();
        assert_eq!(models, ["H100", "H100/team=a", "A100"]);
        let these = |models: &[&str]| Allowed::These(models.iter().map(|&model| model.to_owned()).collect());
        assert_eq!(kinds.allowed(&plain), these(&["A100", "H100"]));
        assert_eq!(kinds.allowed(&tolerant), these(&[]));
        assert_eq!(kinds.allowed(&ssd), these(&["H100"]));
        assert_eq!(kinds.allowed(&gt), these(&["H100"]));
        assert_eq!(kinds.allowed(&not), these(&["A100"]));
        assert_eq!(kinds.allowed(&host), Allowed::Certain);
        assert_eq!(kinds.allowed(&pod(r#"{"nodeSelector":{"disk":"none"}}"#)), Allowed::Nowhere);
        assert_eq!(nodes.each_ref().map(|node| kinds.closed(node).is_some()), [false; 3]);
        // Nobody tolerates it: the node is closed, and no model of its own.
        let alone = Kinds::new(&nodes, &[&plain]);
        assert_eq!(nodes.each_ref().map(|node| alone.closed(node).is_some()), [false, true, false]);
        assert_eq!(alone.model(&nodes[1]).as_deref(), Some("H100"));
        let passing = node("{}", r#"[{"key":"node.kubernetes.io/not-ready","effect":"NoExecute"}]"#);
        let daemon = pod(r#"{"tolerations":[{"operator":"Exists"}]}"#);
        assert!(Kinds::new(std::slice::from_ref(&passing), &[&daemon]).closed(&passing).is_some());
    }
}
