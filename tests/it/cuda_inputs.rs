//! What the CUDA kernels are tried on: random nodes, batches of candidates of given sizes, classes of demand.

use slotwise::anchor::Shape;
use slotwise::cluster::{
    Cluster, ClusterBuilder, Composition, DomainId, GpuMask, NodeId, NodeSpec, RackId, Request, lowest_gpus,
};
use slotwise::evaluate::abi::{
    Candidate, NONE, Need, NodeAmounts, NodeAttributes, NodeBits, NodeEdit, PackedState, Touch,
};
use slotwise::evaluate::synthetic::Numbers;
use slotwise::evaluate::{Batch, BatchRows, NodeOrder, NodeQuery, NodeRows, Reason};

/// Regions of each kind.
const REGIONS: u32 = 4;

/// Nodes of every capacity in any composition, inside Σ and outside, some overcommitted, in `pools` pools.
pub(crate) fn nodes(n: usize, pools: u32, numbers: &mut Numbers) -> NodeRows {
    let mut nodes = NodeRows { pools: pools as usize, ..NodeRows::default() };
    for _ in 0..n {
        let edit = node(0, pools, numbers);
        nodes.bits.push(edit.bits);
        nodes.amounts.push(edit.amounts);
        nodes.attributes.push(edit.attributes);
    }
    nodes
}

/// The rows of a random node, as an edit.
pub(crate) fn node(node: u32, pools: u32, numbers: &mut Numbers) -> NodeEdit {
    let capacity = numbers.below(17) as u8;
    // Half of them hold little; of large nodes few would be empty otherwise.
    let all = Composition::number_up_to(capacity) as u32;
    let number = if numbers.below(2) == 0 { numbers.below(all) } else { numbers.below(all.min(4)) };
    let composition = Composition::from_number(number as u16).unwrap();
    let mut free: GpuMask = 0;
    while free.count_ones() < u32::from(capacity - composition.busy()) {
        free |= 1 << numbers.below(u32::from(capacity));
    }
    let amount = |numbers: &mut Numbers| if numbers.below(4) == 0 { i32::MAX } else { numbers.below(100) as i32 - 10 };
    let region = |numbers: &mut Numbers| if numbers.below(8) == 0 { NONE } else { numbers.below(REGIONS) };
    NodeEdit {
        node,
        unused: [0; 3],
        bits: NodeBits {
            capacity,
            unused: 0,
            free,
            state: PackedState::new(capacity, Shape::of(capacity, composition), composition.busy()),
        },
        amounts: NodeAmounts { cpu: amount(numbers), memory: amount(numbers) },
        attributes: NodeAttributes {
            pool: numbers.below(pools),
            domain: region(numbers),
            rack: region(numbers),
            composition: composition.number(),
            flags: u16::from(numbers.below(8) != 0),
        },
    }
}

/// What the candidates of a batch have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing: most are feasible, and the others for every reason.
    Mixed,
    /// All of a size are equal.
    Ties,
    /// None is feasible.
    Infeasible,
}

/// A batch of candidates with so many touches each, in jobs of so many candidates each.
pub(crate) fn batch(nodes: &NodeRows, sizes: &[usize], jobs: &[usize], kind: Kind, numbers: &mut Numbers) -> Batch {
    assert_eq!(jobs.iter().sum::<usize>(), sizes.len());
    let need = |cpu, memory| Need { cpu, memory };
    let needs = [Need::NONE, need(50, Need::NOTHING), need(Need::NOTHING, 50), need(i32::MAX, 0), need(-5, -5)];
    let mut batch = BatchRows { nodes: nodes.len(), offsets: vec![0], needs: needs.to_vec(), ..BatchRows::default() };
    for &size in sizes {
        let first = if kind == Kind::Ties { 0 } else { numbers.below(nodes.len().max(1) as u32) as usize };
        let asks = kind != Kind::Ties && numbers.below(4) == 0;
        let begin = batch.touches.len();
        for i in 0..size {
            let node = (first + i) % nodes.len();
            let (freed, taken, step) = change(&nodes.bits[node], kind, numbers);
            let need = if asks && numbers.below(4) == 0 { numbers.below(needs.len() as u32) } else { 0 };
            batch.touches.push(Touch { node: node as u32, need, freed, taken, step });
        }
        let mut reason = 0;
        if kind == Kind::Infeasible || (kind == Kind::Mixed && numbers.below(4) == 0) {
            if size == 0 || numbers.below(2) == 0 {
                reason = Reason::ALL[numbers.below(Reason::ALL.len() as u32) as usize].number();
            } else {
                // A device is taken that no node has free, at one touch or in the last.
                let which = if numbers.below(2) == 0 { size - 1 } else { numbers.below(size as u32) as usize };
                let touch = &mut batch.touches[begin + which];
                (touch.freed, touch.taken) = (0, GpuMask::MAX);
            }
        }
        batch.given.push(reason);
        batch.offsets.push(batch.touches.len() as u32);
        batch.candidates.push(columns(kind, numbers));
    }
    let mut end = 0;
    batch.jobs.push(end);
    for &candidates in jobs {
        end += candidates as u32;
        batch.jobs.push(end);
    }
    Batch::from_rows(batch).unwrap()
}

