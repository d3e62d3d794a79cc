//! Whatever the API server tells in whatever order, relists and crashes included, the service ends with what one that has
//! just begun makes of the objects as they are; and that is what the import of a dump of them makes of it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use super::{RACK, claim, group, node, of_gang, pod, slice};
use crate::cluster::{GpuMask, NodeId};
use crate::evaluate::Cpu;
use crate::formats::read_kubernetes_from;
use crate::serve::live::{Condition, Gang, Live};

const KINDS: [Kind; 7] =
    [Kind::Node, Kind::Pod, Kind::Group(0), Kind::Group(1), Kind::Group(2), Kind::Claim, Kind::Slice];

/// The objects as they are: by place of their kind, and name.
type Truth = BTreeMap<(usize, String), Value>;

#[derive(Clone, Debug)]
enum Step {
    /// An object comes or changes, and its watch tells (true), or is broken.
    Put(usize, Value, bool),
    /// One of a kind goes.
    Delete(usize, usize, bool),
    /// A kind is listed again.
    List(usize),
    /// What is new by now is told to the service.
    Sync,
    /// The service loses the cluster.
    Lost,
    /// The service ends, and another begins.
    Crash,
}

fn object() -> impl Strategy<Value = (usize, Value)> {
    let nodes = (0..4u8, prop::sample::select(vec![0u8, 4, 8, 8]), any::<bool>(), 0..3u8, 0..3u8);
    let nodes = nodes.prop_map(|(name, gpus, cordoned, rack, broken)| {
        let mut node = node(&format!("n{name}"), gpus.saturating_sub(broken / 2), cordoned);
        node["status"]["capacity"] = json!({"nvidia.com/gpu": gpus.to_string()});
        if rack > 0 {
            node["metadata"]["labels"] = json!({RACK: format!("r{rack}")});
        }
        (0, node)
    });
    let where_and_who = (0..8u8, 0..6u8, 0..4u8, 0..6u8);
    let pods = (where_and_who, prop::sample::select(vec![0u8, 0, 1, 2, 4, 8]), 0..12u8, 0..4u8, any::<bool>());
    let pods = pods.prop_map(|((name, at, gang, how), gpus, extra, claim, states)| {
        let at = if at < 4 { format!("n{at}") } else { String::new() };
        let mut pod = pod(&format!("p{name}"), gpus, &at);
        if gang > 0 {
            pod = of_gang(pod, &format!("g{gang}"));
        }
        match how {
            0 => pod["status"] = json!({"phase": "Succeeded"}),
            1 => pod["spec"]["schedulingGates"] = json!([{"name": "held"}]),
            2 => pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            _ => {}
        }
        if claim > 0 && !at.is_empty() {
            pod["spec"]["resourceClaims"] = json!([{"resourceClaimName": format!("c{claim}")}]);
        }
        let mut annotations = json!({});
        if states {
            annotations["pod-group-size"] = json!("3");
            annotations["kueue.x-k8s.io/podset-required-topology"] = json!(RACK);
        }
        if extra < 8 && gpus == 1 {
            annotations["volcano.sh/gpu-index"] = json!(extra.to_string());
        }
        pod["metadata"]["annotations"] = annotations;
        (1, pod)
    });
    let groups = (0..3usize, 1..4u8, 1..5u32, any::<bool>()).prop_map(|(kind, name, size, wish)| {
        let mut group = group(&format!("g{name}"), size);
        if wish {
            group["spec"]["schedulingConstraints"] = json!({"topology": [{"key": RACK}]});
        }
        (2 + kind, group)
    });
    let claims = (1..4u8, prop::collection::btree_set(0..8u8, 0..3))
        .prop_map(|(name, minors)| (5, claim(&format!("c{name}"), &minors.into_iter().collect::<Vec<_>>())));
    let slices = (0..2u8, 0..4u8, prop::sample::select(vec![0u8, 4, 8]))
        .prop_map(|(name, node, gpus)| (6, slice(&format!("x{name}"), &format!("n{node}"), gpus)));
    prop_oneof![2 => nodes, 6 => pods, 2 => groups, 2 => claims, 1 => slices]
}

fn step() -> impl Strategy<Value = Step> {
    let heard = prop::bool::weighted(0.8);
    prop_oneof![
        8 => (object(), heard).prop_map(|((kind, object), heard)| Step::Put(kind, object, heard)),
        3 => (0..KINDS.len(), 0..8usize, heard).prop_map(|(kind, at, heard)| Step::Delete(kind, at, heard)),
        1 => (0..KINDS.len()).prop_map(Step::List),
        3 => Just(Step::Sync),
        1 => Just(Step::Lost),
        1 => Just(Step::Crash),
    ]
}

