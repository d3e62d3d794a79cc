// The best nodes for each class of demand.
#include "abi.cuh"

// Counts the nodes by key, for each class of a chunk of classes and each tile of nodes.
//
// classes     the chunk's classes, `n_classes`
// pool_bits   the query's bit sets of pools, which `pools_at` points into; anything if there is none
// counts      scratch: 128 words for each class and tile, `n_classes` x gridDim.x x 128
extern "C" __global__ void rank_nodes_count(
    const NodeBits* __restrict__ bits, const NodeAmounts* __restrict__ amounts,
    const NodeAttributes* __restrict__ attributes, const DemandClass* __restrict__ classes,
    const unsigned int* __restrict__ pool_bits, unsigned int n_nodes, unsigned int n_classes,
    unsigned int* __restrict__ counts) {}

// Turns the counts of each class into positions: where the first node of a key in a tile goes. `n_tiles` is gridDim.x
// of `rank_nodes_count`. Writes NONE to the slots that no node is left for.
//
// slots   out: `k` words for each class of the chunk; k is at least 1
extern "C" __global__ void rank_nodes_scan(
    unsigned int* __restrict__ counts, unsigned int n_tiles, unsigned int k, unsigned int* __restrict__ slots) {}

// Writes the nodes whose position is below `k` to their slots. Parameters as before.
extern "C" __global__ void rank_nodes_place(
    const NodeBits* __restrict__ bits, const NodeAmounts* __restrict__ amounts,
    const NodeAttributes* __restrict__ attributes, const DemandClass* __restrict__ classes,
    const unsigned int* __restrict__ pool_bits, unsigned int n_nodes, unsigned int n_tiles,
    const unsigned int* __restrict__ counts, unsigned int k, unsigned int* __restrict__ slots) {}
