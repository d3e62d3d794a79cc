//! A sweep: the row of a cell, and the table that says on how many days each policy ranks first.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::number::{counted, grouped};
use super::simulate::Run;
use super::table::{Align, Rows, facts};
use crate::formats::{SweepRow, SweepRows};
use crate::simulate::{Played, Scheduler, Size, Sweep};

/// The row of a played cell; `trace`, `node_events` and `discipline` in the words of the command line.
pub fn sweep_row(sweep: &Sweep, trace: &str, node_events: Option<&str>, discipline: &str, played: Played) -> SweepRow {
    let Played { cell, nodes, gpus, outcome, summary } = played;
    let run = Run { outcome, summary };
    let Run { outcome, summary } = &run;
    let totals = &outcome.totals;
    SweepRow {
        grid: sweep.fingerprint().to_string(),
        cell: cell.number,
        cells: sweep.grid().n_cells(),
        trace: trace.to_owned(),
        policy: outcome.scheduler.to_string(),
        day: cell.day,
        eta: if let Size::Eta(eta) = cell.size { Some(eta.as_f64()) } else { None },
        nodes,
        gpus,
        move_cost_s: cell.move_cost_s,
        seed: cell.seed,
        discipline: discipline.to_owned(),
        jobs: summary.jobs,
        finished: summary.jct.n,
        rejected: summary.rejected,
        waiting: summary.waiting,
        running: summary.running,
        makespan_s: totals.seconds,
        afr: run.afr(nodes),
        agu: run.agu(gpus),
        ajct_s: summary.jct.mean(),
        utilisation: run.utilisation(gpus),
        wcc_coverage: run.wcc_coverage(),
        n_sif_max: totals.n_sif_max,
        peak_s: totals.peak_seconds,
        peak_n_sif_node_s: totals.peak_n_sif,
        peak_busy_gpu_s: totals.peak_busy,
        peak_fragmented_s: totals.fragmented_seconds,
        jct_sum_s: summary.jct.sum,
        jct_p50_s: summary.jct.p50,
        jct_p99_s: summary.jct.p99,
        wait_sum_s: summary.wait.sum,
        wait_p50_s: summary.wait.p50,
        wait_p99_s: summary.wait.p99,
        migrations: outcome.pauses.instances,
        pauses: outcome.pauses.pauses,
        gpu_seconds_lost: outcome.pauses.gpu_seconds_lost,
        node_events: node_events.map(str::to_owned),
        runs_killed: node_events.map(|_| outcome.lost.len() as u64),
        gpu_seconds_lost_by_failures: node_events.map(|_| outcome.gpu_seconds_lost_by_failures()),
    }
}

/// The measures that days are ranked by.
const MEASURES: usize = 3;

/// What one policy showed over the days of a block that are compared.
#[derive(Clone, Debug, Default)]
struct Line {
    /// Days of which there is a row.
    seen: u64,
    /// Those of which every policy has one.
    days: u64,
    /// Days on which no other policy was better, by AFR, AJCT and AGU.
    first: [u64; MEASURES],
    /// Days that can be ranked.
    ranked: [u64; MEASURES],
    /// Sums and numbers of the daily values.
    values: [(f64, u64); MEASURES],
    n_sif_max: u64,
    migrations: u64,
    gpu_seconds_lost: u128,
    /// Where there are events of nodes.
    killed: Option<u64>,
}

/// What the rows of one comparison share: the size, the cost and the seed.
type Block = (SizeKey, u64, u64);

/// The size of a cluster as rows tell it: by the share that made it, in parts of 10^9, or by its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SizeKey {
    Eta(u64),
    Nodes(u64),
}

impl SizeKey {
    fn of(row: &SweepRow) -> Self {
        // Shares have nine digits at most.
        row.eta.map_or(Self::Nodes(row.nodes), |eta| Self::Eta((eta * 1e9).round() as u64))
    }

    fn text(self) -> String {
        match self {
            Self::Eta(billionths) => format!("η {:.2}", billionths as f64 / 1e9),
            Self::Nodes(nodes) => counted(nodes, "node"),
        }
    }
}

/// The rows of one comparison on one day.
type OfDays<'r> = BTreeMap<(Block, Option<u32>), Vec<&'r SweepRow>>;

