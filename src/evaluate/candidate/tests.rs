//! Hand-made candidates: every reason, devices that are left out, ΔΦ*, and the static columns.

use super::*;
use crate::cluster::{ClusterBuilder, JobSpec, NodeSpec, Seat, Within};
use crate::evaluate::batch::Scores;
use crate::evaluate::twin::Reference;
use crate::evaluate::{Backend, EvalError, NodeRows};

/// n0: 8 GPUs of A in r0/d0, with a 2-GPU job on 0,1 and a pinned 1-GPU job on 2. n1: 8 of B in r1, device 5 broken.
/// n2: 4 of A, cordoned. n3: 8 of A in r0/d0, 10 milli-cores, 10 MiB.
fn cluster() -> Cluster {
    let mut builder = ClusterBuilder::new();
    let node = |name, gpus, model, rack, domain| NodeSpec { name, gpus, model, rack, domain, ..NodeSpec::default() };
    let specs = [
        node("n0", 8, Some("A"), Some("r0"), Some("d0")),
        NodeSpec { unavailable: 1 << 5, ..node("n1", 8, Some("B"), Some("r1"), None) },
        NodeSpec { unschedulable: true, ..node("n2", 4, Some("A"), None, None) },
        NodeSpec { cpu_milli: Some(10), memory_mib: Some(10), ..node("n3", 8, Some("A"), Some("r0"), Some("d0")) },
    ];
    for spec in &specs {
        builder.add_node(spec).unwrap();
    }
    let seat = Seat { node: NodeId(0), gpus: None };
    builder.add_running(&JobSpec { name: "two", gpus: 2, ..JobSpec::default() }, &[seat]).unwrap();
    builder.add_running(&JobSpec { name: "pinned", gpus: 1, pinned: true, ..JobSpec::default() }, &[seat]).unwrap();
    builder.finish().unwrap()
}

fn place(node: u32, gpus: impl Into<Option<GpuMask>>) -> Place {
    Place { node: NodeId(node), gpus: gpus.into() }
}

fn shift(instance: u32, to: Place) -> Move {
    Move { instance: InstanceId(instance), to }
}

fn evaluate(cluster: &Cluster, sets: &[CandidateSet]) -> (Batch, Scores) {
    let mut batch = Batch::default();
    BatchBuilder::new().build(cluster, sets, &mut |_| 0, &mut batch).unwrap();
    let (mut reference, mut scores) = (Reference::new(), Scores::default());
    reference.load(&NodeRows::of(cluster).unwrap()).unwrap();
    reference.evaluate(&batch, &mut scores).unwrap();
    (batch, scores)
}

