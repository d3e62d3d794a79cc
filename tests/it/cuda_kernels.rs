//! The CUDA kernels against their twins, bit for bit, on the processor: see tests/cuda/README.md.

use std::ops::Range;
use std::path::Path;

use bytemuck::Pod;
use slotwise::cluster::N_COMPOSITIONS;
use slotwise::evaluate::abi::{NodeEdit, ScoreRow};
use slotwise::evaluate::conformance::compare;
use slotwise::evaluate::synthetic::Numbers;
use slotwise::evaluate::{Batch, Census, FgdQuery, FgdRow, Kernel, NodeQuery, NodeRows, PoolCensus, Reason, twin};

use crate::cuda_build::{Fault, entry_points, runner};
use crate::cuda_device::{Arg, Buffer, Device, Order, rows};
use crate::cuda_inputs::{self as inputs, Kind};

/// Sizes of tiles, as kernels/abi.cuh has them.
const TOUCHES: usize = 512;
const CANDIDATES: usize = 256;
const NODES: usize = 2048;
const CLASSES: usize = 16;
/// Words that count the keys of a class in a tile.
const KEYS: usize = 128;

/// The numbers that break implementations: around the widths of warps, blocks and tiles.
const EDGES: [usize; 20] =
    [0, 1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2048, 2049];

fn tiles(n: usize, of: usize) -> usize {
    n.div_ceil(of).max(1)
}

/// A result, or what is wrong: with a message of the runner, or with the values.
type Verdict = Result<(), String>;

fn verdict<T: PartialEq + std::fmt::Debug>(kernel: Kernel, nodes: usize, found: &[T], expected: &[T]) -> Verdict {
    compare(kernel, nodes, found, expected).mismatch.map_or(Ok(()), |mismatch| Err(format!("{kernel:?}: {mismatch}")))
}

/// Nodes as they lie on the device.
struct Resident {
    bits: Buffer,
    amounts: Buffer,
    attributes: Buffer,
    gpu_milli: Buffer,
}

impl Resident {
    fn new(device: &mut Device, nodes: &NodeRows) -> Self {
        Self {
            bits: device.buffer(&nodes.bits),
            amounts: device.buffer(&nodes.amounts),
            attributes: device.buffer(&nodes.attributes),
            gpu_milli: device.buffer(&nodes.gpu_milli),
        }
    }
}

/// Cuts `0..n` into so many pieces; some are empty if `n` is small.
fn cut(n: usize, pieces: usize) -> impl DoubleEndedIterator<Item = Range<usize>> {
    (0..pieces).map(move |piece| n * piece / pieces..n * (piece + 1) / pieces)
}

