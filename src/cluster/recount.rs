//! The recount: everything that a cluster keeps beside the ledger, worked out again from who holds what.

use rustc_hash::FxHashMap;

use super::capacity::MAX_GPUS;
use super::composition::Composition;
use super::ids::NodeId;
use super::ledger::{Cluster, NOBODY, SHARED};
use super::node::{Node, gpu_indices};
use super::request::WHOLE_GPU;

impl Cluster {
    /// Recounts everything that is derived and compares. For tests, debug builds and `verify`. O(nodes + instances).
    ///
    /// # Errors
    /// A sentence that names the first node or instance that disagrees.
    pub fn check_books(&self) -> Result<(), String> {
        let mut fresh: Vec<Node> = self
            .nodes
            .iter()
            .map(|node| Node {
                busy: 0,
                anchors: 0,
                shared: 0,
                composition: Composition::EMPTY,
                cpu_used: 0,
                memory_used: 0,
                ..node.clone()
            })
            .collect();
        let mut owners = vec![NOBODY; self.owners.len()];
        let mut running = vec![0; self.jobs.len()];
        let mut shares: FxHashMap<NodeId, [u16; MAX_GPUS]> = FxHashMap::default();
        for (number, instance) in self.instances.iter().enumerate() {
            let Some(node_id) = instance.node() else { continue };
            let request = self.request_of(instance.job());
            let node = &mut fresh[node_id.index()];
            let held = instance.gpus();
            // Shares may lie on a device that shares lie on, and on no other that is held.
            let taken = if request.is_share() { node.busy & !node.shared } else { node.busy };
            if held.count_ones() != u32::from(request.gpus) || held & taken != 0 || held & !node.usable != 0 {
                return Err(format!("instance {number} on {} holds {held:#b}", self.node_name(node_id)));
            }
            node.cpu_used += u64::from(request.cpu_milli);
            node.memory_used += u64::from(request.memory_mib);
            running[instance.job().index()] += 1;
            let opens = held & node.busy == 0;
            if request.is_share() {
                let used = &mut shares.entry(node_id).or_default()[held.trailing_zeros() as usize];
                *used += request.gpu_milli;
                if *used > WHOLE_GPU {
                    return Err(format!("shares on {} hold {used} thousandths of a GPU", self.node_name(node_id)));
                }
                node.shared |= held;
            }
            node.busy |= held;
            node.anchors |= if request.gpus >= 2 { held } else { 0 };
            if request.gpus > 0 && opens {
                node.composition = node.composition.with(request.gpus).ok_or("a node holds too much")?;
            }
            let owner = if request.is_share() { SHARED } else { number as u32 };
            for gpu in gpu_indices(held) {
                owners[node.owners_at as usize + usize::from(gpu)] = owner;
            }
        }
        if let Some(i) = (0..fresh.len()).find(|&i| fresh[i] != self.nodes[i]) {
            return Err(format!("node {} is {:?}, recounted {:?}", i, self.nodes[i], fresh[i]));
        }
        if owners != self.owners {
            return Err("the owners of devices disagree with the instances".to_owned());
        }
        if shares != self.shares {
            return Err("the thousandths of shared devices disagree with the instances".to_owned());
        }
        match (0..running.len()).find(|&i| running[i] != self.jobs[i].running) {
            Some(i) => Err(format!("job {i} runs {} instances, recounted {}", self.jobs[i].running, running[i])),
            None => Ok(()),
        }
    }
}
