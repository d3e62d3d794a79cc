//! What the API server has told, and what of it has been told on: pure, so that it can be tested without one.

use std::collections::BTreeMap;

use crate::cluster::{BuildError, Cluster, ClusterBuilder, GpuMask, NodeSpec};
use crate::formats::{EditSpec, NodeView, PodView, SeatSpec, StartSpec, TopologyKeys, WaitSpec};

/// What follows from something new.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// These edits, perhaps none.
    Edits(Vec<EditSpec>),
    /// The nodes are others: the cluster has to be made anew.
    Rebuild,
}

/// Nodes and pods by name, as the API server tells of them.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    topology: Option<TopologyKeys>,
    nodes: Kind<Node>,
    pods: Kind<PodView>,
    /// What of each pod is known in the cluster.
    told: BTreeMap<String, Told>,
    must_rebuild: bool,
    is_known: bool,
}

/// Objects of a kind; those of a list that is not yet whole apart.
#[derive(Debug)]
struct Kind<T> {
    known: BTreeMap<String, T>,
    list: Option<BTreeMap<String, T>>,
    is_listed: bool,
}

impl<T> Default for Kind<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), list: None, is_listed: false }
    }
}

/// What matters of a node, beside whether it is open.
#[derive(Debug)]
struct Node {
    view: NodeView,
}

/// What is known of a pod in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Waits(WaitSpec),
    Runs(StartSpec),
}

impl Told {
    fn edit(&self) -> EditSpec {
        match self {
            Self::Waits(wait) => EditSpec::Wait(wait.clone()),
            Self::Runs(start) => EditSpec::Start(start.clone()),
        }
    }
}

impl Mirror {
    pub(super) fn new(topology: Option<TopologyKeys>) -> Self {
        Self { topology, ..Self::default() }
    }

    /// Whether the cluster has to be made anew, as soon as both lists are whole.
    pub(super) fn must_rebuild(&self) -> bool {
        self.must_rebuild && self.nodes.is_listed && self.pods.is_listed
    }

    /// Has the cluster made anew.
    pub(super) fn rebuild(&mut self) {
        self.must_rebuild = true;
    }

