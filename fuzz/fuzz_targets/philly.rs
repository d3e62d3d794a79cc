//! No bytes make the reader of Philly jobs, or their replay, panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_philly_from;
use slotwise::workload::{natural, replay};

fuzz_target!(|bytes: &[u8]| {
    let Ok((jobs, _)) = read_philly_from("fuzz", bytes) else { return };
    assert_eq!(natural(&jobs).len(), jobs.len() * 2);
    assert_eq!(replay(&jobs, 100, 95).len(), jobs.len() * 2);
});
