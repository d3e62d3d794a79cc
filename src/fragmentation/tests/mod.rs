use super::*;
use std::collections::HashMap;
use std::time::Instant;
use rand::{RngExt, SeedableRng};

type Memo = HashMap<Vec<u8>, (u64, u64)>;

/// brute: (fewest partial, fewest bins), independent: items sorted desc, choose all subsets of bin for first item
fn brute(cap: usize, counts: &[u8], memo: &mut Memo) -> (u64, u64) {
    let Some(l) = (1..=cap).rev().find(|&g| counts[g] > 0) else { return (0, 0) };
    if let Some(&v) = memo.get(counts) { return v; }
    let mut best = (u64::MAX, u64::MAX);
    let mut c = counts.to_vec();
    c[l] -= 1;
    fn rec(cap: usize, g: usize, free: usize, c: &mut Vec<u8>, memo: &mut Memo, best: &mut (u64, u64)) {
        if g == 0 {
            let (p, b) = brute(cap, &c.clone(), memo);
            best.0 = best.0.min(p + u64::from(free > 0));
            best.1 = best.1.min(b + 1);
            return;
        }
        let old = c[g];
        for k in 0..=(free / g).min(old as usize) {
            c[g] = old - k as u8;
            rec(cap, g - 1, free - k * g, c, memo, best);
        }
        c[g] = old;
    }
    rec(cap, l, cap - l, &mut c, memo, &mut best);
    memo.insert(counts.to_vec(), best);
    best
}

fn all(cap: usize, g: usize, left: usize, c: &mut Vec<u8>, f: &mut impl FnMut(&[u8])) {
    if g == 0 { return f(c); }
    for k in 0..=left { c[g] = k as u8; all(cap, g - 1, left - k, c, f); }
    c[g] = 0;
}

fn demand_of(c: &[u8]) -> Demand { c.iter().enumerate().map(|(g, &n)| (g as u8, u64::from(n))).collect() }

#[test]
fn brute_small() {
    for (cap, items) in [(1,8),(2,8),(3, 10), (4, 12), (5, 10), (6, 9), (7, 9), (8, 8), (9,7),(10,7),(11, 7), (12, 6), (16, 5)] {
        let mut memo = Memo::new();
        let mut solver = PhiStar::new(cap as u8);
        let t = Instant::now();
        let mut n = 0;
        let mut methods: HashMap<&str, u64> = HashMap::new();
        all(cap, cap, items, &mut vec![0; cap + 1], &mut |c| {
            n += 1;
            let want = brute(cap, c, &mut memo);
            let d = demand_of(c);
            let got = solver.solve(&d);
            *methods.entry(got.method.name()).or_default() += 1;
            assert_eq!(got.partial, want.0, "partial {cap} {c:?} {got:?}");
            assert_eq!(solver.fewest_nodes(&d), want.1, "bins {cap} {c:?}");
        });
        eprintln!("cap {cap} n {n} {:?} {methods:?}", t.elapsed());
    }
}

#[test]
fn explore() {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    for cap in [6u8, 8, 11, 12, 15, 16] {
        for max in [5u64, 20, 100, 1000, 1_000_000] {
            for ones in [false, true] {
            let mut methods: HashMap<&str, u64> = HashMap::new();
            let mut slow = std::time::Duration::ZERO;
            let t = Instant::now();
            let rounds = std::env::var("ROUNDS").map_or(200, |r| r.parse().unwrap());
            for _ in 0..rounds {
                let mut d = Demand::new();
                for g in (if ones {1} else {2})..=cap { if rng.random_range(0..3) > 0 { d.add(g, rng.random_range(0..=max)); } }
                let mut solver = PhiStar::new(cap);
                let t = Instant::now();
                let s = solver.solve(&d);
                if std::env::var("BINS").is_ok() { solver.fewest_nodes(&d); }
                let e = t.elapsed();
                if e > slow { slow = e; }
                *methods.entry(s.method.name()).or_default() += 1;
            }
            eprintln!("cap {cap} max {max} ones {ones} mean {:?} worst {slow:?} {methods:?}", t.elapsed() / rounds);
            }
        }
    }
}
