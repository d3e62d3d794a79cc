//! What a conformance suite found.

use serde::Serialize;

use super::number::grouped;
use super::table::{Align, Rows};

/// One check; also its JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckRow {
    /// What was compared.
    pub check: &'static str,
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
    /// Whether the check went as it must: without a mismatch; a control that plants a fault, with one.
    pub ok: bool,
}

/// The checks for people.
pub fn verify_table(rows: &[CheckRow]) -> String {
    let mut table = Rows::new(&[
        ("CHECK", Align::Left),
        ("BACKEND", Align::Left),
        ("RESULTS", Align::Right),
        ("VALUES", Align::Right),
        ("MISMATCHES", Align::Right),
        ("OK", Align::Left),
        ("FIRST MISMATCH", Align::Left),
    ]);
    for row in rows {
        table.push([
            row.check.to_owned(),
            row.backend.to_owned(),
            grouped(row.cases),
            grouped(row.values),
            grouped(row.mismatches),
            if row.ok { "yes" } else { "NO" }.to_owned(),
            row.first.clone().filter(|_| !row.ok).unwrap_or_default(),
        ]);
    }
    table.text()
}
