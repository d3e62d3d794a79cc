// Counts the nodes.
//
// Each block counts in shared memory, a table of compositions and one of pools if there are few, and then adds what it
// has to the counts of the device: sums of words, the same in any order. 24 bytes a node.
#include "abi.cuh"

constexpr unsigned int THREADS = 256;
// As many as are counted in shared memory.
constexpr unsigned int POOLS = 32;
constexpr unsigned int POOL_WORDS = sizeof(PoolCensus) / sizeof(unsigned int);

__device__ __forceinline__ void count(PoolCensus& pool, uint2 node, unsigned int flags) {
    const unsigned int state = node.y;
    atomicAdd(&pool.nodes, 1u);
    atomicAdd(&pool.by_free[__popc(node.x >> 16)], 1u);
    // A node without a working device is full: it has no room.
    atomicAdd(!(state & NOT_FULL) ? &pool.full : state & NOT_EMPTY ? &pool.partial : &pool.empty, 1u);
    if (!(flags & SCHEDULABLE)) {
        atomicAdd(&pool.unschedulable, 1u);
    }
    if (state & OVERFLOW) {
        atomicAdd(&pool.slots_overflow, 1u);
    } else if (state & ANCHOR && !(state & SLACK)) {
        atomicAdd(&pool.no_vacancy, 1u);
    }
}

// Adds the counts of all nodes to `pools` (`n_pools` rows) and `compositions` (COMPOSITIONS words), which the host has
// set to zero.
extern "C" __global__ void __launch_bounds__(THREADS) census(
    const NodeBits* __restrict__ bits, const NodeAttributes* __restrict__ attributes, unsigned int n_nodes,
    unsigned int n_pools, PoolCensus* __restrict__ pools, unsigned int* __restrict__ compositions) {
    __shared__ unsigned int by_composition[COMPOSITIONS];
    __shared__ PoolCensus by_pool[POOLS];

    const bool few = n_pools <= POOLS;
    const unsigned int n_words = few ? n_pools * POOL_WORDS : 0;
    for (unsigned int i = threadIdx.x; i < COMPOSITIONS; i += THREADS) {
        by_composition[i] = 0;
    }
    unsigned int* pool_words = reinterpret_cast<unsigned int*>(by_pool);
    for (unsigned int i = threadIdx.x; i < n_words; i += THREADS) {
        pool_words[i] = 0;
    }
    __syncthreads();
    PoolCensus* counts = few ? by_pool : pools;
    for (unsigned int node = blockIdx.x * THREADS + threadIdx.x; node < n_nodes; node += gridDim.x * THREADS) {
        const uint4 cold = words(attributes + node);
        atomicAdd(&by_composition[cold.w & 0xffff], 1u);
        count(counts[cold.x], words(bits + node), cold.w >> 16);
    }
    __syncthreads();
    for (unsigned int i = threadIdx.x; i < COMPOSITIONS; i += THREADS) {
        if (by_composition[i] != 0) {
            atomicAdd(compositions + i, by_composition[i]);
        }
    }
    for (unsigned int i = threadIdx.x; i < n_words; i += THREADS) {
        if (pool_words[i] != 0) {
            atomicAdd(reinterpret_cast<unsigned int*>(pools) + i, pool_words[i]);
        }
    }
}
