//! Which days are ranked, and which are compared at all.

use super::*;

#[test]
fn quotients_are_compared_exactly() {
    let numbers = [1u128, 2, 3, 5, 7, 12, 355, 113, 1 << 60];
    let pairs: Vec<(u128, u128)> = numbers.iter().flat_map(|&a| numbers.map(|b| (a - 1, b))).collect();
    for (&(a, b), &(c, d)) in pairs.iter().flat_map(|one| pairs.iter().map(move |other| (one, other))) {
        assert_eq!(quotients((a, b), (c, d)), (a * d).cmp(&(c * b)), "{a}/{b} and {c}/{d}");
    }
    let huge = u128::MAX;
    assert_eq!(quotients((huge - 1, huge), (huge - 2, huge - 1)), Ordering::Greater);
    assert_eq!(quotients((huge, huge), (1, 1)), Ordering::Equal);
}

fn row(cell: u64, policy: &str, day: u32, peak: [u64; 3], finished: u64, jct: u128) -> SweepRow {
    let [peak_s, n_sif, busy] = peak;
    SweepRow {
        grid: "g".to_owned(),
        cell,
        cells: 9,
        trace: "t".to_owned(),
        policy: policy.to_owned(),
        day: Some(day),
        eta: None,
        nodes: 2,
        gpus: 16,
        move_cost_s: 8,
        seed: 0,
        discipline: "fifo".to_owned(),
        jobs: 3,
        finished,
        rejected: 0,
        waiting: 3 - finished,
        running: 0,
        makespan_s: 100,
        afr: (peak_s > 0).then(|| n_sif as f64 / (peak_s as f64 * 2.0)),
        agu: (peak_s > 0).then(|| busy as f64 / (peak_s as f64 * 16.0)),
        ajct_s: Some(jct as f64 / finished as f64),
        utilisation: None,
        wcc_coverage: None,
        n_sif_max: 1,
        peak_s,
        peak_n_sif_node_s: n_sif.into(),
        peak_busy_gpu_s: busy.into(),
        peak_fragmented_s: 0,
        jct_sum_s: jct,
        jct_p50_s: 0,
        jct_p99_s: 0,
        wait_sum_s: 0,
        wait_p50_s: 0,
        wait_p99_s: 0,
        migrations: 5,
        pauses: 5,
        gpu_seconds_lost: 3600,
        node_events: None,
        runs_killed: None,
        gpu_seconds_lost_by_failures: None,
    }
}

#[test]
fn days_are_ranked_where_they_can_be() {
    let mut rows = SweepRows::default();
    for row in [
        // Twice the time with thrice the SIF is worse; the same share of busy GPUs is a tie; the oracle is not asked.
        row(0, "compass", 0, [10, 10, 150], 3, 30),
        row(1, "best-fit", 0, [20, 30, 300], 3, 31),
        row(2, "sif-opt", 0, [5, 0, 80], 3, 29),
        // Nobody waits under one of them: no rank by AFR and AGU.
        row(3, "compass", 1, [0, 0, 0], 3, 40),
        row(4, "best-fit", 1, [1, 1, 1], 3, 39),
        row(5, "sif-opt", 1, [0, 0, 0], 3, 39),
        // A job never ends under one of them: no rank by AJCT.
        row(6, "compass", 2, [10, 1, 100], 2, 10),
        row(7, "best-fit", 2, [10, 2, 90], 3, 90),
        row(8, "sif-opt", 2, [9, 0, 80], 3, 80),
    ] {
        rows.add(row).unwrap();
    }
    let text = sweep_table(&rows);
    assert_eq!(days_not_compared(&rows), 0);
    assert_eq!(after(&text, "compass", 4), "3 2/2 1/2 2/2");
    assert_eq!(after(&text, "best-fit", 4), "3 0/2 1/2 1/2");
    assert_eq!(after(&text, "sif-opt", 4), "3 - - -");
    assert!(text.lines().any(|line| line == "cells     9"), "{text}");
    assert!(!text.contains("DAYS:"), "{text}");
    // No cluster at all: no rank by AFR and AGU.
    let mut rows = SweepRows::default();
    rows.add(SweepRow { nodes: 0, gpus: 0, ..row(8, "random", 3, [10, 2, 90], 3, 90) }).unwrap();
    assert_eq!(after(&sweep_table(&rows), "random", 4), "1 - 1/1 -");
}

/// What stands behind the name of a policy, in the last line that has it.
fn after(table: &str, policy: &str, cells: usize) -> String {
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let line = lines.iter().rfind(|line| line.contains(&policy) && line[0] != "policies").unwrap();
    let at = line.iter().position(|&cell| cell == policy).unwrap();
    line[at + 1..at + 1 + cells].join(" ")
}

#[test]
fn only_days_are_compared_that_every_policy_has() {
    let all = [
        row(0, "compass", 0, [10, 10, 100], 3, 30),
        row(1, "best-fit", 0, [10, 20, 90], 3, 40),
        row(2, "compass", 1, [10, 40, 100], 3, 50),
        row(3, "best-fit", 1, [10, 30, 90], 3, 60),
        row(4, "compass", 2, [10, 90, 100], 3, 900),
        row(5, "best-fit", 2, [10, 10, 150], 3, 30),
    ];
    let table = |wanted: &[u64]| {
        let mut rows = SweepRows::default();
        all.iter().filter(|row| wanted.contains(&row.cell)).for_each(|row| rows.add(row.clone()).unwrap());
        (sweep_table(&rows), days_not_compared(&rows))
    };
    // The bad day of one policy is not held against it while the other has not played it, and so does not move its mean.
    let (text, left_out) = table(&[0, 1, 2, 3, 4]);
    assert_eq!(after(&text, "compass", 9), "2 of 3 1/2 2/2 2/2 1.2500 13 0.625");
    assert_eq!(after(&text, "best-fit", 7), "2 1/2 0/2 0/2 1.2500 17 0.562");
    assert!(left_out == 1 && text.contains("\nDAYS: compared of those that have a row"), "{text}");
    assert_eq!(after(&table(&[0, 1, 2, 3]).0, "compass", 7), "2 1/2 2/2 2/2 1.2500 13 0.625");
    // Without a common day there is nothing to compare.
    let (text, left_out) = table(&[0, 3, 4]);
    assert_eq!(after(&text, "compass", 12), "0 of 2 - - - - - - - - -");
    assert_eq!((after(&text, "best-fit", 3), left_out), ("0 of 1".to_owned(), 3));
}