/// Scores a batch in so many chunks of candidates, and finds the best in as many chunks of jobs. The last chunk goes
/// first: one that wrote beyond its end would spoil what is there already.
fn check_scores(runner: &Path, order: Order, nodes: &NodeRows, batch: &Batch, chunks: usize) -> Verdict {
    let mut device = Device::default();
    let resident = Resident::new(&mut device, nodes);
    let offsets = device.buffer(batch.offsets());
    let given = device.buffer(batch.given());
    let needs = device.buffer(batch.needs());
    let candidates = device.buffer(batch.candidates());
    let jobs = device.buffer(batch.jobs());
    let scores = device.poisoned::<ScoreRow>(batch.len());
    let best = device.poisoned::<u32>(batch.n_jobs());
    for chunk in cut(batch.len(), chunks).rev() {
        let span = batch.offsets()[chunk.start] as usize..batch.offsets()[chunk.end] as usize;
        let touches = device.buffer(&batch.touches()[span.clone()]);
        let n_tiles = tiles(span.len(), TOUCHES);
        let (parts, carried) = (device.poisoned::<ScoreRow>(n_tiles), device.poisoned::<u32>(n_tiles));
        let (offsets, given) = (offsets.from::<u32>(chunk.start), given.from::<u32>(chunk.start));
        let out = scores.from::<ScoreRow>(chunk.start);
        let scoring: [Arg; 12] = [
            resident.bits.into(),
            resident.amounts.into(),
            touches.into(),
            offsets.into(),
            given.into(),
            needs.into(),
            span.start.into(),
            span.len().into(),
            chunk.len().into(),
            out.into(),
            parts.into(),
            carried.into(),
        ];
        device.launch("score_candidates", (n_tiles, 1), 128, &scoring);
        let joining: [Arg; 7] =
            [offsets.into(), given.into(), span.start.into(), n_tiles.into(), parts.into(), carried.into(), out.into()];
        device.launch("score_candidates_join", (tiles(n_tiles, 4), 1), 128, &joining);
    }
    for chunk in cut(batch.n_jobs(), chunks).rev() {
        let span = batch.jobs()[chunk.start] as usize..batch.jobs()[chunk.end] as usize;
        let n_tiles = tiles(span.len(), CANDIDATES);
        let (parts, carried) = (device.poisoned::<u32>(n_tiles), device.poisoned::<u32>(n_tiles));
        let (jobs, out) = (jobs.from::<u32>(chunk.start), best.from::<u32>(chunk.start));
        let of_chunk = [scores.from::<ScoreRow>(span.start), candidates.from::<ScoreRow>(span.start)];
        let finding: [Arg; 9] = [
            of_chunk[0].into(),
            of_chunk[1].into(),
            jobs.into(),
            span.start.into(),
            span.len().into(),
            chunk.len().into(),
            out.into(),
            parts.into(),
            carried.into(),
        ];
        device.launch("best_candidate", (n_tiles, 1), 128, &finding);
        let joining: [Arg; 8] = [
            of_chunk[0].into(),
            of_chunk[1].into(),
            jobs.into(),
            span.start.into(),
            n_tiles.into(),
            parts.into(),
            carried.into(),
            out.into(),
        ];
        device.launch("best_candidate_join", (tiles(n_tiles, 4), 1), 128, &joining);
    }
    device.read::<ScoreRow>(scores, batch.len());
    device.read::<u32>(best, batch.n_jobs());
    let found = device.run(runner, order)?;
    let mut expected = vec![ScoreRow::default(); batch.len()];
    twin::score_candidates::score_candidates(nodes, batch, &mut expected);
    verdict(Kernel::score_candidates, nodes.len(), &rows::<ScoreRow>(&found[0]), &expected)?;
    let mut expected_best = vec![0; batch.n_jobs()];
    twin::best_candidate::best_candidate(batch, &expected, &mut expected_best);
    verdict(Kernel::best_candidate, nodes.len(), &rows::<u32>(&found[1]), &expected_best)
}

/// Asks for the best nodes, so many classes at a time.
fn check_ranks(runner: &Path, order: Order, nodes: &NodeRows, query: &NodeQuery, at_once: usize) -> Verdict {
    let mut device = Device::default();
    let resident = Resident::new(&mut device, nodes);
    let pool_bits = device.buffer(query.pool_bits());
    let slots = device.poisoned::<u32>(query.width());
    let n_tiles = tiles(nodes.len(), NODES);
    let k = query.k();
    for (chunk, classes) in query.classes().chunks(at_once).enumerate() {
        let demands = device.buffer(classes);
        let counts = device.poisoned::<[u32; KEYS]>(classes.len() * n_tiles);
        let out = slots.from::<u32>(chunk * at_once * k);
        let nodes_and_classes: [Arg; 6] = [
            resident.bits.into(),
            resident.amounts.into(),
            resident.attributes.into(),
            demands.into(),
            pool_bits.into(),
            nodes.len().into(),
        ];
        let with = |more: &[Arg]| [&nodes_and_classes[..], more].concat();
        let grid = (n_tiles, classes.len().div_ceil(CLASSES));
        device.launch("rank_nodes_count", grid, 256, &with(&[classes.len().into(), counts.into()]));
        let scanning = [counts.into(), n_tiles.into(), k.into(), out.into()];
        device.launch("rank_nodes_scan", (classes.len(), 1), 128, &scanning);
        let grid = (tiles(n_tiles, 4), classes.len());
        device.launch("rank_nodes_place", grid, 128, &with(&[n_tiles.into(), counts.into(), k.into(), out.into()]));
    }
    device.read::<u32>(slots, query.width());
    let found = device.run(runner, order)?;
    let mut expected = vec![0; query.width()];
    twin::rank_nodes::rank_nodes(nodes, query, &mut expected);
    verdict(Kernel::rank_nodes, nodes.len(), &rows::<u32>(&found[0]), &expected)
}

