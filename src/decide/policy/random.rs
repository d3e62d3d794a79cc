//! Random: each instance goes to any node that fits, all equally likely; of domains or racks any that holds the gang.
//!
//! The null hypothesis of every comparison. Draws are keyed by the seed and the job's place in the queue, so a decision
//! depends neither on how many draws earlier jobs took nor on windows or threads. The generator is SplitMix64 (Steele,
//! Lea, Flood, *Fast splittable pseudorandom number generators*, 2014); bounded numbers are drawn without bias by
//! multiplication and rejection (Lemire, *Fast random integer generation in an interval*, 2019).

use crate::anchor::State;
use crate::cluster::NodeId;
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
            // The low half is below 2^64 mod n for the few draws that would make small results likelier.
            if product as u64 >= n.wrapping_neg() % n {
                return (product >> 64) as u64;
            }
        }
    }
}

/// Draws before the nodes that fit are counted: where one node in sixteen fits, two jobs in a hundred get that far.
const TRIES: u32 = 64;

/// A node for one instance more, if any fits.
///
/// Drawing from all nodes until one fits and, after some tries, from those that fit are equally fair, so their mixture
/// is. The first takes a few steps unless the cluster is nearly full, and then few nodes are left to count.
pub(in crate::decide) fn choose(draws: &mut Draws, state: &State, need: &Need) -> Option<NodeId> {
    let all: u64 = need.pools.iter().map(|&id| state.pool(id).nodes().len() as u64).sum();
    if all == 0 {
        return None;
    }
    for _ in 0..TRIES {
        let node = nth_node(state, need, draws.below(all))?;
        if need.fits(state.cluster().node(node)) {
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

/// All nodes that fit, each once, in an order that only the state decides.
fn fitting<'a>(state: &'a State, need: &'a Need) -> impl Iterator<Item = NodeId> + 'a {
    let sets = need.pools.iter().flat_map(move |&id| {
        let pool = state.pool(id);
        (need.gpus..=pool.capacity()).filter_map(move |free| Some((pool, pool.with_free(free)?)))
    });
    let nodes = sets.flat_map(|(pool, set)| set.iter().map(move |position| pool.node_at(position)));
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
