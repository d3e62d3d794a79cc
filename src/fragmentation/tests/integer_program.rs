//! Larger demands against a foreign integer-program solver, over all patterns of the plain definition.

use microlp::{ComparisonOp, OptimizationDirection, Problem};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::fragmentation::{PhiStar, phi_star};
use crate::workload::Demand;

/// The fewest partial nodes and the fewest nodes by `microlp` (no gap allowed).
fn by_program(capacity: u8, demand: &Demand) -> (u64, u64) {
    let mut patterns = vec![(Demand::new(), u64::from(capacity))];
    for (gpus, have) in demand.sizes() {
        for at in 0..patterns.len() {
            let (mut pattern, mut free) = patterns[at];
            while free >= u64::from(gpus) && pattern.count(gpus) < have {
                pattern.add(gpus, 1);
                free -= u64::from(gpus);
                patterns.push((pattern, free));
            }
        }
    }
    patterns.remove(0);
    let optimum = |cost: &dyn Fn(u64) -> f64| {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let most = |pattern: &Demand| pattern.sizes().map(|(gpus, n)| demand.count(gpus) / n).min().unwrap_or(0);
        let uses: Vec<_> =
            patterns.iter().map(|(p, free)| problem.add_integer_var(cost(*free), (0, most(p) as i32))).collect();
        for (gpus, n) in demand.sizes() {
            let row = patterns.iter().zip(&uses).filter(|((pattern, _), _)| pattern.count(gpus) > 0);
            let row: Vec<_> = row.map(|((pattern, _), &use_)| (use_, pattern.count(gpus) as f64)).collect();
            problem.add_constraint(&row, ComparisonOp::Eq, n as f64);
        }
        let solution = problem.solve().expect("no failure").into_solution().expect("lone instances are a packing");
        solution.objective().round() as u64
    };
    (optimum(&|free| if free > 0 { 1.0 } else { 0.0 }), optimum(&|_| 1.0))
}

fn compare(capacity: u8, rounds: u32, most: u64, sizes: usize, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut warm = PhiStar::new(capacity);
    for _ in 0..rounds {
        let mut demand = Demand::new();
        for _ in 0..sizes {
            // Few 1-GPU instances, so that the closed form seldom answers.
            let gpus = random.random_range(1..=capacity);
            demand.add(gpus, random.random_range(0..=if gpus == 1 { most / 8 } else { most }));
        }
        let (partial, nodes) = by_program(capacity, &demand);
        assert_eq!(phi_star(capacity, &demand).unwrap().partial, partial, "{demand:?}");
        assert_eq!(warm.solve(&demand).partial, partial, "{demand:?}");
        assert_eq!(warm.fewest_nodes(&demand), nodes, "{demand:?}");
    }
}

#[test]
fn random_demands_at_capacity_4() {
    compare(4, 60, 500, 4, 4);
}

#[test]
fn random_demands_at_capacity_6_and_11() {
    compare(6, 40, 200, 4, 6);
    compare(11, 30, 60, 4, 11);
}

#[test]
fn random_demands_at_capacity_8() {
    compare(8, 40, 60, 5, 8);
    compare(8, 20, 300, 3, 88);
}

#[test]
fn random_demands_at_capacity_16() {
    compare(16, 25, 40, 4, 16);
    compare(16, 10, 8, 7, 1616);
}

#[test]
fn those_of_the_hardest_demands_that_this_solver_can_do() {
    for at in [3, 5, 6, 7] {
        let (items, partial) = super::effort::HARDEST[at];
        assert_eq!(by_program(16, &items.iter().copied().collect()).0, partial, "{items:?}");
    }
}