fn name_of(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap();
    object["metadata"]["namespace"].as_str().map_or(name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

fn of_kind(truth: &Truth, kind: usize) -> Vec<Value> {
    truth.iter().filter(|((other, _), _)| *other == kind).map(|(_, object)| object.clone()).collect()
}

/// A service that follows a mirror.
struct Service {
    mirror: Mirror,
    live: Live,
}

impl Service {
    /// One that has just listed everything.
    fn new(truth: &Truth) -> Self {
        let mut service = Self { mirror: Mirror::new(None), live: Live::new(Box::new(Cpu::new(1).unwrap())) };
        KINDS.iter().enumerate().for_each(|(at, &kind)| service.mirror.list(kind, &of_kind(truth, at)));
        service.sync();
        service
    }

    /// Tells what is new, as [`follow`](crate::serve::watch::follow) does. Nothing of it is ever refused.
    fn sync(&mut self) {
        if let Change::Edits(edits) = self.mirror.change()
            && !edits.is_empty()
        {
            self.live.edit(&Condition::default(), &edits).unwrap();
        }
        if let Some((cluster, edits)) = self.mirror.cluster().unwrap() {
            self.live.put(cluster);
            for edit in &edits {
                self.live.edit(&Condition::default(), std::slice::from_ref(edit)).unwrap();
            }
        }
    }

    /// The nodes: whether open, and GPUs, CPU and memory that are free.
    fn nodes(&self) -> Vec<(String, bool, u8, u32, u32)> {
        nodes(self.live.state().unwrap().cluster())
    }

    /// The jobs: where, how many devices, which if that is said, and what else they hold.
    fn jobs(&self) -> BTreeMap<String, (NodeId, u32, GpuMask, u32, u32, bool)> {
        let cluster = self.live.state().unwrap().cluster();
        cluster.check_books().unwrap();
        let running = cluster.job_ids().filter(|&job| cluster.job(job).runs());
        running
            .map(|job| {
                let held = cluster.instance(cluster.instances_of(job).next().unwrap());
                let (name, request) = (cluster.job_name(job), cluster.request_of(job));
                let named = if self.mirror.told.is_named(name) { held.gpus() } else { 0 };
                let gpus = held.gpus().count_ones();
                let movable = cluster.job(job).migratable();
                (name.to_owned(), (held.node().unwrap(), gpus, named, request.cpu_milli, request.memory_mib, movable))
            })
            .collect()
    }

    fn gangs(&self) -> (Vec<Option<Gang>>, (usize, u64)) {
        let gangs = self.live.gangs();
        ((1..4).map(|n| gangs.find(&format!("s/g{n}")).cloned()).collect(), gangs.waiting())
    }
}

fn nodes(cluster: &Cluster) -> Vec<(String, bool, u8, u32, u32)> {
    let node = |id: NodeId| {
        let node = cluster.node(id);
        (cluster.node_name(id).to_owned(), node.schedulable(), node.free_gpus(), node.cpu_free(), node.memory_free())
    };
    cluster.node_ids().map(node).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]
    #[test]
    fn the_end_is_the_same_whatever_the_way(steps in prop::collection::vec(step(), 1..80)) {
        let mut truth = Truth::new();
        let mut service = Service::new(&truth);
        // The kinds whose watch missed something: they are listed again, sooner or later.
        let mut broken = [false; KINDS.len()];
        for step in steps {
            match step {
                Step::Put(at, object, heard) => {
                    let heard = heard && !broken[at];
                    broken[at] |= !heard;
                    if heard {
                        service.mirror.put(KINDS[at], &object);
                    }
                    truth.insert((at, name_of(&object)), object);
                }
                Step::Delete(at, which, heard) => {
                    let Some(name) = of_kind(&truth, at).get(which).map(name_of) else { continue };
                    let heard = heard && !broken[at];
                    broken[at] |= !heard;
                    if heard {
                        service.mirror.delete(KINDS[at], &name);
                    }
                    truth.remove(&(at, name));
                }
                Step::List(at) => {
                    service.mirror.list(KINDS[at], &of_kind(&truth, at));
                    broken[at] = false;
                }
                Step::Sync => service.sync(),
                Step::Lost => service.mirror.rebuild(),
                Step::Crash => {
                    service = Service::new(&truth);
                    broken = [false; KINDS.len()];
                }
            }
        }
        for (at, &kind) in KINDS.iter().enumerate().filter(|(at, _)| broken[*at]) {
            service.mirror.list(kind, &of_kind(&truth, at));
        }
        service.sync();
        let fresh = Service::new(&truth);
        prop_assert_eq!(service.nodes(), fresh.nodes());
        prop_assert_eq!(service.jobs(), fresh.jobs());
        prop_assert_eq!(service.gangs(), fresh.gangs());
        if truth.keys().any(|(kind, _)| *kind < 2) {
            let items: Vec<&Value> = truth.values().collect();
            let dump = json!({"items": items}).to_string();
            let imported = read_kubernetes_from("dump", dump.as_bytes(), None).unwrap();
            let imported = nodes(&imported.snapshot.cluster);
            // A dump leaves pods out that have no room; here they hold what there is.
            for (ours, theirs) in fresh.nodes().into_iter().zip(&imported) {
                let full = ours.2 == 0 || ours.3 == 0 || ours.4 == 0;
                prop_assert!(full || ours == *theirs, "{ours:?}, imported {theirs:?}");
            }
            prop_assert_eq!(fresh.nodes().len(), imported.len());
        }
    }
}