/// What a touch frees and takes, and the step: an instance that arrives, one that leaves, or both.
fn change(node: &NodeBits, kind: Kind, numbers: &mut Numbers) -> (GpuMask, GpuMask, u32) {
    let free = node.free.count_ones();
    let busy = u32::from(node.capacity) - free;
    let what = if kind == Kind::Ties { 0 } else { numbers.below(4) };
    let (mut freed, mut taken, mut step) = (0, 0, 0_u32);
    if what & 1 != 0 && busy > 0 {
        let gpus = 1 + numbers.below(busy) as u8;
        let all = ((1_u32 << node.capacity) - 1) as GpuMask;
        freed = lowest_gpus(all & !node.free, gpus).unwrap();
        step = step.wrapping_sub(PackedState::step_of(gpus, node.capacity));
    }
    if what & 2 != 0 && (node.free | freed) != 0 {
        let gpus = 1 + numbers.below((node.free | freed).count_ones()) as u8;
        taken = lowest_gpus(node.free | freed, gpus).unwrap();
        step = step.wrapping_add(PackedState::step_of(gpus, node.capacity));
    }
    // Even a step that leads to no state a node can have is counted in one way.
    if numbers.below(32) == 0 {
        step = numbers.next_word() as u32;
    }
    (freed, taken, step)
}

/// Few values, so that keys agree in their first words.
fn columns(kind: Kind, numbers: &mut Numbers) -> Candidate {
    let mut few = || if kind == Kind::Ties { 1 } else { numbers.below(2) };
    Candidate {
        job: few(),
        moves: few(),
        moved_gpus: few(),
        racks: few(),
        domains: few(),
        delta_phi_star: few() as i32 - 1,
        unused: [0; 2],
    }
}

/// Models of the cluster that queries are about: more than one word of pools has bits for.
const MODELS: usize = 40;

/// A cluster with a pool a model, for the numbers of its pools.
pub(crate) fn many_pools() -> Cluster {
    let mut builder = ClusterBuilder::new();
    for model in 0..MODELS {
        let (name, model) = (format!("n{model}"), format!("m{model}"));
        builder.add_node(&NodeSpec { name: &name, gpus: 16, model: Some(&model), ..NodeSpec::default() }).unwrap();
    }
    builder.finish().unwrap()
}

/// So many classes of every size and order, with all kinds of restrictions.
pub(crate) fn query(cluster: &Cluster, k: usize, classes: usize, numbers: &mut Numbers) -> NodeQuery {
    let mut query = NodeQuery::new(cluster, k);
    for class in 0..classes {
        let mut models: Vec<_> = cluster
            .node_ids()
            .filter(|_| numbers.below(3) > 0)
            .filter_map(|node: NodeId| cluster.pool(cluster.node(node).pool()).model)
            .collect();
        models.sort_unstable();
        models.dedup();
        let sometimes = |numbers: &mut Numbers| numbers.below(4) == 0;
        let request = Request {
            gpus: numbers.below(17).min(numbers.below(17)) as u8,
            cpu_milli: 50 * u32::from(sometimes(numbers)),
            memory_mib: 50 * u32::from(sometimes(numbers)),
            models: sometimes(numbers).then(|| models.into()),
            ..Request::default()
        };
        let domain = sometimes(numbers).then(|| DomainId(numbers.below(REGIONS)));
        let rack = sometimes(numbers).then(|| RackId(numbers.below(REGIONS)));
        query.push(cluster, &request, NodeOrder::ALL[class % NodeOrder::ALL.len()], domain, rack);
    }
    query
}
