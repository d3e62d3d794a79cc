//! No bytes make the reader of Slurm's accounting panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::read_sacct_from;
use slotwise_fuzz::check;

fuzz_target!(|bytes: &[u8]| check(read_sacct_from("fuzz", bytes)));
