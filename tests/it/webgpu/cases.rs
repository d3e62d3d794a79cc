//! What the suite does not meet: the edges of batches and queries, and what is larger than a piece, tile or binding.

use slotwise::cluster::{Cluster, ClusterBuilder, JobSpec, NodeId, NodeSpec, Request, Seat};
use slotwise::evaluate::abi::{Candidate, NONE, Need, NodeEdit, Touch};
use slotwise::evaluate::synthetic::{self, Numbers};
use slotwise::evaluate::twin::Reference;
use slotwise::evaluate::webgpu::Limits;
use slotwise::evaluate::{
    Backend, Batch, BatchRows, Census, Cpu, NodeOrder, NodeQuery, NodeRows, Reason, Scores, WebGpu, conformance,
};

use super::{open, tiny};

/// A cluster on the device, in two ways of chunking, and on the twins.
struct Three {
    cluster: Cluster,
    ways: [WebGpu; 2],
    reference: Reference,
}

impl Three {
    fn new(cluster: Cluster) -> Self {
        let mut ways = [open(&Limits::default()), open(&tiny())];
        let mut reference = Reference::new();
        let rows = NodeRows::of(&cluster).unwrap();
        ways.iter_mut().for_each(|way| way.load(&rows).unwrap());
        reference.load(&rows).unwrap();
        Self { cluster, ways, reference }
    }

    fn same_scores(&mut self, batch: &Batch) {
        for way in &mut self.ways {
            for check in conformance::scores(way, &mut self.reference, batch).unwrap() {
                assert_eq!(check.mismatch, None);
            }
        }
    }

    fn same_nodes(&mut self, query: &NodeQuery) {
        let mut expected = Vec::new();
        self.reference.rank_nodes(query, &mut expected).unwrap();
        for way in &mut self.ways {
            let mut found = vec![7; 11];
            way.rank_nodes(query, &mut found).unwrap();
            assert!(found == expected, "k = {}, {} classes", query.k(), query.len());
        }
    }

    fn same_census(&mut self) {
        let mut expected = Census::default();
        self.reference.census(&mut expected).unwrap();
        for way in &mut self.ways {
            let mut found = Census::default();
            found.reset(2);
            found.pools[1].full = 9;
            way.census(&mut found).unwrap();
            assert_eq!(found, expected);
        }
    }
}

/// Nodes of every capacity in many pools, with a few instances.
fn many_pools(nodes: usize, models: u32, seed: u64) -> Cluster {
    let mut numbers = Numbers::new(seed);
    let mut builder = ClusterBuilder::new();
    let mut capacities = Vec::new();
    for node in 0..nodes {
        let gpus = 1 + numbers.below(16) as u8;
        capacities.push(gpus);
        builder
            .add_node(&NodeSpec {
                name: &format!("n{node}"),
                gpus,
                model: Some(&format!("m{}", numbers.below(models))),
                domain: Some(&format!("d{}", numbers.below(5))),
                rack: Some("r"),
                cpu_milli: Some(1000),
                memory_mib: None,
                unschedulable: numbers.below(9) == 0,
                unavailable: 0,
            })
            .unwrap();
    }
    for (node, capacity) in capacities.into_iter().enumerate() {
        let mut left = capacity;
        while left > 0 && numbers.below(3) > 0 {
            let gpus = 1 + numbers.below(left.into()) as u8;
            left -= gpus;
            let name = format!("j{node}-{left}");
            let spec = JobSpec { name: &name, gpus, cpu_milli: numbers.below(300), ..JobSpec::default() };
            builder.add_running(&spec, &[Seat { node: NodeId(node as u32), gpus: None }]).unwrap();
        }
    }
    builder.finish().unwrap()
}

