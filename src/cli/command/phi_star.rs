//! `phi-star`: the fewest partial nodes of a demand.

use super::super::args::{Format, PhiStarArgs};
use super::{Failure, Options, write_all};
use crate::fragmentation::{phi_star, wcc};
use crate::report::{PhiStarReport, append_line};

pub(super) fn run(args: &PhiStarArgs, options: &Options) -> Result<(), Failure> {
    let demand = args.demand()?;
    let solution = phi_star(args.capacity, &demand).map_err(|error| Failure::Input(error.into()))?;
    let report = PhiStarReport::new(solution, wcc(args.capacity, &demand), demand.gpus());
    let mut bytes = Vec::new();
    match options.format {
        Format::Json => append_line(&mut bytes, &report)?,
        Format::Table => bytes.extend(report.table().bytes()),
    }
    write_all(options, &bytes)
}
