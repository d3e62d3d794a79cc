//! Jobs as a JobSet of evalys: the columns that its `JobSet.from_csv` reads, which Batsim writes as well.

use std::io::{self, Write};

use super::Run;
use crate::simulate::{Allocations, Scenario};
use crate::workload::TraceJob;

/// The columns.
const COLUMNS: [&str; 13] = [
    "jobID",
    "workload_name",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
];

/// Writes the header of a JobSet.
///
/// # Errors
/// If it cannot be written.
pub fn jobset_header(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))
}

/// Writes a line for each job of a run that finished. The name of the workload is the scheduler, so that runs can stand in
/// one file; the requested time is the duration that the trace states, the execution time has the pauses of migrations
/// in it; the stretch is turnaround by execution, empty for a job of no duration. Resources are GPUs, as
/// [`Allocations`] numbers them, where the job held them last; of shares the sum is requested, rounded up, and every device
/// allocated that one of them lies on.
///
/// # Errors
/// If it cannot be written.
pub fn jobset_rows(
    out: &mut dyn Write,
    scenario: &Scenario,
    run: &Run,
    allocations: Option<&Allocations>,
) -> io::Result<()> {
    let mut rows = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    let workload = run.outcome.scheduler.to_string();
    for (position, (job, became)) in scenario.jobs().iter().zip(&run.outcome.jobs).enumerate() {
        let (Some(start), Some(finish)) = (became.start(), became.finish()) else { continue };
        let (execution, turnaround) = (finish - start, finish - job.submit_s);
        let held = allocations.map_or(&[][..], |allocations| allocations.held(position));
        let held: Vec<String> = held
            .iter()
            .map(|range| match (range.start(), range.end()) {
                (first, last) if first == last => first.to_string(),
                (first, last) => format!("{first}-{last}"),
            })
            .collect();
        rows.write_record([
            &job.name[..],
            &workload,
            &job.submit_s.to_string(),
            &job.demand_milli().div_ceil(u64::from(TraceJob::WHOLE)).to_string(),
            &job.duration_s.to_string(),
            "1",
            &start.to_string(),
            &execution.to_string(),
            &finish.to_string(),
            &(start - job.submit_s).to_string(),
            &turnaround.to_string(),
            &millionths(turnaround, execution),
            &held.join(" "),
        ])?;
    }
    rows.flush()
}

/// A quotient with six decimals, rounded; empty where there is none.
fn millionths(part: u64, whole: u64) -> String {
    const UNIT: u128 = 1_000_000;
    let doubled = (u128::from(part) * UNIT * 2).checked_div(whole.into());
    doubled.map_or(String::new(), |doubled| {
        let rounded = doubled.div_ceil(2);
        format!("{}.{:06}", rounded / UNIT, rounded % UNIT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_rounded_to_the_nearest() {
        assert_eq!(millionths(3, 0), "");
        assert_eq!([millionths(1, 3), millionths(2, 3), millionths(7, 7)], ["0.333333", "0.666667", "1.000000"]);
        assert_eq!(millionths(1, 4_000_000), "0.000000");
        assert_eq!(millionths(1, 2_000_000), "0.000001");
        assert_eq!(millionths(u64::MAX, 1), format!("{}.000000", u64::MAX));
    }
}
