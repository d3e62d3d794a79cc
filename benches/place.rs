//! Deciding a stream of arrivals and departures on 12,500 and 125,000 nodes, and reading and writing what it is about.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use slotwise::anchor::State;
use slotwise::cluster::Cluster;
use slotwise::decide::{CommitLoop, PlaceOptions, Policy};
use slotwise::formats::{read_cluster_from, read_queue_from, write_cluster, write_queue};
use slotwise::workload::Queue;
use slotwise::workload::synthetic::{ClusterOptions, StreamOptions, synthetic_cluster, synthetic_queue};

fn scenario(gpus: u64, jobs: u64) -> (Cluster, Queue) {
    let options = ClusterOptions { gpus, preload_percent: 0, ..ClusterOptions::default() };
    let mut cluster = synthetic_cluster(&options).expect("the options are within bounds");
    let options = StreamOptions { jobs, gpus, load_percent: 95, ..StreamOptions::default() };
    let queue = synthetic_queue(&mut cluster, &options).expect("the names are new");
    (cluster, queue)
}

fn decide(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("place");
    group.sample_size(10);
    for (gpus, jobs) in [(100_000, 50_000), (1_000_000, 500_000)] {
        let (cluster, queue) = scenario(gpus, jobs);
        group.throughput(Throughput::Elements(queue.len() as u64));
        for policy in [Policy::Compass, Policy::BestFit] {
            group.bench_function(format!("{policy}, {gpus} GPUs"), |bencher| {
                let state = || State::new(cluster.clone());
                let options = PlaceOptions { policy, threads: 1, ..PlaceOptions::default() };
                let run = |mut state: State| {
                    CommitLoop::new(&mut state, options).run(&queue, &mut |decision| {
                        black_box(decision);
                    });
                    state
                };
                bencher.iter_batched(state, run, BatchSize::LargeInput);
            });
        }
    }
    group.finish();
}

fn json(criterion: &mut Criterion) {
    let options = ClusterOptions { gpus: 100_000, preload_percent: 90, ..ClusterOptions::default() };
    let cluster = synthetic_cluster(&options).expect("the options are within bounds");
    let mut snapshot = Vec::new();
    write_cluster(&cluster, None, &mut snapshot).expect("memory takes it");
    let (registered, queue) = scenario(100_000, 100_000);
    let mut lines = Vec::new();
    write_queue(&registered, &queue, &mut lines).expect("memory takes it");

    let mut group = criterion.benchmark_group("json");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(snapshot.len() as u64));
    group.bench_function("read_cluster", |bencher| {
        bencher.iter(|| read_cluster_from("bench", black_box(&snapshot[..])).expect("it was just written"));
    });
    group.bench_function("write_cluster", |bencher| {
        bencher.iter(|| {
            let mut out = Vec::with_capacity(snapshot.len());
            write_cluster(black_box(&cluster), None, &mut out).expect("memory takes it");
            out
        });
    });
    group.throughput(Throughput::Bytes(lines.len() as u64));
    group.bench_function("read_queue", |bencher| {
        bencher.iter_batched(
            Cluster::default,
            |mut cluster| read_queue_from("bench", black_box(&lines[..]), &mut cluster).expect("it was just written"),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, decide, json);
criterion_main!(benches);
