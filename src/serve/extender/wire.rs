//! What kube-scheduler sends and expects: `k8s.io/kube-scheduler/extender/v1`, whose Go structs have no JSON tags.
//!
//! Names come as Go writes them or in lower case, and are matched whatever their case. Unknown fields, what follows the
//! first value, and null in place of anything are no faults.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::names::NameList;

/// The highest priority; the scheduler does not clamp what is higher.
pub(super) const MAX_PRIORITY: i64 = 10;

/// Reads an object whose fields are known in lower case.
macro_rules! go_struct {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $key:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $name<'a> {
            $($(#[$field_doc])* pub(super) $field: $type,)*
            marker: std::marker::PhantomData<&'a ()>,
        }

        impl<'de: 'a, 'a> Deserialize<'de> for $name<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields<'a>(std::marker::PhantomData<&'a ()>);
                impl<'de: 'a, 'a> Visitor<'de> for Fields<'a> {
                    type Value = $name<'a>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("an object that is ", stringify!($name)))
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        let mut read = $name::default();
                        while let Some(Name(key)) = map.next_key::<Name<'de>>()? {
                            match key.to_ascii_lowercase().as_str() {
                                $($key => read.$field = map.next_value::<Option<_>>()?.unwrap_or_default(),)*
                                _ => _ = map.next_value::<IgnoredAny>()?,
                            }
                        }
                        Ok(read)
                    }
                }
                deserializer.deserialize_map(Fields(std::marker::PhantomData))
            }
        }
    };
}

go_struct! {
    /// `ExtenderArgs`: what `filter` and `prioritize` are asked.
    Args {
        /// The pod, as `v1.Pod`.
        pod: Option<Raw<'a>> = "pod",
        /// The nodes, where the scheduler sends them whole.
        nodes: Option<NodeList<'a>> = "nodes",
        /// Their names, where it sends those.
        names: Option<NameList> = "nodenames",
    }
}

go_struct! {
    /// `v1.NodeList`.
    NodeList {
        /// The nodes.
        items: Vec<Raw<'a>> = "items",
    }
}

go_struct! {
    /// `ExtenderPreemptionArgs`.
    PreemptionArgs {
        /// The pod that is to get room.
        pod: Option<Raw<'a>> = "pod",
        /// The victims on each node, whole.
        victims: Option<BTreeMap<Cow<'a, str>, Victims<'a>>> = "nodenametovictims",
        /// The victims on each node, by uid.
        meta_victims: Option<BTreeMap<Cow<'a, str>, Victims<'a>>> = "nodenametometavictims",
    }
}

go_struct! {
    /// `Victims` and `MetaVictims`.
    Victims {
        /// Who would go.
        pods: Vec<Victim<'a>> = "pods",
        /// How many disruption budgets that breaks.
        violations: i64 = "numpdbviolations",
    }
}

go_struct! {
    /// A pod that would go: whole, or its uid.
    Victim {
        /// The uid where it stands alone.
        uid: Cow<'a, str> = "uid",
        /// Where it does not.
        metadata: VictimMeta<'a> = "metadata",
    }
}

go_struct! {
    /// What is told of a pod.
    VictimMeta {
        /// Its uid.
        uid: Cow<'a, str> = "uid",
    }
}

go_struct! {
    /// `ExtenderBindingArgs`.
    BindingArgs {
        /// The pod's name.
        pod: String = "podname",
        /// Its namespace.
        namespace: String = "podnamespace",
        /// Its uid.
        uid: String = "poduid",
        /// Where it goes.
        node: String = "node",
    }
}

go_struct! {
    /// Volcano's `PrioritizeRequest`.
    Prioritize {
        /// The task that is to be placed.
        task: Task<'a> = "task",
        /// The nodes that it may go to.
        nodes: Vec<TaskNode<'a>> = "nodes",
    }
}

go_struct! {
    /// Volcano's `TaskInfo`.
    Task {
        /// Its pod, as `v1.Pod`.
        pod: Option<Raw<'a>> = "pod",
    }
}

go_struct! {
    /// Volcano's `NodeInfo`.
    TaskNode {
        /// Its name.
        name: Cow<'a, str> = "name",
    }
}

/// A text that is borrowed where it can be.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// A value that is not looked into.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Raw<'a>(#[serde(borrow)] pub(super) &'a RawValue);

/// Reads the first value of a body; what follows is ignored, as Go does.
pub(super) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    let mut json = serde_json::Deserializer::from_slice(body);
    T::deserialize(&mut json).map_err(|error| error.to_string())
}

/// The name of a node that is sent whole; empty if it has none.
pub(super) fn name_of_node<'a>(node: Raw<'a>) -> Cow<'a, str> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Node<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    serde_json::from_str::<Node<'_>>(node.0.get()).map(|node| node.metadata.name).unwrap_or_default()
}

