//! What exact Φ* costs where no closed form gives it.
#![allow(missing_docs, reason = "criterion's macros make public functions")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slotwise::fragmentation::{PhiStar, PoolFragmentation, phi_star};
use slotwise::workload::Demand;

/// Counts up to `most` of every size but 1, so that the Workload Composition Condition fails.
fn hard(random: &mut ChaCha8Rng, capacity: u8, most: u64) -> Demand {
    (2..capacity).map(|gpus| (gpus, random.random_range(0..=most))).collect()
}

fn single(criterion: &mut Criterion) {
    for capacity in [8_u8, 16] {
        for (name, demand) in [
            ("each size a million times", (1..=capacity).map(|gpus| (gpus, 1_000_000)).collect::<Demand>()),
            (
                "odd sizes, no fillers",
                (3..capacity).step_by(2).map(|gpus| (gpus, 1_000_000 - u64::from(gpus))).collect(),
            ),
        ] {
            criterion.bench_function(&format!("cold, capacity {capacity}, {name}"), |bencher| {
                bencher.iter(|| phi_star(capacity, black_box(&demand)));
            });
        }
        let mut random = ChaCha8Rng::seed_from_u64(1);
        criterion.bench_function(&format!("cold, capacity {capacity}, random counts up to a million"), |bencher| {
            bencher.iter_batched(
                || hard(&mut random, capacity, 1_000_000),
                |demand| phi_star(capacity, &demand),
                BatchSize::SmallInput,
            );
        });
    }
}

fn many(criterion: &mut Criterion) {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let demands: Vec<Demand> = (0..1_000).map(|_| hard(&mut random, 8, 150)).collect();
    criterion.bench_function("1,000 demands of some hundreds, capacity 8, one solver", |bencher| {
        bencher.iter(|| {
            let mut solver = PhiStar::new(8);
            demands.iter().map(|demand| solver.solve(demand).partial).sum::<u64>()
        });
    });
}

fn events(criterion: &mut Criterion) {
    for capacity in [8_u8, 16] {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut pool = PoolFragmentation::new(capacity);
        for gpus in 2..capacity {
            pool.add(gpus, 200);
        }
        criterion.bench_function(&format!("one event of a walk, capacity {capacity}"), |bencher| {
            bencher.iter(|| {
                let gpus = random.random_range(2..capacity);
                let running = pool.demand().count(gpus);
                if running == 0 || (running < 400 && random.random_range(0..2) == 0) {
                    pool.add(gpus, 1);
                } else {
                    pool.remove(gpus, 1);
                }
                pool.phi_star()
            });
        });
    }
}

criterion_group!(benches, single, many, events);
criterion_main!(benches);