/// Scores all nodes as FGD does, so many classes at a time.
fn check_fgd(runner: &Path, order: Order, nodes: &NodeRows, query: &FgdQuery, at_once: usize) -> Verdict {
    let mut device = Device::default();
    let resident = Resident::new(&mut device, nodes);
    let pool_bits = device.buffer(query.demands().pool_bits());
    let (pods, allowed) = (device.buffer(query.pods()), device.buffer(query.allowed()));
    let width = query.len() * nodes.len();
    let out = device.poisoned::<FgdRow>(width);
    for (chunk, classes) in query.demands().classes().chunks(at_once).enumerate() {
        let demands = device.buffer(classes);
        let args: [Arg; 11] = [
            resident.amounts.into(),
            resident.attributes.into(),
            resident.gpu_milli.into(),
            demands.into(),
            pool_bits.into(),
            pods.into(),
            allowed.into(),
            nodes.len().into(),
            query.pods().len().into(),
            query.words().into(),
            out.from::<FgdRow>(chunk * at_once * nodes.len()).into(),
        ];
        device.launch("score_fgd", (tiles(nodes.len(), 128), classes.len()), 128, &args);
    }
    device.read::<FgdRow>(out, width);
    let found = device.run(runner, order)?;
    let mut expected = vec![FgdRow::default(); width];
    twin::score_fgd::score_fgd(nodes, query, &mut expected);
    verdict(Kernel::score_fgd, nodes.len(), &rows::<FgdRow>(&found[0]), &expected)
}

fn check_edits(runner: &Path, order: Order, nodes: &NodeRows, edits: &[NodeEdit]) -> Verdict {
    let mut device = Device::default();
    let Resident { bits, amounts, attributes, gpu_milli } = Resident::new(&mut device, nodes);
    let edit_rows = device.buffer(edits);
    let args: [Arg; 6] =
        [edit_rows.into(), edits.len().into(), bits.into(), amounts.into(), attributes.into(), gpu_milli.into()];
    device.launch("apply_edits", (tiles(edits.len(), 128), 1), 128, &args);
    let mut expected = nodes.clone();
    twin::apply_edits::apply_edits(&mut expected, edits);
    fn read<T: Pod>(device: &mut Device, buffer: Buffer, rows: &[T]) {
        device.read::<T>(buffer, rows.len());
    }
    read(&mut device, bits, &expected.bits);
    read(&mut device, amounts, &expected.amounts);
    read(&mut device, attributes, &expected.attributes);
    read(&mut device, gpu_milli, &expected.gpu_milli);
    let found = device.run(runner, order)?;
    verdict(Kernel::apply_edits, nodes.len(), &rows(&found[0]), &expected.bits)?;
    verdict(Kernel::apply_edits, nodes.len(), &rows(&found[1]), &expected.amounts)?;
    verdict(Kernel::apply_edits, nodes.len(), &rows(&found[2]), &expected.attributes)?;
    verdict(Kernel::apply_edits, nodes.len(), &rows(&found[3]), &expected.gpu_milli)
}

