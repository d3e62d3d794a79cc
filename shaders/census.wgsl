// Counts the nodes.
//
// A workgroup counts a tile of nodes in its own memory and then adds what is not zero to the result. Of many pools the
// counts do not fit there: nodes then count in the result itself, where they seldom meet.

struct Params {
    nodes: u32,
    // The pools that are counted: from this one on.
    first_pool: u32,
    // How many.
    pools: u32,
    // Whether compositions are counted.
    compositions: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> bits: array<NodeBits>;
@group(0) @binding(2) var<storage, read> attributes: array<NodeAttributes>;
// Rows of `PoolCensus`, as words.
@group(0) @binding(3) var<storage, read_write> pools: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> compositions: array<atomic<u32>>;

const THREADS: u32 = 256u;
const TILE: u32 = 16u * THREADS;

const N_COMPOSITIONS: u32 = 915u;

// Words of a row of `PoolCensus`, and which is which.
const POOL_WORDS: u32 = 24u;
const POOL_NODES: u32 = 0u;
const POOL_UNSCHEDULABLE: u32 = 1u;
const POOL_EMPTY: u32 = 2u;
const POOL_PARTIAL: u32 = 3u;
const POOL_FULL: u32 = 4u;
const POOL_SLOTS_OVERFLOW: u32 = 5u;
const POOL_NO_VACANCY: u32 = 6u;
const POOL_BY_FREE: u32 = 7u;

// So many pools are counted in the memory of the workgroup.
const NEAR_POOLS: u32 = 32u;

var<workgroup> near_pools: array<atomic<u32>, NEAR_POOLS * POOL_WORDS>;
var<workgroup> near_compositions: array<atomic<u32>, N_COMPOSITIONS>;

fn count(pool: u32, word: u32) {
    let at = pool * POOL_WORDS + word;
    if params.pools <= NEAR_POOLS {
        atomicAdd(&near_pools[at], 1u);
    } else {
        atomicAdd(&pools[at], 1u);
    }
}

fn count_node(index: u32) {
    let node = bits[index];
    let labels = attributes[index];
    atomicAdd(&near_compositions[labels.composition_flags & 0xffffu], 1u);
    let pool = labels.pool - params.first_pool;
    if pool >= params.pools {
        return;
    }
    count(pool, POOL_NODES);
    if !has(labels.composition_flags, SCHEDULABLE) {
        count(pool, POOL_UNSCHEDULABLE);
    }
    count(pool, POOL_BY_FREE + countOneBits(free_mask(node)));
    if !has(node.state, NOT_FULL) {
        count(pool, POOL_FULL);
    } else if has(node.state, NOT_EMPTY) {
        count(pool, POOL_PARTIAL);
    } else {
        count(pool, POOL_EMPTY);
    }
    if overflows(node.state) {
        count(pool, POOL_SLOTS_OVERFLOW);
    } else if lacks_vacancy(node.state) {
        count(pool, POOL_NO_VACANCY);
    }
}

@compute @workgroup_size(THREADS)
fn census(
    @builtin(local_invocation_index) thread: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var i = thread; i < NEAR_POOLS * POOL_WORDS; i += THREADS) {
        atomicStore(&near_pools[i], 0u);
    }
    for (var i = thread; i < N_COMPOSITIONS; i += THREADS) {
        atomicStore(&near_compositions[i], 0u);
    }
    workgroupBarrier();
    for (var start = group.x * TILE; start < params.nodes; start += groups.x * TILE) {
        for (var index = start + thread; index < min(start + TILE, params.nodes); index += THREADS) {
            count_node(index);
        }
    }
    workgroupBarrier();
    if params.pools <= NEAR_POOLS {
        for (var i = thread; i < params.pools * POOL_WORDS; i += THREADS) {
            let n = atomicLoad(&near_pools[i]);
            if n != 0u {
                atomicAdd(&pools[i], n);
            }
        }
    }
    if params.compositions != 0u {
        for (var i = thread; i < N_COMPOSITIONS; i += THREADS) {
            let n = atomicLoad(&near_compositions[i]);
            if n != 0u {
                atomicAdd(&compositions[i], n);
            }
        }
    }
}
