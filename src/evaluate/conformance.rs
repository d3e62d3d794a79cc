//! Whether a backend gives the bits that the twins give: what `verify` runs, and the tests.

use super::abi::{NONE, NodeEdit, ScoreRow};
use super::backend::{Backend, EvalError};
use super::batch::{Batch, Scores};
use super::census::Census;
use super::kernels::Kernel;
use super::node_rows::NodeRows;
use super::query::{NodeOrder, NodeQuery};
use super::synthetic::{self, Numbers};
use super::twin::Reference;
use crate::cluster::{Cluster, DomainId, Edit, NodeId, RackId, Request};

/// What one comparison found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was compared.
    pub kernel: Kernel,
    /// On how many nodes.
    pub nodes: usize,
    /// How many values.
    pub values: usize,
    /// The first difference: where, what the backend says, what the twin says.
    pub mismatch: Option<String>,
}

/// Compares two results value by value.
pub fn compare<T: PartialEq + std::fmt::Debug>(kernel: Kernel, nodes: usize, found: &[T], expected: &[T]) -> Check {
    let differ = found.iter().zip(expected).position(|(found, expected)| found != expected);
    let mismatch = if found.len() != expected.len() {
        Some(format!("{} values, expected {}", found.len(), expected.len()))
    } else {
        differ.map(|at| format!("at {at}: {:?}, expected {:?}", found[at], expected[at]))
    };
    Check { kernel, nodes, values: expected.len(), mismatch }
}

/// The sizes that break implementations: none, one, and around the widths of words, groups and blocks.
const SIZES: [usize; 12] = [0, 1, 7, 31, 32, 33, 255, 256, 257, 1000, 5001, 20_000];

/// Compares a backend with the twins on synthetic clusters, before and after edits.
///
/// # Errors
/// If the backend fails; a mismatch is no error.
pub fn suite(backend: &mut dyn Backend, seed: u64) -> Result<Vec<Check>, EvalError> {
    let mut checks = Vec::new();
    let mut reference = Reference::new();
    for nodes in SIZES {
        let mut cluster = synthetic::cluster(nodes, seed).map_err(|error| EvalError::Device(error.to_string()))?;
        let nodes_before = NodeRows::of(&cluster)?;
        backend.load(&nodes_before)?;
        reference.load(&nodes_before)?;
        on_cluster(backend, &mut reference, &cluster, seed, &mut checks)?;
        let edits = departures(&mut cluster, seed);
        backend.apply(&edits)?;
        reference.apply(&edits)?;
        on_cluster(backend, &mut reference, &cluster, seed + 1, &mut checks)?;
        // What is resident after edits is what a fresh load gives.
        let mut fresh = Reference::new();
        fresh.load(&NodeRows::of(&cluster)?)?;
        checks.push(census(backend, &mut fresh, Kernel::apply_edits, nodes)?);
    }
    Ok(checks)
}

fn on_cluster(
    backend: &mut dyn Backend,
    reference: &mut Reference,
    cluster: &Cluster,
    seed: u64,
    checks: &mut Vec<Check>,
) -> Result<(), EvalError> {
    let nodes = cluster.nodes().len();
    for (per_candidate, asking) in [(1, 0), (3, 2), (32, 1), (700, 40)] {
        let batch = synthetic::batch(cluster, 3000, per_candidate, asking, seed)?;
        checks.extend(scores(backend, reference, &batch)?);
    }
    let query = query(cluster, seed);
    let (mut found, mut expected) = (vec![7; query.width() + 3], Vec::new());
    backend.rank_nodes(&query, &mut found)?;
    reference.rank_nodes(&query, &mut expected)?;
    checks.push(compare(Kernel::rank_nodes, nodes, &found, &expected));
    checks.push(census(backend, reference, Kernel::census, nodes)?);
    Ok(())
}

/// Compares what two backends make of a batch. The buffers are poisoned before, so that nothing may be left out.
///
/// # Errors
/// If one of them fails.
pub fn scores(backend: &mut dyn Backend, reference: &mut dyn Backend, batch: &Batch) -> Result<[Check; 2], EvalError> {
    let poison = ScoreRow { reason: NONE, residual: NONE, ..ScoreRow::default() };
    let mut found = Scores { rows: vec![poison; batch.len() + 1], best: vec![NONE - 1; batch.n_jobs() + 1] };
    let mut expected = Scores::default();
    backend.evaluate(batch, &mut found)?;
    reference.evaluate(batch, &mut expected)?;
    Ok([
        compare(Kernel::score_candidates, batch.nodes(), &found.rows, &expected.rows),
        compare(Kernel::best_candidate, batch.nodes(), &found.best, &expected.best),
    ])
}

fn census(
    backend: &mut dyn Backend,
    reference: &mut dyn Backend,
    kernel: Kernel,
    nodes: usize,
) -> Result<Check, EvalError> {
    let (mut found, mut expected) = (Census::default(), Census::default());
    found.reset(3);
    backend.census(&mut found)?;
    reference.census(&mut expected)?;
    let pools = compare(kernel, nodes, &found.pools, &expected.pools);
    let compositions = compare(kernel, nodes, &found.compositions, &expected.compositions);
    let values = pools.values + compositions.values;
    Ok(Check { values, mismatch: pools.mismatch.or(compositions.mismatch), ..pools })
}

/// Frees about a quarter of all instances, and gives the rows of their nodes.
fn departures(cluster: &mut Cluster, seed: u64) -> Vec<NodeEdit> {
    let mut numbers = Numbers::new(seed);
    let mut edits = Vec::new();
    for node in cluster.node_ids() {
        for instance in cluster.instances_on(node) {
            if numbers.below(4) == 0 {
                edits.push(Edit::Free { instance, node, gpus: cluster.instance(instance).gpus() });
            }
        }
    }
    match cluster.apply(&edits) {
        Ok(()) => NodeEdit::after(cluster, &edits),
        Err(_) => Vec::new(),
    }
}

/// Classes of every size and order, with all kinds of restrictions.
fn query(cluster: &Cluster, seed: u64) -> NodeQuery {
    let mut numbers = Numbers::new(seed);
    let mut query = NodeQuery::new(cluster, 5);
    let nodes = cluster.nodes().len() as u32;
    let some_node = |numbers: &mut Numbers| (nodes > 0).then(|| cluster.node(NodeId(numbers.below(nodes))));
    for gpus in 0..=9 {
        for order in NodeOrder::ALL {
            let node = some_node(&mut numbers);
            let model = node.and_then(|node| cluster.pool(node.pool()).model);
            let request = Request {
                gpus,
                cpu_milli: 64_000 * numbers.below(2),
                memory_mib: 600_000 * numbers.below(2),
                models: model.filter(|_| numbers.below(2) == 0).map(|model| [model].into()),
                within: None,
            };
            let domain: Option<DomainId> = node.and_then(|node| node.domain()).filter(|_| numbers.below(4) == 0);
            let rack: Option<RackId> = node.and_then(|node| node.rack()).filter(|_| numbers.below(4) == 0);
            query.push(cluster, &request, order, domain, rack);
        }
    }
    query
}