/// `ExtenderFilterResult`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct FilterResult<'a> {
    pub(super) nodes: Option<NodesOut<'a>>,
    pub(super) node_names: Option<Vec<&'a str>>,
    pub(super) failed_nodes: BTreeMap<&'a str, &'a str>,
    pub(super) failed_and_unresolvable_nodes: BTreeMap<&'a str, &'a str>,
    pub(super) error: &'a str,
}

/// `v1.NodeList`.
#[derive(Debug, Default, Serialize)]
pub(super) struct NodesOut<'a> {
    pub(super) metadata: Empty,
    pub(super) items: Vec<&'a RawValue>,
}

/// An object without fields.
#[derive(Debug, Default, Serialize)]
pub(super) struct Empty {}

/// `HostPriorityList`: a score for each name. Written by hand, because it is by far the longest answer of all.
pub(super) fn host_priorities(names: &NameList, scores: &[i64]) -> Vec<u8> {
    const AROUND: usize = r#"{"Host":"","Score":10},"#.len();
    let mut json = Vec::with_capacity(2 + names.bytes() + AROUND * names.len());
    json.push(b'[');
    for (at, (host, score)) in names.iter().zip(scores).enumerate() {
        if at > 0 {
            json.push(b',');
        }
        json.extend_from_slice(br#"{"Host":"#);
        // Names of nodes are of this kind; anything else may have to be escaped.
        if host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')) {
            json.push(b'"');
            json.extend_from_slice(host.as_bytes());
            json.push(b'"');
        } else {
            // A text can always be written to memory.
            let _ = serde_json::to_writer(&mut json, host);
        }
        json.extend_from_slice(br#","Score":"#);
        match u8::try_from(*score) {
            Ok(digit @ 0..=9) => json.push(b'0' + digit),
            _ => json.extend_from_slice(score.to_string().as_bytes()),
        }
        json.push(b'}');
    }
    json.push(b']');
    json
}

/// `ExtenderPreemptionResult`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct PreemptionResult<'a> {
    pub(super) node_name_to_meta_victims: BTreeMap<&'a str, MetaVictims<'a>>,
}

/// `MetaVictims`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct MetaVictims<'a> {
    pub(super) pods: Vec<MetaPod<'a>>,
    #[serde(rename = "NumPDBViolations")]
    pub(super) violations: i64,
}

/// `MetaPod`.
#[derive(Debug, Serialize)]
pub(super) struct MetaPod<'a> {
    #[serde(rename = "UID")]
    pub(super) uid: &'a str,
}

/// `ExtenderBindingResult`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BindingResult<'a> {
    pub(super) error: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case_and_null_is_nothing() {
        for body in [
            r#"{"Pod":{"a":1},"Nodes":null,"NodeNames":["n1","n\u0032"]} trailing"#,
            r#"{"pod":{"a":1},"nodes":null,"nodenames":["n1","n2"],"more":[1,{"x":null}]}"#,
            r#"{"POD":{"a":1},"NODENAMES":["n1","n2"]}"#,
        ] {
            let args: Args<'_> = read(body.as_bytes()).unwrap();
            assert_eq!(args.pod.unwrap().0.get(), r#"{"a":1}"#);
            let names = args.names.unwrap();
            assert_eq!((names.iter().collect::<Vec<_>>(), args.nodes.is_none()), (vec!["n1", "n2"], true));
        }
        let args: Args<'_> = read(br#"{"Pod":null,"Nodes":{"items":[{"metadata":{"name":"n1"}},{}]}}"#).unwrap();
        assert!(args.pod.is_none() && args.names.is_none());
        let names: Vec<_> = args.nodes.unwrap().items.into_iter().map(name_of_node).collect();
        assert_eq!(names, ["n1", ""]);
        assert!(read::<Args<'_>>(b"").is_err() && read::<Args<'_>>(b"[]").is_err());
    }

    #[test]
    fn answers_are_as_go_reads_them() {
        let filter = FilterResult { node_names: Some(vec!["n1"]), ..FilterResult::default() };
        assert_eq!(
            serde_json::to_string(&filter).unwrap(),
            r#"{"Nodes":null,"NodeNames":["n1"],"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}"#
        );
        let mut names = NameList::default();
        ["n-1.x", "a\"\u{1}é", ""].iter().for_each(|name| names.push(name));
        let list = String::from_utf8(host_priorities(&names, &[7, 10, 0])).unwrap();
        let expected = r#"[{"Host":"n-1.x","Score":7},{"Host":"a\"\u0001é","Score":10},{"Host":"","Score":0}]"#;
        assert_eq!(list, expected);
        assert_eq!(host_priorities(&NameList::default(), &[]), b"[]");
        let mut preemption = PreemptionResult::default();
        preemption
            .node_name_to_meta_victims
            .insert("n", MetaVictims { pods: vec![MetaPod { uid: "u" }], violations: 1 });
        assert_eq!(
            serde_json::to_string(&preemption).unwrap(),
            r#"{"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"u"}],"NumPDBViolations":1}}}"#
        );
    }
}
