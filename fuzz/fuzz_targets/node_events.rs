//! No bytes make the reader of node events panic, nor a simulation that plays what it read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::anchor::Trigger;
use slotwise::formats::read_node_events_from;
use slotwise::simulate::{Discipline, Scenario, Scheduler, SimOptions, simulate};
use slotwise::workload::TraceJob;

fuzz_target!(|bytes: &[u8]| {
    let job = |i: u64| TraceJob {
        name: format!("j{i}"),
        submit_s: i * 3,
        duration_s: 20 + i % 7,
        instances: 1 + (i % 3) as u32,
        gpus_per_instance: 1 + (i * 5 % 8) as u8,
        ..TraceJob::default()
    };
    let Ok(scenario) = Scenario::homogeneous(3, 8, (0..20).map(job).collect()) else { return };
    let Ok((events, _)) = read_node_events_from("fuzz", bytes, scenario.cluster()) else { return };
    let scenario = scenario.with_events(events);
    for word in ["compass", "best-fit", "fft:10"] {
        let Ok(scheduler) = Scheduler::parse(word, (Trigger::EveryEvent, None)) else { return };
        for discipline in Discipline::ALL {
            let options = SimOptions { discipline, move_cost_s: 8, seed: 1 };
            let outcome = simulate(&scenario, scheduler, &options, &mut |_| {}).unwrap();
            assert!(outcome.lost.iter().all(|run| run.start <= run.end));
        }
    }
});
