//! No bytes make the reader of openb pods panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_openb_pods_from;
use slotwise_fuzz::check;

fuzz_target!(|bytes: &[u8]| check(read_openb_pods_from("fuzz", bytes)));
