// The best nodes for each class of demand.
//
// No sort: every key is below 128, so a node's position is known by counting. The first pass counts the nodes of each
// key, for each class and tile of nodes; the second turns the counts into positions, key by key and within a key tile
// by tile; the third gives every node its position, in the order of node numbers, and stops at k. A node's rows (32
// bytes) are loaded once for 16 classes in the first pass; the third looks only at tiles that have one of the k best.
// Counters are in shared memory. One lane adds for all lanes of its warp that have the same key, since most nodes of a
// cluster do.
#include "abi.cuh"

constexpr unsigned int TILE = 2048;
constexpr unsigned int KEYS = 128;
constexpr unsigned int CLASSES = 16;
constexpr unsigned int COUNT_THREADS = 256;
constexpr unsigned int PLACE_THREADS = 128;
constexpr unsigned int PLACE_WARPS = PLACE_THREADS / WARP;

// Orders of preference: see `NodeOrder`.
constexpr unsigned int FIRST_FIT = 0;
constexpr unsigned int BEST_FIT = 1;
constexpr unsigned int WORST_FIT = 2;

// Above every key of a node that holds something, and above every open vacancy.
constexpr unsigned int EMPTY_NODES = 64;
constexpr unsigned int POOL_NODES = 32;

// A node's rows in words.
struct NodeWords {
    uint2 bits;
    int2 amounts;
    uint4 attributes;
};

__device__ __forceinline__ NodeWords load(
    const NodeBits* bits, const NodeAmounts* amounts, const NodeAttributes* attributes, unsigned int node) {
    return NodeWords{words(bits + node), words(amounts + node), words(attributes + node)};
}

__device__ __forceinline__ unsigned int slot_width(unsigned int gpus, unsigned int capacity) {
    return min(1u << (32 - __clz(gpus - 1)), capacity);
}

// How good a node is by the order of the class; NONE if it cannot host it.
__device__ __forceinline__ unsigned int order_key(const DemandClass& demand, uint2 node) {
    const unsigned int capacity = node.x & 0xff;
    const unsigned int free = __popc(node.x >> 16);
    const unsigned int state = node.y;
    switch (demand.order) {
        case FIRST_FIT: return 0;
        case BEST_FIT: return free;
        case WORST_FIT: return 16 - free;
    }
    if (demand.gpus == 0) {
        return 0;
    }
    if (state & WAS_OUTSIDE) {
        return NONE;
    }
    if (!(state & NOT_EMPTY)) {
        return EMPTY_NODES + capacity;
    }
    const bool slotted = state & ANCHOR;
    if (demand.gpus == 1) {
        const bool vacant = (state >> 6 & 0x3f) > 32;
        return !slotted ? POOL_NODES + free : vacant ? 0 : NONE;
    }
    const int room = 31 - static_cast<int>(state >> 24 & 0x3f);
    const int width = slot_width(demand.gpus, capacity);
    return slotted && room >= width ? room : NONE;
}

// How good a node is for a class, smaller is better; NONE if it cannot host it.
__device__ __forceinline__ unsigned int key_of(
    const DemandClass& demand, const unsigned int* pool_bits, const NodeWords& node) {
    const unsigned int pool = node.attributes.x;
    const bool fits = __popc(node.bits.x >> 16) >= static_cast<int>(demand.gpus) && demand.cpu <= node.amounts.x &&
                      demand.memory <= node.amounts.y;
    const bool admitted = (node.attributes.w >> 16 & SCHEDULABLE) != 0 &&
                          (demand.domain == NONE || demand.domain == node.attributes.y) &&
                          (demand.rack == NONE || demand.rack == node.attributes.z);
    if (!fits || !admitted) {
        return NONE;
    }
    if (demand.pools_at != NONE && (__ldg(pool_bits + demand.pools_at + pool / 32) >> pool % 32 & 1) == 0) {
        return NONE;
    }
    return order_key(demand, node.bits);
}

// Where the words of a class and a tile of nodes begin.
__device__ __forceinline__ size_t counts_at(unsigned int demand, unsigned int n_tiles, unsigned int tile) {
    return (static_cast<size_t>(demand) * n_tiles + tile) * KEYS;
}

// Counts the nodes by key, for each class of a chunk of classes and each tile of nodes.
//
// classes     the chunk's classes, `n_classes`
// pool_bits   the query's bit sets of pools, which `pools_at` points into; anything if there is none
// counts      scratch: 128 words for each class and tile, `n_classes` x gridDim.x x 128
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) rank_nodes_count(
    const NodeBits* __restrict__ bits, const NodeAmounts* __restrict__ amounts,
    const NodeAttributes* __restrict__ attributes, const DemandClass* __restrict__ classes,
    const unsigned int* __restrict__ pool_bits, unsigned int n_nodes, unsigned int n_classes,
    unsigned int* __restrict__ counts) {
    __shared__ unsigned int of_class[CLASSES][KEYS];
    __shared__ DemandClass demands[CLASSES];

    const unsigned int lane = threadIdx.x % WARP;
    const unsigned int first_class = blockIdx.y * CLASSES;
    const unsigned int n = min(CLASSES, n_classes - first_class);
    for (unsigned int i = threadIdx.x; i < CLASSES * KEYS; i += COUNT_THREADS) {
        of_class[i / KEYS][i % KEYS] = 0;
    }
    if (threadIdx.x < n) {
        demands[threadIdx.x] = classes[first_class + threadIdx.x];
    }
    __syncthreads();

    for (unsigned int i = 0; i < TILE / COUNT_THREADS; ++i) {
        const unsigned int at = blockIdx.x * TILE + i * COUNT_THREADS + threadIdx.x;
        const bool there = at < n_nodes;
        NodeWords node = {};
        if (there) {
            node = load(bits, amounts, attributes, at);
        }
        for (unsigned int which = 0; which < n; ++which) {
            const unsigned int key = there ? key_of(demands[which], pool_bits, node) : NONE;
            if (!__any_sync(ALL_LANES, key != NONE)) {
                continue;
            }
            const unsigned int peers = __match_any_sync(ALL_LANES, key);
            if (key != NONE && lane == first_lane(peers)) {
                atomicAdd(&of_class[which][key], __popc(peers));
            }
        }
    }
    __syncthreads();
    for (unsigned int i = threadIdx.x; i < n * KEYS; i += COUNT_THREADS) {
        counts[counts_at(first_class + i / KEYS, gridDim.x, blockIdx.x) + i % KEYS] = of_class[i / KEYS][i % KEYS];
    }
}

