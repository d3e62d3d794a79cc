//! Φ* and the fewest nodes against references that share nothing with the solver.

mod brute;
mod effort;
mod integer_program;
mod properties;

use super::*;
use brute::Brute;

fn demand(items: &[(u8, u64)]) -> Demand {
    items.iter().copied().collect()
}

/// Compares every multiset of up to `items` instances, one solver for all of them.
fn all_multisets(capacity: u8, items: u64) -> u64 {
    let mut brute = Brute::new(capacity);
    let mut solver = PhiStar::new(capacity);
    let mut compared = 0;
    brute::multisets(capacity, items, &mut |demand| {
        let best = brute.optimum(demand);
        assert_eq!(solver.solve(demand).partial, best.partial.0, "Φ* at capacity {capacity}: {demand:?}");
        assert_eq!(solver.fewest_nodes(demand), best.nodes, "fewest nodes at capacity {capacity}: {demand:?}");
        compared += 1;
    });
    compared
}

#[test]
fn every_multiset_of_up_to_eight_at_capacity_4_and_8() {
    assert_eq!(all_multisets(4, 8), 495);
    assert_eq!(all_multisets(8, 8), 12_870);
}

#[test]
fn every_multiset_of_up_to_eight_at_capacity_16() {
    assert_eq!(all_multisets(16, 8), 735_471);
}

#[test]
fn every_small_multiset_at_the_other_capacities() {
    for (capacity, items) in
        [(1, 8), (2, 8), (3, 10), (5, 9), (6, 9), (7, 8), (9, 7), (10, 6), (11, 6), (12, 6), (13, 5), (14, 5), (15, 5)]
    {
        all_multisets(capacity, items);
    }
}

#[test]
fn without_memory_the_answers_are_the_same() {
    let mut brute = Brute::new(8);
    brute::multisets(8, 6, &mut |demand| {
        let solution = phi_star(8, demand).unwrap();
        assert_eq!(solution.partial, brute.optimum(demand).partial.0, "{demand:?}");
        if let Some(wcc) = wcc(8, demand) {
            assert_eq!(wcc.holds, solution.method == Method::Wcc);
        }
    });
}

#[test]
fn known_demands() {
    let partial = |capacity, items: &[(u8, u64)]| phi_star(capacity, &demand(items)).unwrap().partial;
    assert_eq!(partial(8, &[]), 0);
    assert_eq!(partial(8, &[(1, 10), (3, 4), (5, 2)]), 0, "32 GPUs, and 5+3 need no filler");
    // The formula of the condition would say 1.
    assert_eq!(partial(6, &[(4, 2)]), 2);
    assert_eq!(partial(8, &[(8, 1_000_000), (7, 1_000_000)]), 1_000_000);
    assert_eq!(partial(16, &[(9, 5), (7, 5)]), 0);
}

#[test]
fn fewest_partial_may_need_more_nodes_than_fewest_nodes() {
    let demand = demand(&[(3, 4), (5, 2), (7, 4)]);
    let best = Brute::new(11).optimum(&demand);
    assert_eq!((best.partial, best.nodes), ((4, 6), 5));
    let mut solver = PhiStar::new(11);
    assert_eq!((solver.solve(&demand).partial, solver.fewest_nodes(&demand)), (4, 5));
}

#[test]
fn max_more_is_the_last_that_fits() {
    for capacity in [4, 8, 11, 16] {
        let mut solver = PhiStar::new(capacity);
        let mut brute = Brute::new(capacity);
        brute::multisets(capacity, 3, &mut |demand| {
            for gpus in 1..=capacity {
                for nodes in 0..=2 {
                    let more = solver.max_more(demand, gpus, nodes);
                    if demand.count(gpus) + more > 14 {
                        continue; // more than the reference can count
                    }
                    let fits = |more, brute: &mut Brute| {
                        let mut whole = *demand;
                        whole.add(gpus, more);
                        brute.optimum(&whole).nodes <= nodes
                    };
                    assert!(more == 0 || fits(more, &mut brute), "{more} of {gpus} beside {demand:?} on {nodes}");
                    assert!(!fits(more + 1, &mut brute), "{more} of {gpus} beside {demand:?} on {nodes}");
                }
            }
        });
    }
    let mut solver = PhiStar::new(8);
    assert_eq!(solver.max_more(&demand(&[(3, 100_001), (5, 7)]), 5, 100_000), 99_992);
    assert_eq!(solver.max_more(&Demand::new(), 3, 100_000), 200_000);
    assert_eq!(solver.max_more(&Demand::new(), 9, 10), 0);
    assert_eq!(solver.max_more(&Demand::new(), 0, 10), 0);
    assert_eq!(solver.max_more(&demand(&[(8, 11)]), 1, 10), 0);
}

#[test]
fn what_no_node_can_hold_is_an_error() {
    assert_eq!(phi_star(0, &Demand::new()), Err(DemandError::Capacity(0)));
    assert_eq!(phi_star(17, &Demand::new()), Err(DemandError::Capacity(17)));
    assert_eq!(phi_star(8, &demand(&[(9, 1)])), Err(DemandError::Size { gpus: 9, capacity: 8 }));
    let n = MAX_COUNT + 1;
    assert_eq!(phi_star(8, &demand(&[(3, n)])), Err(DemandError::Count { gpus: 3, n }));
    let largest: Demand = (1..=16).map(|gpus| (gpus, MAX_COUNT)).collect();
    assert_eq!(phi_star(16, &largest).map(|solution| solution.partial), Ok(0));
    let odd: Demand = [3, 5, 6, 7, 9, 11].map(|gpus| (gpus, MAX_COUNT - u64::from(gpus))).into_iter().collect();
    assert!(phi_star(16, &odd).is_ok());
}

#[test]
fn a_pool_without_usable_devices_is_empty() {
    assert_eq!(PhiStar::new(0).solve(&Demand::new()).partial, 0);
    assert_eq!(PhiStar::new(0).fewest_nodes(&Demand::new()), 0);
    assert_eq!(PoolFragmentation::new(0).phi_star(), 0);
}
