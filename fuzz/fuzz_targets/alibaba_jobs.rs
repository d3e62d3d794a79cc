//! No bytes make the reader of Alibaba's spot jobs panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_alibaba_2026_jobs_from;
use slotwise_fuzz::check;

fuzz_target!(|bytes: &[u8]| check(read_alibaba_2026_jobs_from("fuzz", bytes)));
