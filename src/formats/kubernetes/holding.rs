//! What the pods of one node hold of it: for who follows a live cluster, where nodes and pods come and go one by one.
//!
//! What is said of a node need not fit together: devices fail under pods, what can be given out shrinks, and a pod may be
//! heard of before the one that left room for it has gone. Here it does: nothing is held twice, and nothing that is not
//! there.

use super::claim;
use super::device::{DeviceMap, Devices};
use super::view::{ClaimView, NodeView, PodView};
use crate::cluster::{GpuMask, MAX_AMOUNT};

/// What a pod holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Whole GPUs.
    pub gpus: u8,
    /// Which ones, where that is known.
    pub devices: Option<GpuMask>,
    /// Milli-cores.
    pub cpu_milli: u32,
    /// MiB.
    pub memory_mib: u32,
}

/// What the pods of a node hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// By pod: what it holds, if it holds whole GPUs.
    pub pods: Vec<Option<Holding>>,
    /// What all others hold.
    pub rest: Holding,
}

/// What pods hold of the node that they are on, none of which has ended; with each the claims whose devices it alone has.
/// Whoever comes first gets what there is too little of, those with certain devices before the others. Nothing is held of a
/// node without whole GPUs.
pub fn holdings(node: &NodeView, pods: &[(&PodView, Vec<&ClaimView>)]) -> Holdings {
    let Some((_, working)) = node.gpus() else {
        return Holdings { pods: vec![None; pods.len()], ..Holdings::default() };
    };
    let asked: Vec<(u64, Devices)> = pods
        .iter()
        .map(|(pod, claims)| {
            let (mut gpus, mut devices) = (pod.gpus, pod.devices.clone());
            claim::with_claims(&mut gpus, &mut devices, claims.iter().map(|claim| &claim.record));
            (gpus, devices)
        })
        .collect();
    let map = DeviceMap::new(node.record.hami.as_deref(), asked.iter().map(|(_, devices)| devices));
    // Which devices are withheld is not told: the highest.
    let mut free = ((1u32 << working) - 1) as GpuMask;
    let mut named = vec![None; pods.len()];
    for ((gpus, devices), named) in asked.iter().zip(&mut named) {
        let mask = map.mask(devices).filter(|mask| u64::from(mask.count_ones()) == *gpus && mask & !free == 0);
        *named = mask.filter(|&mask| mask != 0);
        free &= !named.unwrap_or(0);
    }
    let (cpu, memory) = node.amounts();
    let mut left = Left { gpus: free.count_ones() as u8, cpu_milli: room(cpu), memory_mib: room(memory) };
    let mut all = Holdings::default();
    let mut rest = (0u64, 0u64);
    for (((pod, _), (gpus, _)), devices) in pods.iter().zip(&asked).zip(named) {
        let gpus = match devices {
            Some(mask) => mask.count_ones() as u8,
            None => left.gpus(*gpus),
        };
        all.pods.push((gpus > 0).then(|| Holding {
            gpus,
            devices,
            cpu_milli: left.cpu(pod.cpu_milli.into()),
            memory_mib: left.memory(pod.memory_mib.into()),
        }));
        if gpus == 0 {
            rest = (rest.0 + u64::from(pod.cpu_milli), rest.1 + u64::from(pod.memory_mib));
        }
    }
    all.rest = Holding { cpu_milli: left.cpu(rest.0), memory_mib: left.memory(rest.1), ..Holding::default() };
    all
}

/// A node that sets no limit has as much as a job can ask for, many times.
fn room(limit: Option<u32>) -> u64 {
    limit.map_or(u64::MAX, u64::from)
}

/// What is left of a node.
struct Left {
    gpus: u8,
    cpu_milli: u64,
    memory_mib: u64,
}

impl Left {
    fn gpus(&mut self, asked: u64) -> u8 {
        let taken = asked.min(self.gpus.into()) as u8;
        self.gpus -= taken;
        taken
    }

    fn cpu(&mut self, asked: u64) -> u32 {
        take(&mut self.cpu_milli, asked)
    }