fn check_census(runner: &Path, order: Order, nodes: &NodeRows, blocks: usize) -> Verdict {
    let mut device = Device::default();
    let resident = Resident::new(&mut device, nodes);
    let pools = device.buffer(&vec![PoolCensus::default(); nodes.pools]);
    let compositions = device.buffer(&[0_u32; N_COMPOSITIONS]);
    let args: [Arg; 6] = [
        resident.bits.into(),
        resident.attributes.into(),
        nodes.len().into(),
        nodes.pools.into(),
        pools.into(),
        compositions.into(),
    ];
    device.launch("census", (blocks, 1), 256, &args);
    device.read::<PoolCensus>(pools, nodes.pools);
    device.read::<u32>(compositions, N_COMPOSITIONS);
    let found = device.run(runner, order)?;
    let mut expected = Census::default();
    twin::census::census(nodes, &mut expected);
    verdict(Kernel::census, nodes.len(), &rows(&found[0]), &expected.pools)?;
    verdict(Kernel::census, nodes.len(), &rows(&found[1]), &expected.compositions)
}

fn in_both_orders(mut check: impl FnMut(&Path, Order) -> Verdict) {
    let runner = runner(None);
    for order in Order::BOTH {
        check(&runner, order).unwrap_or_else(|fault| panic!("{order:?}: {fault}"));
    }
}

/// Candidates of all the sizes in turn until there are so many touches.
fn sizes_in_turn(sizes: &[usize], touches: usize) -> Vec<usize> {
    let mut left = touches;
    let fits = |&size: &usize| {
        left = left.checked_sub(size)?;
        Some(size)
    };
    sizes.iter().cycle().map_while(fits).collect()
}

/// A batch of jobs of all kinds of sizes.
fn mixed_batch(nodes: &NodeRows, sizes: &[usize], kind: Kind, numbers: &mut Numbers) -> Batch {
    let mut jobs = sizes_in_turn(&[8, 0, 1, 3, 33, 0, 257], sizes.len());
    jobs.push(sizes.len() - jobs.iter().sum::<usize>());
    jobs.extend([0, 0]);
    inputs::batch(nodes, sizes, &jobs, kind, numbers)
}

#[test]
fn candidates_of_every_size_score_as_the_twin_says() {
    let mut numbers = Numbers::new(3);
    let nodes = inputs::nodes(50_000, 3, &mut numbers);
    let mut seen = std::collections::BTreeSet::new();
    for (sizes, touches, chunks) in [
        (&[1][..], 3000, 1),
        (&[3, 0, 1, 1, 9], 6000, 7),
        (&[31, 32, 33, 2000, 1], 20_000, 1),
        (&[0, 2000], 20_000, 3),
        (&[512], 6 * 512, 1),
        (&[511, 513, 1024, 0, 0, 1], 10_000, 2),
        (&[50_000, 5, 30_000], 200_000, 1),
    ] {
        let sizes = sizes_in_turn(sizes, touches);
        let batch = mixed_batch(&nodes, &sizes, Kind::Mixed, &mut numbers);
        in_both_orders(|runner, order| check_scores(runner, order, &nodes, &batch, chunks));
        let mut scores = vec![ScoreRow::default(); batch.len()];
        twin::score_candidates::score_candidates(&nodes, &batch, &mut scores);
        seen.extend(scores.iter().map(|row| row.reason));
    }
    // Feasible ones, and every reason there is.
    assert_eq!(seen.len(), 1 + Reason::ALL.len());
}

#[test]
fn batches_of_every_size_score_as_the_twin_says() {
    let mut numbers = Numbers::new(5);
    let nodes = inputs::nodes(2100, 3, &mut numbers);
    for n in EDGES {
        // So many touches, and so many candidates.
        for sizes in [vec![n], vec![1; n], vec![0; n], [vec![0; 3], vec![n], vec![0; n]].concat()] {
            let batch = mixed_batch(&nodes, &sizes, Kind::Mixed, &mut numbers);
            in_both_orders(|runner, order| check_scores(runner, order, &nodes, &batch, 1 + n % 3));
        }
    }
    let none = NodeRows::default();
    let batch = mixed_batch(&none, &[0; 5], Kind::Mixed, &mut numbers);
    in_both_orders(|runner, order| check_scores(runner, order, &none, &batch, 1));
}

