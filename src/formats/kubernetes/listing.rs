//! The documents that hold nodes and pods: lists of `kubectl`, of the API server and of other tools, single objects, and
//! what a snapshot of KAI wraps them in.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::budget::BudgetRecord;
use super::claim::{ClaimRecord, SliceRecord};
use super::node::NodeRecord;
use super::object::{Metadata, Spec, Status};
use super::pod::PodRecord;

/// Everything that a document holds.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) nodes: Vec<NodeRecord>,
    pub(super) pods: Vec<PodRecord>,
    pub(super) claims: Vec<ClaimRecord>,
    pub(super) slices: Vec<SliceRecord>,
    pub(super) budgets: Vec<BudgetRecord>,
    /// The labels of the levels of a topology, outermost first.
    pub(super) topology_keys: Vec<String>,
    /// Objects of other kinds.
    pub(super) others: u64,
    /// It is a list that does not say so, which in YAML of `kubectl` stands after the last element.
    pub(super) is_unnamed_list: bool,
    /// The files of such lists in YAML.
    pub(super) unnamed_lists: Vec<String>,
}

impl Listing {
    /// Adds another document.
    pub(super) fn append(&mut self, mut other: Self) {
        self.nodes.append(&mut other.nodes);
        self.pods.append(&mut other.pods);
        self.claims.append(&mut other.claims);
        self.slices.append(&mut other.slices);
        self.budgets.append(&mut other.budgets);
        if self.topology_keys.is_empty() {
            self.topology_keys = other.topology_keys;
        }
        self.others += other.others;
    }

    fn add(&mut self, object: Object, hint: Hint) -> Result<(), String> {
        let Object { kind, metadata, spec, status } = object;
        let kind = match kind.as_deref() {
            Some("Node") => Hint::Nodes,
            Some("Pod") => Hint::Pods,
            Some("ResourceClaim") => Hint::Claims,
            Some("ResourceSlice") => Hint::Slices,
            Some("PodDisruptionBudget") => Hint::Budgets,
            Some("Topology") => Hint::Topologies,
            Some(_) => Hint::Others,
            // The elements of a list of one kind do not repeat it.
            None if hint != Hint::Any => hint,
            None if !spec.containers.is_empty() => Hint::Pods,
            None if !status.allocatable.is_empty() || !status.capacity.is_empty() => Hint::Nodes,
            None => Hint::Others,
        };
        match kind {
            Hint::Nodes => self.nodes.push(NodeRecord::new(metadata, spec, &status)?),
            Hint::Pods => self.pods.push(PodRecord::new(metadata, spec, &status)?),
            Hint::Claims => self.claims.push(ClaimRecord::new(&metadata, status)),
            Hint::Slices => self.slices.push(SliceRecord::new(spec)),
            Hint::Budgets => self.budgets.push(BudgetRecord::new(&metadata, spec, &status)),
            Hint::Topologies if self.topology_keys.is_empty() => {
                self.topology_keys = spec.levels.into_iter().map(|level| level.node_label).collect();
            }
            _ => self.others += 1,
        }
        Ok(())
    }
}

/// What the elements of a list are, if they do not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    Any,
    Nodes,
    Pods,
    Claims,
    Slices,
    Budgets,
    Topologies,
    Others,
}

impl<'de> Deserialize<'de> for Listing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut listing = Self::default();
        Document(&mut listing, Hint::Any).deserialize(deserializer)?;
        Ok(listing)
    }
}

/// A list of objects, an object that holds lists, or a single object.
struct Document<'a>(&'a mut Listing, Hint);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of nodes and pods, or one of them")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(object) = list.next_element::<Object>()? {
            self.0.add(object, self.1).map_err(A::Error::custom)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(listing, hint) = self;
        let mut single = Object::default();
        let (mut is_single, mut is_list) = (false, false);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "kind" => single.kind = map.next_value()?,
                "metadata" => single.metadata = map.next_value::<Option<_>>()?.unwrap_or_default(),
                "spec" => {
                    single.spec = map.next_value::<Option<_>>()?.unwrap_or_default();
                    is_single = true;
                }
                "status" => {
                    single.status = map.next_value::<Option<_>>()?.unwrap_or_default();
                    is_single = true;
                }
                "items" => {
                    map.next_value_seed(Document(&mut *listing, hint))?;
                    is_list = hint == Hint::Any;
                }
                "nodes" => map.next_value_seed(Document(&mut *listing, Hint::Nodes))?,
                "pods" => map.next_value_seed(Document(&mut *listing, Hint::Pods))?,
                "resourceClaims" => map.next_value_seed(Document(&mut *listing, Hint::Claims))?,
                "resourceSlices" => map.next_value_seed(Document(&mut *listing, Hint::Slices))?,
                "topologies" => map.next_value_seed(Document(&mut *listing, Hint::Topologies))?,
                "rawObjects" => map.next_value_seed(Document(&mut *listing, Hint::Any))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        listing.is_unnamed_list |= is_list && single.kind.is_none();
        if is_single { listing.add(single, hint).map_err(A::Error::custom) } else { Ok(()) }
    }
}

/// An object before it is known what it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "an object")]
struct Object {
    kind: Option<String>,
    metadata: Metadata,
    spec: Spec,
    status: Status,
}
