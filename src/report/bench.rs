//! Rows of the benchmark table.

use serde::Serialize;

use super::number::{grouped, rate};
use super::table::{Align, Rows};

/// One measurement; also its JSON. What does not apply to it is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BenchRow {
    /// What was measured.
    pub what: String,
    /// Where.
    pub backend: String,
    /// With how many threads.
    pub threads: usize,
    /// On a cluster of how many GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// With which variant: a policy, a capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Bytes that the work passed over in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
    /// What a plain read or copy of the same bytes reached in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes_per_s: Option<f64>,
    /// The share of that limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_limit: Option<f64>,
}

/// The rows for people.
pub fn bench_table(rows: &[BenchRow]) -> String {
    let (left, right) = (|name| (name, Align::Left), |name| (name, Align::Right));
    let mut table = Rows::new(&[
        left("WHAT"),
        left("VARIANT"),
        left("BACKEND"),
        right("THREADS"),
        right("GPUS"),
        right("VALUE"),
        left("UNIT"),
        right("BYTES/S"),
        right("LIMIT"),
        right("OF LIMIT"),
    ]);
    let bytes = |value: Option<f64>| value.map_or(String::new(), |value| rate(value) + "B");
    for row in rows {
        table.push([
            row.what.clone(),
            row.variant.clone().unwrap_or_default(),
            row.backend.clone(),
            row.threads.to_string(),
            row.gpus.map_or(String::new(), grouped),
            rate(row.value),
            row.unit.to_owned(),
            bytes(row.bytes_per_s),
            bytes(row.limit_bytes_per_s),
            row.of_limit.map_or(String::new(), |share| format!("{:.1} %", share * 100.0)),
        ]);
    }
    table.text()
}