#[test]
fn equal_and_infeasible_candidates_rank_as_the_twin_says() {
    let mut numbers = Numbers::new(7);
    let nodes = inputs::nodes(300, 3, &mut numbers);
    for kind in [Kind::Ties, Kind::Infeasible, Kind::Mixed] {
        for jobs in [vec![2000], vec![256; 4], vec![1; 300], [EDGES.to_vec(), vec![0; 300]].concat()] {
            let sizes = vec![4; jobs.iter().sum()];
            let batch = inputs::batch(&nodes, &sizes, &jobs, kind, &mut numbers);
            in_both_orders(|runner, order| check_scores(runner, order, &nodes, &batch, 3));
        }
    }
}

#[test]
fn nodes_rank_as_the_twin_says() {
    let mut numbers = Numbers::new(11);
    let cluster = inputs::many_pools();
    for (n, k, classes, at_once) in [
        (0, 3, 20, 20),
        (1, 1, 20, 7),
        (31, 1024, 4, 4),
        (33, 5, 40, 40),
        (NODES - 1, 1024, 20, 17),
        (NODES, 5, 20, 16),
        (NODES + 1, NODES + 5, 20, 20),
        (5 * NODES + 7, 1024, 40, 40),
        (5 * NODES + 7, 3, 16, 1),
    ] {
        let nodes = inputs::nodes(n, cluster.pools().len() as u32, &mut numbers);
        let query = inputs::query(&cluster, k, classes, &mut numbers);
        in_both_orders(|runner, order| check_ranks(runner, order, &nodes, &query, at_once));
    }
}

#[test]
fn nodes_score_for_fgd_as_the_twin_says() {
    let mut numbers = Numbers::new(12);
    let cluster = inputs::many_pools();
    for (n, classes, typical, at_once) in
        [(0, 5, 9, 5), (1, 5, 0, 2), (127, 12, 33, 12), (128, 9, 1, 4), (129, 30, 70, 7), (3000, 8, 100, 8)]
    {
        let nodes = inputs::nodes(n, cluster.pools().len() as u32, &mut numbers);
        let query = inputs::fgd_query(&cluster, classes, typical, &mut numbers);
        in_both_orders(|runner, order| check_fgd(runner, order, &nodes, &query, at_once));
    }
}

#[test]
fn edits_and_counts_are_what_the_twin_says() {
    let mut numbers = Numbers::new(13);
    for n in EDGES {
        for pools in [1, 32, 33, 100] {
            let nodes = inputs::nodes(n, pools, &mut numbers);
            in_both_orders(|runner, order| check_census(runner, order, &nodes, 1 + n / 300));
        }
        let nodes = inputs::nodes(n, 3, &mut numbers);
        let edited = (0..n as u32).rev().filter(|_| n < 40 || numbers.below(3) == 0).collect::<Vec<_>>();
        let edits: Vec<NodeEdit> = edited.into_iter().map(|node| inputs::node(node, 3, &mut numbers)).collect();
        in_both_orders(|runner, order| check_edits(runner, order, &nodes, &edits));
    }
}

