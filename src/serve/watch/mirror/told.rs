//! What the cluster was told, and the edits that lead from there to what is.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::meaning::{self, Runs};
use super::objects::{Dirty, Objects};
use crate::formats::{EditSpec, GangSpec, NodeView, TopologyKeys, WaitSpec};

type Name = Arc<str>;

/// What is known in the cluster.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The nodes, and whether they take new pods.
    open: BTreeMap<Name, bool>,
    /// What runs, by node.
    runs: BTreeMap<Name, BTreeMap<Name, Runs>>,
    waits: BTreeMap<Name, WaitSpec>,
    gangs: BTreeMap<Name, GangSpec>,
    /// How many pods of each gang run or wait.
    members: BTreeMap<Name, u32>,
}

/// Edits, in the order in which they are possible: what goes makes room for what comes, and who has certain devices comes
/// before those that take what is left.
#[derive(Debug, Default)]
struct Edits {
    ends: Vec<EditSpec>,
    cordons: Vec<EditSpec>,
    named: Vec<EditSpec>,
    starts: Vec<EditSpec>,
    waits: Vec<EditSpec>,
    gangs: Vec<EditSpec>,
}

impl Told {
    /// Of a cluster of these nodes in which nothing runs.
    pub(super) fn of_empty<'a>(nodes: impl Iterator<Item = (&'a Name, &'a NodeView)>) -> Self {
        let open = nodes.map(|(name, node)| (Arc::clone(name), node.is_open())).collect();
        Self { open, ..Self::default() }
    }

    /// Tells what has become of all that may mean something else.
    pub(super) fn tell(&mut self, objects: &Objects, keys: &TopologyKeys, mut dirty: Dirty) -> Vec<EditSpec> {
        let mut edits = Edits::default();
        for node in std::mem::take(&mut dirty.nodes) {
            self.tell_node(objects, &node, &mut dirty, &mut edits);
        }
        for pod in std::mem::take(&mut dirty.pods) {
            self.tell_waiting(objects, &pod, &mut dirty, &mut edits);
        }
        for gang in dirty.gangs {
            let told = self.members.get(&gang).copied().unwrap_or(0);
            let now = meaning::gang(objects, keys, &gang, told);
            if self.gangs.get(&gang) == now.as_ref() {
                continue;
            }
            let unknown = || GangSpec { gang: gang.to_string(), ..GangSpec::default() };
            edits.gangs.push(EditSpec::Gang(now.clone().unwrap_or_else(unknown)));
            match now {
                Some(now) => _ = self.gangs.insert(gang, now),
                None => _ = self.gangs.remove(&gang),
            }
        }
        let Edits { ends, cordons, named, starts, waits, gangs } = edits;
        [ends, cordons, named, starts, waits, gangs].into_iter().flatten().collect()
    }

    fn tell_node(&mut self, objects: &Objects, node: &Name, dirty: &mut Dirty, edits: &mut Edits) {
        let Some(was_open) = self.open.get_mut(node) else { return };
        let is_open = objects.node(node).is_some_and(NodeView::is_open);
        if *was_open != is_open {
            *was_open = is_open;
            let name = node.to_string();
            edits.cordons.push(if is_open { EditSpec::Uncordon(name) } else { EditSpec::Cordon(name) });
        }
        let now: BTreeMap<Name, Runs> = meaning::runs_on(objects, node).into_iter().collect();
        let was = self.runs.remove(node).unwrap_or_default();
        // Whoever was given what was left may have what is another's by name.
        let displaced = now.iter().any(|(name, runs)| runs.holding.devices.is_some() && was.get(name) != Some(runs));
        let stays = |name: &Name, runs: &Runs| {
            let gives_way = displaced && runs.holding.devices.is_none() && runs.holding.gpus > 0;
            was.get(name) == Some(runs) && !gives_way
        };
        for (name, runs) in &was {
            if now.get(name).is_none_or(|now| !stays(name, now)) {
                edits.ends.push(EditSpec::End(name.to_string()));
                self.count(runs.gang.as_ref(), false, dirty);
            }
        }
        for (name, runs) in &now {
            if stays(name, runs) {
                continue;
            }
            // Who waited and runs now is told in one step.
            if let Some(waited) = self.waits.remove(name) {
                self.count(waited.gang.as_deref().map(Name::from).as_ref(), false, dirty);
            }
            self.count(runs.gang.as_ref(), true, dirty);
            let starts = if runs.holding.devices.is_some() { &mut edits.named } else { &mut edits.starts };
            starts.push(EditSpec::Start(runs.edit(name, node)));
        }
        if !now.is_empty() {
            self.runs.insert(Arc::clone(node), now);
        }
    }

    fn tell_waiting(&mut self, objects: &Objects, pod: &Name, dirty: &mut Dirty, edits: &mut Edits) {
        let now = objects.pod(pod).and_then(meaning::waits);
        if self.waits.get(pod) == now.as_ref() {
            return;
        }
        let gang = |wait: &WaitSpec| wait.gang.as_deref().map(Name::from);
        if let Some(was) = self.waits.remove(pod) {
            self.count(gang(&was).as_ref(), false, dirty);
            if now.is_none() {
                edits.ends.push(EditSpec::End(was.job));
            }
        }
        if let Some(now) = now {
            self.count(gang(&now).as_ref(), true, dirty);
            edits.waits.push(EditSpec::Wait(now.clone()));
            self.waits.insert(Arc::clone(pod), now);
        }
    }

    /// Counts a pod of a gang, or no more.
    fn count(&mut self, gang: Option<&Name>, is_new: bool, dirty: &mut Dirty) {
        let Some(gang) = gang else { return };
        let members = self.members.entry(Arc::clone(gang)).or_default();
        *members = if is_new { *members + 1 } else { members.saturating_sub(1) };
        if *members == 0 {
            self.members.remove(gang);
        }
        dirty.gangs.insert(Arc::clone(gang));
    }
}

#[cfg(test)]
impl Told {
    /// Whether the devices of a pod that runs were said.
    pub(super) fn is_named(&self, pod: &str) -> bool {
        self.runs.values().filter_map(|runs| runs.get(pod)).any(|runs| runs.holding.devices.is_some())
    }
}
