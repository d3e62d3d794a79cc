//! What the API server has told, and what of it has been told on: pure, so that it can be tested without one.
//!
//! Objects come in any order, and what one of them means depends on others: what a pod holds on its node and its claims,
//! how large a gang is on its PodGroup. So nothing is worked out when an object comes: what it touches is noted, and
//! [`Mirror::change`] compares what that means by then with what was told before.

mod meaning;
mod objects;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::meaning::Shape;
use self::objects::{Dirty, Objects};
use self::told::Told;
use super::kinds::{Kind, Object};
use crate::cluster::{BuildError, Cluster, ClusterBuilder, GpuMask, NodeSpec};
use crate::formats::{EditSpec, TopologyKeys};

/// What follows from something new.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// These edits, perhaps none.
    Edits(Vec<EditSpec>),
    /// The nodes are others: the cluster has to be made anew.
    Rebuild,
}

/// Objects by name, as the API server tells of them.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    topology: Option<TopologyKeys>,
    objects: Objects,
    /// What may mean something else than what was told.
    dirty: Dirty,
    /// The nodes that the cluster was made of, and the labels that say where they are.
    shapes: BTreeMap<Arc<str>, Shape>,
    keys: TopologyKeys,
    told: Told,
    must_rebuild: bool,
    is_known: bool,
}

impl Mirror {
    pub(super) fn new(topology: Option<TopologyKeys>) -> Self {
        Self { topology, must_rebuild: true, ..Self::default() }
    }

    /// Whether of every kind it is known what there is, if only that it is not served.
    pub(super) fn is_whole(&self) -> bool {
        self.objects.are_all_listed()
    }

    /// Whether the cluster has to be made anew, as soon as the lists of nodes and pods are whole. Other kinds may not be
    /// there at all.
    pub(super) fn must_rebuild(&self) -> bool {
        self.must_rebuild && self.objects.are_listed()
    }

    /// Has the cluster made anew.
    pub(super) fn rebuild(&mut self) {
        self.must_rebuild = true;
    }

    /// A list of a kind begins: what is of that kind and not in it has gone.
    pub(super) fn begin(&mut self, kind: Kind) {
        self.objects.begin(kind);
    }

    pub(super) fn end(&mut self, kind: Kind) {
        self.objects.end(kind, &mut self.dirty);
    }

    /// An object is new or has changed.
    pub(super) fn apply(&mut self, object: Object) {
        self.objects.apply(object, &mut self.dirty);
    }

    /// An object has gone. All but nodes and slices go by namespace and name.
    pub(super) fn delete(&mut self, kind: Kind, name: &str) {
        self.objects.delete(kind, name, &mut self.dirty);
    }

    /// What follows from all that is new since the last time.
    pub(super) fn change(&mut self) -> Change {
        if !self.is_known || self.must_rebuild {
            return Change::Edits(Vec::new());
        }
        for name in &self.dirty.nodes {
            let shape = self.objects.node(name).and_then(|node| Shape::of(node, &self.keys, self.topology.as_ref()));
            if shape.as_ref() != self.shapes.get(name) {
                self.must_rebuild = true;
                return Change::Rebuild;
            }
        }
        let dirty = std::mem::take(&mut self.dirty);
        Change::Edits(self.told.tell(&self.objects, &self.keys, dirty))
    }

    /// The cluster, empty, and the edits that make it what it is; nothing before the lists have come. From now on changes
    /// are edits of that.
    pub(super) fn cluster(&mut self) -> Result<Option<(Cluster, Vec<EditSpec>)>, BuildError> {
        if !self.must_rebuild() {
            return Ok(None);
        }
        let nodes = || self.objects.nodes().filter(|(_, node)| node.gpus().is_some());
        let views = || nodes().map(|(_, node)| node);
        self.keys = match &self.topology {
            Some(given) => given.clone().used_by(views()),
            None => TopologyKeys::of_nodes(views()),
        };
        self.shapes.clear();
        let mut builder = ClusterBuilder::new();
        for (name, view) in nodes() {
            let Some(shape) = Shape::of(view, &self.keys, self.topology.as_ref()) else { continue };
            // Which of them are withheld is not told: the highest.
            let all = |n: u8| ((1u32 << n) - 1) as GpuMask;
            builder.add_node(&NodeSpec {
                name,
                gpus: shape.devices,
                model: shape.product.as_deref(),
                domain: shape.domain.as_deref(),
                rack: shape.rack.as_deref(),
                cpu_milli: shape.cpu_milli,
                memory_mib: shape.memory_mib,
                unschedulable: !view.is_open(),
                unavailable: all(shape.devices) & !all(shape.working),
            })?;
            self.shapes.insert(Arc::clone(name), shape);
        }
        let cluster = builder.finish()?;
        self.told = Told::of_empty(nodes());
        self.dirty = self.objects.all();
        self.is_known = true;
        self.must_rebuild = false;
        let Change::Edits(edits) = self.change() else { return Ok(None) };
        Ok(Some((cluster, edits)))
    }
}

#[cfg(test)]
mod tests;
