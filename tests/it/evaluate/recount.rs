//! Scores against the cluster that really carries a candidate out.

use proptest::prelude::*;
use slotwise::anchor::Shape;
use slotwise::cluster::{Cluster, ClusterBuilder, Edit, InstanceId, JobId, JobSpec, NodeId, NodeSpec, Seat, Within};
use slotwise::evaluate::abi::NONE;
use slotwise::evaluate::twin::Reference;
use slotwise::evaluate::{
    Backend, Batch, BatchBuilder, CandidateSet, Cpu, Move, NodeRows, Place, Reason, Scores, conformance, synthetic,
};

/// A random cluster with mixed capacities, and a queued job of every request.
fn small_cluster(seed: u64) -> (Cluster, Vec<JobId>) {
    let mut numbers = synthetic::Numbers::new(seed);
    let mut builder = ClusterBuilder::new();
    let mut left = Vec::new();
    for node in 0..1 + numbers.below(6) {
        let gpus = [8, 8, 4, 16, 6, 1][numbers.below(6) as usize];
        let unavailable = u16::from(numbers.below(8) == 0);
        left.push((gpus - unavailable as u8, 10u32));
        let limit = |numbers: &mut synthetic::Numbers| (numbers.below(3) > 0).then_some(10);
        let spec = NodeSpec {
            name: &format!("n{node}"),
            gpus,
            model: [None, Some("A"), Some("B")][numbers.below(3) as usize],
            domain: [None, Some("d0"), Some("d1")][numbers.below(3) as usize],
            rack: [None, Some("r0"), Some("r1")][numbers.below(3) as usize],
            cpu_milli: limit(&mut numbers),
            memory_mib: limit(&mut numbers),
            unschedulable: numbers.below(10) == 0,
            unavailable,
        };
        builder.add_node(&spec).unwrap();
    }
    let size = |numbers: &mut synthetic::Numbers| [0, 1, 1, 2, 3, 4, 5, 8][numbers.below(8) as usize];
    for job in 0..numbers.below(14) {
        let gpus = size(&mut numbers);
        let mut seats = Vec::new();
        for _ in 0..1 + numbers.below(2) {
            let node = numbers.below(left.len() as u32);
            let (free, _) = &mut left[node as usize];
            if *free >= gpus {
                *free -= gpus;
                seats.push(Seat { node: NodeId(node), gpus: None });
            }
        }
        if !seats.is_empty() {
            let name = format!("r{job}");
            // Amounts may overcommit a node.
            let (cpu_milli, memory_mib) = (numbers.below(4), numbers.below(4));
            let pinned = numbers.below(8) == 0;
            let within = (numbers.below(8) == 0).then_some(Within::Rack);
            builder
                .add_running(
                    &JobSpec { name: &name, gpus, cpu_milli, memory_mib, pinned, within, ..JobSpec::default() },
                    &seats,
                )
                .unwrap();
        }
    }
    let mut cluster = builder.finish().unwrap();
    let queued = (0..6)
        .map(|job| {
            let spec = JobSpec {
                name: &format!("q{job}"),
                gpus: size(&mut numbers),
                cpu_milli: numbers.below(4),
                memory_mib: numbers.below(4),
                models: if numbers.below(4) == 0 { &["A"] } else { &[] },
                within: [None, None, Some(Within::Domain), Some(Within::Rack)][numbers.below(4) as usize],
                ..JobSpec::default()
            };
            cluster.register(&spec, 1 + numbers.below(3)).unwrap()
        })
        .collect();
    (cluster, queued)
}

