//! The recount: everything that a cluster keeps beside the ledger, worked out again from who holds what.

use super::composition::Composition;
use super::ledger::{Cluster, NOBODY};
use super::node::{Node, gpu_indices};

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
                composition: Composition::EMPTY,
                cpu_used: 0,
                memory_used: 0,
                ..node.clone()
            })
            .collect();
        let mut owners = vec![NOBODY; self.owners.len()];
        let mut running = vec![0; self.jobs.len()];
        for (number, instance) in self.instances.iter().enumerate() {
            let Some(node_id) = instance.node() else { continue };
            let request = self.request_of(instance.job());
            let node = &mut fresh[node_id.index()];
            let held = instance.gpus();
            if held.count_ones() != u32::from(request.gpus) || held & node.busy != 0 || held & !node.usable != 0 {
                return Err(format!("instance {number} on {} holds {held:#b}", self.node_name(node_id)));
            }
            node.busy |= held;
            node.anchors |= if request.gpus >= 2 { held } else { 0 };
            node.cpu_used += u64::from(request.cpu_milli);
            node.memory_used += u64::from(request.memory_mib);
            if request.gpus > 0 {
                node.composition = node.composition.with(request.gpus).ok_or("a node holds too much")?;
            }
            for gpu in gpu_indices(held) {
                owners[node.owners_at as usize + usize::from(gpu)] = number as u32;
            }
            running[instance.job().index()] += 1;
        }
        if let Some(i) = (0..fresh.len()).find(|&i| fresh[i] != self.nodes[i]) {
            return Err(format!("node {} is {:?}, recounted {:?}", i, self.nodes[i], fresh[i]));
        }
        if owners != self.owners {
            return Err("the owners of devices disagree with the instances".to_owned());
        }
        match (0..running.len()).find(|&i| running[i] != self.jobs[i].running) {
            Some(i) => Err(format!("job {i} runs {} instances, recounted {}", self.jobs[i].running, running[i])),
            None => Ok(()),
        }
    }
}
