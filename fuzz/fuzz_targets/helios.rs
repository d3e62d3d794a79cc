//! No bytes make the reader of Helios jobs panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_helios_from;
use slotwise_fuzz::check;

fuzz_target!(|bytes: &[u8]| check(read_helios_from("fuzz", bytes)));
