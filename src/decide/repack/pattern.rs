//! A packing of a demand onto the fewest nodes, read off an oracle that knows how many those are.
//!
//! The ways to fill a node are tried one after the other, each as often as the oracle says that the rest still fits onto the
//! rest of the nodes. That never has to be taken back. If a way can be taken `k` times, it can be taken fewer times (a node
//! of it more is room for the instances of it more), so the most is found by halving. And once a way was taken as often
//! as it can be, no packing of the rest uses it, or it could have been taken once more. So what is left always fits by
//! the ways that are still to come; and since those of the largest instances come first, these are gone when their ways
//! are.

use std::cmp::Reverse;

use crate::cluster::{Composition, MAX_GPUS};
use crate::fragmentation::PhiStar;
use crate::workload::Demand;

/// What nodes hold in a packing: a composition, and how many nodes hold it.
pub(super) type Packing = Vec<(Composition, u64)>;

/// A packing of a demand onto the fewest nodes of `capacity` GPUs. What is left free is together as far as the order of the
/// ways brings it about: the fullest come first.
///
/// O(ways · log instances) questions to the oracle; there are 66 ways at capacity 8 and 914 at 16.
pub(super) fn pack(capacity: u8, demand: &Demand, oracle: &mut PhiStar) -> Packing {
    let mut ways: Vec<Composition> = Composition::all(capacity).filter(|way| way.busy() > 0).collect();
    // The number makes it a total order.
    ways.sort_by_key(|way| (Reverse(largest(*way)), Reverse(way.busy()), Reverse(way.number())));
    let (mut left, mut nodes) = (*demand, oracle.fewest_nodes(demand));
    let mut packing = Vec::new();
    for way in ways {
        let (mut least, mut most) = (0, times(&left, way).min(nodes));
        while least < most {
            let middle = least + (most - least).div_ceil(2);
            if oracle.fewest_nodes(&without(&left, way, middle)) <= nodes - middle {
                least = middle;
            } else {
                most = middle - 1;
            }
        }
        if least > 0 {
            left = without(&left, way, least);
            nodes -= least;
            packing.push((way, least));
        }
    }
    debug_assert_eq!(left.gpus(), 0);
    packing
}

fn largest(way: Composition) -> u8 {
    sizes(way).last().map_or(0, |(size, _)| size)
}

/// The sizes of a way and how often it has each, ascending.
fn sizes(way: Composition) -> impl DoubleEndedIterator<Item = (u8, u64)> {
    (1..=MAX_GPUS as u8).map(move |size| (size, u64::from(way.count(size)))).filter(|&(_, n)| n > 0)
}

/// How often a demand has all that a way has.
fn times(demand: &Demand, way: Composition) -> u64 {
    sizes(way).map(|(size, n)| demand.count(size) / n).min().unwrap_or(0)
}

fn without(demand: &Demand, way: Composition, times: u64) -> Demand {
    let mut rest = *demand;
    sizes(way).for_each(|(size, n)| rest.remove(size, n * times));
    rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_best(capacity: u8, demand: &Demand) -> Result<(), TestCaseError> {
        let mut oracle = PhiStar::new(capacity);
        let packing = pack(capacity, demand, &mut oracle);
        let nodes: u64 = packing.iter().map(|(_, times)| times).sum();
        prop_assert_eq!(nodes, oracle.fewest_nodes(demand));
        for size in 1..=capacity {
            let packed: u64 = packing.iter().map(|(way, times)| u64::from(way.count(size)) * times).sum();
            prop_assert_eq!(packed, demand.count(size));
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_fewest_nodes_are_reached(counts in prop::collection::vec(0u64..60, 8)) {
            is_best(8, &(1u8..=8).zip(counts).collect())?;
        }

        #[test]
        fn and_at_other_capacities(capacity in 1u8..=12, counts in prop::collection::vec(0u64..6, 12)) {
            is_best(capacity, &(1..=capacity).zip(counts).collect())?;
        }
    }
}
