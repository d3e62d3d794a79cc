// Replaces the rows of edited nodes.
#include "abi.cuh"

// Every node at most once; all of them exist.
extern "C" __global__ void apply_edits(
    const NodeEdit* __restrict__ edits, unsigned int n_edits, NodeBits* __restrict__ bits,
    NodeAmounts* __restrict__ amounts, NodeAttributes* __restrict__ attributes) {}