/// Candidates of these sizes, in jobs of those, with touches that are anything at all: a step need not lead to a state
/// that a node can be in.
fn wild(nodes: usize, sizes: &[usize], jobs: &[u32], seed: u64) -> Batch {
    let mut numbers = Numbers::new(seed);
    let mut rows = BatchRows { nodes, offsets: vec![0], jobs: vec![0], needs: vec![Need::NONE], ..Default::default() };
    for (at, &size) in sizes.iter().enumerate() {
        let first = numbers.below(nodes.max(1) as u32);
        // Every other candidate is feasible as far as devices go.
        let taken = if at % 2 == 0 { 0 } else { numbers.next_word() as u16 };
        for i in 0..size as u32 {
            let need = if numbers.below(3) == 0 { rows.needs.len() as u32 } else { 0 };
            if need > 0 {
                let amount = |numbers: &mut Numbers| numbers.next_word() as i32 >> numbers.below(32);
                rows.needs.push(Need { cpu: amount(&mut numbers), memory: amount(&mut numbers).min(1 << 20) });
            }
            let step = if numbers.below(2) == 0 { numbers.next_word() as u32 } else { 0 };
            let freed = numbers.next_word() as u16;
            rows.touches.push(Touch {
                node: (first + i) % nodes as u32,
                need: need * u32::from(at % 4 > 1),
                freed,
                taken,
                step,
            });
        }
        rows.offsets.push(rows.touches.len() as u32);
        rows.given.push(if numbers.below(5) == 0 { 1 + numbers.below(Reason::ALL.len() as u32) } else { 0 });
        rows.candidates.push(Candidate {
            moves: numbers.below(2),
            delta_phi_star: (numbers.next_word() as i32) >> (2 + numbers.below(29)),
            racks: numbers.next_word() as u32 >> numbers.below(32),
            ..Candidate::default()
        });
    }
    for &n in jobs {
        rows.jobs.push((rows.jobs[rows.jobs.len() - 1] + n).min(sizes.len() as u32));
    }
    rows.jobs.push(sizes.len() as u32);
    Batch::from_rows(rows).unwrap()
}

#[test]
fn batches_at_the_edges_are_scored_alike() {
    let mut three = Three::new(synthetic::cluster(700, 5).unwrap());
    let large: Vec<usize> = (0..60).map(|i| [0, 1, 700, 3, 0, 64, 65, 511, 512, 513][i % 10]).collect();
    let cases: [(&[usize], &[u32]); 9] = [
        (&[], &[]),
        (&[], &[0, 0, 0]),
        (&[0], &[]),
        (&[0; 1000], &[0, 0, 3, 0, 500, 0]),
        (&[700], &[]),
        (&[1; 5000], &[1, 4000]),
        (&[0, 0, 700, 0, 0, 0, 700, 1, 0], &[2, 0, 0, 3]),
        (&large, &[0, 1, 10, 0, 40]),
        (&[2; 300], &[64, 65, 66, 0]),
    ];
    for (seed, (sizes, jobs)) in cases.into_iter().enumerate() {
        three.same_scores(&wild(700, sizes, jobs, seed as u64));
    }
}

#[test]
fn many_random_batches_are_scored_alike() {
    let mut three = Three::new(many_pools(300, 3, 8));
    let mut numbers = Numbers::new(77);
    for seed in 0..40 {
        let most = [2, 5, 40, 300][numbers.below(4) as usize];
        let sizes: Vec<usize> = (0..numbers.below(400)).map(|_| numbers.below(most) as usize).collect();
        let jobs: Vec<u32> = (0..numbers.below(20)).map(|_| numbers.below(100)).collect();
        three.same_scores(&wild(300, &sizes, &jobs, seed));
    }
}

#[test]
fn no_nodes_and_no_questions_are_answered() {
    let mut three = Three::new(synthetic::cluster(0, 1).unwrap());
    three.same_scores(&wild(0, &[0, 0, 0], &[0, 2], 1));
    three.same_scores(&Batch::default());
    three.same_census();
    for k in [0, 1, 1024] {
        let mut query = NodeQuery::new(&three.cluster, k);
        three.same_nodes(&query);
        query.push(&three.cluster, &Request::default(), NodeOrder::FirstFit, None, None);
        three.same_nodes(&query);
    }
    three.ways.iter_mut().for_each(|way| way.apply(&[]).unwrap());
}

#[test]
fn ties_and_the_infeasible_are_decided_alike() {
    let mut three = Three::new(synthetic::cluster(40, 3).unwrap());
    for taken in [0, 1 << 15] {
        let n = 3000;
        let batch = Batch::from_rows(BatchRows {
            nodes: 40,
            touches: vec![Touch { node: 7, taken, ..Touch::default() }; n],
            offsets: (0..=n as u32).collect(),
            given: vec![0; n],
            candidates: vec![Candidate::default(); n],
            jobs: vec![0, 5, 2900, n as u32],
            needs: vec![Need::NONE],
        })
        .unwrap();
        three.same_scores(&batch);
        let mut scores = Scores::default();
        three.ways[1].evaluate(&batch, &mut scores).unwrap();
        assert_eq!(scores.best, if taken == 0 { [0, 5, 2900] } else { [NONE; 3] });
    }
}

