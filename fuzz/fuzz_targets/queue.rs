//! No bytes make the reader of queues panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::cluster::Cluster;
use slotwise::formats::{read_queue_from, write_queue};

fuzz_target!(|bytes: &[u8]| {
    let mut cluster = Cluster::default();
    let Ok((queue, _)) = read_queue_from("fuzz", bytes, &mut cluster) else { return };
    let mut text = Vec::new();
    write_queue(&cluster, &queue, &mut text).unwrap();
    assert_eq!(read_queue_from("fuzz", &text[..], &mut Cluster::default()).unwrap().0, queue);
});
