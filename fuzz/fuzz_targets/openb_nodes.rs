//! No bytes make the reader of openb nodes panic; what is read has sound books.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_openb_nodes_from;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(snapshot) = read_openb_nodes_from("fuzz", bytes) {
        assert_eq!(snapshot.cluster.check_books(), Ok(()));
    }
});