/// Candidates that are mostly possible, some of them not.
fn random_sets(cluster: &Cluster, queued: &[JobId], n: usize, seed: u64) -> Vec<CandidateSet> {
    let mut numbers = synthetic::Numbers::new(seed);
    let running: Vec<InstanceId> = cluster
        .job_ids()
        .flat_map(|job| cluster.instances_of(job))
        .filter(|&instance| cluster.instance(instance).node().is_some())
        .collect();
    let nodes = cluster.nodes().len() as u32;
    let place = |gpus: u8, numbers: &mut synthetic::Numbers| {
        let beyond = u32::from(numbers.below(30) == 0);
        let node = NodeId(numbers.below(nodes + beyond));
        let mask = if numbers.below(4) > 0 || node.0 >= nodes {
            None
        } else {
            let usable = cluster.node(node).usable();
            slotwise::cluster::lowest_gpus(usable & !(numbers.below(4) as u16), gpus)
        };
        Place { node, gpus: mask }
    };
    (0..n)
        .map(|_| {
            let job = queued[numbers.below(queued.len() as u32) as usize];
            let gpus = cluster.request_of(job).gpus;
            let count = cluster.job(job).instances() + u32::from(numbers.below(30) == 0);
            let place_all = (0..count).map(|_| place(gpus, &mut numbers)).collect();
            let n_moves = if running.is_empty() { 0 } else { numbers.below(4) };
            let mut moves: Vec<Move> = (0..n_moves)
                .map(|_| {
                    let instance = running[numbers.below(running.len() as u32) as usize];
                    let gpus = cluster.request_of(cluster.instance(instance).job()).gpus;
                    Move { instance, to: place(gpus, &mut numbers) }
                })
                .collect();
            if numbers.below(4) > 0 {
                moves.sort_unstable_by_key(|one| one.instance);
                moves.dedup_by_key(|one| one.instance);
            }
            CandidateSet { job, place: place_all, moves, given: None }
        })
        .collect()
}

/// The devices that each instance gets by the rule of the candidates, worked out the slow way.
fn carry_out(cluster: &Cluster, set: &CandidateSet) -> Option<Cluster> {
    let mut after = cluster.clone();
    assert!(after.number_instances(set.job));
    let mut edits = Vec::new();
    for one in &set.moves {
        let held = cluster.instance(one.instance);
        edits.push(Edit::Free { instance: one.instance, node: held.node()?, gpus: held.gpus() });
    }
    after.apply(&edits).ok()?;
    let takes: Vec<(InstanceId, Place)> = set
        .moves
        .iter()
        .map(|one| (one.instance, one.to))
        .chain(after.instances_of(set.job).zip(set.place.iter().copied()))
        .collect();
    for named in [true, false] {
        for &(instance, place) in takes.iter().filter(|(_, place)| place.gpus.is_some() == named) {
            let gpus = after.request_of(after.instance(instance).job()).gpus;
            let gpus = place.gpus.or_else(|| slotwise::cluster::lowest_gpus(after.node(place.node).free(), gpus))?;
            after.apply(&[Edit::Take { instance, node: place.node, gpus }]).ok()?;
        }
    }
    after.check_books().unwrap();
    Some(after)
}

struct Counts {
    partial: i32,
    empty: i32,
    outside: Vec<bool>,
    empties: Vec<bool>,
}

fn count(cluster: &Cluster) -> Counts {
    let nodes = cluster.nodes();
    let busy = |node: &slotwise::cluster::Node| node.busy().count_ones();
    Counts {
        partial: nodes.iter().filter(|n| busy(n) > 0 && busy(n) < u32::from(n.capacity())).count() as i32,
        empty: nodes.iter().filter(|n| busy(n) == 0).count() as i32,
        outside: nodes.iter().map(|n| !Shape::of(n.capacity(), n.composition()).in_space()).collect(),
        empties: nodes.iter().map(|n| busy(n) == 0).collect(),
    }
}

/// The reasons that depend on loads alone, which `carry_out` can run into.
fn by_load(reason: Reason) -> bool {
    matches!(reason, Reason::GpuBusy | Reason::NoCpu | Reason::NoMemory)
}

