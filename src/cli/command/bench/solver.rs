//! Φ* of random demands that no closed form covers.

use std::hint::black_box;
use std::time::Instant;

use super::{BenchRow, SEED, Size, row};
use crate::evaluate::synthetic::Numbers;
use crate::fragmentation::PhiStar;
use crate::workload::Demand;

pub(super) fn measure(size: &Size, rows: &mut Vec<BenchRow>) {
    let n = if size.passes > 1 { 2000 } else { 50 };
    for capacity in [8u8, 16] {
        let demands = demands(capacity, n);
        let clock = Instant::now();
        let mut solver = PhiStar::new(capacity);
        for demand in &demands {
            black_box(solver.solve(black_box(demand)));
        }
        let each = clock.elapsed().as_secs_f64() / demands.len() as f64;
        rows.push(row("phi_star", &format!("capacity {capacity}"), 1, each * 1e6, "µs/demand"));
    }
}

/// Demands of every size but 1, so that the Workload Composition Condition fails.
fn demands(capacity: u8, n: usize) -> Vec<Demand> {
    let mut numbers = Numbers::new(SEED);
    (0..n).map(|_| (2..=capacity).map(|gpus| (gpus, u64::from(numbers.below(1000)))).collect()).collect()
}
