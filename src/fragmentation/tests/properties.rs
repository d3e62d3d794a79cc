//! What must hold for any demand.

use proptest::prelude::*;

use crate::fragmentation::{PhiStar, PoolFragmentation, phi_star, wcc};
use crate::workload::Demand;

/// A capacity, and counts of which some are large.
fn demands() -> impl Strategy<Value = (u8, Demand)> {
    let count = prop_oneof![3 => Just(0_u64), 3 => 0_u64..8, 2 => 0_u64..200, 1 => 0_u64..1_000_000];
    let fillers = prop_oneof![2 => Just(0_u64), 1 => 0_u64..20];
    (1_u8..=16, fillers, prop::collection::vec(count, 15)).prop_map(|(capacity, fillers, counts)| {
        let mut demand: Demand = (2..=capacity).zip(counts).collect();
        demand.add(1, fillers);
        (capacity, demand)
    })
}

/// Events: a size (1-based index into the pool's sizes), how many, whether they start.
fn events() -> impl Strategy<Value = (u8, Vec<(u8, u64, bool)>)> {
    (1_u8..=16).prop_flat_map(|capacity| {
        (Just(capacity), prop::collection::vec((0..=capacity, 1_u64..6, prop::bool::weighted(0.6)), 1..60))
    })
}

proptest! {
    #[test]
    fn one_instance_changes_phi_star_by_at_most_one((capacity, demand) in demands(), gpus in 1_u8..=16) {
        let gpus = gpus.min(capacity);
        let before = phi_star(capacity, &demand).unwrap().partial;
        let mut more = demand;
        more.add(gpus, 1);
        let after = phi_star(capacity, &more).unwrap().partial;
        prop_assert!(before.abs_diff(after) <= u64::from(gpus < capacity), "{before} -> {after}");
    }

    #[test]
    fn the_order_of_questions_changes_no_answer(capacity in 1_u8..=16, seeds in prop::collection::vec(any::<u64>(), 8)) {
        let demands: Vec<Demand> = seeds
            .iter()
            .map(|seed| (1..=capacity).map(|gpus| (gpus, seed >> (4 * (gpus - 1)) & 15)).collect())
            .collect();
        let (mut forwards, mut backwards) = (PhiStar::new(capacity), PhiStar::new(capacity));
        let mut answers: Vec<_> =
            demands.iter().map(|demand| (forwards.solve(demand).partial, forwards.fewest_nodes(demand))).collect();
        answers.reverse();
        let again: Vec<_> = demands
            .iter()
            .rev()
            .map(|demand| {
                let nodes = backwards.fewest_nodes(demand);
                (backwards.solve(demand).partial, nodes)
            })
            .collect();
        prop_assert_eq!(answers, again);
    }

    #[test]
    fn full_bins_change_nothing((capacity, demand) in demands(), pattern in 1_u8..=16, n in 0_u64..1000) {
        // Whole pairs of complementary sizes can always stay together.
        let small = pattern.min(capacity);
        let mut more = demand;
        more.add(small, n);
        more.add(capacity - small, n);
        prop_assert_eq!(phi_star(capacity, &demand).unwrap().partial, phi_star(capacity, &more).unwrap().partial);
    }

    #[test]
    fn bounds_hold_between_the_two_optima((capacity, demand) in demands()) {
        let mut solver = PhiStar::new(capacity);
        let (partial, nodes) = (solver.solve(&demand).partial, solver.fewest_nodes(&demand));
        // Nodes that are not partial are full.
        prop_assert!(nodes >= demand.gpus().div_ceil(u64::from(capacity)));
        prop_assert!(nodes * u64::from(capacity) <= demand.gpus() + nodes * u64::from(capacity - 1));
        let waste = nodes * u64::from(capacity) - demand.gpus();
        prop_assert!(partial <= nodes && (partial > 0) == (partial > 0 || waste > 0));
        if waste == 0 {
            prop_assert_eq!(partial, 0);
        }
    }

    #[test]
    fn the_running_account_equals_the_answer_from_scratch((capacity, events) in events()) {
        let mut pool = PoolFragmentation::new(capacity);
        for (gpus, n, starts) in events {
            if starts {
                pool.add(gpus, n);
            } else {
                let running = if gpus == 0 { 0 } else { pool.demand().count(gpus) };
                pool.remove(gpus, n.min(running));
            }
            let demand = *pool.demand();
            prop_assert_eq!(pool.gpus(), demand.gpus());
            prop_assert_eq!(pool.wcc(), wcc(capacity, &demand));
            prop_assert_eq!(pool.phi_star(), phi_star(capacity, &demand).unwrap().partial);
        }
    }

    #[test]
    fn undone_events_leave_no_trace((capacity, events) in events()) {
        let mut pool = PoolFragmentation::new(capacity);
        for (gpus, n, _) in &events {
            pool.add(*gpus, *n);
        }
        let (demand, phi, wcc) = (*pool.demand(), pool.phi_star(), pool.wcc());
        for (gpus, n, starts) in events {
            if starts {
                pool.add(gpus, n);
                pool.phi_star();
                pool.remove(gpus, n);
            } else {
                pool.remove(gpus, n);
                pool.phi_star();
                pool.add(gpus, n);
            }
        }
        prop_assert_eq!((*pool.demand(), pool.phi_star(), pool.wcc()), (demand, phi, wcc));
    }
}
