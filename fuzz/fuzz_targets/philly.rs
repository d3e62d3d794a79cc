//! No bytes make the reader of Philly jobs, either form, or their replay, panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_philly_from;
use slotwise_fuzz::check;

fuzz_target!(|bytes: &[u8]| check(read_philly_from("fuzz", bytes)));
