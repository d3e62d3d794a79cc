//! The rows of a sweep, our own format: JSONL, a line for each cell that was played.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::FormatError;
use super::journal::{Journal, whole_lines};
use super::lines::Lines;
use super::source::Source;

/// One cell: its full key, and what was measured. Quotients stand beside the sums that they are made of; they are `null`
/// where there is nothing to divide by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepRow {
    /// The fingerprint of the sweep: rows go together if and only if it is the same.
    pub grid: String,
    /// The cell's number, from 0.
    pub cell: u64,
    /// The cells of the whole sweep.
    pub cells: u64,
    /// Where the trace was read from. No part of the key: the fingerprint has its content.
    pub trace: String,
    /// Who scheduled, with trigger and budget, as `--policy` has it.
    pub policy: String,
    /// The day of the trace; `null` for all of it.
    pub day: Option<u32>,
    /// The share that sized the cluster, if one did.
    pub eta: Option<f64>,
    /// Nodes of the cluster.
    pub nodes: u64,
    /// GPUs of the cluster.
    pub gpus: u64,
    /// What a migration cost.
    pub move_cost_s: u64,
    /// The seed of the policies that draw lots.
    pub seed: u64,
    /// In which order jobs started.
    pub discipline: String,
    /// Jobs of the window.
    pub jobs: u64,
    /// Those that finished.
    pub finished: u64,
    /// Those that not even the empty cluster could take.
    pub rejected: u64,
    /// Those that waited to the end.
    pub waiting: u64,
    /// Those that ran to the end.
    pub running: u64,
    /// From the first submission to the last finish.
    pub makespan_s: u64,
    /// Mean share of avoidable partial nodes while jobs wait.
    pub afr: Option<f64>,
    /// Mean share of busy GPUs while jobs wait.
    pub agu: Option<f64>,
    /// Mean time from submission to finish.
    pub ajct_s: Option<f64>,
    /// Mean share of busy GPUs.
    pub utilisation: Option<f64>,
    /// Share of the time in which the Workload Composition Condition held.
    pub wcc_coverage: Option<f64>,
    /// The most avoidable partial nodes.
    pub n_sif_max: u64,
    /// Seconds in which jobs waited.
    pub peak_s: u64,
    /// Node-seconds of avoidable partial nodes in them.
    pub peak_n_sif_node_s: u128,
    /// GPU-seconds held in them.
    pub peak_busy_gpu_s: u128,
    /// Seconds of them in which as many GPUs were free as the head of the queue asked for.
    pub peak_fragmented_s: u64,
    /// From submission to finish, summed over the jobs that finished.
    pub jct_sum_s: u128,
    /// The same by nearest rank.
    pub jct_p50_s: u64,
    /// 99 %.
    pub jct_p99_s: u64,
    /// From submission to start, summed over the jobs that finished.
    pub wait_sum_s: u128,
    /// The same by nearest rank.
    pub wait_p50_s: u64,
    /// 99 %.
    pub wait_p99_s: u64,
    /// Instances that events moved.
    pub migrations: u64,
    /// Times that a running job paused for it.
    pub pauses: u64,
    /// GPU-seconds held in those pauses.
    pub gpu_seconds_lost: u128,
    /// Where the events of nodes were read from, if there are any. No part of the key: the fingerprint has their content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_events: Option<String>,
    /// Runs that failing nodes ended, if there are events of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_killed: Option<u64>,
    /// GPU-seconds that those had held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_seconds_lost_by_failures: Option<u128>,
}

impl SweepRow {
    /// Without the names of files, which say nothing of a result.
    fn nameless(&self) -> Self {
        Self { trace: String::new(), node_events: None, ..self.clone() }
    }
}

/// Rows of one sweep by cell, each cell once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepRows {
    rows: BTreeMap<u64, SweepRow>,
}

impl SweepRows {
    /// Takes the rows of a file, or of standard input for `-`; it may be gzip'd. In a journal, a last line without its end
    /// is one that was cut off, and is passed over.
    ///
    /// # Errors
    /// If it cannot be read, a line is no row, or a row belongs to another sweep or says something else than one that is
    /// there already.
    pub fn read(&mut self, path: &str) -> Result<(), FormatError> {
        let mut source = Source::open(path)?;
        let name = source.name().to_owned();
        if Journal::is_one(Path::new(path)) {
            let mut lines = Vec::new();
            source.reader().read_to_end(&mut lines).map_err(|error| FormatError::unreadable(&name, error))?;
            lines.truncate(whole_lines(&lines));
            return self.read_from(&name, &lines[..]);
        }
        self.read_from(&name, source.reader())
    }