    /// Whether the cluster has been made.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    pub(super) fn begin_nodes(&mut self) -> Change {
        self.nodes.list = Some(BTreeMap::new());
        Change::Edits(Vec::new())
    }

    pub(super) fn end_nodes(&mut self) -> Change {
        self.nodes.end();
        Change::Rebuild
    }

    pub(super) fn begin_pods(&mut self) -> Change {
        self.pods.list = Some(BTreeMap::new());
        Change::Edits(Vec::new())
    }

    pub(super) fn end_pods(&mut self) -> Change {
        self.pods.end();
        Change::Rebuild
    }

    pub(super) fn apply_node(&mut self, view: NodeView) -> Change {
        let name = view.name().to_owned();
        if let Some(list) = &mut self.nodes.list {
            list.insert(name, Node { view });
            return Change::Edits(Vec::new());
        }
        let keys = self.keys();
        let shape = |view: &NodeView| (view.gpus(), view.product().map(str::to_owned), view.place(&keys));
        let before = self.nodes.known.get(&name).map(|node| (shape(&node.view), node.view.is_open()));
        let (now, is_open) = (shape(&view), view.is_open());
        let counts = view.gpus().is_some();
        self.nodes.known.insert(name.clone(), Node { view });
        match before {
            Some((before, was_open)) if before == now => {
                let edit = if is_open { EditSpec::Uncordon(name) } else { EditSpec::Cordon(name) };
                Change::Edits(if counts && was_open != is_open { vec![edit] } else { Vec::new() })
            }
            None if !counts => Change::Edits(Vec::new()),
            _ => Change::Rebuild,
        }
    }

    pub(super) fn delete_node(&mut self, name: &str) -> Change {
        let gone = self.nodes.known.remove(name);
        if gone.is_some_and(|node| node.view.gpus().is_some()) { Change::Rebuild } else { Change::Edits(Vec::new()) }
    }

    pub(super) fn apply_pod(&mut self, pod: PodView) -> Change {
        if let Some(list) = &mut self.pods.list {
            list.insert(pod.name.clone(), pod);
            return Change::Edits(Vec::new());
        }
        let now = self.meaning(&pod);
        let name = pod.name.clone();
        if pod.ended {
            self.pods.known.remove(&name);
        } else {
            self.pods.known.insert(name.clone(), pod);
        }
        Change::Edits(self.tell(name, now))
    }

    pub(super) fn delete_pod(&mut self, name: &str) -> Change {
        self.pods.known.remove(name);
        Change::Edits(self.tell(name.to_owned(), None))
    }

    /// The edits that lead from what is known of a pod to what it is now.
    fn tell(&mut self, name: String, now: Option<Told>) -> Vec<EditSpec> {
        let before = self.told.get(&name);
        if before == now.as_ref() {
            return Vec::new();
        }
        let mut edits = Vec::new();
        match (before, &now) {
            // Who waited and runs now is told in one step.
            (None | Some(Told::Waits(_)), Some(now)) => edits.push(now.edit()),
            (Some(_), None) => edits.push(EditSpec::End(name.clone())),
            (Some(Told::Runs(_)), Some(now)) => edits.extend([EditSpec::End(name.clone()), now.edit()]),
            (None, None) => {}
        }
        match now {
            Some(now) => self.told.insert(name, now),
            None => self.told.remove(&name),
        };
        edits
    }

    /// What a pod is to the cluster; nothing if it wants no whole GPUs, or is on a node that does not count.
    fn meaning(&self, pod: &PodView) -> Option<Told> {
        let gpus = u8::try_from(pod.gpus).ok().filter(|&gpus| gpus > 0 && !pod.parts && !pod.ended)?;
        if pod.node.is_empty() {
            let waits = !pod.gated && !pod.ends;
            let &PodView { gang_size, .. } = pod;
            return waits
                .then(|| Told::Waits(WaitSpec { job: pod.name.clone(), gpus, gang: pod.gang.clone(), gang_size }));
        }
        self.nodes.known.get(&pod.node).filter(|node| node.view.gpus().is_some())?;
        Some(Told::Runs(StartSpec {
            job: pod.name.clone(),
            gpus_per_instance: gpus,
            migratable: pod.movable,
            gang: pod.gang.clone(),
            instances: vec![SeatSpec { node: pod.node.clone(), gpus: None }],
            ..StartSpec::default()
        }))
    }

    fn keys(&self) -> TopologyKeys {
        let found = || TopologyKeys::of_nodes(self.nodes.known.values().map(|node| &node.view));
        self.topology.clone().unwrap_or_else(found)
    }

    /// The cluster, empty, and the edits that make it what it is; nothing before both lists have come. From now on changes
    /// are edits of that.
    pub(super) fn cluster(&mut self) -> Result<Option<(Cluster, Vec<EditSpec>)>, BuildError> {
        if !self.must_rebuild() {
            return Ok(None);
        }
        let keys = self.keys();
        let mut builder = ClusterBuilder::new();
        for (name, Node { view }) in &self.nodes.known {
            let Some((devices, gpus)) = view.gpus() else { continue };
            let (domain, rack) = view.place(&keys);
            // Which of them are withheld is not told: the highest.
            let all = |n: u8| ((1u32 << n) - 1) as GpuMask;
            builder.add_node(&NodeSpec {
                name,
                gpus: devices,
                model: view.product(),
                domain: domain.as_deref(),
                rack: rack.as_deref(),
                unschedulable: !view.is_open(),
                unavailable: all(devices) & !all(gpus),
                ..NodeSpec::default()
            })?;
        }
        let told = self.pods.known.iter().filter_map(|(name, pod)| Some((name.clone(), self.meaning(pod)?)));
        self.told = told.collect();
        self.must_rebuild = false;
        self.is_known = true;
        // Those that run first: who waits has no place that it could take from them.
        let (running, waiting): (Vec<&Told>, Vec<&Told>) =
            self.told.values().partition(|told| matches!(told, Told::Runs(_)));
        let edits = running.into_iter().chain(waiting).map(Told::edit).collect();
        Ok(Some((builder.finish()?, edits)))
    }
}

