//! The policies of FGD's simulator: against its own decisions on the whole openb workload, and the index against a scan.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::GzDecoder;
use proptest::prelude::*;
use slotwise::anchor::State;
use slotwise::cluster::*;
use slotwise::decide::{Arithmetic, CommitLoop, PlaceOptions, Policy, Status};
use slotwise::formats::foreign_trace;
use slotwise::fragmentation::fgd::{Ask, Left, Typical, exact};
use slotwise::workload::{QueueEntry, TraceJob};

use crate::decide_support::{node_plan, options, queue, steps};
use crate::formats::data;

/// A run of the simulator: the cluster of its nodes under the names that it gave them, its pods in their order, and where
/// each went: the node's name and the devices, or nothing.
struct Golden {
    cluster: Cluster,
    jobs: Vec<JobId>,
    expected: Vec<Option<(String, Vec<u8>)>>,
    typical: Typical,
}

fn golden() -> Option<Golden> {
    let nodes = data("alibaba-openb-2023/node_list_gpu_node.csv")?;
    let pods = data("alibaba-openb-2023/pod_list_default.csv.gz")?;
    let decisions = data("fgd-golden/decisions.csv.gz")?;
    let names = std::fs::read_to_string(data("fgd-golden/node_names.txt")?).unwrap();
    let renamed: HashMap<&str, &str> = names.lines().map(|name| (name.split_once('-').unwrap().1, name)).collect();

    let mut builder = ClusterBuilder::new();
    for row in csv::Reader::from_path(nodes).unwrap().records() {
        let row = row.unwrap();
        let amount = |column: usize| Some(row[column].parse().unwrap());
        let spec = NodeSpec {
            name: renamed[&row[0]],
            gpus: row[3].parse().unwrap(),
            model: Some(&row[4]),
            cpu_milli: amount(1),
            memory_mib: amount(2),
            ..NodeSpec::default()
        };
        builder.add_node(&spec).unwrap();
    }
    let mut cluster = builder.finish().unwrap();
    let trace = foreign_trace(&format!("openb:{}", pods.display()), None).unwrap().unwrap();
    let typical = Typical::of_trace(&mut cluster, &trace.jobs).unwrap();

    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(decisions).unwrap()).read_to_string(&mut text).unwrap();
    let (mut jobs, mut expected) = (Vec::new(), Vec::new());
    for row in csv::Reader::from_reader(text.as_bytes()).records() {
        let row = row.unwrap();
        let number = |column: usize| row[column].parse::<u32>().unwrap();
        let gpus = number(4) as u8;
        let job = TraceJob {
            name: format!("{}-{}", &row[1], &row[0]),
            gpus_per_instance: gpus,
            gpu_milli: if gpus == 0 { TraceJob::WHOLE } else { number(5) as u16 },
            cpu_milli: number(2),
            memory_mib: number(3),
            ..TraceJob::default()
        };
        jobs.push(job.register(&mut cluster).unwrap());
        let devices = row[8].split(['|', '-']).filter_map(|gpu| gpu.parse().ok()).collect();
        expected.push((&row[7] != "-").then(|| (row[7].to_owned(), devices)));
    }
    Some(Golden { cluster, jobs, expected, typical })
}

/// Places all pods of the run; returns where each went and the milli-GPU that are used in the end.
fn play(golden: &Golden, policy: Policy) -> (Vec<Option<(NodeId, GpuMask)>>, u64) {
    let mut state = State::new(golden.cluster.clone());
    let options = PlaceOptions { policy, ..PlaceOptions::default() };
    let mut commit_loop = CommitLoop::new(&mut state, options).with_typical(golden.typical.clone());
    let mut placed = Vec::new();
    let queue: Vec<QueueEntry> = golden.jobs.iter().map(|&job| QueueEntry::Submit(job)).collect();
    commit_loop.run(&queue, &mut |decision| {
        placed.push((decision.status == Status::Placed).then(|| decision.placements[0]));
    });
    state.cluster().check_books().unwrap();
    let all = state.cluster().gpus() * u64::from(WHOLE_GPU);
    (placed, all - state.free_gpu_milli())
}

