//! Rows of the benchmark table.

use serde::Serialize;

use super::number::rate;
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
    /// With which variant: a policy, a capacity, touches a candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The figure; infinite (null) where there is none, as of a crossover that is never reached.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Candidates scored in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates_per_s: Option<f64>,
    /// Bytes that the work passed over in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
    /// What a plain read or copy of the same bytes reached in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes_per_s: Option<f64>,
    /// The share of that limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_limit: Option<f64>,
    /// How many times as fast as the processor with all threads did the same in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_cpu: Option<f64>,
}

impl BenchRow {
    /// Whether less is better.
    fn is_time(&self) -> bool {
        self.unit.starts_with("µs")
    }

    fn is_same_as(&self, other: &Self) -> bool {
        (&self.what, &self.variant, self.gpus, self.unit) == (&other.what, &other.variant, other.gpus, other.unit)
    }
}

/// Fills `times_cpu` of every row that the processor's backend has a row of the same kind for.
pub fn compare_with_cpu(rows: &mut [BenchRow]) {
    for at in 0..rows.len() {
        let row = &rows[at];
        let of_cpu = rows.iter().filter(|other| other.backend == "cpu" && other.is_same_as(row));
        let Some(cpu) = of_cpu.max_by_key(|cpu| cpu.threads).filter(|_| row.backend != "cpu") else { continue };
        let times = if row.is_time() { cpu.value / row.value } else { row.value / cpu.value };
        rows[at].times_cpu = Some(times).filter(|times| times.is_finite());
    }
}

/// The rows for people, in lines of at most 100 characters. Bytes a second are left to JSON: what they are compared
/// with stands here, and their share of it.
pub fn bench_table(rows: &[BenchRow]) -> String {
    let (left, right) = (|name| (name, Align::Left), |name| (name, Align::Right));
    let mut table = Rows::new(&[
        left("WHAT"),
        left("VARIANT"),
        left("BACKEND"),
        right("GPUS"),
        right("VALUE"),
        left("UNIT"),
        right("LIMIT"),
        right("SHARE"),
        right("× CPU"),
    ]);
    for row in rows {
        let many = row.backend == "cpu" && row.threads > 1;
        table.push([
            row.what.clone(),
            row.variant.clone().unwrap_or_default(),
            if many { format!("{} ×{}", row.backend, row.threads) } else { row.backend.clone() },
            row.gpus.map_or(String::new(), |gpus| rate(gpus as f64)),
            if row.value.is_finite() { rate(row.value) } else { "never".to_owned() },
            row.unit.to_owned(),
            row.limit_bytes_per_s.map_or(String::new(), |value| rate(value) + "B/s"),
            row.of_limit.map_or(String::new(), |share| format!("{:.1} %", share * 100.0)),
            row.times_cpu.map_or(String::new(), |times| format!("{times:.2}")),
        ]);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(backend: &str, threads: usize, value: f64, unit: &'static str) -> BenchRow {
        BenchRow {
            what: "score_candidates".to_owned(),
            variant: Some("10,000 candidates".to_owned()),
            backend: backend.to_owned(),
            gpus: Some(1_000_000),
            limit_bytes_per_s: Some(128.1e9),
            of_limit: Some(0.256),
            threads,
            value,
            unit,
            ..BenchRow::default()
        }
    }

    #[test]
    fn devices_are_compared_with_the_processor() {
        let mut rows = vec![
            row("cpu", 1, 100.0, "touches/s"),
            row("cpu", 64, 400.0, "touches/s"),
            row("cuda", 1, 1000.0, "touches/s"),
            row("cpu", 64, 400.0, "µs"),
            row("cuda", 1, 100.0, "µs"),
            row("cuda", 1, f64::INFINITY, "nodes"),
        ];
        compare_with_cpu(&mut rows);
        let times: Vec<Option<f64>> = rows.iter().map(|row| row.times_cpu).collect();
        assert_eq!(times, [None, None, Some(2.5), None, Some(4.0), None]);
        let text = bench_table(&rows);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("cpu ×64") && text.contains("never"), "{text}");
        assert!(serde_json::to_string(&rows[5]).unwrap().contains("\"value\":null"));
    }
}
