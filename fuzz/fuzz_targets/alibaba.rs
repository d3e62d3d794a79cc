//! No bytes make the reader of node lists panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_alibaba_2026_from;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(snapshot) = read_alibaba_2026_from("fuzz", bytes) {
        assert_eq!(snapshot.cluster.check_books(), Ok(()));
    }
});
