//! What became of a queue, in one table.

use std::time::Duration;

use super::asks::{asks, refusal_text};
use super::first::{FirstDecisions, explained};
use super::number::{counted, grouped, percent, rate, seconds, signed, thousandths};
use super::table::{Align, Rows, facts};
use crate::anchor::State;
use crate::cluster::{Cluster, WHOLE_GPU};
use crate::decide::{Decision, Status, Why};

/// Blocked jobs that the table names.
const NAMED: usize = 10;

/// Every reason why a job is blocked, in the order of their precedence.
const REASONS: [Why; 4] = [Why::Capacity, Why::Fragmentation, Why::Constraint, Why::Space];

/// Counts of decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Jobs that were placed.
    pub placed: u64,
    /// Instances of those.
    pub instances: u64,
    /// Jobs that were blocked, by `REASONS`.
    blocked: [u64; 4],
    /// Jobs that left.
    pub removed: u64,
    /// Jobs that were to leave and did not run.
    pub absent: u64,
    /// Instances that were moved.
    pub migrations: u64,
    /// The GPUs of those.
    pub migrated_gpus: u64,
    /// The sum of N·ΔSIF.
    pub delta_sif_nodes: i64,
    /// The first few decisions.
    first: FirstDecisions,
    /// The first few blocked jobs.
    first_blocked: Vec<BlockedJob>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct BlockedJob {
    job: String,
    asks: String,
    why: Why,
    proven: Option<bool>,
}

impl Tally {
    /// Counts one decision more.
    pub fn add(&mut self, cluster: &Cluster, decision: &Decision) {
        self.first.add(cluster, decision);
        match decision.status {
            Status::Placed => {
                self.placed += 1;
                self.instances += decision.placements.len() as u64;
            }
            Status::Blocked(why) => {
                let reason = REASONS.iter().position(|&reason| reason == why);
                self.blocked.iter_mut().zip(0..).for_each(|(n, at)| *n += u64::from(reason == Some(at)));
                if self.first_blocked.len() < NAMED {
                    let job = cluster.whole_job_name(decision.job).to_owned();
                    let asks = asks(cluster, decision.job);
                    self.first_blocked.push(BlockedJob { job, asks, why, proven: decision.proven });
                }
            }
            Status::Removed => self.removed += 1,
            Status::Absent => self.absent += 1,
        }
        self.migrations += decision.migrations.len() as u64;
        self.migrated_gpus += decision.migrations.iter().map(|one| u64::from(one.gpus.count_ones())).sum::<u64>();
        self.delta_sif_nodes += decision.delta_sif_nodes.unwrap_or(0);
    }

    /// Jobs that were blocked.
    pub fn n_blocked(&self) -> u64 {
        self.blocked.iter().sum()
    }

    /// Jobs that were blocked, by the reason.
    pub fn blocked(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        REASONS.iter().zip(self.blocked).map(|(reason, n)| (reason.name(), n))
    }

    /// All decisions.
    pub fn decisions(&self) -> u64 {
        self.placed + self.n_blocked() + self.removed + self.absent
    }
}

/// Totals of a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Nodes.
    pub nodes: u64,
    /// GPUs that work.
    pub gpus: u64,
    /// GPUs that are held.
    pub busy_gpus: u64,
    /// Thousandths that are left of GPUs which shares lie on, on schedulable nodes.
    pub shared_milli_left: u64,
    /// Partial nodes.
    pub partial: u64,
    /// Φ*.
    pub phi_star: u64,
    /// N·SIF.
    pub n_sif: i64,
    /// Nodes outside Σ.
    pub outside: u64,
}

impl Totals {
    /// The totals of a state, which is only changed in that its pools remember their Φ*.
    pub fn of(state: &mut State) -> Self {
        let phi_star = state.phi_star();
        let nodes = state.cluster().nodes();
        Self {
            nodes: nodes.len() as u64,
            gpus: state.cluster().gpus(),
            busy_gpus: nodes.iter().map(|node| u64::from(node.composition().busy())).sum(),
            shared_milli_left: state.free_gpu_milli() - state.free_gpus() * u64::from(WHOLE_GPU),
            partial: state.n_partial(),
            phi_star,
            n_sif: state.n_partial() as i64 - phi_star as i64,
            outside: state.n_outside(),
        }
    }
}

