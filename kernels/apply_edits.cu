// Replaces the rows of edited nodes: a thread an edit, each row with one load and one store.
#include "abi.cuh"

constexpr unsigned int THREADS = 128;

// Every node at most once; all of them exist.
extern "C" __global__ void __launch_bounds__(THREADS) apply_edits(
    const NodeEdit* __restrict__ edits, unsigned int n_edits, NodeBits* __restrict__ bits,
    NodeAmounts* __restrict__ amounts, NodeAttributes* __restrict__ attributes, NodeGpuMilli* __restrict__ gpu_milli) {
    const unsigned int edit = blockIdx.x * THREADS + threadIdx.x;
    if (edit >= n_edits) {
        return;
    }
    // {node, -, -, -}, {bits, amounts}, {attributes}, {gpu_milli}, {gpu_milli}
    const uint4* words = reinterpret_cast<const uint4*>(edits + edit);
    const unsigned int node = words[0].x;
    const uint4 hot = words[1];
    reinterpret_cast<uint2*>(bits)[node] = make_uint2(hot.x, hot.y);
    reinterpret_cast<uint2*>(amounts)[node] = make_uint2(hot.z, hot.w);
    reinterpret_cast<uint4*>(attributes)[node] = words[2];
    uint4* left = reinterpret_cast<uint4*>(gpu_milli + node);
    left[0] = words[3];
    left[1] = words[4];
}
