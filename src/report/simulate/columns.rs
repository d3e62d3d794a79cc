//! The measures of a run as columns of a table.

use serde_json::Value;

use super::super::number::grouped;

/// How a value is written for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// With so many decimals.
    Decimals(usize),
    /// Rounded to an integer.
    Rounded,
    /// GPU-seconds, in GPU-hours with one decimal.
    Hours,
}

/// A measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Its name in the table.
    pub(super) name: &'static str,
    /// Where its value stands in the JSON of a run.
    pub(super) key: &'static str,
    show: Show,
}

const fn column(name: &'static str, key: &'static str, show: Show) -> Column {
    Column { name, key, show }
}

/// All measures that a table has, in its order.
pub(super) const COLUMNS: &[Column] = {
    use Show::{Decimals, Hours, Rounded};
    &[
        column("AFR", "/afr", Decimals(4)),
        column("AGU", "/agu", Decimals(3)),
        column("AJCT", "/ajct_s", Rounded),
        column("WAIT P50", "/wait_s/p50", Rounded),
        column("P90", "/wait_s/p90", Rounded),
        column("P99", "/wait_s/p99", Rounded),
        column("MAKESPAN", "/makespan_s", Rounded),
        column("BUSY", "/utilisation", Decimals(3)),
        column("SAT", "/allocation_at_saturation", Decimals(3)),
        column("FRAG", "/blocked_by_fragmentation", Decimals(3)),
        column("CAP", "/blocked_by_capacity", Decimals(3)),
        column("N·SIF ≤", "/n_sif_max", Rounded),
        column("EMPTY", "/empty_nodes_mean", Decimals(1)),
        column("WCC", "/wcc_coverage", Decimals(3)),
        column("MOVES", "/migrations/instances", Rounded),
        column("A JOB", "/migrations/pauses_per_job/mean", Decimals(2)),
        column("GPU-H LOST", "/migrations/gpu_seconds_lost", Hours),
    ]
};

impl Column {
    /// The value of a run, given as JSON; `None` where the measure has no meaning.
    pub(super) fn value<'a>(&self, run: &'a Value) -> Option<&'a Value> {
        run.pointer(self.key).filter(|value| value.is_number())
    }

    /// The value for people.
    pub(super) fn text(&self, run: &Value) -> String {
        let Some(value) = self.value(run).and_then(Value::as_f64) else { return "-".to_owned() };
        match self.show {
            Show::Decimals(decimals) => format!("{value:.decimals$}"),
            Show::Rounded => grouped(value.round() as i128),
            Show::Hours => format!("{:.1}", value / 3600.0),
        }
    }
}
