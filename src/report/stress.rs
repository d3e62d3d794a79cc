//! What a stress run showed.

use std::time::Duration;

use serde::Serialize;
use serde::ser::Serializer;

use super::json::append_line;
use super::number::{counted, grouped, percent, rate, seconds};
use super::place::{Tally, Totals, blocked_text};
use super::table::facts;

/// Quantiles of the time that one decision took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Half of the decisions took at most this.
    pub p50: Duration,
    /// 99 % of them.
    pub p99: Duration,
    /// 99.9 % of them.
    pub p999: Duration,
    /// All of them.
    pub max: Duration,
}

impl Latency {
    /// The quantiles (nearest rank) of times in nanoseconds, which are sorted for it.
    pub fn of(nanoseconds: &mut [u32]) -> Self {
        nanoseconds.sort_unstable();
        let n = nanoseconds.len();
        let rank = |thousandths: usize| (n * thousandths).div_ceil(1000).saturating_sub(1);
        let at = |thousandths| Duration::from_nanos(nanoseconds.get(rank(thousandths)).copied().map_or(0, u64::from));
        Self { p50: at(500), p99: at(990), p999: at(999), max: at(1000) }
    }
}

/// A stress run.
#[derive(Clone, Debug)]
pub struct StressReport<'a> {
    /// Who decided.
    pub policy: &'a str,
    /// Which backend was open.
    pub backend: &'a str,
    /// The mix of the jobs.
    pub mix: &'a str,
    /// The seed of the cluster and of the jobs.
    pub seed: u64,
    /// What was decided.
    pub tally: &'a Tally,
    /// Before the first decision.
    pub before: Totals,
    /// After the last one.
    pub after: Totals,
    /// The most avoidable partial nodes after any event.
    pub n_sif_max: i64,
    /// The mean of avoidable partial nodes over all events.
    pub n_sif_mean: f64,
    /// The most GPUs that were busy after any event.
    pub busy_gpus_max: u64,
    /// The time of all decisions, without the checks.
    pub time: Duration,
    /// The time of one decision.
    pub latency: Latency,
    /// The most memory that the process held, where that is known.
    pub peak_memory_bytes: Option<u64>,
    /// How often everything was recounted.
    pub recounts: u64,
    /// Invariants that did not hold.
    pub violations: &'a [String],
}

