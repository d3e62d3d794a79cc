//! No bytes make the reader of a sweep's rows or its table panic, and what it takes it writes and takes again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::SweepRows;
use slotwise::report::{append_line, sweep_table};

fuzz_target!(|bytes: &[u8]| {
    let mut rows = SweepRows::default();
    if rows.read_from("fuzz", bytes).is_err() {
        return;
    }
    sweep_table(&rows);
    let mut written = Vec::new();
    rows.rows().for_each(|row| append_line(&mut written, row).unwrap());
    let mut again = SweepRows::default();
    again.read_from("written", &written[..]).unwrap();
    assert_eq!(rows, again);
});