/// The rows by comparison and day, and the policies in the order in which they come.
fn by_day(rows: &SweepRows) -> (OfDays<'_>, Vec<&str>) {
    let mut days = OfDays::new();
    let mut policies: Vec<&str> = Vec::new();
    for row in rows.rows() {
        days.entry(((SizeKey::of(row), row.move_cost_s, row.seed), row.day)).or_default().push(row);
        if !policies.contains(&row.policy.as_str()) {
            policies.push(&row.policy);
        }
    }
    (days, policies)
}

/// Whether each policy has a row of a day.
fn is_whole(of_day: &[&SweepRow], policies: &[&str]) -> bool {
    policies.iter().all(|policy| of_day.iter().any(|row| row.policy == *policy))
}

/// On how many days, counted once for each size, cost and seed, some policies have a row and others have none.
pub fn days_not_compared(rows: &SweepRows) -> u64 {
    let (days, policies) = by_day(rows);
    days.values().filter(|of_day| !is_whole(of_day, &policies)).count() as u64
}

/// The table: for each size, cost and seed on how many days each policy ranks first, and its means.
///
/// Where rows are missing, only the days are compared of which every policy has one: ranks and means over different days
/// would say nothing of the policies. What is left out shows in the number of days.
///
/// A day is ranked by AFR and AGU if jobs wait on it under every policy, and by AJCT if as many jobs end under every
/// policy. Policies that tie for the best are first together. The oracle is shown and not ranked.
pub fn sweep_table(rows: &SweepRows) -> String {
    let (days, policies) = by_day(rows);
    let mut lines: BTreeMap<(Block, usize), Line> = BTreeMap::new();
    for ((block, _), of_day) in &days {
        let first = first_of_day(of_day);
        let whole = is_whole(of_day, &policies);
        for (row, first) in of_day.iter().zip(first) {
            let number = policies.iter().position(|&policy| policy == row.policy).unwrap_or(0);
            let line = lines.entry((*block, number)).or_default();
            line.seen += 1;
            if whole {
                line.add(row, first);
            }
        }
    }
    let mut text = head(rows, &policies);
    text += "\n";
    text += &body(&lines, &policies);
    text += "\nFIRST: days on which no other policy is better, of those that can be ranked. AFR, AJCT and AGU: means over days.\n";
    if lines.values().any(|line| line.days < line.seen) {
        text += "DAYS: compared of those that have a row; a day of which some policy has none is left out.\n";
    }
    text
}

fn head(rows: &SweepRows, policies: &[&str]) -> String {
    let missing: u64 = rows.missing().iter().map(|(from, to)| to - from + 1).sum();
    let cells = rows.sweep().map_or(0, |(_, cells)| cells);
    let mut lines = Vec::new();
    if let Some(row) = rows.rows().next() {
        lines.push(("trace", row.trace.clone()));
        lines.extend(row.node_events.iter().map(|events| ("events", events.clone())));
        lines.push(("queue", row.discipline.clone()));
    }
    lines.push(("policies", policies.join(", ")));
    lines.push((
        "cells",
        match missing {
            0 => grouped(cells),
            n => format!("{}, {} of them missing", grouped(cells), grouped(n)),
        },
    ));
    facts(&lines)
}

fn body(lines: &BTreeMap<(Block, usize), Line>, policies: &[&str]) -> String {
    let several_seeds = lines.keys().any(|((_, _, seed), _)| lines.keys().next().is_some_and(|f| f.0.2 != *seed));
    let right = |name| (name, Align::Right);
    let mut columns = vec![("SIZE", Align::Left), right("COST")];
    if several_seeds {
        columns.push(right("SEED"));
    }
    columns.push(("POLICY", Align::Left));
    let names = ["DAYS", "FIRST IN AFR", "AJCT", "AGU", "AFR", "AJCT", "AGU", "N·SIF ≤", "MOVES", "GPU-H LOST"];
    columns.extend(names.map(right));
    let failures = lines.values().any(|line| line.killed.is_some());
    if failures {
        columns.push(right("KILLED"));
    }
    let mut table = Rows::new(&columns);
    let mut last = None;
    for (&(block, policy), line) in lines {
        let (size, cost, seed) = block;
        let new = last != Some(block);
        last = Some(block);
        let show = |text: String| if new { text } else { String::new() };
        let mut cells = vec![show(size.text()), show(format!("{} s", grouped(cost)))];
        if several_seeds {
            cells.push(show(seed.to_string()));
        }
        cells.push(policies[policy].to_owned());
        cells.push(match line.days == line.seen {
            true => grouped(line.days),
            false => format!("{} of {}", grouped(line.days), grouped(line.seen)),
        });
        for measure in 0..MEASURES {
            cells.push(match line.ranked[measure] {
                0 => "-".to_owned(),
                ranked => format!("{}/{ranked}", line.first[measure]),
            });
        }
        let decimals = [4, 0, 3];
        for measure in 0..MEASURES {
            let (sum, n) = line.values[measure];
            let mean = sum / n as f64;
            cells.push(match (n, decimals[measure]) {
                (0, _) => "-".to_owned(),
                (_, 0) => grouped(mean.round() as i128),
                (_, decimals) => format!("{mean:.decimals$}"),
            });
        }
        let mut sums = vec![grouped(line.n_sif_max), grouped(line.migrations)];
        sums.push(format!("{:.1}", line.gpu_seconds_lost as f64 / 3600.0));
        if failures {
            sums.push(grouped(line.killed.unwrap_or(0)));
        }
        // Of no day there is no largest value, nor a sum.
        cells.extend(sums.into_iter().map(|sum| if line.days > 0 { sum } else { "-".to_owned() }));
        table.push(cells);
    }
    table.text()
}

