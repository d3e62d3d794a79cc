//! The queries that backends are compared on.

use super::super::fgd::FgdQuery;
use super::super::query::{NodeOrder, NodeQuery};
use super::super::synthetic::Numbers;
use crate::cluster::{Cluster, DomainId, MAX_GPUS, NodeId, RackId, Request, WHOLE_GPU};
use crate::fragmentation::fgd::Typical;

/// The numbers of nodes wanted a class, up to the most that is promised.
pub(super) const WANTED: [usize; 6] = [5, 1, 64, 1024, 300, 32];

/// At least so many classes, of every size and order, with all kinds of restrictions; `k` nodes wanted for each.
pub(super) fn query(cluster: &Cluster, least: usize, k: usize, seed: u64) -> NodeQuery {
    let mut numbers = Numbers::new(seed);
    let mut query = NodeQuery::new(cluster, k);
    let nodes = cluster.nodes().len() as u32;
    while query.len() < least {
        for gpus in 0..=MAX_GPUS as u8 + 1 {
            for order in NodeOrder::ALL {
                push(&mut query, cluster, nodes, (gpus, order), &mut numbers);
            }
        }
    }
    query
}

fn push(query: &mut NodeQuery, cluster: &Cluster, nodes: u32, (gpus, order): (u8, NodeOrder), numbers: &mut Numbers) {
    let node = (nodes > 0).then(|| cluster.node(NodeId(numbers.below(nodes))));
    let model = node.and_then(|node| cluster.pool(node.pool()).model);
    let request = Request {
        gpus,
        gpu_milli: WHOLE_GPU,
        cpu_milli: 64_000 * numbers.below(2),
        memory_mib: 600_000 * numbers.below(2),
        models: model.filter(|_| numbers.below(2) == 0).map(|model| [model].into()),
        within: None,
    };
    let domain: Option<DomainId> = node.and_then(|node| node.domain()).filter(|_| numbers.below(4) == 0);
    let rack: Option<RackId> = node.and_then(|node| node.rack()).filter(|_| numbers.below(4) == 0);
    query.push(cluster, &request, order, domain, rack);
}

/// Classes of every size, many of them shares, against typical pods like them.
pub(super) fn fgd_query(cluster: &Cluster, seed: u64) -> FgdQuery {
    let mut numbers = Numbers::new(seed);
    let nodes = cluster.nodes().len() as u32;
    let mut typical: Vec<(Request, u64)> = Vec::new();
    for _ in 0..36 {
        // The least popular are left out; some counts need all 32 bits.
        let count = [1, 7, 1 << 20, u64::from(u32::MAX)][numbers.below(4) as usize];
        typical.push((fgd_request(cluster, nodes, &mut numbers), count));
    }
    let typical = Typical::new(cluster, typical.iter().map(|(request, count)| (request, *count)));
    let mut query = FgdQuery::new(cluster, &typical);
    for _ in 0..6 {
        query.push(cluster, &fgd_request(cluster, nodes, &mut numbers));
    }
    query
}

fn fgd_request(cluster: &Cluster, nodes: u32, numbers: &mut Numbers) -> Request {
    let node = (nodes > 0).then(|| cluster.node(NodeId(numbers.below(nodes))));
    let model = node.and_then(|node| cluster.pool(node.pool()).model);
    let gpus = [0, 1, 1, 1, 1, 2, 4, 8, 16][numbers.below(9) as usize];
    let share = gpus == 1 && numbers.below(4) > 0;
    Request {
        gpus,
        gpu_milli: if share { 1 + numbers.below(u32::from(WHOLE_GPU) - 1) as u16 } else { WHOLE_GPU },
        cpu_milli: 500 * numbers.below(40) * numbers.below(2),
        memory_mib: 600_000 * u32::from(numbers.below(8) == 0),
        models: model.filter(|_| numbers.below(3) == 0).map(|model| [model].into()),
        within: None,
    }
}
