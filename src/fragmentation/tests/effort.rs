//! Sweeps for the time that hard demands take; run them by name, in the release profile, with `--ignored --nocapture`.
//! What they found is held to a number of steps, which no busy machine changes.

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

/// A random demand of the kinds that were found to be hard: mostly at capacity 16, with few 1-GPU instances, counts all
/// small, all large, or both.
fn maybe_hard(random: &mut ChaCha8Rng) -> (u8, Demand) {
    let capacity = if random.random_range(0..2) == 0 { 16 } else { random.random_range(9..=16_u8) };
    let most = [3, 8, 30, 100, 300, 3_000, 1_000_000][random.random_range(0..7_usize)];
    let share = random.random_range(1..=4);
    let even = random.random_range(0..2) == 0;
    let mut demand = Demand::new();
    for gpus in 1..capacity {
        if random.random_range(0..4) < share {
            let n = if even { random.random_range(0..=most) } else { skewed(random, most) };
            demand.add(gpus, if gpus == 1 { n.min(random.random_range(0..30)) } else { n });
        }
    }
    (capacity, demand)
}

/// One demand that resembles another.
fn mutated(random: &mut ChaCha8Rng, capacity: u8, demand: &Demand) -> Demand {
    let mut other = *demand;
    for _ in 0..random.random_range(1..=3) {
        let gpus = random.random_range(1..capacity);
        let n = other.count(gpus);
        match random.random_range(0..4) {
            0 => other.add(gpus, random.random_range(1..=3)),
            1 => other.remove(gpus, n.min(random.random_range(1..=3))),
            2 => other.remove(gpus, n / 2),
            _ => other.add(gpus, n),
        }
        let n = other.count(gpus);
        other.remove(gpus, n.saturating_sub(1_000_000));
    }
    other
}

/// What this thread has computed for so far: on a busy machine, time on the clock says little. Zero where the system does
/// not tell.
fn computed() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// Steps of both questions about a demand, and the time of the longer one.
fn cost(capacity: u8, demand: &Demand) -> (u64, Duration) {
    let mut solver = PhiStar::new(capacity);
    let start = computed();
    solver.solve(demand);
    let solved = computed();
    solver.fewest_nodes(demand);
    (solver.steps(), (solved - start).max(computed() - solved))
}

fn written(demand: &Demand) -> String {
    demand.sizes().map(|(gpus, n)| format!("{gpus}:{n}")).collect::<Vec<_>>().join(",")
}

/// A number from the environment.
fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// `SEED` and `ROUNDS` say which demands and how many.
#[test]
#[ignore = "a measurement"]
fn hunt() {
    let mut random = ChaCha8Rng::seed_from_u64(setting("SEED", 1));
    let mut slowest: Vec<(Duration, u64, String)> = Vec::new();
    for _ in 0..setting("ROUNDS", 200_000) {
        let (capacity, demand) = maybe_hard(&mut random);
        let (steps, took) = cost(capacity, &demand);
        if took > Duration::from_millis(5) || steps > 100 {
            slowest.push((took, steps, format!("G {capacity} {}", written(&demand))));
        }
    }
    slowest.sort_by(|a, b| b.cmp(a));
    for (took, steps, demand) in slowest.iter().take(10) {
        report(&format!("{took:?}, {steps} steps: {demand}"));
    }
}

/// Makes hard demands harder: keeps the slowest ones and changes them a little, over and over.
#[test]
#[ignore = "a measurement"]
fn climb() {
    let mut random = ChaCha8Rng::seed_from_u64(setting("SEED", 1));
    let mut hardest: Vec<(Duration, u64, u8, Demand)> = Vec::new();
    for round in 0..setting("ROUNDS", 12_000) {
        let (capacity, demand) = if round < 10_000 || random.random_range(0..8) == 0 {
            maybe_hard(&mut random)
        } else {
            let (_, _, capacity, demand) = hardest[random.random_range(0..hardest.len())];
            (capacity, mutated(&mut random, capacity, &demand))
        };
        let (steps, took) = cost(capacity, &demand);
        hardest.push((took, steps, capacity, demand));
        if hardest.len() >= 128 {
            hardest.sort_by_key(|&(took, ..)| std::cmp::Reverse(took));
            hardest.dedup_by_key(|&mut (.., demand)| demand);
            hardest.truncate(64);
        }
    }
    for (took, steps, capacity, demand) in hardest.iter().take(10) {
        report(&format!("{took:?}, {steps} steps: G {capacity} {}", written(demand)));
    }
}

/// The hardest demands that `hunt` and `climb` found at capacity 16, before or after the solver learned to settle them, and
/// their Φ*. HiGHS 1.16, an integer-program solver, gave the same values over all patterns, at an absolute gap of 0.5.
#[rustfmt::skip]
pub(super) const HARDEST: [(&[(u8, u64)], u64); 9] = [
    // Three 9 and five 11 stay after the pairs; each is odd and needs a 1 to fill its bin, but there are seven. So a bin
    // with one of them is partial, and as the total is 3 modulo 16, it is not the only one.
    (&[(1, 7), (2, 208), (4, 36), (7, 4), (8, 2), (9, 7), (10, 1), (11, 5), (16, 28)], 2),
    (&[(1, 11), (2, 73), (3, 85), (4, 86), (5, 83), (7, 51), (9, 14), (10, 35), (11, 3), (12, 59), (14, 24), (15, 8)], 2),
    (&[(1, 1), (2, 53), (3, 3), (4, 6), (5, 1), (6, 7), (7, 1), (8, 1), (9, 5), (10, 1), (11, 2)], 2),
    (&[(1, 27), (2, 70), (4, 16), (6, 48), (11, 7), (13, 23)], 4),
    (&[(1, 4), (2, 24), (3, 95), (4, 45), (5, 94), (6, 50), (7, 65), (8, 94), (9, 2), (10, 89), (11, 88), (12, 4)], 2),
    (&[(1, 2), (2, 30), (3, 3), (4, 85), (7, 1), (8, 3), (9, 4), (11, 4), (12, 4), (14, 5)], 3),
    (&[(1, 8), (2, 55), (3, 3), (4, 14), (5, 1), (8, 1), (9, 7), (10, 16), (11, 4), (12, 2), (13, 1), (14, 1), (15, 2)], 3),
    (&[(1, 7), (2, 27), (4, 30), (5, 8), (6, 29), (7, 13), (11, 3), (13, 22), (14, 14), (15, 4)], 20),
    (&[(1, 25), (2, 15_522), (3, 367), (4, 57_226), (5, 42), (6, 20_806), (7, 1), (8, 36_480), (9, 15), (10, 32_033),
       (11, 3), (12, 34_082), (14, 124)], 1),
];

#[test]
fn the_hardest_demands_take_few_steps() {
    for (items, partial) in HARDEST {
        let demand: Demand = items.iter().copied().collect();
        let mut solver = PhiStar::new(16);
        assert_eq!(solver.solve(&demand).partial, partial, "{}", written(&demand));
        assert!(solver.steps() <= 400, "{} steps: {}", solver.steps(), written(&demand));
    }
}

#[test]
fn no_random_demand_takes_many_steps() {
    let mut random = ChaCha8Rng::seed_from_u64(12);
    for _ in 0..4_000 {
        let (capacity, demand) = maybe_hard(&mut random);
        let (steps, _) = cost(capacity, &demand);
        assert!(steps <= 400, "{steps} steps at capacity {capacity}: {}", written(&demand));
    }
}
