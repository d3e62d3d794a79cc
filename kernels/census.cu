// Counts the nodes.
#include "abi.cuh"

// Adds the counts of all nodes to `pools` (`n_pools` rows) and `compositions` (COMPOSITIONS words), which the host has
// set to zero.
extern "C" __global__ void census(
    const NodeBits* __restrict__ bits, const NodeAttributes* __restrict__ attributes, unsigned int n_nodes,
    unsigned int n_pools, PoolCensus* __restrict__ pools, unsigned int* __restrict__ compositions) {}
