//! No bytes make the reader of candidates panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_candidates_from;

fuzz_target!(|bytes: &[u8]| {
    let _ = read_candidates_from("fuzz", bytes);
});
