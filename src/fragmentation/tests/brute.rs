//! The plain definition, by exhaustion, for up to 15 instances of a size.

use rustc_hash::FxHashMap;

use crate::workload::Demand;

/// What is least over all packings.
#[derive(Clone, Copy)]
pub(super) struct Optimum {
    /// Partial nodes, and the nodes of the smallest packing among those with so few partial ones.
    pub(super) partial: (u64, u64),
    /// Nodes.
    pub(super) nodes: u64,
}

/// Optima by trying every bin for the largest instance.
pub(super) struct Brute {
    capacity: u64,
    /// Counts in four bits a size (size 1 lowest) to the optimum.
    memory: FxHashMap<u64, Optimum>,
}

impl Brute {
    pub(super) fn new(capacity: u8) -> Self {
        Self { capacity: u64::from(capacity), memory: FxHashMap::default() }
    }

    pub(super) fn optimum(&mut self, demand: &Demand) -> Optimum {
        self.solve(pack(demand))
    }

    fn solve(&mut self, counts: u64) -> Optimum {
        if counts == 0 {
            return Optimum { partial: (0, 0), nodes: 0 };
        }
        if let Some(&known) = self.memory.get(&counts) {
            return known;
        }
        let mut best = Optimum { partial: (u64::MAX, u64::MAX), nodes: u64::MAX };
        for (rest, free) in bins(counts, self.capacity) {
            let Optimum { partial, nodes } = self.solve(rest);
            best.partial = best.partial.min((partial.0 + u64::from(free > 0), partial.1 + 1));
            best.nodes = best.nodes.min(nodes + 1);
        }
        self.memory.insert(counts, best);
        best
    }
}

/// What is left after each way to fill the bin of one largest instance, and the room left in that bin.
fn bins(counts: u64, capacity: u64) -> Vec<(u64, u64)> {
    let largest = u64::from(counts.ilog2() / 4);
    let mut ways = vec![(counts - (1 << (4 * largest)), capacity - (largest + 1))];
    for at in (0..=largest).rev() {
        for way in 0..ways.len() {
            let (mut rest, mut free) = ways[way];
            while rest >> (4 * at) & 15 > 0 && free > at {
                rest -= 1 << (4 * at);
                free -= at + 1;
                ways.push((rest, free));
            }
        }
    }
    ways
}

fn pack(demand: &Demand) -> u64 {
    assert!(demand.sizes().all(|(_, n)| n < 16), "too many instances for this reference");
    demand.sizes().map(|(gpus, n)| n << (4 * (gpus - 1))).sum()
}

/// Calls `found` with every multiset of up to `items` instances of 1 to `capacity` GPUs.
pub(super) fn multisets(capacity: u8, items: u64, found: &mut impl FnMut(&Demand)) {
    fn choose(gpus: u8, left: u64, demand: &mut Demand, found: &mut impl FnMut(&Demand)) {
        if gpus == 0 {
            return found(demand);
        }
        for n in 0..=left {
            demand.add(gpus, n);
            choose(gpus - 1, left - n, demand, found);
            demand.remove(gpus, n);
        }
    }
    choose(capacity, items, &mut Demand::new(), found);
}