    fn memory(&mut self, asked: u64) -> u32 {
        take(&mut self.memory_mib, asked)
    }
}

fn take(left: &mut u64, asked: u64) -> u32 {
    let taken = asked.min(*left).min(MAX_AMOUNT.into()) as u32;
    *left -= u64::from(taken);
    taken
}

#[cfg(test)]
mod tests {
    use super::super::view::{read_claim_view, read_node_view, read_pod_view};
    use super::*;

    fn node(gpus: u8, devices: u8) -> NodeView {
        let json = format!(
            r#"{{"metadata":{{"name":"n"}},"status":{{"allocatable":{{"nvidia.com/gpu":"{gpus}","cpu":"4"}},"capacity":{{"nvidia.com/gpu":"{devices}"}}}}}}"#
        );
        read_node_view("node", json.as_bytes()).unwrap()
    }

    fn pod(gpus: u8, cpu: &str, index: &str) -> PodView {
        let json = format!(
            r#"{{"metadata":{{"name":"p","annotations":{{"volcano.sh/gpu-index":"{index}"}}}},"spec":{{"containers":[{{"resources":{{"limits":{{"nvidia.com/gpu":{gpus},"cpu":"{cpu}"}}}}}}]}}}}"#
        );
        read_pod_view("pod", json.as_bytes()).unwrap()
    }

    /// GPUs, devices and milli-cores.
    type Held = (u8, Option<GpuMask>, u32);

    fn held(node: &NodeView, pods: &[PodView]) -> (Vec<Option<Held>>, u32) {
        let pods: Vec<(&PodView, Vec<&ClaimView>)> = pods.iter().map(|pod| (pod, Vec::new())).collect();
        let all = holdings(node, &pods);
        let one = |held: Holding| (held.gpus, held.devices, held.cpu_milli);
        (all.pods.into_iter().map(|held| held.map(one)).collect(), all.rest.cpu_milli)
    }

    #[test]
    fn what_does_not_fit_is_cut_to_what_is_there() {
        let pods = [pod(4, "1", ""), pod(0, "2500m", ""), pod(4, "500m", "")];
        let [first, second] = [Some((4, None, 1000)), Some((4, None, 500))];
        assert_eq!(held(&node(8, 8), &pods), (vec![first, None, second], 2500));
        // A device fails under the last one, and then all but three.
        assert_eq!(held(&node(7, 8), &pods), (vec![first, None, Some((3, None, 500))], 2500));
        assert_eq!(held(&node(3, 8), &pods), (vec![Some((3, None, 1000)), None, None], 3000));
        let cpu = [pod(1, "3", ""), pod(1, "3", ""), pod(0, "1", "")];
        assert_eq!(held(&node(8, 8), &cpu), (vec![Some((1, None, 3000)), Some((1, None, 1000)), None], 0));
        assert_eq!(held(&node(0, 0), &cpu).0, [None; 3]);
    }

    #[test]
    fn devices_are_held_once_and_those_with_a_name_first() {
        let pods = [pod(6, "0", ""), pod(2, "0", "6,7"), pod(2, "0", "6,7"), pod(1, "0", "9")];
        let expected = vec![Some((6, None, 0)), Some((2, Some(0b1100_0000), 0)), None, None];
        assert_eq!(held(&node(8, 8), &pods).0, expected);
    }

    #[test]
    fn claims_say_how_many_devices_and_which() {
        let claim = r#"{"metadata":{"name":"c"},"status":{"allocation":{"devices":{"results":[
            {"driver":"gpu.nvidia.com","device":"gpu-3"},{"driver":"gpu.nvidia.com","device":"gpu-5"}]}}}}"#;
        let claim = read_claim_view("claim", claim.as_bytes()).unwrap();
        let pod = pod(0, "1", "");
        let all = holdings(&node(8, 8), &[(&pod, vec![&claim]), (&pod, vec![])]);
        let expected = Holding { gpus: 2, devices: Some(0b10_1000), cpu_milli: 1000, memory_mib: 0 };
        assert_eq!((all.pods, all.rest.cpu_milli), (vec![Some(expected), None], 1000));
    }
}
