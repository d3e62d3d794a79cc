//! No bytes make the reader of traces, the sizing of a cluster, or a simulation panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::anchor::Trigger;
use slotwise::formats::read_trace_from;
use slotwise::simulate::{Discipline, OracleError, Scenario, Scheduler, Share, SimOptions, Until, nodes_for, simulate};
use slotwise::workload::TraceJob;

fuzz_target!(|bytes: &[u8]| {
    let Ok((jobs, _)) = read_trace_from("fuzz", bytes) else { return };
    nodes_for(&jobs, Share::default(), Until::LastEnd, 8);
    let end = jobs.iter().all(TraceJob::leaves);
    let Ok(scenario) = Scenario::homogeneous(3, 8, jobs) else { return };
    for word in ["compass", "best-fit", "sif-opt"] {
        let Ok(scheduler) = Scheduler::parse(word, (Trigger::EveryEvent, None)) else { return };
        for discipline in Discipline::ALL {
            let options = SimOptions { discipline, move_cost_s: 8, seed: 1 };
            let outcome = match simulate(&scenario, scheduler, &options, &mut |_| {}) {
                Err(OracleError::Shares) if scenario.jobs().iter().any(TraceJob::is_share) => continue,
                outcome => outcome.unwrap(),
            };
            assert!(!end || outcome.jobs.iter().enumerate().all(|(i, job)| job.finish().is_some() || scenario.is_rejected(i)));
        }
    }
});
