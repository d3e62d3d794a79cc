//! The comparison as a table on a terminal.

use serde_json::Value;

use super::super::number::{counted, grouped};
use super::super::table::{Align, Rows, facts};
use super::columns::{Column, columns};
use super::{Run, Setting, document};
use crate::decide::Policy;
use crate::simulate::{Quantiles, SIZE_CLASSES, SizeClass};

/// The table for people: the setting, the measures of each run, and completion times by the size of jobs.
///
/// # Errors
/// As [`append_line`](super::super::append_line).
pub fn simulation_table(setting: &Setting<'_>, runs: &[Run]) -> Result<String, serde_json::Error> {
    let documents = runs.iter().map(|run| serde_json::to_value(document(setting, run)));
    let documents: Vec<Value> = documents.collect::<Result<_, _>>()?;
    let mut text = facts(&setting_facts(setting, runs));
    text += "\n";
    text += &measures(&columns(setting, runs), runs, &documents);
    text += "\n";
    text += &classes(runs);
    text += "\nAFR, AGU, FRAG and CAP are means over the time in which jobs wait; times are in seconds.\n";
    Ok(text + "--format json has every measure, and the exact sums behind it.\n")
}

/// What all runs share, in words.
pub(super) fn setting_facts(setting: &Setting<'_>, runs: &[Run]) -> Vec<(&'static str, String)> {
    let sized = setting.eta.map_or(String::new(), |eta| format!(", N({eta}) of the trace"));
    let mut lines = vec![
        ("trace", setting.trace.to_owned()),
        ("cluster", format!("{}, {}{sized}", counted(setting.nodes, "node"), counted(setting.gpus, "GPU"))),
        ("queue", setting.discipline.name().to_owned()),
        ("migration", format!("{} s a job and event", grouped(setting.move_cost_s))),
    ];
    if let Some(events) = setting.node_events {
        lines.push(("node events", events.to_owned()));
    }
    if let Some((from, to)) = setting.window {
        lines.insert(1, ("window", format!("{} to {} s", grouped(from), grouped(to))));
    }
    if runs.iter().any(|run| run.outcome.scheduler.policy() == Some(Policy::Random)) {
        lines.push(("seed", setting.seed.to_string()));
    }
    if let Some(run) = runs.first() {
        let jobs = match run.summary.rejected {
            0 => grouped(run.summary.jobs),
            n => format!("{}, {} of them larger than the cluster and left out", grouped(run.summary.jobs), grouped(n)),
        };
        lines.insert(1, ("jobs", jobs));
    }
    lines
}

fn measures(columns: &[Column], runs: &[Run], documents: &[Value]) -> String {
    let names = columns.iter().map(|column| (column.name, Align::Right));
    let mut rows = Rows::new(&std::iter::once(("POLICY", Align::Left)).chain(names).collect::<Vec<_>>());
    for (run, document) in runs.iter().zip(documents) {
        let cells = columns.iter().map(|column| column.text(document));
        rows.push(std::iter::once(run.outcome.scheduler.to_string()).chain(cells));
    }
    rows.text()
}

fn rounded(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| grouped(value.round() as i128))
}

/// The columns of a table of completion times by size.
pub(super) const CLASS_COLUMNS: [&str; 11] =
    ["POLICY", "GPUS", "JOBS", "JCT MEAN", "P50", "P90", "P99", "WAIT MEAN", "P50", "P90", "P99"];

/// Completion times and waits of a run by size, a row a class that has jobs, without the policy.
pub(super) fn class_rows(run: &Run) -> impl Iterator<Item = Vec<String>> + '_ {
    let classes = SIZE_CLASSES.iter().zip(&run.summary.classes).filter(|(_, class)| class.jct.n > 0);
    classes.map(|((gpus, _), SizeClass { jct, wait })| {
        let times = |times: &Quantiles| {
            let &Quantiles { p50, p90, p99, .. } = times;
            [rounded(times.mean()), grouped(p50), grouped(p90), grouped(p99)]
        };
        let mut cells = vec![(*gpus).to_owned(), grouped(jct.n)];
        cells.extend(times(jct).into_iter().chain(times(wait)));
        cells
    })
}

fn classes(runs: &[Run]) -> String {
    let align = |(at, name)| (name, if at == 0 { Align::Left } else { Align::Right });
    let columns: Vec<_> = CLASS_COLUMNS.into_iter().enumerate().map(align).collect();
    let mut rows = Rows::new(&columns);
    for run in runs {
        let mut name = run.outcome.scheduler.to_string();
        for cells in class_rows(run) {
            rows.push(std::iter::once(std::mem::take(&mut name)).chain(cells));
        }
    }
    rows.text()
}
