//! Random: each instance goes to any node that fits, all equally likely; of domains or racks any that holds the gang.
//!
//! The null hypothesis of every comparison. Draws are keyed by the seed and the job's place in the queue, so a decision
//! depends neither on how many draws earlier jobs took nor on windows or threads. The generator is SplitMix64 (Steele,
//! Lea, Flood, *Fast splittable pseudorandom number generators*, 2014); bounded numbers are drawn without bias by
//! multiplication and rejection (Lemire, *Fast random integer generation in an interval*, 2019).

use crate::anchor::{PoolState, State};
use crate::cluster::{NodeId, NodeSet};
use crate::decide::need::Need;

/// The random numbers of one job.
#[derive(Clone, Debug)]
pub(in crate::decide) struct Draws {
    state: u64,
}

impl Draws {
    pub(in crate::decide) fn new(seed: u64, index: usize) -> Self {
        // Mixed once, so that neighbouring seeds and indices share no stretch of the sequence.
        let mut draws = Self { state: seed };
        Self { state: draws.next() ^ index as u64 }.mixed()
    }

    fn mixed(mut self) -> Self {
        Self { state: self.next() }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, all equally likely. `n` is not 0.
    pub(in crate::decide) fn below(&mut self, n: u64) -> u64 {
        loop {
            let product = u128::from(self.next()) * u128::from(n);
            // The low half is below 2^64 mod n for the few draws that would make small results likelier. That is less than
            // n, so the division is seldom needed.
            let low = product as u64;
            if low >= n || low >= n.wrapping_neg() % n {
                return (product >> 64) as u64;
            }
        }
    }
}

/// The most draws of one kind. Where fewer than one node in so many has the GPUs, none are made from all nodes.
const TRIES: u32 = 32;

/// A node for one instance more, if any fits.
///
/// First draws from all nodes, if enough of them have the GPUs; then from those that have the GPUs, whose number the
/// index knows; last from those that have the CPU and memory too, which must be counted. A draw that does not fit is
/// repeated, so each kind is fair among the nodes that fit, and so is their mixture.
pub(in crate::decide) fn choose(draws: &mut Draws, state: &State, need: &Need) -> Option<NodeId> {
    let (mut all, mut with_gpus) = (0, 0);
    for &id in &need.pools {
        let pool = state.pool(id);
        all += pool.nodes().len() as u64;
        with_gpus += (need.gpus..=pool.capacity()).map(|free| u64::from(pool.n_with_free(free))).sum::<u64>();
    }
    if with_gpus == 0 {
        return None;
    }
    if with_gpus * u64::from(TRIES) >= all {
        for _ in 0..TRIES {
            let node = nth_node(state, need, draws.below(all))?;
            if need.fits(state.cluster().node(node)) {
                return Some(node);
            }
        }
    }
    for _ in 0..TRIES {
        let node = nth_with_gpus(state, need, draws.below(with_gpus))?;
        if need.has_cpu_and_memory(state.cluster().node(node)) {
            return Some(node);
        }
    }
    let n = fitting(state, need).count() as u64;
    if n == 0 { None } else { fitting(state, need).nth(draws.below(n) as usize) }
}

fn nth_node(state: &State, need: &Need, mut n: u64) -> Option<NodeId> {
    for &id in &need.pools {
        let nodes = state.pool(id).nodes();
        match nodes.get(n as usize) {
            Some(&node) => return Some(node),
            None => n -= nodes.len() as u64,
        }
    }
    None
}

/// Schedulable nodes that have the GPUs, in sets by pool and number of free GPUs.
fn with_gpus<'a>(state: &'a State, need: &'a Need) -> impl Iterator<Item = (&'a PoolState, &'a NodeSet)> + 'a {
    need.pools.iter().flat_map(move |&id| {
        let pool = state.pool(id);
        (need.gpus..=pool.capacity()).filter_map(move |free| Some((pool, pool.with_free(free)?)))
    })
}

/// One of those nodes.
fn nth_with_gpus(state: &State, need: &Need, mut n: u64) -> Option<NodeId> {
    for (pool, set) in with_gpus(state, need) {
        match n.checked_sub(u64::from(set.len())) {
            None => return set.nth(n as u32).map(|position| pool.node_at(position)),
            Some(rest) => n = rest,
        }
    }
    None
}

/// All nodes that fit, each once, in an order that only the state decides.
fn fitting<'a>(state: &'a State, need: &'a Need) -> impl Iterator<Item = NodeId> + 'a {
    let nodes = with_gpus(state, need).flat_map(|(pool, set)| set.iter().map(move |position| pool.node_at(position)));
    nodes.filter(|&node| need.has_cpu_and_memory(state.cluster().node(node)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_fair_and_differ_by_job() {
        for n in [1, 2, 3, 7, 10] {
            let mut counts = vec![0u32; n];
            for index in 0..3000 {
                counts[Draws::new(5, index).below(n as u64) as usize] += 1;
            }
            let expected = 3000 / n as u32;
            assert!(counts.iter().all(|&count| count.abs_diff(expected) < 200), "{counts:?}");
        }
    }
}
