//! A snapshot that is read has sound books, and is read again as it was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::{read_cluster_from, write_cluster};

fuzz_target!(|bytes: &[u8]| {
    let Ok(snapshot) = read_cluster_from("fuzz", bytes) else { return };
    assert_eq!(snapshot.cluster.check_books(), Ok(()));
    let mut text = Vec::new();
    write_cluster(&snapshot.cluster, snapshot.as_of.as_deref(), &mut text).unwrap();
    let again = read_cluster_from("fuzz", &text[..]).unwrap();
    assert_eq!(again.cluster.nodes(), snapshot.cluster.nodes());
});