impl<T> Kind<T> {
    fn end(&mut self) {
        if let Some(list) = self.list.take() {
            self.known = list;
        }
        self.is_listed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{read_node_view, read_pod_view};

    fn node(name: &str, gpus: u8, cordoned: bool) -> NodeView {
        let json = format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"unschedulable":{cordoned}}},"status":{{"allocatable":{{"nvidia.com/gpu":"{gpus}"}}}}}}"#
        );
        read_node_view("node", json.as_bytes()).unwrap()
    }

    fn pod(name: &str, gpus: u8, node: &str) -> PodView {
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"s","labels":{{"job-name":"g"}}}},"spec":{{"nodeName":"{node}","containers":[{{"resources":{{"limits":{{"nvidia.com/gpu":{gpus}}}}}}}]}}}}"#
        );
        read_pod_view("pod", json.as_bytes()).unwrap()
    }

    fn told(change: Change) -> String {
        match change {
            Change::Rebuild => "rebuild".to_owned(),
            Change::Edits(edits) => serde_json::to_string(&edits).unwrap(),
        }
    }

    #[test]
    fn lists_make_a_cluster_and_events_edit_it() {
        let mut mirror = Mirror::new(None);
        mirror.begin_nodes();
        for view in [node("b", 8, false), node("a", 4, true), node("cpu", 0, false)] {
            assert_eq!(mirror.apply_node(view), Change::Edits(Vec::new()));
        }
        assert_eq!(mirror.end_nodes(), Change::Rebuild);
        mirror.rebuild();
        assert!(mirror.cluster().unwrap().is_none(), "the pods have not been listed");
        mirror.begin_pods();
        for view in [pod("w", 2, ""), pod("r", 8, "b"), pod("elsewhere", 1, "cpu"), pod("none", 0, "b")] {
            mirror.apply_pod(view);
        }
        mirror.end_pods();
        let (cluster, edits) = mirror.cluster().unwrap().unwrap();
        assert_eq!((cluster.nodes().len(), cluster.node_name(crate::cluster::NodeId(0))), (2, "a"));
        let names: Vec<&str> = edits
            .iter()
            .map(|edit| match edit {
                EditSpec::Start(start) => start.job.as_str(),
                EditSpec::Wait(wait) => wait.job.as_str(),
                _ => "",
            })
            .collect();
        assert_eq!(names, ["s/r", "s/w"]);
        // The same again is nothing new.
        assert_eq!(told(mirror.apply_pod(pod("r", 8, "b"))), "[]");
        assert_eq!(told(mirror.apply_node(node("b", 8, false))), "[]");
        assert_eq!(told(mirror.apply_node(node("b", 8, true))), r#"[{"cordon":"b"}]"#);
        assert_eq!(told(mirror.apply_node(node("a", 4, false))), r#"[{"uncordon":"a"}]"#);
        let started = told(mirror.apply_pod(pod("w", 2, "a")));
        assert!(started.starts_with(r#"[{"start":{"job":"s/w","gpus_per_instance":2"#), "{started}");
        assert_eq!(told(mirror.delete_pod("s/w")), r#"[{"end":"s/w"}]"#);
        assert_eq!(told(mirror.delete_pod("s/w")), "[]");
        assert_eq!(told(mirror.apply_node(node("b", 7, true))), "rebuild");
        assert_eq!(told(mirror.delete_node("cpu")), "[]");
        assert_eq!(told(mirror.delete_node("a")), "rebuild");
    }

    #[test]
    fn a_list_that_comes_again_replaces_what_was() {
        let mut mirror = Mirror::new(None);
        for round in 0..2 {
            mirror.begin_nodes();
            mirror.begin_pods();
            mirror.apply_node(node("n", 8, false));
            mirror.apply_pod(pod(&format!("p{round}"), 1, "n"));
            mirror.end_nodes();
            mirror.end_pods();
            mirror.rebuild();
            let (_, edits) = mirror.cluster().unwrap().unwrap();
            let text = serde_json::to_string(&edits).unwrap();
            assert!(edits.len() == 1 && text.contains(&format!("s/p{round}")), "{text}");
        }
    }
}