impl StressReport<'_> {
    fn decisions_per_s(&self) -> f64 {
        self.tally.decisions() as f64 / self.time.as_secs_f64().max(1e-9)
    }

    fn sif(&self) -> f64 {
        self.after.n_sif as f64 / self.after.nodes.max(1) as f64
    }

    /// Appends the report as one document.
    ///
    /// # Errors
    /// As [`append_line`].
    pub fn append_json(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let Latency { p50, p99, p999, max } = self.latency;
        append_line(
            out,
            &Document {
                policy: self.policy,
                backend: self.backend,
                mix: self.mix,
                seed: self.seed,
                nodes: self.after.nodes,
                gpus: self.after.gpus,
                decisions: self.tally.decisions(),
                placed: self.tally.placed,
                blocked: Blocked(self.tally),
                removed: self.tally.removed,
                absent: self.tally.absent,
                migrations: self.tally.migrations,
                seconds: self.time.as_secs_f64(),
                decisions_per_s: self.decisions_per_s(),
                latency_us: LatencyOut { p50: micros(p50), p99: micros(p99), p999: micros(p999), max: micros(max) },
                peak_memory_bytes: self.peak_memory_bytes,
                busy_gpus: self.after.busy_gpus,
                partial: self.after.partial,
                phi_star: self.after.phi_star,
                n_sif: self.after.n_sif,
                n_sif_max: self.n_sif_max,
                n_sif_mean: self.n_sif_mean,
                busy_gpus_max: self.busy_gpus_max,
                sif: self.sif(),
                sif_mean: self.n_sif_mean / self.after.nodes.max(1) as f64,
                outside_abs: self.after.outside,
                recounts: self.recounts,
                violations: self.violations,
            },
        )
    }

    /// For people.
    pub fn table(&self) -> String {
        let (tally, after) = (self.tally, self.after);
        let Latency { p50, p99, p999, max } = self.latency;
        let jobs = tally.placed + tally.n_blocked();
        let memory =
            self.peak_memory_bytes.map_or("unknown here".to_owned(), |bytes| format!("{}B", rate(bytes as f64)));
        let mut text = facts(&[
            ("policy", self.policy.to_owned()),
            ("backend", self.backend.to_owned()),
            ("seed", format!("{} (mix {})", self.seed, self.mix)),
            ("cluster", format!("{} on {}", counted(after.gpus, "GPU"), counted(after.nodes, "node"))),
            ("jobs", format!("{} placed of {}", grouped(tally.placed), grouped(jobs))),
            ("blocked", blocked_text(tally)),
            ("departed", grouped(tally.removed)),
            ("migrations", grouped(tally.migrations)),
            (
                "throughput",
                format!(
                    "{} decisions/s ({} in {})",
                    rate(self.decisions_per_s()),
                    grouped(tally.decisions()),
                    seconds(self.time)
                ),
            ),
            (
                "latency",
                format!("p50 {}, p99 {}, p99.9 {}, max {}", seconds(p50), seconds(p99), seconds(p999), seconds(max)),
            ),
            ("peak memory", memory),
            (
                "GPUs busy",
                format!(
                    "{} before, {} after, at most {} ({}) on the way",
                    grouped(self.before.busy_gpus),
                    grouped(after.busy_gpus),
                    grouped(self.busy_gpus_max),
                    percent(self.busy_gpus_max, after.gpus)
                ),
            ),
            (
                "N·SIF",
                format!(
                    "{} before, {} after, at most {} and {:.3} in the mean on the way",
                    grouped(self.before.n_sif),
                    grouped(after.n_sif),
                    grouped(self.n_sif_max),
                    self.n_sif_mean
                ),
            ),
            ("SIF", format!("{:.6} after, {:.6} in the mean", self.sif(), self.n_sif_mean / after.nodes.max(1) as f64)),
            ("outside Σ", format!("{} before, {} after", grouped(self.before.outside), grouped(after.outside))),
            (
                "invariants",
                match self.violations.len() {
                    0 => format!("hold; everything recounted {} times", grouped(self.recounts)),
                    n => format!("{} VIOLATIONS", grouped(n as u64)),
                },
            ),
        ]);
        for violation in self.violations {
            text += &format!("- {violation}\n");
        }
        text
    }
}

#[derive(Serialize)]
struct Document<'a> {
    policy: &'a str,
    backend: &'a str,
    mix: &'a str,
    seed: u64,
    nodes: u64,
    gpus: u64,
    decisions: u64,
    placed: u64,
    blocked: Blocked<'a>,
    removed: u64,
    absent: u64,
    migrations: u64,
    seconds: f64,
    decisions_per_s: f64,
    latency_us: LatencyOut,
    peak_memory_bytes: Option<u64>,
    busy_gpus: u64,
    partial: u64,
    phi_star: u64,
    n_sif: i64,
    n_sif_max: i64,
    n_sif_mean: f64,
    busy_gpus_max: u64,
    sif: f64,
    sif_mean: f64,
    outside_abs: u64,
    recounts: u64,
    violations: &'a [String],
}

#[derive(Serialize)]
struct LatencyOut {
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

struct Blocked<'a>(&'a Tally);

impl Serialize for Blocked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.blocked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut times: Vec<u32> = (1..=1000).rev().collect();
        let nanoseconds = |n| Duration::from_nanos(n);
        let expected =
            Latency { p50: nanoseconds(500), p99: nanoseconds(990), p999: nanoseconds(999), max: nanoseconds(1000) };
        assert_eq!(Latency::of(&mut times), expected);
        assert_eq!(Latency::of(&mut []), Latency::default());
    }
}
