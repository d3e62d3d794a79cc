//! `verify`: a backend against the serial reference, bit by bit.

use super::super::args::{Format, VerifyArgs};
use super::{Failure, Options, Talk, write_all};
use crate::evaluate::conformance::{Check, Extent, Faulty, suite_of};
use crate::evaluate::{Backend, Kernel, open};
use crate::report::{CheckRow, append_line, verify_table};

pub(super) fn run(args: &VerifyArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    // A device that fails must show, so none takes its place here.
    let mut backend = open(args.backend.backend, options.threads)?;
    talk.note(format_args!("backend {}, seed {}", backend.name(), args.seed));
    let bar = talk.progress(u64::from(args.rounds()) + 1, "comparing");
    let (rows, verdict) = compare(backend.as_mut(), args, options, &mut || bar.inc(1))?;
    bar.finish_and_clear();
    let mut bytes = Vec::new();
    match options.format {
        Format::Json => rows.iter().try_for_each(|row| append_line(&mut bytes, row))?,
        Format::Table => bytes.extend(verify_table(&rows).bytes()),
    }
    write_all(options, &bytes)?;
    verdict
}

/// All rows, and whether the backend passes. `step` is called after each round.
///
/// # Errors
/// If the backend fails.
fn compare(
    backend: &mut dyn Backend,
    args: &VerifyArgs,
    options: &Options,
    step: &mut dyn FnMut(),
) -> Result<(Vec<CheckRow>, Result<(), Failure>), Failure> {
    let name = backend.name();
    let mut rows: Vec<CheckRow> = Kernel::ALL.iter().map(|kernel| empty_row(kernel.name().to_owned(), name)).collect();
    let mut seed = args.seed;
    for round in 0..args.rounds() {
        seed = args.seed.wrapping_add(u64::from(round));
        for check in checks(backend, name, seed, args.extent(round), args, options)? {
            count(&mut rows[check.kernel as usize], &check);
        }
        step();
        if rows.iter().any(|row| row.mismatches > 0) {
            break;
        }
    }
    let again = again(args, options, name, seed);
    for row in &mut rows {
        row.ok = row.cases > 0 && row.mismatches == 0;
        row.again = (!row.ok).then(|| again.clone());
    }
    for &kernel in Kernel::ALL {
        let mut control = empty_row(format!("control: {}", kernel.name()), name);
        let mut faulty = Faulty { inside: backend, kernel };
        let found = checks(&mut faulty, name, args.seed, Extent::Quick, args, options)?;
        found.iter().filter(|check| check.kernel == kernel).for_each(|check| count(&mut control, check));
        control.ok = control.mismatches > 0;
        rows.push(control);
    }
    let failed: Vec<&str> = rows.iter().filter(|row| !row.ok).map(|row| row.check.as_str()).collect();
    let verdict = if failed.is_empty() {
        Ok(())
    } else {
        let failed = failed.join(", ");
        Err(Failure::failed(format_args!("the backend {name} does not pass {failed}; again with: {again}")))
    };
    Ok((rows, verdict))
}

impl VerifyArgs {
    fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 1 } else { 20 })
    }

    /// What is large is compared once.
    fn extent(&self, round: u32) -> Extent {
        match round {
            _ if self.quick => Extent::Quick,
            0 => Extent::Large,
            _ => Extent::Usual,
        }
    }
}

/// The suite of one seed.
///
/// # Errors
/// If the backend fails; the command that shows it again is part of the error.
fn checks(
    backend: &mut dyn Backend,
    name: &str,
    seed: u64,
    extent: Extent,
    args: &VerifyArgs,
    options: &Options,
) -> Result<Vec<Check>, Failure> {
    suite_of(backend, seed, extent).map_err(|error| {
        let again = again(args, options, name, seed);
        Failure::failed(format_args!("the backend {name} failed: {error}; again with: {again}"))
    })
}

/// The command line that compares this seed alone.
fn again(args: &VerifyArgs, options: &Options, backend: &str, seed: u64) -> String {
    let quick = if args.quick { " --quick" } else { "" };
    let threads = if options.threads == 0 { String::new() } else { format!(" --threads {}", options.threads) };
    format!("slotwise verify --backend {backend} --seed {seed} --rounds 1{quick}{threads}")
}

fn empty_row(check: String, backend: &'static str) -> CheckRow {
    CheckRow { check, backend, cases: 0, values: 0, mismatches: 0, first: None, again: None, ok: false }
}

fn count(row: &mut CheckRow, check: &Check) {
    row.cases += 1;
    row.values += check.values as u64;
    if let Some(mismatch) = &check.mismatch {
        row.mismatches += 1;
        row.first.get_or_insert_with(|| format!("{}: {mismatch}", check.case));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::args::{BackendArg, Command};
    use super::*;
    use crate::evaluate::Choice;
    use crate::evaluate::twin::Reference;

    fn found(backend: &mut dyn Backend) -> (Vec<CheckRow>, Result<(), Failure>) {
        let backend_arg = BackendArg { backend: Choice::Wgpu };
        let args = VerifyArgs { backend: backend_arg, seed: 7, rounds: Some(3), quick: true };
        let options = Options { format: Format::Table, out: None, threads: 2, command: Command::Devices };
        compare(backend, &args, &options, &mut || ()).unwrap()
    }

    #[test]
    fn a_wrong_backend_fails_at_the_first_seed_with_the_way_back() {
        let (rows, verdict) = found(&mut Reference::new());
        verdict.unwrap();
        assert_eq!(rows.len(), 2 * Kernel::ALL.len());
        for &kernel in Kernel::ALL {
            let mut inside = Reference::new();
            let (rows, verdict) = found(&mut Faulty { inside: &mut inside, kernel });
            let Err(Failure::Failed(error)) = verdict else { panic!("{kernel:?} passes") };
            let again = "slotwise verify --backend reference --seed 7 --rounds 1 --quick --threads 2";
            assert!(error.to_string().ends_with(&format!("; again with: {again}")), "{error}");
            let row = &rows[kernel as usize];
            assert!(!row.ok && row.first.is_some(), "{row:?}");
            assert_eq!(row.again.as_deref(), Some(again));
        }
    }
}
