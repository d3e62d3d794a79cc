//! The objects, by kind and name, and who is named by whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::formats::{ClaimView, NodeView, PodGroupView, PodView, SliceView};
use crate::serve::watch::kinds::{GROUPS, Kind, Object};

type Name = Arc<str>;
type Names = BTreeSet<Name>;

/// What may mean something else than before, by name.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    pub(super) nodes: Names,
    pub(super) pods: Names,
    pub(super) gangs: Names,
}

/// Objects of a kind; those of a list that is not yet whole apart.
#[derive(Debug)]
struct Store<T> {
    known: BTreeMap<Name, T>,
    list: Option<BTreeMap<Name, T>>,
    is_listed: bool,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), list: None, is_listed: false }
    }
}

/// What is known of the pods of a gang.
#[derive(Debug, Default)]
pub(super) struct GangOfPods {
    /// Those that are there: that run, or could.
    pub(super) present: u32,
    /// Those that say something of the gang.
    stating: Names,
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    nodes: Store<NodeView>,
    pods: Store<PodView>,
    groups: [Store<PodGroupView>; GROUPS],
    claims: Store<ClaimView>,
    slices: Store<SliceView>,
    /// The pods on each node.
    on_node: BTreeMap<Name, Names>,
    /// The pods on nodes that name each claim: the first of them has its devices.
    claimants: BTreeMap<Name, Names>,
    /// The slices of each node.
    slices_of: BTreeMap<Name, Names>,
    gangs: BTreeMap<Name, GangOfPods>,
}

/// Whether a pod is there for its gang: it has a place, or waits for one and nothing holds it back.
fn is_present(pod: &PodView) -> bool {
    !pod.ended && (!pod.node.is_empty() || !pod.gated && !pod.ends)
}

impl Objects {
    /// Whether nodes and pods have been listed.
    pub(super) fn are_listed(&self) -> bool {
        self.nodes.is_listed && self.pods.is_listed
    }

