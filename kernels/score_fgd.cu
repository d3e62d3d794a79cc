// FGD's score of every node for each class of demand: by how much the fragment of the node grows if it takes an
// instance, and which devices that would get.
//
// A thread a node and class. What is left of the 16 devices stands in registers; the typical pods are the same for all
// threads, so that each is one load from a cache. The fragment before is worked out once for all choices of a share, and
// what a share on one device changes of it is a matter of that device: a pod costs 16 steps and one more for each choice.
// Growths are sums of count times milli-GPU in 64 bits, exact, and so the same in any order.
#include "abi.cuh"

constexpr unsigned int THREADS = 128;

struct Left {
    unsigned int cpu;
    unsigned int gpu[MAX_GPUS];
};

// Nothing where it is negative.
__device__ __forceinline__ unsigned int amount(int value) { return static_cast<unsigned int>(max(value, 0)); }

__device__ __forceinline__ Left load(const NodeAmounts* amounts, const NodeGpuMilli* gpu_milli) {
    Left left;
    const int cpu = words(amounts).x;
    left.cpu = cpu == 0x7fffffff ? NONE : amount(cpu);
    const uint4* words = reinterpret_cast<const uint4*>(gpu_milli);
    const uint4 low = __ldg(words), high = __ldg(words + 1);
    const unsigned int pairs[MAX_GPUS / 2] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (unsigned int i = 0; i < MAX_GPUS / 2; ++i) {
        left.gpu[2 * i] = pairs[i] & 0xffff;
        left.gpu[2 * i + 1] = pairs[i] >> 16;
    }
    return left;
}

// What a typical pod finds on a node: devices that have enough left, and what is left of the others.
struct Found {
    unsigned int able;
    unsigned int small;
};

__device__ __forceinline__ Found find(const Left& left, unsigned int gpu_milli) {
    Found found = {0, 0};
#pragma unroll
    for (unsigned int gpu = 0; gpu < MAX_GPUS; ++gpu) {
        const bool able = left.gpu[gpu] >= gpu_milli;
        found.able += able;
        found.small += able ? 0 : left.gpu[gpu];
    }
    return found;
}

__device__ __forceinline__ unsigned int sum(const Left& left) {
    unsigned int idle = 0;
#pragma unroll
    for (unsigned int gpu = 0; gpu < MAX_GPUS; ++gpu) {
        idle += left.gpu[gpu];
    }
    return idle;
}

// The milli-GPU that a pod of so many devices could not use; of a node with too little CPU none is able.
__device__ __forceinline__ unsigned int lost(unsigned int able, unsigned int gpus, unsigned int small, unsigned int idle) {
    return able >= gpus ? small : idle;
}

__device__ __forceinline__ long long times(unsigned int count, unsigned int after, unsigned int before) {
    return static_cast<long long>(count) * static_cast<int>(after - before);
}

// Whether the node may host the class, and has CPU and memory for it.
__device__ __forceinline__ bool admits(
    const DemandClass& demand, const unsigned int* pool_bits, const NodeAmounts* amounts, uint4 attributes) {
    const int2 has = words(amounts);
    const unsigned int pool = attributes.x;
    return (attributes.w >> 16 & SCHEDULABLE) != 0 && demand.cpu <= has.x && demand.memory <= has.y &&
           (demand.domain == NONE || demand.domain == attributes.y) &&
           (demand.rack == NONE || demand.rack == attributes.z) &&
           (demand.pools_at == NONE || (__ldg(pool_bits + demand.pools_at + pool / 32) >> pool % 32 & 1) != 0);
}

// The typical pods, with those that the node's model is allowed to marked.
struct Pods {
    const TypicalPod* pods;
    unsigned int n;
    const unsigned int* allowed;

    // {cpu_milli, gpu_milli, gpus, count}; no node has enough devices for a pod that asks for none or may not be here.
    __device__ __forceinline__ uint4 at(unsigned int i) const {
        uint4 pod = words(pods + i);
        const bool here = (__ldg(allowed + i / 32) >> i % 32 & 1) != 0;
        pod.z = here && pod.z != 0 ? pod.z : NONE;
        return pod;
    }
};

