//! What simulated runs showed: one JSON object a run here; a table, series over time and a page beside it.

pub(super) mod axis;
pub(super) mod chart;
mod columns;
mod figures;
mod jobset;
mod occupancy_map;
mod page;
pub(super) mod palette;
mod series;
mod table;

use serde::Serialize;

use super::json::append_line;
use crate::decide::Policy;
use crate::simulate::{Discipline, Outcome, Quantiles, SIZE_CLASSES, Share, Summary};

pub use chart::ChartError;
pub use jobset::{jobset_header, jobset_rows};
pub use page::{Page, PageError, PageSource, picture_names};
pub use series::{MINUTES_HEADER, SERIES_HEADER, append_minute_row, append_series_row};
pub use table::simulation_table;

/// What all runs of a comparison share.
#[derive(Clone, Debug)]
pub struct Setting<'a> {
    /// Where the trace came from.
    pub trace: &'a str,
    /// The part of it that was played, `[from, to)` in seconds of the trace; all of it without.
    pub window: Option<(u64, u64)>,
    /// The share that sized the cluster, if one did.
    pub eta: Option<Share>,
    /// Nodes of the cluster.
    pub nodes: u64,
    /// GPUs of the cluster.
    pub gpus: u64,
    /// In which order jobs started.
    pub discipline: Discipline,
    /// What a migration costs.
    pub move_cost_s: u64,
    /// The seed of the random policy.
    pub seed: u64,
    /// Where the events of nodes came from, if there are any.
    pub node_events: Option<&'a str>,
}

/// One run of a comparison.
#[derive(Clone, Debug)]
pub struct Run {
    /// What came out.
    pub outcome: Outcome,
    /// What that says about the jobs.
    pub summary: Summary,
}

/// A quotient of exact sums; `None` where there is nothing to divide by.
fn share(part: u128, whole: u128) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Run {
    /// AFR: the mean of SIF over the peak.
    pub(super) fn afr(&self, nodes: u64) -> Option<f64> {
        let totals = &self.outcome.totals;
        share(totals.peak_n_sif, u128::from(totals.peak_seconds) * u128::from(nodes))
    }

    /// AGU: the share of GPUs that were busy in the peak.
    pub(super) fn agu(&self, gpus: u64) -> Option<f64> {
        let totals = &self.outcome.totals;
        share(totals.peak_busy, u128::from(totals.peak_seconds) * u128::from(gpus))
    }

    pub(super) fn utilisation(&self, gpus: u64) -> Option<f64> {
        let totals = &self.outcome.totals;
        share(totals.busy, u128::from(totals.seconds) * u128::from(gpus))
    }

    pub(super) fn wcc_coverage(&self) -> Option<f64> {
        let totals = &self.outcome.totals;
        if totals.wcc_known { share(totals.wcc_seconds.into(), totals.seconds.into()) } else { None }
    }

    fn fragmented(&self) -> Option<f64> {
        let totals = &self.outcome.totals;
        share(totals.fragmented_seconds.into(), totals.peak_seconds.into())
    }

    fn lacking(&self) -> Option<f64> {
        let totals = &self.outcome.totals;
        share(totals.lacking_seconds.into(), totals.peak_seconds.into())
    }

    /// Allocation at saturation: the largest share of GPUs that were busy at any time of the peak.
    fn saturation(&self, gpus: u64) -> Option<f64> {
        let totals = &self.outcome.totals;
        if totals.peak_seconds > 0 { share(totals.peak_busy_max.into(), gpus.into()) } else { None }
    }

    fn mean(&self, sum: u128) -> Option<f64> {
        share(sum, self.outcome.totals.seconds.into())
    }
}

/// Appends one run as one JSON object. Each quotient stands beside the exact sums that it is made of.
///
/// # Errors
/// As [`append_line`].
pub fn simulation_json(out: &mut Vec<u8>, setting: &Setting<'_>, run: &Run) -> Result<(), serde_json::Error> {
    append_line(out, &document(setting, run))
}