impl Line {
    /// Adds a day; by each measure, whether it is first, if the day can be ranked.
    fn add(&mut self, row: &SweepRow, first: [Option<bool>; MEASURES]) {
        self.days += 1;
        for (measure, value) in [row.afr, row.ajct_s, row.agu].into_iter().enumerate() {
            self.ranked[measure] += u64::from(first[measure].is_some());
            self.first[measure] += u64::from(first[measure] == Some(true));
            if let Some(value) = value {
                self.values[measure].0 += value;
                self.values[measure].1 += 1;
            }
        }
        self.n_sif_max = self.n_sif_max.max(row.n_sif_max);
        self.migrations = self.migrations.saturating_add(row.migrations);
        self.gpu_seconds_lost = self.gpu_seconds_lost.saturating_add(row.gpu_seconds_lost);
        if let Some(killed) = row.runs_killed {
            self.killed = Some(self.killed.unwrap_or(0).saturating_add(killed));
        }
    }
}

/// For each row of a day and each measure whether it is the best; `None` where the day or the row cannot be ranked.
fn first_of_day(rows: &[&SweepRow]) -> Vec<[Option<bool>; MEASURES]> {
    let oracle = Scheduler::SifOpt.to_string();
    let rivals: Vec<&SweepRow> = rows.iter().copied().filter(|row| row.policy != oracle).collect();
    // A row that says that there was no cluster was not written by a sweep.
    let waits = rivals.iter().all(|row| row.peak_s > 0 && row.nodes > 0 && row.gpus > 0);
    let ends = rivals.iter().all(|row| row.finished > 0 && row.finished == rivals[0].finished);
    // Less is better: of AFR, of AJCT, and of what AGU leaves idle.
    let keys = |row: &SweepRow| {
        let peak = u128::from(row.peak_s);
        let idle = (peak * u128::from(row.gpus)).saturating_sub(row.peak_busy_gpu_s);
        let nodes = u128::from(row.nodes);
        [
            (row.peak_n_sif_node_s, peak * nodes),
            (row.jct_sum_s, row.finished.into()),
            (idle, peak * u128::from(row.gpus)),
        ]
    };
    let can = [waits, ends, waits];
    let of = |row: &&SweepRow| {
        let mine = keys(row);
        std::array::from_fn(|measure| {
            let best = || rivals.iter().all(|rival| quotients(mine[measure], keys(rival)[measure]).is_le());
            (can[measure] && row.policy != oracle).then(best)
        })
    };
    rows.iter().map(of).collect()
}

/// Compares two quotients, exactly, whatever the size of their parts; the divisors must not be 0.
fn quotients((mut a, mut b): (u128, u128), (mut c, mut d): (u128, u128)) -> Ordering {
    loop {
        let whole = (a / b).cmp(&(c / d));
        let (left, right) = (a % b, c % d);
        if whole.is_ne() || left == 0 || right == 0 {
            return whole.then(left.min(1).cmp(&right.min(1)));
        }
        // Of two fractions below 1 the one whose inverse is less is greater.
        (a, b, c, d) = (d, right, b, left);
    }
}

#[cfg(test)]
mod tests;