// A share goes to the device on which the fragment grows the least, the lowest of equal ones.
__device__ __forceinline__ FgdRow of_share(const Left& left, unsigned int cpu_after, unsigned int share, const Pods& typical) {
    long long growth[MAX_GPUS] = {};
    const unsigned int idle = sum(left);
    if (idle < share) {
        return FgdRow{0, 0, NONE};
    }
#pragma unroll 1
    for (unsigned int i = 0; i < typical.n; ++i) {
        const uint4 pod = typical.at(i);
        const Found before = find(left, pod.y);
        const unsigned int lost_before = lost(left.cpu >= pod.x ? before.able : 0, pod.z, before.small, idle);
#pragma unroll
        for (unsigned int gpu = 0; gpu < MAX_GPUS; ++gpu) {
            const unsigned int here = left.gpu[gpu], rest = here - min(here, share);
            const bool was_able = here >= pod.y, is_able = rest >= pod.y;
            const unsigned int able = before.able - was_able + is_able;
            const unsigned int small = before.small - (was_able ? 0 : here) + (is_able ? 0 : rest);
            const unsigned int lost_after = lost(cpu_after >= pod.x ? able : 0, pod.z, small, idle - share);
            growth[gpu] += times(pod.w, lost_after, lost_before);
        }
    }
    FgdRow row = {0, 0, NONE};
    long long least = 0;
#pragma unroll
    for (unsigned int gpu = 0; gpu < MAX_GPUS; ++gpu) {
        if (left.gpu[gpu] >= share && (row.gpus == NONE || growth[gpu] < least)) {
            least = growth[gpu];
            row.gpus = 1u << gpu;
        }
    }
    if (row.gpus != NONE) {
        row.growth_low = static_cast<unsigned int>(least);
        row.growth_high = static_cast<unsigned int>(static_cast<unsigned long long>(least) >> 32);
    }
    return row;
}

// Whole devices are the lowest that have enough left.
__device__ __forceinline__ FgdRow of_whole(
    const Left& left, unsigned int cpu_after, const DemandClass& demand, const Pods& typical) {
    Left after = left;
    after.cpu = cpu_after;
    unsigned int wanted = demand.gpus;
    FgdRow row = {0, 0, 0};
#pragma unroll
    for (unsigned int gpu = 0; gpu < MAX_GPUS; ++gpu) {
        if (wanted != 0 && left.gpu[gpu] >= demand.gpu_milli) {
            after.gpu[gpu] -= demand.gpu_milli;
            row.gpus |= 1u << gpu;
            --wanted;
        }
    }
    if (wanted != 0) {
        return FgdRow{0, 0, NONE};
    }
    long long growth = 0;
    const unsigned int idle = sum(left), idle_after = sum(after);
#pragma unroll 1
    for (unsigned int i = 0; i < typical.n; ++i) {
        const uint4 pod = typical.at(i);
        const Found was = find(left, pod.y), is = find(after, pod.y);
        const unsigned int lost_before = lost(left.cpu >= pod.x ? was.able : 0, pod.z, was.small, idle);
        const unsigned int lost_after = lost(after.cpu >= pod.x ? is.able : 0, pod.z, is.small, idle_after);
        growth += times(pod.w, lost_after, lost_before);
    }
    row.growth_low = static_cast<unsigned int>(growth);
    row.growth_high = static_cast<unsigned int>(static_cast<unsigned long long>(growth) >> 32);
    return row;
}

// Scores all nodes for a chunk of classes.
//
// classes     the chunk's classes, one a row of blocks
// pool_bits   the query's bit sets of pools, which `pools_at` points into; anything if there is none
// pods        the typical pods, `n_pods`
// allowed     for each pool `n_words` words, a bit for each typical pod
// rows        `n_nodes` a class
extern "C" __global__ void __launch_bounds__(THREADS, 3) score_fgd(
    const NodeAmounts* __restrict__ amounts, const NodeAttributes* __restrict__ attributes,
    const NodeGpuMilli* __restrict__ gpu_milli, const DemandClass* __restrict__ classes,
    const unsigned int* __restrict__ pool_bits, const TypicalPod* __restrict__ pods,
    const unsigned int* __restrict__ allowed, unsigned int n_nodes, unsigned int n_pods, unsigned int n_words,
    FgdRow* __restrict__ rows) {
    const unsigned int node = blockIdx.x * THREADS + threadIdx.x;
    if (node >= n_nodes) {
        return;
    }
    const DemandClass demand = classes[blockIdx.y];
    const uint4 labels = words(attributes + node);
    FgdRow row = {0, 0, NONE};
    if (admits(demand, pool_bits, amounts + node, labels)) {
        const Left left = load(amounts + node, gpu_milli + node);
        const unsigned int cpu_after = left.cpu == NONE ? NONE : left.cpu - amount(demand.cpu);
        const Pods typical = {pods, n_pods, allowed + static_cast<size_t>(labels.x) * n_words};
        row = demand.gpus == 1 && demand.gpu_milli < WHOLE_GPU ? of_share(left, cpu_after, demand.gpu_milli, typical)
                                                                : of_whole(left, cpu_after, demand, typical);
    }
    rows[static_cast<size_t>(blockIdx.y) * n_nodes + node] = row;
}
