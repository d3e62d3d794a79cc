//! The policies of FGD's simulator: against its own decisions on the whole openb workload, and the index against a scan.

use std::collections::{BTreeSet, HashMap};
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

/// What our own policies make of the same workload: the figures of `benches/RESULTS.md`.
#[test]
fn the_same_workload_under_our_policies() {
    let Some(golden) = golden() else { return };
    let exact = Arithmetic::Exact;
    for (policy, used, placed) in [
        (Policy::Fgd(exact), 5_860_370, 8320),
        (Policy::CaFgd, 5_802_680, 8234),
        (Policy::Mcg, 5_857_100, 8317),
        (Policy::GpuPacking(exact), 5_686_440, 8070),
        (Policy::GpuClustering(exact), 5_680_680, 8064),
        (Policy::DotProduct(exact), 5_561_690, 7929),
        (Policy::BestFit, 5_856_720, 8259),
        (Policy::FirstFit, 5_863_340, 8269),
        (Policy::WorstFit, 5_249_750, 7879),
        (Policy::Random, 5_457_950, 7946),
        (Policy::Compass, 5_684_670, 8069),
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
        // Two of them also ask what runs or waits, and take that anew now and then: they have a test of their own.
        for policy in Policy::ALL.into_iter().skip(6).filter(|policy| !matches!(policy, Policy::CaFgd | Policy::Mcg)) {
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

/// The table of typical pods of `ca-fgd` or `mcg` by its rule, from decisions alone.
struct Rule {
    policy: Policy,
    lasting: Typical,
    /// The jobs that run, or that wait.
    moment: BTreeSet<JobId>,
    changed: u64,
    table: Typical,
}

impl Rule {
    fn new(cluster: &Cluster, policy: Policy, lasting: Typical) -> Self {
        let moment = if policy == Policy::Mcg { cluster.job_ids().collect() } else { BTreeSet::new() };
        let mut rule = Self { policy, lasting, moment, changed: 0, table: Typical::default() };
        rule.make(cluster);
        rule
    }

    fn make(&mut self, cluster: &Cluster) {
        let asked = |&job: &JobId| (cluster.request_of(job), u64::from(cluster.job(job).instances()));
        let now = Typical::new(cluster, self.moment.iter().map(asked));
        let instances: u64 = self.moment.iter().map(|job| asked(job).1).sum();
        self.table = Typical::mix(&[(&self.lasting, 64), (&now, instances.min(64))]);
        self.changed = 0;
    }

    fn learn(&mut self, cluster: &Cluster, entry: QueueEntry, status: Status) {
        let counts = match (entry, status) {
            (QueueEntry::Submit(_), Status::Placed) => self.policy == Policy::CaFgd,
            (QueueEntry::Submit(_), _) => return,
            (QueueEntry::Remove(_), _) => false,
            (QueueEntry::SubmitGroups(_) | QueueEntry::RemoveGroups(_), _) => panic!("not made here"),
        };
        let job = entry.job();
        if if counts { self.moment.insert(job) } else { self.moment.remove(&job) } {
            self.changed += u64::from(cluster.job(job).instances());
        }
        let instances: u64 = self.moment.iter().map(|&job| u64::from(cluster.job(job).instances())).sum();
        if self.changed >= (instances / 8).max(16) {
            self.make(cluster);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Where the table changes, a placement is what a scan finds with the table that its rule gives.
    #[test]
    fn a_table_that_changes_is_its_rule(nodes in prop::collection::vec(node_plan(), 1..9), steps in steps(9, 1..60)) {
        let (cluster, queue) = queue(&nodes, &steps);
        let jobs = cluster.jobs().iter().map(|job| (cluster.request(job.request()), u64::from(job.instances())));
        let typical = Typical::new(&cluster, jobs);
        for policy in [Policy::CaFgd, Policy::Mcg] {
            let mut rule = Rule::new(&cluster, policy, typical.clone());
            let mut state = State::new(cluster.clone());
            let mut commit_loop = CommitLoop::new(&mut state, options(policy));
            for (index, &entry) in queue.iter().enumerate() {
                let before = commit_loop.state().cluster().clone();
                let decision = commit_loop.decide(entry, index).clone();
                if let (Status::Placed, None) = (decision.status, cluster.request_of(entry.job()).within) {
                    prop_assert_eq!(&decision.placements, &by_scan(&before, &rule.table, entry.job()), "{}", policy);
                }
                rule.learn(&cluster, entry, decision.status);
            }
            state.cluster().check_books().unwrap();
        }
    }
}
