//! The few fields of nodes and pods that matter here. All others are skipped, whatever they hold.
//!
//! Types of our own rather than generated ones of the whole API: a dump is kept in these while it is read, and a pod of
//! 10 kB takes a few hundred bytes; fields of newer versions, and hand-written files that leave half of an object out,
//! are no errors.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// Texts by name; null stands for none, and numbers in YAML for their text.
pub(super) type Texts = BTreeMap<String, Text>;

/// What a slice offers: a list. A claim has requests under the same name, which say nothing of what it was given.
#[derive(Debug, Default)]
pub(super) struct OfferedDevices(pub(super) Vec<OfferedDevice>);

impl<'de> Deserialize<'de> for OfferedDevices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = OfferedDevices;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of devices, or what a claim asks for")
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<OfferedDevices, A::Error> {
                let mut devices = Vec::new();
                while let Some(device) = list.next_element()? {
                    devices.push(device);
                }
                Ok(OfferedDevices(devices))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<OfferedDevices, A::Error> {
                while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
                Ok(OfferedDevices::default())
            }
            fn visit_unit<E>(self) -> Result<OfferedDevices, E> {
                Ok(OfferedDevices::default())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A text, a number or a flag, as its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Text;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text")
            }
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
            fn visit_bool<E>(self, flag: bool) -> Result<Text, E> {
                Ok(Text(flag.to_string()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_unit<E>(self) -> Result<Text, E> {
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// What a field holds, or its default for null.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

macro_rules! lean {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default, Deserialize)]
        #[serde(default, rename_all = "camelCase", expecting = "an object")]
        pub(super) struct $name {
            $($(#[$attribute])* #[serde(deserialize_with = "or_default")] pub(super) $field: $type,)*
        }
    )*};
}

lean! {
    /// What any object has beside its kind.
    Metadata {
        name: String,
        namespace: String,
        uid: Text,
        labels: Texts,
        annotations: Texts,
        owner_references: Vec<Owner>,
        creation_timestamp: Text,
        deletion_timestamp: Text,
    }

    /// What made an object.
    Owner {
        kind: String,
        name: String,
        uid: Text,
    }

    /// The wishes of a node, a pod, a group of pods, a topology or a budget, or what a slice offers.
    Spec {
        unschedulable: bool,
        taints: Vec<Taint>,
        node_name: String,
        containers: Vec<Container>,
        init_containers: Vec<Container>,
        overhead: Texts,
        node_selector: Texts,
        affinity: Affinity,
        tolerations: Vec<Toleration>,
        priority: i64,
        scheduling_gates: Vec<serde::de::IgnoredAny>,
        scheduling_group: SchedulingGroup,
        resource_claims: Vec<PodClaim>,
        topology_spread_constraints: Vec<serde::de::IgnoredAny>,
        levels: Vec<Level>,
        driver: String,
        pool: Pool,
        devices: OfferedDevices,
        selector: Option<LabelSelector>,
        min_member: i64,
        scheduling_policy: SchedulingPolicy,
        scheduling_constraints: SchedulingConstraints,
    }

    /// How the pods of a group start.
    SchedulingPolicy {
        gang: GangPolicy,
    }

    /// Together.
    GangPolicy {
        min_count: i64,
    }

    /// What binds the pods of a group.
    SchedulingConstraints {
        topology: Vec<TopologyConstraint>,
    }

    /// A label whose value all of them must share.
    TopologyConstraint {
        key: String,
    }

    /// Which pods a budget is for.
    LabelSelector {
        match_labels: Texts,
        match_expressions: Vec<Expression>,
    }

    /// The state of a node, a pod, a claim or a budget.
    Status {
        allocatable: Texts,
        capacity: Texts,
        conditions: Vec<Condition>,
        phase: String,
        container_statuses: Vec<ContainerStatus>,
        init_container_statuses: Vec<ContainerStatus>,
        resource_claim_statuses: Vec<PodClaim>,
        extended_resource_claim_status: PodClaim,
        allocation: Allocation,
        disruptions_allowed: i64,
    }

    /// A claim of a pod.
    PodClaim {
        resource_claim_name: String,
    }

    /// What a claim was given.
    Allocation {
        devices: Allocated,
    }

    /// The devices of it.
    Allocated {
        results: Vec<Allotment>,
    }

    /// A device that a claim was given.
    Allotment {
        driver: String,
        device: String,
        admin_access: bool,
    }

    /// The pool that a slice is of.
    Pool {
        name: String,
        generation: Text,
    }

    /// A device that a slice offers.
    OfferedDevice {
        name: String,
    }

    /// A mark of a node that keeps pods away.
    Taint {
        key: String,
        value: Text,
        effect: String,
    }

    /// A taint that a pod does not mind.
    Toleration {
        key: String,
        operator: String,
        value: Text,
        effect: String,
    }

    /// A part of a pod.
    Container {
        resources: Resources,
        restart_policy: String,
        env: Vec<Variable>,
    }

    /// What a container asks for.
    Resources {
        requests: Texts,
        limits: Texts,
    }

    /// A variable of a container.
    Variable {
        name: String,
        value: Text,
    }

    /// Where a pod wants to be.
    Affinity {
        node_affinity: NodeAffinity,
        pod_affinity: PodAffinity,
        pod_anti_affinity: PodAffinity,
    }

    /// On which nodes.
    NodeAffinity {
        required_during_scheduling_ignored_during_execution: NodeSelector,
    }

    /// Near which pods.
    PodAffinity {
        required_during_scheduling_ignored_during_execution: Vec<serde::de::IgnoredAny>,
    }

    /// Any of its terms.
    NodeSelector {
        node_selector_terms: Vec<Term>,
    }

    /// All of its expressions.
    Term {
        match_expressions: Vec<Expression>,
        match_fields: Vec<Expression>,
    }

    /// A condition on a label.
    Expression {
        key: String,
        operator: String,
        values: Vec<Text>,
    }

    /// The gang of a pod.
    SchedulingGroup {
        pod_group_name: String,
    }

    /// A level of a topology.
    Level {
        node_label: String,
    }

    /// A condition that a node is in.
    Condition {
        r#type: String,
        status: Text,
    }

    /// The state of a container.
    ContainerStatus {
        allocated_resources_status: Vec<AllocatedResource>,
    }

    /// The devices that a container was given.
    AllocatedResource {
        name: String,
        resources: Vec<Device>,
    }

    /// A device.
    Device {
        #[serde(rename = "resourceID")] resource_id: Text,
    }
}
