//! `verify`: a backend against the serial reference, bit by bit.

use super::super::args::{Format, VerifyArgs};
use super::{Failure, Options, Talk, write_all};
use crate::evaluate::abi::NodeEdit;
use crate::evaluate::conformance::{Check, suite};
use crate::evaluate::measure::Speed;
use crate::evaluate::{Backend, Batch, Census, EvalError, Kernel, NodeQuery, NodeRows, Scores, open};
use crate::report::{CheckRow, append_line, verify_table};

/// The check that must find a mismatch.
const CONTROL: &str = "control: a planted fault";

pub(super) fn run(args: &VerifyArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let mut backend = open(args.backend.backend, options.threads)?;
    let name = backend.name();
    talk.note(format_args!("seed {}", args.seed));
    let bar = talk.progress(u64::from(args.rounds) + 1, "comparing");
    let mut rows: Vec<CheckRow> = Kernel::ALL.iter().map(|kernel| empty_row(kernel.name(), name)).collect();
    for round in 0..args.rounds {
        for check in suite(backend.as_mut(), args.seed.wrapping_add(u64::from(round)))? {
            if let Some(row) = rows.iter_mut().find(|row| row.check == check.kernel.name()) {
                count(row, &check);
            }
        }
        bar.inc(1);
    }
    let mut control = empty_row(CONTROL, name);
    suite(&mut Faulty(backend), args.seed)?.iter().for_each(|check| count(&mut control, check));
    rows.push(control);
    bar.finish_and_clear();
    for row in &mut rows {
        row.ok = row.cases > 0 && (row.mismatches > 0) == (row.check == CONTROL);
    }
    let mut bytes = Vec::new();
    match options.format {
        Format::Json => rows.iter().try_for_each(|row| append_line(&mut bytes, row))?,
        Format::Table => bytes.extend(verify_table(&rows).bytes()),
    }
    write_all(options, &bytes)?;
    let failed: Vec<&str> = rows.iter().filter(|row| !row.ok).map(|row| row.check).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format_args!("the backend {name} does not pass {}", failed.join(", "))))
}

fn empty_row(check: &'static str, backend: &'static str) -> CheckRow {
    CheckRow { check, backend, cases: 0, values: 0, mismatches: 0, first: None, ok: false }
}

fn count(row: &mut CheckRow, check: &Check) {
    row.cases += 1;
    row.values += check.values as u64;
    if let Some(mismatch) = &check.mismatch {
        row.mismatches += 1;
        row.first.get_or_insert_with(|| format!("{} nodes, {mismatch}", check.nodes));
    }
}

/// A backend with one wrong bit in one row of every batch: what never fails proves nothing.
struct Faulty(Box<dyn Backend>);

impl Backend for Faulty {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
        self.0.load(nodes)
    }

    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        self.0.apply(edits)
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        self.0.evaluate(batch, out)?;
        if let Some(row) = out.rows.last_mut() {
            row.residual ^= 1;
        }
        Ok(())
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        self.0.rank_nodes(query, out)
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        self.0.census(out)
    }

    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        self.0.measure(batch, passes)
    }
}
