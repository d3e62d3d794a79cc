//! ΔΦ\* of changes to what runs in the pools, each worked out once: what a [`BatchBuilder`](super::BatchBuilder) asks.

use rustc_hash::FxHashMap;

use super::candidate::PoolChange;
use crate::anchor::State;
use crate::cluster::{Cluster, PerSize};
use crate::fragmentation::PoolFragmentation;

/// The fragmentation of all pools of a cluster, and what changes of demand would do to it.
#[derive(Clone, Debug)]
pub struct PhiChanges {
    pools: Vec<PoolFragmentation>,
    known: FxHashMap<(u32, PerSize<i64>), i64>,
}

impl PhiChanges {
    /// For what runs in a cluster now.
    pub fn new(cluster: &Cluster) -> Self {
        let state = State::new(cluster.clone());
        let pools = state.pools().iter().map(|pool| pool.fragmentation().clone()).collect();
        Self { pools, known: FxHashMap::default() }
    }

    /// Φ\* after these changes, less Φ\* now, summed over the pools.
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
