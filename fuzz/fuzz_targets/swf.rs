//! No bytes make the reader of the Standard Workload Format panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_swf_from;
use slotwise_fuzz::check;

fuzz_target!(|bytes: &[u8]| check(read_swf_from("fuzz", bytes, "3/8".parse().unwrap())));
