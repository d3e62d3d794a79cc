#!/usr/bin/env bash
# The long versions of the tests: larger worlds, more random cases, every call of the CUDA driver failed once in every
# way (on a test double of it), a real Slurm where one can be had, minutes of fuzzing where cargo-fuzz is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
export SLOTWISE_NIGHTLY=1 PROPTEST_CASES="${PROPTEST_CASES:-20000}"
cargo test --release --locked -- --include-ignored
tests/slurm/with-cluster cargo test --release --locked --test it slurm::live -- --ignored --nocapture
if command -v go >/dev/null; then
    # The real kube-scheduler, by itself and asking the service.
    for mode in alone extender; do
        SLOTWISE=target/release/slotwise tests/kube-scheduler/run "$mode"
    done
else
    echo "Go is not installed: the real kube-scheduler left out"
fi
if cargo fuzz --version >/dev/null 2>&1; then
    # Without sanitizers: there is one line of unsafe code, which nothing of this comes to. What is found first lies in
    # fuzz/corpus, which is created; the other two folders only start it off.
    for target in snapshot queue candidates alibaba alibaba_jobs philly openb openb_nodes helios acme swf sacct slurm \
        kubernetes kubernetes_views trace node_events sweep_rows serve_grpc serve_http; do
        mkdir -p "fuzz/corpus/$target"
        cargo +nightly fuzz run --sanitizer none "$target" "fuzz/corpus/$target" tests/golden fuzz/seeds -- \
            -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10
    done
else
    echo "cargo-fuzz is not installed: fuzzing left out"
fi
cargo run --release --locked -- stress --gpus 100000 --jobs 1000000
