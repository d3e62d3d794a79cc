#!/usr/bin/env bash
# The long versions of the tests: larger worlds, more random cases, every call of the CUDA driver failed once in every
# way (on a test double of it), minutes of fuzzing where cargo-fuzz is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
export SLOTWISE_NIGHTLY=1 PROPTEST_CASES="${PROPTEST_CASES:-20000}"
cargo test --release --locked -- --include-ignored
if cargo fuzz --version >/dev/null 2>&1; then
    for target in snapshot queue candidates alibaba alibaba_jobs philly openb openb_nodes helios acme swf sacct trace; do
        cargo +nightly fuzz run "$target" -- -max_total_time="${FUZZ_SECONDS:-60}"
    done
else
    echo "cargo-fuzz is not installed: fuzzing left out"
fi
cargo run --release --locked -- stress --gpus 100000 --jobs 1000000