/// What there is to say about a run.
fn document<'a>(setting: &Setting<'a>, run: &Run) -> Document<'a> {
    let Run { outcome, summary } = run;
    let totals = &outcome.totals;
    let classes = SIZE_CLASSES.iter().zip(&summary.classes).filter(|(_, class)| class.jct.n > 0);
    Document {
        policy: outcome.scheduler.name(),
        compact: outcome.scheduler.trigger().map(|trigger| trigger.name()),
        migration_budget: outcome.scheduler.migration_budget(),
        round_s: outcome.scheduler.round_s(),
        seed: (outcome.scheduler.policy() == Some(Policy::Random)).then_some(setting.seed),
        discipline: setting.discipline.name(),
        move_cost_s: setting.move_cost_s,
        trace: setting.trace,
        window_s: setting.window.map(|(from, to)| [from, to]),
        eta: setting.eta.map(|eta| eta.as_f64()),
        nodes: setting.nodes,
        gpus: setting.gpus,
        jobs: summary.jobs,
        finished: summary.jct.n,
        rejected: summary.rejected,
        waiting: summary.waiting,
        running: summary.running,
        events: outcome.events,
        first_submit_s: outcome.first_submit,
        end_s: outcome.end,
        makespan_s: totals.seconds,
        afr: run.afr(setting.nodes),
        agu: run.agu(setting.gpus),
        ajct_s: summary.jct.mean(),
        utilisation: run.utilisation(setting.gpus),
        wcc_coverage: run.wcc_coverage(),
        blocked_by_fragmentation: run.fragmented(),
        blocked_by_capacity: run.lacking(),
        allocation_at_saturation: run.saturation(setting.gpus),
        n_sif_max: totals.n_sif_max,
        n_sif_mean: run.mean(totals.n_sif),
        empty_nodes_mean: run.mean(totals.empty),
        queue_mean: run.mean(totals.waiting),
        queue_max: totals.waiting_max,
        sums: Sums {
            peak_s: totals.peak_seconds,
            peak_n_sif_node_s: totals.peak_n_sif,
            peak_busy_gpu_s: totals.peak_busy,
            peak_fragmented_s: totals.fragmented_seconds,
            peak_capacity_s: totals.lacking_seconds,
            peak_busy_max_gpus: totals.peak_busy_max,
            n_sif_node_s: totals.n_sif,
            busy_gpu_s: totals.busy,
            empty_node_s: totals.empty,
            wcc_s: totals.wcc_known.then_some(totals.wcc_seconds),
            jct_s: summary.jct.sum,
            wait_s: summary.wait.sum,
        },
        jct_s: TimesOut::of(&summary.jct),
        wait_s: TimesOut::of(&summary.wait),
        by_size: classes
            .map(|(&(gpus, _), class)| ClassOut {
                gpus,
                jobs: class.jct.n,
                jct_s: TimesOut::of(&class.jct),
                wait_s: TimesOut::of(&class.wait),
            })
            .collect(),
        migrations: MigrationsOut {
            events: outcome.pauses.events,
            instances: outcome.pauses.instances,
            gpus: outcome.pauses.gpus,
            pauses: outcome.pauses.pauses,
            pauses_max: summary.pauses.max,
            pauses_per_job: TimesOut::of(&summary.pauses),
            gpu_seconds_lost: outcome.pauses.gpu_seconds_lost,
        },
        failures: setting.node_events.map(|node_events| FailuresOut {
            node_events,
            runs_killed: outcome.lost.len() as u64,
            gpu_seconds_lost: outcome.gpu_seconds_lost_by_failures(),
        }),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    policy: &'a str,
    compact: Option<&'a str>,
    migration_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    round_s: Option<u64>,
    seed: Option<u64>,
    discipline: &'a str,
    move_cost_s: u64,
    trace: &'a str,
    window_s: Option<[u64; 2]>,
    eta: Option<f64>,
    nodes: u64,
    gpus: u64,
    jobs: u64,
    finished: u64,
    rejected: u64,
    waiting: u64,
    running: u64,
    events: u64,
    first_submit_s: u64,
    end_s: u64,
    makespan_s: u64,
    afr: Option<f64>,
    agu: Option<f64>,
    ajct_s: Option<f64>,
    utilisation: Option<f64>,
    wcc_coverage: Option<f64>,
    blocked_by_fragmentation: Option<f64>,
    blocked_by_capacity: Option<f64>,
    allocation_at_saturation: Option<f64>,
    n_sif_max: u64,
    n_sif_mean: Option<f64>,
    empty_nodes_mean: Option<f64>,
    queue_mean: Option<f64>,
    queue_max: u64,
    sums: Sums,
    jct_s: TimesOut,
    wait_s: TimesOut,
    by_size: Vec<ClassOut<'a>>,
    migrations: MigrationsOut,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<FailuresOut<'a>>,
}

#[derive(Serialize)]
struct FailuresOut<'a> {
    node_events: &'a str,
    runs_killed: u64,
    gpu_seconds_lost: u128,
}

#[derive(Serialize)]
struct Sums {
    peak_s: u64,
    peak_n_sif_node_s: u128,
    peak_busy_gpu_s: u128,
    peak_fragmented_s: u64,
    peak_capacity_s: u64,
    peak_busy_max_gpus: u64,
    n_sif_node_s: u128,
    busy_gpu_s: u128,
    empty_node_s: u128,
    wcc_s: Option<u64>,
    jct_s: u128,
    wait_s: u128,
}

#[derive(Serialize)]
struct TimesOut {
    mean: Option<f64>,
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
}

impl TimesOut {
    fn of(quantiles: &Quantiles) -> Self {
        let &Quantiles { p50, p90, p99, max, .. } = quantiles;
        Self { mean: quantiles.mean(), p50, p90, p99, max }
    }
}

#[derive(Serialize)]
struct ClassOut<'a> {
    gpus: &'a str,
    jobs: u64,
    jct_s: TimesOut,
    wait_s: TimesOut,
}

#[derive(Serialize)]
struct MigrationsOut {
    events: u64,
    instances: u64,
    gpus: u64,
    pauses: u64,
    pauses_max: u64,
    pauses_per_job: TimesOut,
    gpu_seconds_lost: u128,
}
