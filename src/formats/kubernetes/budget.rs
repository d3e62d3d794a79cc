//! PodDisruptionBudgets: how many pods of a kind may be away at a time.

use super::object::{Expression, LabelSelector, Metadata, Spec, Status, Texts};
use super::pod::{PodRecord, namespace};

/// A budget, and how many of its pods may be disrupted now.
#[derive(Debug)]
pub(super) struct BudgetRecord {
    namespace: String,
    /// Namespace and name.
    pub(super) name: String,
    /// Which pods are its own; without one none are.
    selector: Option<LabelSelector>,
    /// In the words of the controller that watches it, which has worked it out from `minAvailable` or `maxUnavailable` and the
    /// pods that are healthy. What does not say so allows none.
    pub(super) allowed: u64,
}

impl BudgetRecord {
    /// From the object.
    pub(super) fn new(metadata: &Metadata, spec: Spec, status: &Status) -> Self {
        Self {
            namespace: namespace(metadata).to_owned(),
            name: format!("{}/{}", namespace(metadata), metadata.name),
            selector: spec.selector,
            allowed: u64::try_from(status.disruptions_allowed).unwrap_or(0),
        }
    }

    /// Whether a pod is one of its own.
    pub(super) fn covers(&self, pod: &PodRecord) -> bool {
        let here = pod.name.split_once('/').is_some_and(|(namespace, _)| namespace == self.namespace);
        here && self.selector.as_ref().is_some_and(|selector| selects(selector, &pod.labels))
    }
}

/// Whether labels are as a selector wants them; one without a condition wants none.
fn selects(selector: &LabelSelector, labels: &Texts) -> bool {
    let is = |expression: &Expression| {
        let value = labels.get(&expression.key);
        let listed = || value.is_some_and(|value| expression.values.contains(value));
        match expression.operator.as_str() {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            // A condition that is not understood may be true: better a pod too many is kept where it is.
            _ => true,
        }
    };
    selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
        && selector.match_expressions.iter().all(is)
}
