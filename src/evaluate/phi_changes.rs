//! ΔΦ* of candidates: on the host, since Φ* depends on demand counts alone.

use rustc_hash::FxHashMap;

use super::candidate::PoolChange;
use crate::anchor::State;
use crate::cluster::{Cluster, PerSize};
use crate::fragmentation::{NodeKind, PoolFragmentation, node_kind};

/// How many nodes hold nothing.
pub fn empty_nodes(cluster: &Cluster) -> u64 {
    let kinds = cluster.nodes().iter().map(|node| node_kind(node.composition().busy(), node.capacity()));
    kinds.filter(|&kind| kind == NodeKind::Empty).count() as u64
}

/// ΔΦ* of changes to what runs in the pools, each worked out once.
#[derive(Debug)]
pub struct PhiChanges {
    pools: Vec<PoolFragmentation>,
    known: FxHashMap<(u32, PerSize<i64>), i64>,
}

impl PhiChanges {
    /// From what runs in a state.
    pub fn new(state: &State) -> Self {
        let pools = state.pools().iter().map(|pool| pool.fragmentation().clone()).collect();
        Self { pools, known: FxHashMap::default() }
    }

    /// Φ* after less Φ* before.
    pub fn delta(&mut self, changes: &[PoolChange]) -> i64 {
        let mut sum = 0;
        for change in changes {
            let pool = &mut self.pools[change.pool.index()];
            sum += *self.known.entry((change.pool.0, change.delta)).or_insert_with(|| phi_change(pool, &change.delta));
        }
        sum
    }
}

fn phi_change(pool: &mut PoolFragmentation, delta: &PerSize<i64>) -> i64 {
    let before = pool.phi_star() as i64;
    let mut apply = |sign: i64| {
        for (gpus, &n) in (0u8..).zip(delta) {
            match n * sign {
                n if n > 0 => pool.add(gpus, n as u64),
                n if n < 0 => pool.remove(gpus, n.unsigned_abs()),
                _ => {}
            }
        }
        pool.phi_star() as i64
    };
    let after = apply(1);
    apply(-1);
    after - before
}