/// Small inputs that reach every line of every kernel, in one order.
fn check_all(runner: &Path, order: Order) -> Verdict {
    let mut numbers = Numbers::new(17);
    let nodes = inputs::nodes(3000, 3, &mut numbers);
    let sizes = sizes_in_turn(&[1, 40, 700, 3, 0, 1200], 8000);
    let batch = mixed_batch(&nodes, &sizes, Kind::Mixed, &mut numbers);
    check_scores(runner, order, &nodes, &batch, 2)?;
    let batch = inputs::batch(&nodes, &[2; 900], &[300, 0, 600], Kind::Ties, &mut numbers);
    check_scores(runner, order, &nodes, &batch, 1)?;
    let cluster = inputs::many_pools();
    let query = inputs::query(&cluster, 700, 20, &mut numbers);
    check_ranks(runner, order, &nodes, &query, 20)?;
    let query = inputs::fgd_query(&cluster, 12, 40, &mut numbers);
    check_fgd(runner, order, &nodes, &query, 12)?;
    check_census(runner, order, &nodes, 2)?;
    let edits: Vec<NodeEdit> = (0..40).map(|node| inputs::node(node, 3, &mut numbers)).collect();
    check_edits(runner, order, &nodes, &edits)
}

/// What the checks above would say of kernels with this fault, in either order.
fn found(fault: Fault) -> bool {
    let runner = runner(Some(fault));
    Order::BOTH.into_iter().any(|order| check_all(&runner, order).is_err())
}

#[test]
fn planted_faults_are_found() {
    in_both_orders(check_all);
    for (kernel, from, to) in [
        (Kernel::score_candidates, "inherits ? first - 1 : NONE", "inherits ? first : NONE"),
        (Kernel::score_candidates, "entered << 5 |", "entered << 6 |"),
        (Kernel::score_candidates, "part <= (end - 1) / TILE", "part < (end - 1) / TILE"),
        (Kernel::best_candidate, "equal && key[word] < best.key[word]", "equal && key[word] <= best.key[word]"),
        (Kernel::rank_nodes, "(1u << lane) - 1", "(2u << lane) - 1"),
        (Kernel::score_fgd, "is_able = rest >= pod.y", "is_able = rest > pod.y"),
        (Kernel::score_fgd, "growth[gpu] < least", "growth[gpu] <= least"),
        (Kernel::apply_edits, "left[1] = words[4];", ""),
        (Kernel::apply_edits, "hot.z, hot.w", "hot.w, hot.z"),
        (Kernel::census, "pools) + i, pool_words[i]", "pools) + i, 1u"),
    ] {
        assert!(found(Fault { kernel, nth: 0, from, to }), "{kernel:?}: {from}");
    }
}

/// Barriers that stand beside another operation of the warp. It holds up fibers as well, but on a GPU it orders no memory.
const DOUBLED: [(Kernel, &str, usize); 2] =
    [(Kernel::rank_nodes, "__syncwarp();", 0), (Kernel::rank_nodes, "__syncwarp();", 2)];

#[test]
fn every_missing_barrier_is_found() {
    in_both_orders(check_all);
    for &kernel in Kernel::ALL {
        for from in ["__syncthreads();", "__syncwarp();"] {
            for nth in 0..kernel.cuda().matches(from).count() {
                let expected = !DOUBLED.contains(&(kernel, from, nth));
                assert_eq!(found(Fault { kernel, nth, from, to: "" }), expected, "{kernel:?}: {from} {nth}");
            }
        }
    }
}

#[test]
fn every_entry_point_is_in_the_ptx_and_in_the_table() {
    let table = std::fs::read_to_string(format!("{}/kernels/abi.cuh", env!("CARGO_MANIFEST_DIR"))).unwrap();
    for kernel in Kernel::ALL {
        let mut in_source = entry_points(kernel.cuda());
        let in_ptx = kernel.ptx().split(".visible .entry ").skip(1).map(|rest| rest.split_once('(').unwrap().0);
        let mut in_ptx: Vec<&str> = in_ptx.collect();
        in_source.sort_unstable();
        in_ptx.sort_unstable();
        assert_eq!(in_source, in_ptx);
        for entry in in_source {
            assert!(entry.starts_with(kernel.name()) && table.contains(&format!("// | {entry} ")), "{entry}");
        }
    }
}
