//! The batches that backends are compared on.

use super::super::abi::{Candidate, NONE, Need, NodeBits, PackedState, Touch};
use super::super::backend::EvalError;
use super::super::batch::{Batch, BatchRows};
use super::super::candidate::{BatchBuilder, CandidateSet, Move, Place};
use super::super::node_rows::NodeRows;
use super::super::reason::Reason;
use super::super::synthetic::{self, Numbers};
use super::Extent;
use crate::cluster::{Cluster, InstanceId, JobSpec, NodeId};

/// A batch, and what is special about it.
pub(super) type Case = (String, Batch);

/// Those for a cluster of any kind, with nodes or without.
pub(super) fn usual(cluster: &Cluster, nodes: &NodeRows, seed: u64) -> Result<Vec<Case>, EvalError> {
    let mut cases = Vec::new();
    for (each, asking) in [(1, 0), (3, 2), (32, 1), (700, 40)] {
        let batch = synthetic::batch(cluster, 3000, each, asking, seed)?;
        cases.push((format!("{each} touches a candidate"), batch));
    }
    cases.push(("candidates of every size".to_owned(), ragged(nodes, 2000, seed)?));
    cases.push(("all infeasible".to_owned(), infeasible(nodes, seed)?));
    cases.push(("all ties".to_owned(), ties(nodes, 1500)?));
    cases.push(("any bits".to_owned(), any_bits(nodes, 2000, seed)?));
    cases.push(("several instances a node".to_owned(), crowded(cluster, seed)?));
    Ok(cases)
}

/// So many touches, as candidates of one touch each and as a candidate of all of them, for numbers around the widths of
/// words, groups and blocks.
pub(super) fn edges(nodes: &NodeRows, extent: Extent) -> Result<Vec<Case>, EvalError> {
    let powers = if extent == Extent::Quick { 5..=7 } else { 5..=12 };
    let around = powers.map(|power| 1usize << power).flat_map(|n| [n - 1, n, n + 1]);
    let mut cases = Vec::new();
    for n in [0, 1, 2, 3].into_iter().chain(around) {
        let touches = |n: usize| -> Vec<Touch> { (0..n).map(|at| harmless(nodes, at)).collect() };
        if !nodes.is_empty() {
            let apart = rows(nodes, touches(n), (0..=n as u32).collect(), &[n]);
            cases.push((format!("{n} candidates"), Batch::from_rows(apart)?));
        }
        if n <= nodes.len() {
            // Neighbours without touches, on both sides.
            let together = rows(nodes, touches(n), vec![0, 0, n as u32, n as u32], &[3]);
            cases.push((format!("a candidate of {n} touches"), Batch::from_rows(together)?));
        }
    }
    Ok(cases)
}

/// Every node's rows to the last unit: candidates that ask for just what is free, and for a little more.
pub(super) fn resident(nodes: &NodeRows) -> Result<Batch, EvalError> {
    let mut needs = vec![Need::NONE];
    let mut touches = Vec::with_capacity(nodes.len() * 4);
    for (node, (bits, amounts)) in nodes.bits.iter().zip(&nodes.amounts).enumerate() {
        let just = Need { cpu: amounts.cpu, memory: amounts.memory };
        let more = |amount: i32| amount.saturating_add(1);
        let need = needs.len() as u32;
        needs.extend([just, Need { cpu: more(just.cpu), ..just }, Need { memory: more(just.memory), ..just }]);
        let touch = Touch { node: node as u32, taken: bits.free, ..Touch::default() };
        let beyond = !bits.free & bits.free.wrapping_add(1);
        touches.extend((0..3).map(|at| Touch { need: need + at, ..touch }));
        touches.push(Touch { taken: bits.free | beyond, ..touch });
    }
    let n = touches.len();
    Batch::from_rows(BatchRows { needs, ..rows(nodes, touches, (0..=n as u32).collect(), &[n]) })
}

