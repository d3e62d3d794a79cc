//! `devices`: what can evaluate here.

use super::super::args::Format;
use super::{Failure, Options, write_all};
use crate::evaluate;
use crate::report;

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let devices = evaluate::devices();
    let mut bytes = Vec::new();
    match options.format {
        Format::Json => report::devices_json(&mut bytes, &devices)?,
        Format::Table => bytes.extend(report::devices_table(&devices).bytes()),
    }
    write_all(options, &bytes)
}