// Turns the counts of each class into positions: where the first node of a key in a tile goes, NONE if there is none.
// `n_tiles` is gridDim.x of `rank_nodes_count`. Writes NONE to the slots that no node is left for.
//
// slots   out: `k` words for each class of the chunk; k is at least 1
extern "C" __global__ void __launch_bounds__(KEYS) rank_nodes_scan(
    unsigned int* __restrict__ counts, unsigned int n_tiles, unsigned int k, unsigned int* __restrict__ slots) {
    __shared__ unsigned int of_warp[KEYS / WARP];

    const unsigned int lane = threadIdx.x % WARP;
    const unsigned int warp = threadIdx.x / WARP;
    unsigned int* of_key = counts + counts_at(blockIdx.x, n_tiles, 0) + threadIdx.x;
    unsigned int total = 0;
    for (unsigned int tile = 0; tile < n_tiles; ++tile) {
        total += of_key[static_cast<size_t>(tile) * KEYS];
    }
    unsigned int sum = total;
    for (unsigned int distance = 1; distance < WARP; distance *= 2) {
        const unsigned int other = __shfl_up_sync(ALL_LANES, sum, distance);
        sum += lane >= distance ? other : 0;
    }
    if (lane == WARP - 1) {
        of_warp[warp] = sum;
    }
    __syncthreads();
    unsigned int position = sum - total;
    unsigned int all = 0;
    for (unsigned int other = 0; other < KEYS / WARP; ++other) {
        position += other < warp ? of_warp[other] : 0;
        all += of_warp[other];
    }
    for (unsigned int tile = 0; tile < n_tiles; ++tile) {
        unsigned int& count = of_key[static_cast<size_t>(tile) * KEYS];
        const unsigned int here = count;
        count = here == 0 ? NONE : position;
        position += here;
    }
    for (unsigned int slot = all + threadIdx.x; slot < k; slot += KEYS) {
        slots[static_cast<size_t>(blockIdx.x) * k + slot] = NONE;
    }
}

// Writes the nodes whose position is below `k` to their slots, one warp to a class and tile. Parameters as before.
extern "C" __global__ void __launch_bounds__(PLACE_THREADS) rank_nodes_place(
    const NodeBits* __restrict__ bits, const NodeAmounts* __restrict__ amounts,
    const NodeAttributes* __restrict__ attributes, const DemandClass* __restrict__ classes,
    const unsigned int* __restrict__ pool_bits, unsigned int n_nodes, unsigned int n_tiles,
    const unsigned int* __restrict__ counts, unsigned int k, unsigned int* __restrict__ slots) {
    __shared__ __align__(16) unsigned int of_warp[PLACE_WARPS][KEYS];

    const unsigned int lane = threadIdx.x % WARP;
    const unsigned int warp = threadIdx.x / WARP;
    const unsigned int tile = blockIdx.x * PLACE_WARPS + warp;
    if (tile >= n_tiles) {
        return;
    }
    const uint4* positions = reinterpret_cast<const uint4*>(counts + counts_at(blockIdx.y, n_tiles, tile));
    const uint4 four = positions[lane];
    if (!__any_sync(ALL_LANES, min(min(four.x, four.y), min(four.z, four.w)) < k)) {
        return;
    }
    // The position of the next node of each key.
    unsigned int* next = of_warp[warp];
    reinterpret_cast<uint4*>(next)[lane] = four;
    __syncwarp();
    const DemandClass demand = classes[blockIdx.y];
    const unsigned int stop = min(TILE, n_nodes - tile * TILE);
    for (unsigned int i = 0; i < stop; i += WARP) {
        const bool there = i + lane < stop;
        const unsigned int at = tile * TILE + (there ? i + lane : 0);
        const unsigned int key = there ? key_of(demand, pool_bits, load(bits, amounts, attributes, at)) : NONE;
        const unsigned int peers = __match_any_sync(ALL_LANES, key);
        const unsigned int before = key == NONE ? NONE : next[key];
        const unsigned int position = before + __popc(peers & ((1u << lane) - 1));
        __syncwarp();
        if (key != NONE && lane == first_lane(peers)) {
            next[key] = before + __popc(peers);
        }
        if (key != NONE && position < k) {
            slots[static_cast<size_t>(blockIdx.y) * k + position] = at;
        }
        __syncwarp();
    }
}