fn reason(spec: &JobSpec<'_>, place: &[Place], moves: &[Move]) -> Option<&'static str> {
    let mut cluster = cluster();
    let job = cluster.register(&JobSpec { name: "q", ..spec.clone() }, place.len().max(1) as u32).unwrap();
    let set = CandidateSet { job, place: place.to_vec(), moves: moves.to_vec(), given: None };
    evaluate(&cluster, &[set]).1.reason(0).map(Reason::name)
}

#[test]
fn every_reason_is_found() {
    let one = JobSpec { gpus: 1, ..JobSpec::default() };
    let two = JobSpec { gpus: 2, ..JobSpec::default() };
    assert_eq!(reason(&one, &[place(0, None)], &[]), None);
    assert_eq!(reason(&one, &[place(9, None)], &[]), Some("unknown-node"));
    assert_eq!(reason(&one, &[], &[]), Some("wrong-count"));
    assert_eq!(reason(&two, &[place(0, 0b1000)], &[]), Some("wrong-count"));
    assert_eq!(reason(&one, &[place(1, 1 << 8)], &[]), Some("bad-index"));
    assert_eq!(reason(&one, &[place(1, 1 << 5)], &[]), Some("unavailable-gpu"));
    assert_eq!(reason(&one, &[place(2, None)], &[]), Some("unschedulable"));
    assert_eq!(reason(&JobSpec { models: &["A"], ..one.clone() }, &[place(1, None)], &[]), Some("wrong-model"));
    let rack = JobSpec { within: Some(Within::Rack), ..one.clone() };
    assert_eq!(reason(&rack, &[place(0, None), place(1, None)], &[]), Some("topology"));
    assert_eq!(reason(&rack, &[place(0, None), place(3, None)], &[]), None);
    let domain = JobSpec { within: Some(Within::Domain), ..one.clone() };
    assert_eq!(reason(&domain, &[place(1, None)], &[]), Some("topology"));
    assert_eq!(reason(&one, &[place(0, 1)], &[]), Some("gpu-busy"));
    assert_eq!(reason(&one, &[place(3, 1), place(3, 1)], &[]), Some("gpu-busy"));
    assert_eq!(reason(&JobSpec { gpus: 6, ..one.clone() }, &[place(0, None)], &[]), Some("gpu-busy"));
    assert_eq!(reason(&JobSpec { cpu_milli: 6, ..one.clone() }, &[place(3, None); 2], &[]), Some("no-cpu"));
    assert_eq!(reason(&JobSpec { memory_mib: 11, ..one.clone() }, &[place(3, None)], &[]), Some("no-memory"));
    let both = JobSpec { memory_mib: 11, cpu_milli: 11, ..one.clone() };
    assert_eq!(reason(&both, &[place(3, None)], &[]), Some("no-cpu"));
    assert_eq!(reason(&one, &[place(0, None)], &[shift(1, place(3, None))]), Some("not-migratable"));
    assert_eq!(reason(&one, &[place(0, None)], &[shift(0, place(3, None)); 2]), Some("bad-index"));
    assert_eq!(reason(&one, &[place(0, None)], &[shift(0, place(2, None))]), Some("unschedulable"));
}

#[test]
fn shares_go_beside_others() {
    // Shares of 700 on device 0 and of 400 on device 1, and device 2 held whole.
    let mut builder = ClusterBuilder::new();
    builder.add_node(&NodeSpec { name: "n", gpus: 4, cpu_milli: Some(10), ..NodeSpec::default() }).unwrap();
    let share = |name, gpu_milli| JobSpec { name, gpus: 1, gpu_milli, cpu_milli: 1, ..JobSpec::default() };
    for (name, milli, gpus) in [("a", 700, 0b1), ("b", 400, 0b10)] {
        builder.add_running(&share(name, milli), &[Seat { node: NodeId(0), gpus: Some(gpus) }]).unwrap();
    }
    builder
        .add_running(&JobSpec { gpu_milli: 1000, ..share("c", 1) }, &[Seat { node: NodeId(0), gpus: Some(0b100) }])
        .unwrap();
    let cluster = builder.finish().unwrap();
    // The devices taken, GPUs more busy, and the reason.
    let judge = |milli: u16, places: &[Option<GpuMask>], moves: &[Move]| {
        let mut cluster = cluster.clone();
        let job = cluster.register(&share("q", milli), places.len() as u32).unwrap();
        let place = places.iter().map(|&gpus| place(0, gpus)).collect();
        let set = CandidateSet { job, place, moves: moves.to_vec(), given: None };
        let (batch, scores) = evaluate(&cluster, &[set]);
        let taken = batch.touches_of(0).first().map_or(0, |touch| touch.taken);
        (taken, scores.reason(0).map(Reason::name))
    };
    let one = |milli, gpus| judge(milli, &[gpus], &[]);
    assert_eq!((one(300, None), one(301, None), one(601, None)), ((0, None), (0, None), (0b1000, None)));
    assert_eq!((one(300, Some(0b1)), one(600, Some(0b10))), ((0, None), (0, None)));
    let busy = Some("gpu-busy");
    assert_eq!(
        (one(301, Some(0b1)), one(1, Some(0b100)), one(1, Some(0b1000))),
        ((0, busy), (0, busy), (0b1000, None))
    );
    // Its own shares count: 600 on the second device, then one on the free device, then two there.
    assert_eq!(judge(500, &[None; 2], &[]), (0b1000, None));
    assert_eq!(judge(500, &[None; 3], &[]), (0b1000, None));
    assert_eq!(judge(500, &[None; 4], &[]), (0, busy));
    assert_eq!(judge(500, &[None, Some(0b10)], &[]), (0b1000, None));
    assert_eq!(judge(500, &[Some(0b10), Some(0b10)], &[]), (0, busy));
    // A device that a move frees, by turns of its holder; shares do not move.
    assert_eq!(judge(500, &[Some(0b100), Some(0b100)], &[shift(2, place(0, 0b1000))]), (0b1100, None));
    assert_eq!(judge(500, &[None], &[shift(0, place(0, 0b1000))]), (0, Some("not-migratable")));
    assert_eq!(judge(9, &[None; 8], &[]), (0, Some("no-cpu")));
}

#[test]
fn what_does_not_run_or_runs_already_is_a_reason() {
    let mut cluster = cluster();
    let queued = cluster.register(&JobSpec { name: "q", gpus: 1, ..JobSpec::default() }, 1).unwrap();
    assert!(cluster.number_instances(queued));
    let set = |job, instance| CandidateSet {
        job,
        place: vec![place(0, None)],
        moves: vec![shift(instance, place(3, None))],
        given: None,
    };
    let given = CandidateSet { given: Some(Reason::BadIndex), moves: vec![], ..set(queued, 0) };
    let sets = [set(queued, 2), set(JobId(0), 1), set(JobId(u32::MAX), 0), given];
    let (batch, scores) = evaluate(&cluster, &sets);
    let by_input = |input| (0..4).find(|&c| batch.source(c) == input).and_then(|c| scores.reason(c));
    let reasons = [0, 1, 2, 3].map(by_input);
    let expected = [Reason::NotRunning, Reason::UnknownJob, Reason::UnknownJob, Reason::BadIndex];
    assert_eq!(reasons, expected.map(Some));
    // The two candidates of the queued job stand together.
    assert_eq!((batch.n_jobs(), batch.candidates_of(0)), (3, 0..2));
    assert_eq!(batch.source(1), 3);
}

#[test]
fn left_out_devices_are_the_lowest_after_the_moves() {
    let mut cluster = cluster();
    let job = cluster.register(&JobSpec { name: "q", gpus: 1, ..JobSpec::default() }, 3).unwrap();
    // The 2-GPU instance leaves 0,1 and takes the lowest of what the named device leaves: 1,3.
    let set = CandidateSet {
        job,
        place: vec![place(0, None), place(0, 1), place(3, None)],
        moves: vec![shift(0, place(0, None))],
        given: None,
    };
    let (batch, scores) = evaluate(&cluster, &[set]);
    let [n0, n3] = batch.touches_of(0) else { panic!("{:?}", batch.touches_of(0)) };
    assert_eq!((n0.node, n0.freed, n0.taken), (0, 0b11, 0b1_1011));
    assert_eq!((n3.node, n3.freed, n3.taken), (3, 0, 1));
    // On the same node is not a move; both nodes are in one rack and domain.
    let candidate = batch.candidates()[0];
    assert_eq!((candidate.moves, candidate.moved_gpus, candidate.racks, candidate.domains), (0, 0, 1, 1));
    // n0 has {2,1} before, which is outside Σ, and {2,1,1,1} afterwards; n3 is opened.
    let row = scores.rows[0];
    assert_eq!((row.reason, row.delta_partial, row.left, row.entered, row.outside), (0, 1, 0, 0, 1));
    assert_eq!((row.opened, row.delta_empty, row.residual), (1, -1, 3 + 7));
}

#[test]
fn the_change_of_phi_is_asked_by_pool_and_once_for_equals() {
    let mut cluster = cluster();
    let job = cluster.register(&JobSpec { name: "q", gpus: 4, ..JobSpec::default() }, 1).unwrap();
    let set = |node, to| CandidateSet {
        job,
        place: vec![place(node, None)],
        moves: vec![shift(0, place(to, None))],
        given: None,
    };
    let mut asked = Vec::new();
    let mut batch = Batch::default();
    let sets = [set(0, 1), set(0, 1), set(3, 1), set(1, 3)];
    let mut phi = |changes: &[PoolChange]| {
        asked.push(changes.to_vec());
        asked.len() as i64
    };
    BatchBuilder::new().build(&cluster, &sets, &mut phi, &mut batch).unwrap();
    let deltas: Vec<i32> = batch.candidates().iter().map(|candidate| candidate.delta_phi_star).collect();
    assert_eq!(deltas, [1, 1, 1, 2]);
    let change = |pool, sizes: &[(usize, i64)]| {
        let mut delta = [0; 17];
        sizes.iter().for_each(|&(size, n)| delta[size] = n);
        PoolChange { pool: PoolId(pool), delta }
    };
    assert_eq!(asked, [vec![change(0, &[(2, -1), (4, 1)]), change(1, &[(2, 1)])], vec![change(1, &[(4, 1)])]]);
    let huge = BatchBuilder::new().build(&cluster, &sets, &mut |_| i64::MAX, &mut batch);
    assert!(matches!(huge, Err(EvalError::TooLarge { .. })));
}