/// A run of the commit loop.
#[derive(Clone, Debug)]
pub struct PlaceSummary<'a> {
    /// Who decided.
    pub policy: &'a str,
    /// The seed, if the policy has one.
    pub seed: Option<u64>,
    /// What was decided.
    pub tally: &'a Tally,
    /// Before the first decision.
    pub before: Totals,
    /// After the last one.
    pub after: Totals,
    /// What the decisions took.
    pub time: Duration,
}

impl PlaceSummary<'_> {
    /// For people.
    pub fn table(&self) -> String {
        let tally = self.tally;
        let jobs = tally.placed + tally.n_blocked();
        let mut lines = vec![
            ("policy", self.policy.to_owned()),
            (
                "placed",
                format!(
                    "{} of {} ({}), {}",
                    grouped(tally.placed),
                    counted(jobs, "job"),
                    percent(tally.placed, jobs),
                    counted(tally.instances, "instance")
                ),
            ),
            ("blocked", blocked_text(tally)),
        ];
        if let Some(seed) = self.seed {
            lines.insert(1, ("seed", seed.to_string()));
        }
        if tally.removed + tally.absent > 0 {
            let text = format!("{}, and {} that had been blocked", grouped(tally.removed), grouped(tally.absent));
            lines.push(("departed", text));
        }
        lines.push((
            "migrations",
            format!("{}, {}", counted(tally.migrations, "instance"), counted(tally.migrated_gpus, "GPU")),
        ));
        let decisions = tally.decisions();
        let speed = decisions as f64 / self.time.as_secs_f64().max(1e-9);
        lines.push((
            "time",
            format!("{} for {}, {}/s", seconds(self.time), counted(decisions, "decision"), rate(speed)),
        ));
        let first = tally.first.table(decisions);
        let gap = if first.is_empty() { "" } else { "\n" };
        let hint = "\n--format json has each job's nodes, devices and moves.\n";
        format!("{}\n{}{gap}{first}{}{hint}", facts(&lines), self.change(), self.first_blocked())
    }

    fn change(&self) -> String {
        let right = |name| (name, Align::Right);
        let mut rows = Rows::new(&[("", Align::Left), right("BEFORE"), right("AFTER"), right("CHANGE")]);
        let (before, after) = (self.before, self.after);
        let mut row = |name: &str, before: i64, after: i64| {
            rows.push([name.to_owned(), grouped(before), grouped(after), signed(after - before)]);
        };
        row("GPUs busy", before.busy_gpus as i64, after.busy_gpus as i64);
        row("GPUs free", (before.gpus - before.busy_gpus) as i64, (after.gpus - after.busy_gpus) as i64);
        row("partial nodes", before.partial as i64, after.partial as i64);
        row("Φ*", before.phi_star as i64, after.phi_star as i64);
        row("N·SIF", before.n_sif, after.n_sif);
        row("nodes outside Σ", before.outside as i64, after.outside as i64);
        let [left_before, left_after] = [before, after].map(|totals| totals.shared_milli_left);
        if left_before + left_after > 0 {
            let change = thousandths(left_after.abs_diff(left_before));
            let sign = if left_after < left_before { "-" } else { "+" };
            let cells = [thousandths(left_before), thousandths(left_after), format!("{sign}{change}")];
            rows.push(std::iter::once("left of shared GPUs".to_owned()).chain(cells));
        }
        rows.text()
    }

    fn first_blocked(&self) -> String {
        if self.tally.first_blocked.is_empty() {
            return String::new();
        }
        let right = |name| (name, Align::Right);
        let mut rows = Rows::new(&[("BLOCKED JOB", Align::Left), right("ASKS"), ("WHY", Align::Left)]);
        for BlockedJob { job, asks, why, proven } in &self.tally.first_blocked {
            rows.push([job.clone(), asks.clone(), refusal_text(explained(*why), *proven)]);
        }
        let more = self.tally.n_blocked() - self.tally.first_blocked.len() as u64;
        let more = if more > 0 { format!("and {} more\n", grouped(more)) } else { String::new() };
        format!("\n{}{more}", rows.text())
    }
}

/// How many jobs were blocked, and why.
pub(super) fn blocked_text(tally: &Tally) -> String {
    let reasons = tally.blocked().filter(|&(_, n)| n > 0).map(|(why, n)| format!("{} by {why}", grouped(n)));
    let reasons: Vec<String> = reasons.collect();
    match reasons.is_empty() {
        true => "0".to_owned(),
        false => format!("{}: {}", grouped(tally.n_blocked()), reasons.join(", ")),
    }
}