/// A candidate in more tiles than a thread adds up, within a piece and from piece to piece.
#[test]
fn one_candidate_of_all_nodes_is_scored_alike() {
    let cluster = synthetic::cluster(80_000, 9).unwrap();
    let rows = NodeRows::of(&cluster).unwrap();
    let batch = wild(80_000, &[80_000, 1, 33_000, 0, 80_000, 70_000], &[2], 4);
    let mut reference = Reference::new();
    reference.load(&rows).unwrap();
    for piece in [64 << 20, 70 * 512 * 16, 65 * 512 * 16 + 48] {
        let mut backend = open(&Limits { piece, ..Limits::default() });
        backend.load(&rows).unwrap();
        for check in conformance::scores(&mut backend, &mut reference, &batch).unwrap() {
            assert_eq!(check.mismatch, None, "{piece}");
        }
    }
}

/// Every order and size, with everything that may restrict it.
fn ask(cluster: &Cluster, k: usize, classes: usize, seed: u64) -> NodeQuery {
    let mut numbers = Numbers::new(seed);
    let mut query = NodeQuery::new(cluster, k);
    for _ in 0..classes {
        let node = cluster.node(NodeId(numbers.below(cluster.nodes().len() as u32)));
        let model = cluster.pool(node.pool()).model;
        let request = Request {
            gpus: numbers.below(17) as u8,
            cpu_milli: 500 * numbers.below(3),
            memory_mib: numbers.below(2),
            models: model.filter(|_| numbers.below(2) == 0).map(|model| [model].into()),
            ..Request::default()
        };
        let domain = node.domain().filter(|_| numbers.below(4) == 0);
        let rack = node.rack().filter(|_| numbers.below(4) == 0);
        query.push(cluster, &request, NodeOrder::ALL[numbers.below(4) as usize], domain, rack);
    }
    query
}

#[test]
fn nodes_are_ranked_alike_whatever_is_wanted() {
    for (nodes, models) in [(1, 1), (40, 2), (1500, 70)] {
        let mut three = Three::new(many_pools(nodes, models, 2));
        for (k, classes) in [(0, 3), (1, 1), (1, 100), (5, 17), (1024, 40), (5000, 9)] {
            let query = ask(&three.cluster, k, classes, k as u64);
            three.same_nodes(&query);
        }
        three.same_census();
    }
}

#[test]
fn thousands_of_classes_are_answered() {
    let mut three = Three::new(many_pools(60, 40, 6));
    assert!(three.cluster.pools().len() > 32);
    let query = ask(&three.cluster, 3, 4096, 1);
    three.same_nodes(&query);
    let edits: Vec<_> = three.cluster.node_ids().map(|node| NodeEdit::of(&three.cluster, node)).collect();
    three.ways.iter_mut().for_each(|way| way.apply(&edits).unwrap());
    three.same_nodes(&query);
}

/// More than the 128 MiB of one binding, and than 65,535 workgroups have in one step.
#[test]
fn a_batch_larger_than_a_binding_is_scored_alike() {
    let cluster = synthetic::cluster(20_000, 3).unwrap();
    let batch = synthetic::batch(&cluster, 20_000_000, 50, 0, 3).unwrap();
    assert!(size_of_val(batch.touches()) > 300_000_000);
    let rows = NodeRows::of(&cluster).unwrap();
    let (mut cpu, mut backend) = (Cpu::new(0).unwrap(), open(&Limits { groups: 999, ..Limits::default() }));
    cpu.load(&rows).unwrap();
    backend.load(&rows).unwrap();
    for check in conformance::scores(&mut backend, &mut cpu, &batch).unwrap() {
        assert_eq!(check.mismatch, None);
    }
}

/// Thousands of candidates a thread: see `order` in the shader.
#[test]
fn of_millions_of_equals_the_first_is_best() {
    let cluster = many_pools(300, 3, 4);
    let rows = NodeRows::of(&cluster).unwrap();
    let candidates = 2_000_000;
    let touch = |at: usize| Touch { node: (at % 300) as u32, ..Touch::default() };
    let batch = Batch::from_rows(BatchRows {
        nodes: 300,
        touches: (0..candidates).map(touch).collect(),
        needs: vec![Need::NONE],
        offsets: (0..=candidates as u32).collect(),
        given: vec![0; candidates],
        candidates: vec![Candidate::default(); candidates],
        jobs: vec![0, candidates as u32],
    })
    .unwrap();
    let (mut reference, mut backend) = (Reference::new(), open(&Limits::default()));
    reference.load(&rows).unwrap();
    backend.load(&rows).unwrap();
    for check in conformance::scores(&mut backend, &mut reference, &batch).unwrap() {
        assert_eq!(check.mismatch, None, "{}", check.kernel.name());
    }
}
