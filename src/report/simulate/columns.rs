//! The measures of a run as columns: one list for the table on a terminal and for the page.

use serde_json::Value;

use super::super::number::grouped;
use super::{Run, Setting};

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    /// The smaller.
    Lower,
    /// The larger.
    Higher,
    /// Neither in itself.
    Neither,
}

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
    /// Its name in full, with its unit.
    pub(super) about: &'static str,
    /// Which values are good.
    pub(super) better: Better,
    show: Show,
}

const fn column(name: &'static str, key: &'static str, better: Better, show: Show, about: &'static str) -> Column {
    Column { name, key, about, better, show }
}

/// The measures that a table of these runs has, in its order.
pub(super) fn columns(setting: &Setting<'_>, runs: &[Run]) -> Vec<Column> {
    use Better::{Lower, Neither};
    use Show::{Hours, Rounded};
    let mut columns = COLUMNS.to_vec();
    if setting.node_events.is_some() {
        columns.extend([
            column("KILLED", "/failures/runs_killed", Lower, Rounded, "runs of jobs that a failing node ended"),
            column(
                "GPU-H KILLED",
                "/failures/gpu_seconds_lost",
                Lower,
                Hours,
                "GPU-hours that those runs had held, and hold anew",
            ),
        ]);
    }
    if runs.iter().any(|run| run.summary.waiting > 0) {
        columns.push(column(
            "NEVER RAN",
            "/waiting",
            Lower,
            Rounded,
            "jobs that still wait when nothing happens any more",
        ));
    }
    if runs.iter().any(|run| run.summary.running > 0) {
        columns.push(column("NEVER ENDS", "/running", Neither, Rounded, "jobs that run and stay forever"));
    }
    columns
}

/// The measures that every table has.
const COLUMNS: &[Column] = {
    use Better::{Higher, Lower, Neither};
    use Show::{Decimals, Hours, Rounded};
    &[
        column("AFR", "/afr", Lower, Decimals(4), "mean share of nodes that are avoidably partial, while jobs wait"),
        column("AGU", "/agu", Higher, Decimals(3), "mean share of GPUs that are busy, while jobs wait"),
        column("AJCT", "/ajct_s", Lower, Rounded, "mean time from submission to finish, in seconds"),
        column("WAIT P50", "/wait_s/p50", Lower, Rounded, "median time from submission to start, in seconds"),
        column(
            "P90",
            "/wait_s/p90",
            Lower,
            Rounded,
            "time from submission to start that 90 % do not exceed, in seconds",
        ),
        column(
            "P99",
            "/wait_s/p99",
            Lower,
            Rounded,
            "time from submission to start that 99 % do not exceed, in seconds",
        ),
        column("MAKESPAN", "/makespan_s", Lower, Rounded, "from the first submission to the last finish, in seconds"),
        column("BUSY", "/utilisation", Higher, Decimals(3), "mean share of GPUs that are busy, over the whole run"),
        column(
            "SAT",
            "/allocation_at_saturation",
            Higher,
            Decimals(3),
            "largest share of GPUs that were busy while jobs waited",
        ),
        column(
            "FRAG",
            "/blocked_by_fragmentation",
            Lower,
            Decimals(3),
            "share of the time with a queue in which as many GPUs were free as its head asked for",
        ),
        column(
            "CAP",
            "/blocked_by_capacity",
            Neither,
            Decimals(3),
            "share of the time with a queue in which fewer GPUs were free than its head asked for",
        ),
        column("N·SIF ≤", "/n_sif_max", Lower, Rounded, "most avoidable partial nodes at any time"),
        column("EMPTY", "/empty_nodes_mean", Neither, Decimals(1), "mean number of empty nodes"),
        column(
            "WCC",
            "/wcc_coverage",
            Neither,
            Decimals(3),
            "share of the time in which the Workload Composition Condition held",
        ),
        column("MOVES", "/migrations/instances", Lower, Rounded, "instances that events moved to another node"),
        column(
            "A JOB",
            "/migrations/pauses_per_job/mean",
            Lower,
            Decimals(2),
            "mean number of migrations of a job that ran",
        ),
        column(
            "GPU-H LOST",
            "/migrations/gpu_seconds_lost",
            Lower,
            Hours,
            "GPU-hours held by jobs that migrations paused",
        ),
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

    /// Of each run, whether its value is the best of those that take part, as far as it is shown: what reads the same is
    /// as good. Nothing is where all of them read the same.
    pub(super) fn best(&self, runs: &[Value], takes_part: &[bool]) -> Vec<bool> {
        let sign = match self.better {
            Better::Lower => 1.0,
            Better::Higher => -1.0,
            Better::Neither => return vec![false; runs.len()],
        };
        let cost = |(run, &takes_part): (&Value, &bool)| {
            if takes_part { self.value(run).and_then(Value::as_f64).map(|value| value * sign) } else { None }
        };
        let costs: Vec<Option<f64>> = runs.iter().zip(takes_part).map(cost).collect();
        let Some(least) = costs.iter().copied().flatten().reduce(f64::min) else { return vec![false; runs.len()] };
        let texts: Vec<Option<String>> =
            runs.iter().zip(&costs).map(|(run, cost)| cost.map(|_| self.text(run))).collect();
        let best = costs.iter().position(|&cost| cost == Some(least)).and_then(|at| texts[at].clone());
        let differs = texts.iter().flatten().any(|text| Some(text) != best.as_ref());
        texts.iter().map(|text| differs && text.is_some() && *text == best).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_best_are_marked_where_there_is_a_difference() {
        let runs =
            [json!({"afr": 0.2}), json!({"afr": 0.1}), json!({"afr": null}), json!({"afr": 0.0}), json!({"afr": 0.1})];
        let afr = &COLUMNS[0];
        assert_eq!(afr.best(&runs, &[true, true, true, false, true]), [false, true, false, false, true]);
        assert_eq!(afr.best(&runs[1..2], &[true]), [false]);
        let close = [json!({"afr": 0.10001}), json!({"afr": 0.10002}), json!({"afr": 0.2})];
        assert_eq!(afr.best(&close, &[true; 3]), [true, true, false]);
        assert_eq!(afr.best(&close[..2], &[true; 2]), [false, false]);
        assert_eq!(afr.best(&runs[2..3], &[true]), [false]);
        assert_eq!([afr.text(&runs[0]), afr.text(&runs[2])], ["0.2000", "-"]);
        let busy = COLUMNS.iter().find(|column| column.name == "BUSY").unwrap();
        let runs = [json!({"utilisation": 0.5}), json!({"utilisation": 0.75})];
        assert_eq!(busy.best(&runs, &[true, true]), [false, true]);
    }
}
