//! No bytes make the reader of Kubernetes dumps panic; what is read has sound books, and its queue can be registered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_kubernetes_from;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut import) = read_kubernetes_from("fuzz", bytes, None) else { return };
    assert_eq!(import.snapshot.cluster.check_books(), Ok(()));
    let mut cluster = std::mem::take(&mut import.snapshot.cluster);
    import.queue("fuzz", &mut cluster).unwrap();
});
