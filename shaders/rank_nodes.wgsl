// The best nodes for each class of demand.
//
// A key is below `KEYS`, so nothing is sorted. `rank_nodes_count` counts the keys of each class in each tile of nodes;
// `rank_nodes_scan` sums the counts up over the tiles, and over the keys; in `rank_nodes_place` every node then knows
// how many are better: those of lower keys, those of its key in earlier tiles, and those of its key before it in its
// own tile. That is the slot it goes to, if there are so many.

struct Params {
    nodes: u32,
    tiles: u32,
    classes: u32,
    // Slots a class, at most as many as nodes.
    k: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> bits: array<NodeBits>;
@group(0) @binding(2) var<storage, read> amounts: array<NodeAmounts>;
@group(0) @binding(3) var<storage, read> attributes: array<NodeAttributes>;
@group(0) @binding(4) var<storage, read> classes: array<DemandClass>;
@group(0) @binding(5) var<storage, read> pool_bits: array<u32>;
// For each class and tile, for each key: the nodes of that key in the tile; then, those in earlier tiles. One tile more
// than there are has the sums of all.
@group(0) @binding(6) var<storage, read_write> of_key: array<u32>;
// For each class, for each key: the nodes of lower keys.
@group(0) @binding(7) var<storage, read_write> below: array<u32>;
@group(0) @binding(8) var<storage, read_write> slots: array<u32>;

const KEYS: u32 = 128u;
const THREADS: u32 = 256u;
const TILE: u32 = 2u * THREADS;

// `NodeOrder`.
const FIRST_FIT: u32 = 0u;
const BEST_FIT: u32 = 1u;
const WORST_FIT: u32 = 2u;

// Above every key of a node that holds something.
const EMPTY_NODES: u32 = 64u;
// Above every open vacancy.
const POOL_NODES: u32 = 32u;

// `slot_width`: the least power of two that is not below `gpus`, but never more than the node has.
fn slot_width(gpus: u32, capacity: u32) -> u32 {
    return min(1u << (32u - countLeadingZeros(gpus - 1u)), capacity);
}

// How good a node is for a class of COMPASS; `NONE` if it cannot host it.
fn compass_key(demand: DemandClass, node: NodeBits) -> u32 {
    let free = countOneBits(free_mask(node));
    if demand.gpus == 0u {
        return 0u;
    }
    if has(node.state, WAS_OUTSIDE) {
        return NONE;
    }
    if !has(node.state, NOT_EMPTY) {
        return EMPTY_NODES + capacity(node);
    }
    let slotted = has(node.state, ANCHOR);
    if demand.gpus == 1u {
        // Slack is above zero.
        let vacant = select(NONE, 0u, state_field(node.state, 6u) > 32u);
        return select(POOL_NODES + free, vacant, slotted);
    }
    // Room, which is 31 less the field, negative if slots overflow.
    let room = 31i - i32(state_field(node.state, 24u));
    let fits = slotted && room >= i32(slot_width(demand.gpus, capacity(node)));
    return select(NONE, u32(room), fits);
}

// How good a node is for a class, smaller is better; `NONE` if it cannot host it.
fn key_of(demand: DemandClass, node: NodeBits, amount: NodeAmounts, labels: NodeAttributes) -> u32 {
    let free = countOneBits(free_mask(node));
    let admitted = has(labels.composition_flags, SCHEDULABLE)
        && free >= demand.gpus
        && demand.cpu <= amount.cpu
        && demand.memory <= amount.memory
        && (demand.domain == NONE || demand.domain == labels.domain)
        && (demand.rack == NONE || demand.rack == labels.rack);
    if !admitted {
        return NONE;
    }
    if demand.pools_at != NONE {
        let word = pool_bits[demand.pools_at + labels.pool / 32u];
        if !has(word, 1u << (labels.pool % 32u)) {
            return NONE;
        }
    }
    switch demand.order {
        case FIRST_FIT: {
            return 0u;
        }
        case BEST_FIT: {
            return free;
        }
        case WORST_FIT: {
            return 16u - free;
        }
        default: {
            return compass_key(demand, node);
        }
    }
}

// The counts of the keys of a class in a tile.
fn row_of(number: u32, tile: u32) -> u32 {
    return (number * (params.tiles + 1u) + tile) * KEYS;
}

// Classes for which a workgroup counts at once: the rows of a node are then loaded once for all of them.
const CLASSES: u32 = 16u;

var<workgroup> counts: array<atomic<u32>, CLASSES * KEYS>;

@compute @workgroup_size(THREADS)
fn rank_nodes_count(
    @builtin(local_invocation_index) thread: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let sets = (params.classes + CLASSES - 1u) / CLASSES;
    for (var item = group.x; item < sets * params.tiles; item += groups.x) {
        let tile = item % params.tiles;
        let first_class = item / params.tiles * CLASSES;
        let n_classes = min(params.classes - first_class, CLASSES);
        for (var i = thread; i < CLASSES * KEYS; i += THREADS) {
            atomicStore(&counts[i], 0u);
        }
        workgroupBarrier();
        for (var index = tile * TILE + thread; index < min((tile + 1u) * TILE, params.nodes); index += THREADS) {
            let node = bits[index];
            let amount = amounts[index];
            let labels = attributes[index];
            for (var i = 0u; i < n_classes; i++) {
                let key = key_of(classes[first_class + i], node, amount, labels);
                if key < KEYS {
                    atomicAdd(&counts[i * KEYS + key], 1u);
                }
            }
        }
        workgroupBarrier();
        for (var i = thread; i < n_classes * KEYS; i += THREADS) {
            of_key[row_of(first_class + i / KEYS, tile) + i % KEYS] = atomicLoad(&counts[i]);
        }
        workgroupBarrier();
    }
}

var<workgroup> totals: array<u32, KEYS>;

// A thread for each key.
@compute @workgroup_size(KEYS)
fn rank_nodes_scan(
    @builtin(local_invocation_index) key: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var number = group.x; number < params.classes; number += groups.x) {
        var sum = 0u;
        for (var tile = 0u; tile < params.tiles; tile++) {
            let at = row_of(number, tile) + key;
            let n = of_key[at];
            of_key[at] = sum;
            sum += n;
        }
        of_key[row_of(number, params.tiles) + key] = sum;
        totals[key] = sum;
        workgroupBarrier();
        var lower = 0u;
        var all = 0u;
        for (var i = 0u; i < KEYS; i++) {
            if i == key {
                lower = all;
            }
            all += totals[i];
        }
        below[number * KEYS + key] = lower;
        // The slots that no node comes to.
        for (var slot = all + key; slot < params.k; slot += KEYS) {
            slots[number * params.k + slot] = NONE;
        }
        workgroupBarrier();
    }
}

