//! No bytes make the reader of Acme jobs panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_acme_from;
use slotwise_fuzz::check;

fuzz_target!(|bytes: &[u8]| check(read_acme_from("fuzz", bytes)));