#[test]
fn fgd_decides_as_its_simulator_decision_for_decision() {
    let Some(golden) = golden() else { return };
    assert_eq!((golden.typical.pods().len(), golden.typical.total()), (35, 8152));
    assert_eq!(golden.typical.pods().iter().map(|pod| pod.count).sum::<u32>(), 7766);
    let (placed, used) = play(&golden, Policy::Fgd(Arithmetic::Peer));
    assert_eq!(placed.len(), 10_866);
    for (number, (placed, expected)) in placed.iter().zip(&golden.expected).enumerate() {
        let placed = placed
            .map(|(node, gpus)| (golden.cluster.node_name(node).to_owned(), gpu_indices(gpus).collect::<Vec<u8>>()));
        assert_eq!(&placed, expected, "decision {number}");
    }
    assert_eq!((used, placed.iter().flatten().count()), (5_919_410, 8334));
}

/// The saturated allocation of the five policies, as published and as the simulator's rules give it to the last unit.
#[test]
fn the_others_fill_the_cluster_as_much_as_in_its_simulator() {
    let Some(golden) = golden() else { return };
    let peer = Arithmetic::Peer;
    for (policy, used, placed) in [
        (Policy::BestFitPeer, 5_785_450, 8190),
        (Policy::GpuPacking(peer), 5_688_580, 8072),
        (Policy::GpuClustering(peer), 5_686_120, 8069),
        (Policy::DotProduct(peer), 5_624_470, 7992),
    ] {
        let (decisions, milli) = play(&golden, policy);
        assert_eq!((milli, decisions.iter().flatten().count()), (used, placed), "{policy}");
    }
}

/// Where FGD puts the instances of a job, by a scan of all nodes for each. Topology is not looked at.
fn by_scan(cluster: &Cluster, typical: &Typical, job: JobId) -> Vec<(NodeId, GpuMask)> {
    let (request, mut state) = (cluster.request_of(job), State::new(cluster.clone()));
    let mut chosen = Vec::new();
    let mut transaction = state.begin();
    assert!(transaction.start(job));
    for instance in transaction.cluster().instances_of(job) {
        let cluster = transaction.cluster();
        let able = cluster.node_ids().filter(|&node| {
            cluster.admits(node, request)
                && cluster.node(node).capacity() >= request.gpus
                && cluster.has_cpu_and_memory(node, request)
        });
        let scored = able.filter_map(|node| {
            let left = Left::of(cluster, node);
            let allowed = typical.allowed(cluster.node(node).pool());
            let (growth, gpus) = exact::growth(typical.pods(), allowed, &left, &Ask::of(request))?;
            Some((growth, node, gpus))
        });
        let Some((_, node, gpus)) = scored.min() else { break };
        transaction.take(instance, node, gpus).unwrap();
        chosen.push((node, gpus));
    }
    chosen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// What is remembered of nodes is what a loop finds that remembers nothing; and what FGD finds is what a scan finds.
    #[test]
    fn the_index_is_a_scan(nodes in prop::collection::vec(node_plan(), 1..9), steps in steps(4, 1..30)) {
        let (cluster, queue) = queue(&nodes, &steps);
        let jobs = cluster.jobs().iter().map(|job| (cluster.request(job.request()), u64::from(job.instances())));
        let typical = Typical::new(&cluster, jobs);
        for policy in Policy::ALL.into_iter().skip(6) {
            let mut state = State::new(cluster.clone());
            let mut commit_loop = CommitLoop::new(&mut state, options(policy));
            for (index, &entry) in queue.iter().enumerate() {
                let mut fresh = State::new(commit_loop.state().cluster().clone());
                let mut fresh_loop = CommitLoop::new(&mut fresh, options(policy)).with_typical(typical.clone());
                let expected = fresh_loop.decide(entry, index).clone();
                let decision = commit_loop.decide(entry, index).clone();
                prop_assert_eq!(&decision, &expected, "{}", policy);
                let request = cluster.request_of(entry.job());
                if let (Policy::Fgd(Arithmetic::Exact), Status::Placed, None) = (policy, decision.status, request.within) {
                    let mut before = commit_loop.state().cluster().clone();
                    let held = before.instances_of(entry.job()).map(|instance| (instance, *before.instance(instance)));
                    let free = |(instance, held): (InstanceId, Instance)| {
                        Edit::Free { instance, node: held.node().unwrap(), gpus: held.gpus() }
                    };
                    let edits: Vec<Edit> = held.map(free).collect();
                    before.apply(&edits).unwrap();
                    prop_assert_eq!(&decision.placements, &by_scan(&before, &typical, entry.job()));
                }
            }
            state.cluster().check_books().unwrap();
        }
    }
}