// The slot of the first node of each key in the tile.
var<workgroup> first_slot: array<u32, KEYS>;
// For each key, the nodes of the tile that have it, by bits.
var<workgroup> having: array<atomic<u32>, KEYS * TILE / 32u>;
// Whether any node of the tile comes to a slot.
var<workgroup> wanted: atomic<u32>;

// The key of a node of a tile that may come to a slot, put down among those that have it; `NONE` for others.
fn put_down(demand: DemandClass, tile: u32, in_tile: u32, k: u32) -> u32 {
    let index = tile * TILE + in_tile;
    if index >= params.nodes {
        return NONE;
    }
    let key = key_of(demand, bits[index], amounts[index], attributes[index]);
    if key >= KEYS || first_slot[key] >= k {
        return NONE;
    }
    atomicOr(&having[key * (TILE / 32u) + in_tile / 32u], 1u << (in_tile % 32u));
    return key;
}

fn place(number: u32, tile: u32, in_tile: u32, key: u32) {
    if key == NONE {
        return;
    }
    let words = key * (TILE / 32u);
    let word = in_tile / 32u;
    var slot = first_slot[key];
    for (var i = 0u; i < word; i++) {
        slot += countOneBits(atomicLoad(&having[words + i]));
    }
    slot += countOneBits(atomicLoad(&having[words + word]) & ((1u << (in_tile % 32u)) - 1u));
    if slot < params.k {
        slots[number * params.k + slot] = tile * TILE + in_tile;
    }
}

@compute @workgroup_size(THREADS)
fn rank_nodes_place(
    @builtin(local_invocation_index) thread: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var item = group.x; item < params.classes * params.tiles; item += groups.x) {
        let tile = item % params.tiles;
        let number = item / params.tiles;
        if thread == 0u {
            atomicStore(&wanted, 0u);
        }
        workgroupBarrier();
        if thread < KEYS {
            let earlier = of_key[row_of(number, tile) + thread];
            let here = of_key[row_of(number, tile + 1u) + thread] - earlier;
            let slot = below[number * KEYS + thread] + earlier;
            first_slot[thread] = slot;
            if here > 0u && slot < params.k {
                atomicStore(&wanted, 1u);
            }
        }
        // Most tiles have no node that is good enough.
        if workgroupUniformLoad(&wanted) != 0u {
            for (var i = thread; i < KEYS * TILE / 32u; i += THREADS) {
                atomicStore(&having[i], 0u);
            }
            workgroupBarrier();
            let demand = classes[number];
            let one = put_down(demand, tile, thread, params.k);
            let other = put_down(demand, tile, thread + THREADS, params.k);
            workgroupBarrier();
            place(number, tile, thread, one);
            place(number, tile, thread + THREADS, other);
        }
        workgroupBarrier();
    }
}