    /// Whether of every kind it is known what there is, if only that it is not served.
    pub(super) fn are_all_listed(&self) -> bool {
        let others = self.claims.is_listed && self.slices.is_listed;
        self.are_listed() && others && self.groups.iter().all(|groups| groups.is_listed)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (&Name, &NodeView)> + Clone {
        self.nodes.known.iter()
    }

    pub(super) fn node(&self, name: &str) -> Option<&NodeView> {
        self.nodes.known.get(name)
    }

    pub(super) fn pod(&self, name: &str) -> Option<&PodView> {
        self.pods.known.get(name)
    }

    /// The pods on a node, by name, with the claims whose devices each has.
    pub(super) fn pods_on(&self, node: &str) -> Vec<(&Name, &PodView, Vec<&ClaimView>)> {
        let names = self.on_node.get(node).into_iter().flatten();
        let pods = names.filter_map(|name| self.pods.known.get_key_value(name));
        pods.map(|(name, pod)| {
            let own = |claim: &&String| self.claimants.get(claim.as_str()).and_then(BTreeSet::first) == Some(name);
            let claims = pod.claims.iter().filter(own).filter_map(|claim| self.claims.known.get(claim.as_str()));
            (name, pod, claims.collect())
        })
        .collect()
    }

    /// What is known of the pods of a gang, if it has any.
    pub(super) fn gang(&self, gang: &str) -> Option<&GangOfPods> {
        self.gangs.get(gang)
    }

    /// How many pods a gang needs to start, and the label whose value all of them must share: what its PodGroup says, else
    /// what its first pod says.
    pub(super) fn stated(&self, gang: &str) -> (Option<u32>, Option<&str>) {
        let groups = || self.groups.iter().filter_map(|groups| groups.known.get(gang));
        let pods = || self.gangs.get(gang).into_iter().flat_map(|known| &known.stating);
        let pods = || pods().filter_map(|name| self.pods.known.get(name));
        let size = groups().find_map(|group| group.size).or_else(|| pods().find_map(|pod| pod.gang_size));
        let together = groups().find_map(|group| group.together.as_deref());
        (size, together.or_else(|| pods().find_map(|pod| pod.together.as_deref())))
    }

    /// Everything.
    pub(super) fn all(&self) -> Dirty {
        let groups = self.groups.iter().flat_map(|groups| groups.known.keys());
        Dirty {
            nodes: self.nodes.known.keys().cloned().collect(),
            pods: self.pods.known.keys().cloned().collect(),
            gangs: self.gangs.keys().chain(groups).cloned().collect(),
        }
    }

    pub(super) fn begin(&mut self, kind: Kind) {
        match kind {
            Kind::Node => self.nodes.begin(),
            Kind::Pod => self.pods.begin(),
            Kind::Group(at) => self.groups[at].begin(),
            Kind::Claim => self.claims.begin(),
            Kind::Slice => self.slices.begin(),
        }
    }

    pub(super) fn end(&mut self, kind: Kind, dirty: &mut Dirty) {
        match kind {
            Kind::Node => {
                end(self, |objects| &mut objects.nodes, |objects, name, new| objects.put_node(name, new, dirty))
            }
            Kind::Pod => end(self, |objects| &mut objects.pods, |objects, name, new| objects.put_pod(name, new, dirty)),
            Kind::Group(at) => end(
                self,
                |objects| &mut objects.groups[at],
                |objects, name, new| objects.put_group(at, name, new, dirty),
            ),
            Kind::Claim => {
                end(self, |objects| &mut objects.claims, |objects, name, new| objects.put_claim(name, new, dirty));
            }
            Kind::Slice => {
                end(self, |objects| &mut objects.slices, |objects, name, new| objects.put_slice(name, new, dirty));
            }
        }
    }

    pub(super) fn apply(&mut self, object: Object, dirty: &mut Dirty) {
        match object {
            Object::Node(view) => {
                let name = view.name().into();
                if let Some(view) = self.nodes.listed(&name, view) {
                    self.put_node(name, Some(view), dirty);
                }
            }
            Object::Pod(view) => {
                let name = view.name.as_str().into();
                if let Some(view) = self.pods.listed(&name, view) {
                    self.put_pod(name, Some(view), dirty);
                }
            }
            Object::Group(at, view) => {
                let name = view.name.as_str().into();
                if let Some(view) = self.groups[at].listed(&name, view) {
                    self.put_group(at, name, Some(view), dirty);
                }
            }
            Object::Claim(view) => {
                let name = view.name().into();
                if let Some(view) = self.claims.listed(&name, view) {
                    self.put_claim(name, Some(view), dirty);
                }
            }
            Object::Slice(view) => {
                let name = view.name.as_str().into();
                if let Some(view) = self.slices.listed(&name, view) {
                    self.put_slice(name, Some(view), dirty);
                }
            }
        }
    }

    pub(super) fn delete(&mut self, kind: Kind, name: &str, dirty: &mut Dirty) {
        let name = name.into();
        match kind {
            Kind::Node => self.put_node(name, None, dirty),
            Kind::Pod => self.put_pod(name, None, dirty),
            Kind::Group(at) => self.put_group(at, name, None, dirty),
            Kind::Claim => self.put_claim(name, None, dirty),
            Kind::Slice => self.put_slice(name, None, dirty),
        }
    }

    fn put_node(&mut self, name: Name, new: Option<NodeView>, dirty: &mut Dirty) {
        self.nodes.put(&name, new);
        self.offer(&name);
        dirty.nodes.insert(name);
    }

    fn put_pod(&mut self, name: Name, new: Option<PodView>, dirty: &mut Dirty) {
        let new = new.filter(|pod| !pod.ended);
        if self.pods.known.get(&name) == new.as_ref() {
            return;
        }
        let old = self.pods.known.remove(&name);
        for (pod, is_new) in [(&old, false), (&new, true)] {
            let Some(pod) = pod else { continue };
            if !pod.node.is_empty() {
                let node = file(&mut self.on_node, &pod.node, &name, is_new);
                dirty.nodes.insert(node);
                for claim in &pod.claims {
                    file(&mut self.claimants, claim, &name, is_new);
                    // Another of its pods may have its devices now.
                    self.touch_claimants(claim, dirty);
                }
            }
            if let Some(gang) = &pod.gang {
                dirty.gangs.insert(self.count(gang, &name, pod, is_new));
            }
        }
        self.pods.put(&name, new);
        dirty.pods.insert(name);
    }

    /// Counts a pod of a gang, or no more.
    fn count(&mut self, gang: &str, name: &Name, pod: &PodView, is_new: bool) -> Name {
        let gang: Name = self.gangs.get_key_value(gang).map_or_else(|| gang.into(), |(gang, _)| Arc::clone(gang));
        let known = self.gangs.entry(Arc::clone(&gang)).or_default();
        let (states, present) = (pod.gang_size.is_some() || pod.together.is_some(), u32::from(is_present(pod)));
        if is_new {
            known.present += present;
            if states {
                known.stating.insert(Arc::clone(name));
            }
        } else {
            known.present -= present;
            known.stating.remove(name);
            if known.present == 0 && known.stating.is_empty() {
                self.gangs.remove(&gang);
            }
        }
        gang
    }

    fn put_group(&mut self, at: usize, name: Name, new: Option<PodGroupView>, dirty: &mut Dirty) {
        self.groups[at].put(&name, new);
        dirty.gangs.insert(name);
    }

    fn put_claim(&mut self, name: Name, new: Option<ClaimView>, dirty: &mut Dirty) {
        self.claims.put(&name, new);
        self.touch_claimants(&name, dirty);
    }

    fn put_slice(&mut self, name: Name, new: Option<SliceView>, dirty: &mut Dirty) {
        let nodes: Vec<(String, bool)> = [(self.slices.known.get(&name), false), (new.as_ref(), true)]
            .into_iter()
            .filter_map(|(slice, is_new)| Some((slice?.node().to_owned(), is_new)))
            .filter(|(node, _)| !node.is_empty())
            .collect();
        self.slices.put(&name, new);
        for (node, is_new) in nodes {
            let node = file(&mut self.slices_of, &node, &name, is_new);
            self.offer(&node);
            dirty.nodes.insert(node);
        }
    }

    /// Tells a node what its slices offer.
    fn offer(&mut self, node: &str) {
        let Some(view) = self.nodes.known.get_mut(node) else { return };
        let names = self.slices_of.get(node).into_iter().flatten();
        view.offer(names.filter_map(|name| self.slices.known.get(name)));
    }

    /// The nodes of the pods that name a claim may hold something else.
    fn touch_claimants(&self, claim: &str, dirty: &mut Dirty) {
        let pods = self.claimants.get(claim).into_iter().flatten().filter_map(|name| self.pods.known.get(name));
        dirty.nodes.extend(pods.map(|pod| Name::from(pod.node.as_str())));
    }
}

/// Enters a name under another one, or strikes it out, and returns the other.
fn file(index: &mut BTreeMap<Name, Names>, under: &str, name: &Name, is_new: bool) -> Name {
    let under: Name = index.get_key_value(under).map_or_else(|| under.into(), |(known, _)| Arc::clone(known));
    if is_new {
        index.entry(Arc::clone(&under)).or_default().insert(Arc::clone(name));
    } else if let Some(names) = index.get_mut(&under) {
        names.remove(name);
        if names.is_empty() {
            index.remove(&under);
        }
    }
    under
}

impl<T> Store<T> {
    fn begin(&mut self) {
        self.list = Some(BTreeMap::new());
    }

    /// Keeps an object for the list that it is of; gives it back if there is none.
    fn listed(&mut self, name: &Name, object: T) -> Option<T> {
        let Some(list) = &mut self.list else { return Some(object) };
        list.insert(Arc::clone(name), object);
        None
    }

    fn put(&mut self, name: &Name, new: Option<T>) {
        match new {
            Some(new) => _ = self.known.insert(Arc::clone(name), new),
            None => _ = self.known.remove(name),
        }
    }
}

/// A list is whole: puts what is in it, and lets go of what is not.
fn end<T>(
    objects: &mut Objects,
    store: impl Fn(&mut Objects) -> &mut Store<T>,
    mut put: impl FnMut(&mut Objects, Name, Option<T>),
) {
    let own = store(objects);
    own.is_listed = true;
    let Some(list) = own.list.take() else { return };
    let gone: Vec<Name> = own.known.keys().filter(|name| !list.contains_key(*name)).cloned().collect();
    gone.into_iter().for_each(|name| put(objects, name, None));
    list.into_iter().for_each(|(name, new)| put(objects, name, Some(new)));
}