fn check_against_recount(seed: u64) -> Result<usize, TestCaseError> {
    let (cluster, queued) = small_cluster(seed);
    let sets = random_sets(&cluster, &queued, 60, seed ^ 0xabcd);
    let mut batch = Batch::default();
    let mut asked = 0;
    let mut phi = |changes: &[slotwise::evaluate::PoolChange]| {
        asked += changes.len();
        1
    };
    BatchBuilder::new().build(&cluster, &sets, &mut phi, &mut batch).unwrap();
    let (mut cpu, mut reference) = (Cpu::new(1).unwrap(), Reference::new());
    cpu.load(&NodeRows::of(&cluster).unwrap()).unwrap();
    reference.load(&NodeRows::of(&cluster).unwrap()).unwrap();
    for check in conformance::scores(&mut cpu, &mut reference, &batch).unwrap() {
        prop_assert_eq!(check.mismatch, None);
    }
    let mut scores = Scores::default();
    cpu.evaluate(&batch, &mut scores).unwrap();
    let ranks = scores.ranks(&batch);
    let mut feasible = 0;
    for c in 0..batch.len() {
        let set = &sets[batch.source(c)];
        prop_assert_eq!(batch.candidates()[c].job, set.job.0);
        let reason = scores.reason(c);
        prop_assert_eq!(ranks[c] == 0, reason.is_some());
        if reason.is_some_and(|reason| !by_load(reason)) {
            continue;
        }
        let after = carry_out(&cluster, set);
        // The ledger frees and takes, so it refuses to take back what an overcommitted node has too much of; a candidate
        // that only changes an index there leaves that as it is.
        let stays_over = |one: &Move| {
            cluster.instance(one.instance).node() == Some(one.to.node) && cluster.node(one.to.node).overcommitted()
        };
        if after.is_none() && set.moves.iter().any(stays_over) {
            continue;
        }
        prop_assert_eq!(reason.is_none(), after.is_some(), "{:?} {:?}", reason, set);
        let Some(after) = after else { continue };
        feasible += 1;
        let (old, new) = (count(&cluster), count(&after));
        let row = scores.rows[c];
        let touched: Vec<usize> = batch.touches_of(c).iter().map(|touch| touch.node as usize).collect();
        prop_assert_eq!(row.delta_partial, new.partial - old.partial);
        prop_assert_eq!(row.delta_empty, new.empty - old.empty);
        let both = |before: bool, afterwards: bool| {
            (0..old.outside.len()).filter(|&n| old.outside[n] == before && new.outside[n] == afterwards).count() as u32
        };
        prop_assert_eq!((row.left, row.entered), (both(false, true), both(true, false)));
        prop_assert_eq!(row.outside, touched.iter().filter(|&&n| new.outside[n]).count() as u32);
        let opened = touched.iter().filter(|&&n| old.empties[n] && !new.empties[n]).count() as u32;
        prop_assert_eq!(row.opened, opened);
        let residual: u32 = touched.iter().map(|&n| u32::from(after.nodes()[n].free_gpus())).sum();
        prop_assert_eq!(row.residual, residual);
        let away = |one: &&Move| cluster.instance(one.instance).node() != Some(one.to.node);
        prop_assert_eq!(batch.candidates()[c].moves, set.moves.iter().filter(away).count() as u32);
    }
    for job in 0..batch.n_jobs() {
        let mut of_job: Vec<u32> = batch.candidates_of(job).map(|c| ranks[c]).filter(|&rank| rank > 0).collect();
        of_job.sort_unstable();
        prop_assert!(of_job.iter().copied().eq(1..=of_job.len() as u32));
        let best = batch.candidates_of(job).find(|&c| ranks[c] == 1).map_or(NONE, |c| c as u32);
        prop_assert_eq!(scores.best[job], best);
    }
    Ok(feasible)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn scores_are_what_a_recount_finds(seed in any::<u64>()) {
        check_against_recount(seed)?;
    }
}

#[test]
fn the_recount_meets_many_feasible_candidates() {
    let feasible: usize = (0..50).map(|seed| check_against_recount(seed).unwrap()).sum();
    assert!(feasible > 300, "{feasible}");
}