    /// The same from a reader; `name` stands in errors.
    ///
    /// # Errors
    /// As [`SweepRows::read`].
    pub fn read_from(&mut self, name: &str, reader: impl BufRead) -> Result<(), FormatError> {
        let mut lines = Lines::new(name, reader);
        while let Some((line, text)) = lines.next()? {
            let row: SweepRow =
                serde_json::from_slice(text).map_err(|error| FormatError::json(name, Some(line - 1), "", error))?;
            self.add(row).map_err(|text| FormatError::new(name, text).at_line(line))?;
        }
        Ok(())
    }

    /// Takes one row.
    ///
    /// # Errors
    /// What is wrong with it beside those that are there already.
    pub fn add(&mut self, row: SweepRow) -> Result<(), String> {
        if let Some((grid, cells)) = self.sweep()
            && (grid, cells) != (&row.grid, row.cells)
        {
            return Err(format!(
                "found a row of the sweep {} of {} cells, expected one of {grid} of {cells} cells: the trace, the events, \
                 the options or the version differ",
                row.grid, row.cells
            ));
        }
        if row.cell >= row.cells {
            return Err(format!("found cell {} of {}, expected a number below that", row.cell, row.cells));
        }
        if let Some(there) = self.rows.get(&row.cell)
            && there.nameless() != row.nameless()
        {
            return Err(format!("found cell {} again with another result, expected the same or no other", row.cell));
        }
        self.rows.entry(row.cell).or_insert(row);
        Ok(())
    }

    /// The fingerprint and the number of cells of the sweep; `None` without a row.
    pub fn sweep(&self) -> Option<(&String, u64)> {
        self.rows.first_key_value().map(|(_, row)| (&row.grid, row.cells))
    }

    /// The rows, by cell.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &SweepRow> {
        self.rows.values()
    }

    /// Whether the row of a cell is there.
    pub fn has(&self, cell: u64) -> bool {
        self.rows.contains_key(&cell)
    }

    /// The cells without a row, as ranges with both ends.
    pub fn missing(&self) -> Vec<(u64, u64)> {
        let cells = self.sweep().map_or(0, |(_, cells)| cells);
        let mut missing = Vec::new();
        let mut from = 0;
        for cell in self.rows.keys().copied().chain([cells]) {
            if from < cell {
                missing.push((from, cell - 1));
            }
            from = cell.saturating_add(1);
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cell: u64) -> SweepRow {
        let text = r#"{"grid":"g","cell":0,"cells":5,"trace":"t","policy":"compass","day":null,"eta":0.9,"nodes":1,
            "gpus":8,"move_cost_s":8,"seed":0,"discipline":"fifo","jobs":1,"finished":1,"rejected":0,"waiting":0,
            "running":0,"makespan_s":9,"afr":null,"agu":null,"ajct_s":9.0,"utilisation":0.1,"wcc_coverage":1.0,
            "n_sif_max":0,"peak_s":0,"peak_n_sif_node_s":0,"peak_busy_gpu_s":0,"peak_fragmented_s":0,"jct_sum_s":9,
            "jct_p50_s":9,"jct_p99_s":9,"wait_sum_s":0,"wait_p50_s":0,"wait_p99_s":0,"migrations":0,"pauses":0,
            "gpu_seconds_lost":340282366920938463463374607431768211455}"#;
        SweepRow { cell, ..serde_json::from_str(text).unwrap() }
    }

    #[test]
    fn rows_come_in_any_order_and_gaps_are_known() {
        let mut rows = SweepRows::default();
        assert!(rows.missing().is_empty());
        for cell in [3, 1, 3] {
            rows.add(row(cell)).unwrap();
        }
        assert_eq!(rows.rows().map(|row| row.cell).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(rows.missing(), [(0, 0), (2, 2), (4, 4)]);
        assert_eq!(rows.rows().next().unwrap().gpu_seconds_lost, u128::MAX);
        // Where the trace was read from may differ, and nothing else.
        rows.add(SweepRow { trace: "elsewhere".to_owned(), node_events: Some("e".to_owned()), ..row(1) }).unwrap();
        for bad in [
            SweepRow { finished: 0, ..row(1) },
            SweepRow { runs_killed: Some(0), ..row(1) },
            SweepRow { grid: "h".to_owned(), ..row(2) },
            SweepRow { cells: 6, ..row(2) },
            row(5),
        ] {
            assert!(rows.add(bad).unwrap_err().contains("expected"));
        }
    }

    #[test]
    fn a_line_that_is_no_row_is_told_with_its_place() {
        let good = serde_json::to_string(&row(0)).unwrap();
        for (bad, expected) in [
            (good.replace("\"cell\":0", "\"cell\":-1"), "rows:2:"),
            (good.replace("\"seed\":0", "\"sead\":0"), "unknown field `sead`"),
            (good[..40].to_owned(), "rows:2:"),
        ] {
            let text = format!("{good}\n{bad}\n");
            let error = SweepRows::default().read_from("rows", text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
