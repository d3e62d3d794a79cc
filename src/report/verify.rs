//! What a conformance suite found.

use serde::Serialize;

use super::number::grouped;
use super::table::{Align, Rows, wrapped};

/// One check; also its JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckRow {
    /// What was compared.
    pub check: String,
    /// The backend that was held against the reference.
    pub backend: &'static str,
    /// How many results were compared.
    pub cases: u64,
    /// How many values those held.
    pub values: u64,
    /// How many results differed.
    pub mismatches: u64,
    /// Where the first one differed.
    pub first: Option<String>,
    /// The command line that finds the first one again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// Whether the check went as it must: without a mismatch; a control that plants a fault, with one.
    pub ok: bool,
}

/// The checks for people, in lines of at most 80 characters. What went wrong stands below.
pub fn verify_table(rows: &[CheckRow]) -> String {
    let mut table = Rows::new(&[
        ("CHECK", Align::Left),
        ("BACKEND", Align::Left),
        ("RESULTS", Align::Right),
        ("VALUES", Align::Right),
        ("DIFFER", Align::Right),
        ("OK", Align::Left),
    ]);
    let mut text = String::new();
    for row in rows {
        table.push([
            row.check.clone(),
            row.backend.to_owned(),
            grouped(row.cases),
            grouped(row.values),
            grouped(row.mismatches),
            if row.ok { "yes" } else { "NO" }.to_owned(),
        ]);
        for (what, why) in [("differs", &row.first), ("again with", &row.again)] {
            if let Some(why) = why.as_ref().filter(|_| !row.ok) {
                let lines = wrapped(&format!("{} {what}: {why}", row.check), 80);
                text.extend(std::iter::once("\n").chain(lines.iter().flat_map(|line| [line.as_str(), "\n"])));
            }
        }
    }
    table.text() + &text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_stands_below() {
        let row = |check: &str, mismatches: u64| CheckRow {
            check: check.to_owned(),
            backend: "wgpu",
            cases: 12_345,
            values: 1_234_567_890,
            mismatches,
            first: (mismatches > 0).then(|| format!("mixed 7: at 3: {}", "0, ".repeat(50))),
            again: (mismatches > 0).then(|| "slotwise verify --backend wgpu --seed 7 --rounds 1".to_owned()),
            ok: mismatches == 0,
        };
        let text = verify_table(&[row("control: score_candidates", 0), row("rank_nodes", 2)]);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\nrank_nodes differs: mixed 7: at 3: 0, 0,"), "{text}");
        assert!(text.ends_with("\nrank_nodes again with: slotwise verify --backend wgpu --seed 7 --rounds 1\n"));
    }
}
