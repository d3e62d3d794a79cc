//! Sweeps for the time that hard demands take; run them by name, in the release profile, with `--ignored --nocapture`.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::fragmentation::{PhiStar, PoolFragmentation};
use crate::workload::Demand;

fn report(line: &str) {
    let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{line}\n"));
}

/// Counts whose logarithm is uniform up to `most`, so that small and large ones meet.
fn skewed(random: &mut ChaCha8Rng, most: u64) -> u64 {
    let bits = random.random_range(0..=most.ilog2());
    random.random_range(0..=1_u64 << bits).min(most)
}

#[test]
#[ignore = "a measurement"]
fn cold_solvers() {
    for capacity in [6_u8, 8, 11, 12, 13, 14, 15, 16] {
        for most in [8_u64, 64, 1_000, 1_000_000] {
            for even in [false, true] {
                let mut random = ChaCha8Rng::seed_from_u64(7);
                let (mut worst, mut sum, mut hardest) = ([Duration::ZERO; 2], [Duration::ZERO; 2], Demand::new());
                let rounds = 20_000;
                for _ in 0..rounds {
                    let mut demand = Demand::new();
                    for gpus in 1..=capacity {
                        if random.random_range(0..2) == 0 {
                            let n = if even { random.random_range(0..=most) } else { skewed(&mut random, most) };
                            demand.add(gpus, n);
                        }
                    }
                    for which in 0..2 {
                        let mut solver = PhiStar::new(capacity);
                        let start = Instant::now();
                        if which == 0 {
                            solver.solve(&demand);
                        } else {
                            solver.fewest_nodes(&demand);
                        }
                        let took = start.elapsed();
                        sum[which] += took;
                        if took > worst[which] {
                            worst[which] = took;
                            hardest = demand;
                        }
                    }
                }
                let mut line = format!("G {capacity} n <= {most} {}:", if even { "uniform" } else { "skewed" });
                for which in 0..2 {
                    let _ = write!(line, " mean {:?} worst {:?}", sum[which] / rounds, worst[which]);
                }
                let _ = write!(line, " hardest {:?}", hardest.sizes().collect::<Vec<_>>());
                report(&line);
            }
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn walks() {
    for capacity in [8_u8, 16] {
        for instances in [300, 10_000] {
            let mut random = ChaCha8Rng::seed_from_u64(9);
            let sizes: &[u8] = if capacity == 8 { &[2, 3, 3, 4, 5, 6, 7] } else { &[2, 3, 5, 6, 7, 9, 10, 11, 12, 13] };
            let mut pool = PoolFragmentation::new(capacity);
            let events = 100_000;
            let mut running = 0;
            let (mut worst, start) = (Duration::ZERO, Instant::now());
            for _ in 0..events {
                let gpus = sizes[random.random_range(0..sizes.len())];
                if running < instances || random.random_range(0..2) == 0 {
                    let n = random.random_range(1..=4);
                    pool.add(gpus, n);
                    running += n;
                } else {
                    let n = pool.demand().count(gpus).min(random.random_range(1..=4));
                    pool.remove(gpus, n);
                    running -= n;
                }
                let start = Instant::now();
                pool.phi_star();
                worst = worst.max(start.elapsed());
            }
            report(&format!(
                "G {capacity}, about {instances} instances: {:?} an event, worst {worst:?}",
                start.elapsed() / events
            ));
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn audits() {
    for capacity in [8_u8, 16] {
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let mut demand = Demand::new();
        for gpus in 2..=capacity {
            demand.add(gpus, random.random_range(0..10_000));
        }
        let mut solver = PhiStar::new(capacity);
        let start = Instant::now();
        let more: Vec<u64> = (1..=capacity).map(|gpus| solver.max_more(&demand, gpus, 100_000)).collect();
        report(&format!("G {capacity}: max_more for all sizes in {:?}: {more:?}", start.elapsed()));
    }
}
