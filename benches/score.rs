//! `score_candidates` on the processor, by cluster size, touches a candidate and threads, beside a plain read of the
//! same touches. Run with `cargo bench --bench score`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use slotwise::evaluate::{Backend, Cpu, NodeRows, Scores, measure, synthetic};

/// 64 MiB of touches: more than the caches hold, little enough for many samples.
const TOUCHES: usize = 4 << 20;

fn score_candidates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("score_candidates");
    group.sample_size(10);
    for nodes in [12_500, 125_000] {
        let cluster = synthetic::cluster(nodes, 1).expect("a synthetic cluster can be built");
        for per_candidate in [1, 4, 16, 200] {
            let batch = synthetic::batch(&cluster, TOUCHES, per_candidate, 0, 2).expect("the batch is small enough");
            group.throughput(Throughput::Bytes(size_of_val(batch.touches()) as u64));
            let name = format!("{nodes} nodes, {per_candidate} a candidate");
            for threads in [1, 2] {
                let mut cpu = Cpu::new(threads).expect("threads can be started");
                cpu.load(&NodeRows::of(&cluster).expect("few nodes")).expect("the cluster is small enough");
                let mut scores = Scores::default();
                group.bench_function(BenchmarkId::new(&name, format!("{threads} threads")), |bencher| {
                    bencher.iter(|| cpu.evaluate(&batch, &mut scores));
                });
            }
            group.bench_function(BenchmarkId::new(&name, "plain read"), |bencher| {
                bencher.iter(|| measure::plain_read(batch.touches()));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, score_candidates);
criterion_main!(benches);