/// A touch of some node by an instance of 1 GPU, if there is a free one.
fn harmless(nodes: &NodeRows, at: usize) -> Touch {
    let node = at % nodes.len().max(1);
    let Some(bits) = nodes.bits.get(node).filter(|bits| bits.free != 0) else {
        return Touch { node: node as u32, ..Touch::default() };
    };
    let step = PackedState::step_of(1, bits.capacity);
    Touch { node: node as u32, taken: bits.free & bits.free.wrapping_neg(), step, ..Touch::default() }
}

/// The rows of a batch without needs and given reasons, with so many candidates a job.
fn rows(nodes: &NodeRows, touches: Vec<Touch>, offsets: Vec<u32>, of_jobs: &[usize]) -> BatchRows {
    let n = offsets.len() - 1;
    let mut jobs = vec![0];
    for &candidates in of_jobs {
        jobs.push(jobs[jobs.len() - 1] + candidates as u32);
    }
    let candidates = vec![Candidate::default(); n];
    BatchRows { nodes: nodes.len(), touches, offsets, given: vec![0; n], candidates, jobs, needs: vec![Need::NONE] }
}

/// Candidates of 0 to 2,000 touches side by side, of jobs without any candidate and with many; some are known to be
/// infeasible, some ask for what no node or every node has.
fn ragged(nodes: &NodeRows, largest: u32, seed: u64) -> Result<Batch, EvalError> {
    let mut numbers = Numbers::new(seed ^ 0x7261);
    let any = |numbers: &mut Numbers| numbers.next_word() as i32;
    let mut needs = vec![Need::NONE];
    needs.extend((0..40).map(|_| Need { cpu: any(&mut numbers), memory: any(&mut numbers) }));
    needs.extend(
        [(i32::MAX, Need::NOTHING), (Need::NOTHING, i32::MAX), (0, 0), (i32::MIN, i32::MIN + 1)]
            .map(|(cpu, memory)| Need { cpu, memory }),
    );
    let (mut touches, mut offsets) = (Vec::new(), vec![0]);
    for _ in 0..150 {
        // Most are small.
        let largest = largest >> (numbers.below(4) * numbers.below(4));
        let size = numbers.below(largest + 1).min(nodes.len() as u32);
        let first = numbers.below(nodes.len().max(1) as u32) as usize;
        for at in 0..size as usize {
            let need = if numbers.below(200) == 0 { numbers.below(needs.len() as u32) } else { 0 };
            touches.push(Touch { need, ..harmless(nodes, first + at) });
        }
        offsets.push(touches.len() as u32);
    }
    let n = offsets.len() - 1;
    let mut of_jobs = Vec::new();
    let mut left = n;
    while left > 0 {
        let some = (numbers.below(3) * numbers.below(40)) as usize;
        of_jobs.push(some.min(left));
        left -= of_jobs[of_jobs.len() - 1];
    }
    of_jobs.extend([0, 0]);
    let mut rows = BatchRows { needs, ..rows(nodes, touches, offsets, &of_jobs) };
    for given in &mut rows.given {
        let reason = Reason::ALL[numbers.below(Reason::ALL.len() as u32) as usize];
        *given = if numbers.below(6) == 0 { reason.number() } else { 0 };
    }
    Batch::from_rows(rows)
}

/// Candidates each of which something stands against: on its first touch, its last, or before any.
fn infeasible(nodes: &NodeRows, seed: u64) -> Result<Batch, EvalError> {
    let mut numbers = Numbers::new(seed);
    let (mut touches, mut offsets, mut given) = (Vec::new(), vec![0], Vec::new());
    for _ in 0..300 {
        let size = numbers.below(40).min(nodes.len() as u32) as usize;
        let first = numbers.below(nodes.len().max(1) as u32) as usize;
        let at = touches.len();
        touches.extend((0..size).map(|at| harmless(nodes, first + at)));
        let spoilt = at + if numbers.below(2) == 0 { 0 } else { size.saturating_sub(1) };
        let busy = touches.get(spoilt).map_or(0, |touch| !nodes.bits[touch.node as usize].free);
        given.push(if busy == 0 { Reason::Topology.number() } else { 0 });
        if let Some(touch) = touches.get_mut(spoilt) {
            touch.taken |= busy & busy.wrapping_neg();
        }
        offsets.push(touches.len() as u32);
    }
    Batch::from_rows(BatchRows { given, ..rows(nodes, touches, offsets, &[299, 0, 1]) })
}

