//! Which nodes may host a request, as far as the cluster itself can tell.

use super::ids::{NodeId, PoolId};
use super::ledger::Cluster;
use super::request::Request;

impl Cluster {
    /// Whether a node may host an instance of this request as far as model and cordon go: the part of a request that
    /// no load changes.
    pub fn admits(&self, node: NodeId, request: &Request) -> bool {
        let node = self.node(node);
        node.schedulable && self.pool_admits(node.pool, request)
    }

    /// Whether the nodes of a pool have a model that the request allows.
    pub fn pool_admits(&self, pool: PoolId, request: &Request) -> bool {
        match &request.models {
            None => true,
            Some(models) => self.pool(pool).model.is_some_and(|model| models.binary_search(&model).is_ok()),
        }
    }

    /// The pools whose nodes are large enough for a request and of a model that it allows, ascending.
    pub fn pools_for(&self, request: &Request) -> impl Iterator<Item = PoolId> {
        let all = (0..self.pools().len() as u32).map(PoolId);
        all.filter(|&id| self.pool(id).capacity >= request.gpus && self.pool_admits(id, request))
    }

    /// Whether the node's free CPU and memory are enough for one instance more.
    pub fn has_cpu_and_memory(&self, node: NodeId, request: &Request) -> bool {
        self.node(node).has_cpu_and_memory(request.cpu_milli, request.memory_mib)
    }
}