/// Equal candidates, of a large job and of many small ones: the first of each is the best.
fn ties(nodes: &NodeRows, n: usize) -> Result<Batch, EvalError> {
    let n = if nodes.is_empty() { 0 } else { n };
    let touches = vec![Touch { taken: 0, step: 0, ..harmless(nodes, 0) }; n];
    let small = (n / 2).div_ceil(7);
    let of_jobs: Vec<usize> = std::iter::once(n - n / 2).chain((0..small).map(|job| 7.min(n / 2 - 7 * job))).collect();
    Batch::from_rows(rows(nodes, touches, (0..=n as u32).collect(), &of_jobs))
}

/// Rows that no cluster leads to: whatever a word may hold, the twins say what it means.
fn any_bits(nodes: &NodeRows, n: usize, seed: u64) -> Result<Batch, EvalError> {
    let mut numbers = Numbers::new(seed ^ 0x6269);
    let n = if nodes.is_empty() { 0 } else { n };
    let offsets: Vec<u32> = (0..=n as u32).collect();
    let touches = (0..n).map(|_| {
        let node = numbers.below(nodes.len() as u32);
        let NodeBits { free, .. } = nodes.bits[node as usize];
        let word = numbers.next_word();
        // Mostly possible, or there would be nothing to see but the reason.
        let freed = (word >> 32) as u16;
        let taken = (word >> 48) as u16 & if word & 15 == 0 { u16::MAX } else { free | freed };
        Touch { node, need: 0, freed, taken, step: word as u32 }
    });
    let mut rows = rows(nodes, touches.collect(), offsets, &[n / 2, n - n / 2]);
    for candidate in &mut rows.candidates {
        let mut word = || if numbers.below(2) == 0 { NONE } else { numbers.next_word() as u32 };
        let [job, moves, moved_gpus, racks, domains] = std::array::from_fn(|_| word());
        let delta_phi_star = word() as i32 >> 1;
        let delta_phi_star = delta_phi_star.clamp(-(1 << 30), 1 << 30);
        *candidate = Candidate { job, moves, moved_gpus, racks, domains, delta_phi_star, unused: [0; 2] };
    }
    Batch::from_rows(rows)
}

/// Candidates with several instances and moves on the same node, as the builder makes one touch of them.
fn crowded(cluster: &Cluster, seed: u64) -> Result<Batch, EvalError> {
    let mut numbers = Numbers::new(seed ^ 0x6372);
    let mut cluster = cluster.clone();
    let nodes = cluster.nodes().len() as u32;
    let running: Vec<InstanceId> = cluster.node_ids().flat_map(|node| cluster.instances_on(node)).collect();
    let mut sets = Vec::new();
    for job in 0..if nodes == 0 { 0 } else { 8 } {
        let spec = JobSpec {
            name: &format!("crowded {job}"),
            gpus: 1 + numbers.below(3) as u8,
            cpu_milli: 1000 * numbers.below(2),
            ..JobSpec::default()
        };
        let instances = 2 + numbers.below(4);
        let job = cluster.register(&spec, instances).map_err(|error| EvalError::Device(error.to_string()))?;
        for _ in 0..20 {
            // Two nodes for all of them, and some that run there move out of the way, or to and fro.
            let two = [NodeId(numbers.below(nodes)), NodeId(numbers.below(nodes))];
            let mut some = || Place { node: two[numbers.below(2) as usize], gpus: None };
            let place: Vec<Place> = (0..instances).map(|_| some()).collect();
            let here = running.iter().filter(|&&instance| cluster.instance(instance).node() == Some(two[0]));
            let moves = here.take(2).map(|&instance| Move { instance, to: some() }).collect();
            sets.push(CandidateSet { job, place, moves, given: None });
        }
    }
    let mut batch = Batch::default();
    BatchBuilder::new().build(&cluster, &sets, &mut |changes| changes.len() as i64, &mut batch)?;
    Ok(batch)
}
