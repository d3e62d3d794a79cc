// The rows of src/evaluate/abi.rs, query.rs, fgd.rs and census.rs: the same bytes, and what several kernels ask of them.
//
// Everything is integers of 32 bits and less, and every sum is the same in any order, so that a device gives the bits
// that src/evaluate/twin/ gives. No header is included: NVRTC has none.
//
// Entry points. "tiles(n, m)" is max(1, ceil(n / m)). Scratch and outputs need no clearing but where it says so. Arrays
// of rows are aligned as their rows are, and scratch to 16 bytes; a chunk's part of an array may begin at any element.
//
// | entry point             | grid                                            | threads | shared | scratch             |
// |-------------------------|-------------------------------------------------|---------|--------|---------------------|
// | score_candidates        | tiles(touches, 512)                             | 128     | static | 32 + 4 bytes a tile |
// | score_candidates_join   | tiles(tiles, 4)                                 | 128     | none   | the same            |
// | best_candidate          | tiles(candidates, 256)                          | 128     | static | 4 + 4 bytes a tile  |
// | best_candidate_join     | tiles(tiles, 4)                                 | 128     | none   | the same            |
// | rank_nodes_count        | tiles(nodes, 2048), ceil(classes / 16)          | 256     | static | 512 bytes a class   |
// | rank_nodes_scan         | classes                                         | 128     | static | and tile of nodes   |
// | rank_nodes_place        | tiles(tiles, 4), classes (at most 65,535)       | 128     | static | the same            |
// | score_fgd               | tiles(nodes, 128), classes (at most 65,535)     | 128     | none   | none                |
// | apply_edits             | tiles(edits, 128)                               | 128     | none   | none                |
// | census                  | tiles(nodes, 2048), or fewer                    | 256     | static | none                |
//
// The passes of a kernel run one after the other on one stream. A launch with nothing to do (no candidate, job, class,
// edit) may be left out.
#pragma once

// "None" in a word that otherwise holds an index.
constexpr unsigned int NONE = 0xffffffffu;

constexpr unsigned int WARP = 32;
constexpr unsigned int ALL_LANES = 0xffffffffu;

// Top bits of the fields of a packed state: see `PackedState`.
constexpr unsigned int ANCHOR = 1u << 5;
constexpr unsigned int SLACK = 1u << 11;
constexpr unsigned int NOT_FULL = 1u << 17;
constexpr unsigned int NOT_EMPTY = 1u << 23;
constexpr unsigned int OVERFLOW = 1u << 29;
constexpr unsigned int WAS_OUTSIDE = 1u << 30;

// Reasons that a kernel finds by itself: see `Reason`.
constexpr unsigned int GPU_BUSY = 11;
constexpr unsigned int NO_CPU = 12;
constexpr unsigned int NO_MEMORY = 13;

// Flag of `NodeAttributes`.
constexpr unsigned int SCHEDULABLE = 1;

// The number of compositions: see `N_COMPOSITIONS`.
constexpr unsigned int COMPOSITIONS = 915;

struct __align__(8) NodeBits {
    unsigned char capacity;
    unsigned char unused;
    unsigned short free;
    unsigned int state;
};

struct __align__(8) NodeAmounts {
    int cpu;
    int memory;
};

struct __align__(16) NodeAttributes {
    unsigned int pool;
    unsigned int domain;
    unsigned int rack;
    unsigned short composition;
    unsigned short flags;
};

constexpr unsigned int MAX_GPUS = 16;
constexpr unsigned int WHOLE_GPU = 1000;

struct __align__(16) NodeGpuMilli {
    unsigned short left[MAX_GPUS];
};

struct __align__(16) NodeEdit {
    unsigned int node;
    unsigned int unused[3];
    NodeBits bits;
    NodeAmounts amounts;
    NodeAttributes attributes;
    NodeGpuMilli gpu_milli;
};

struct __align__(16) Touch {
    unsigned int node;
    unsigned int need;
    unsigned short freed;
    unsigned short taken;
    unsigned int step;
};

struct __align__(8) Need {
    int cpu;
    int memory;
};

struct __align__(16) Candidate {
    unsigned int job;
    unsigned int moves;
    unsigned int moved_gpus;
    unsigned int racks;
    unsigned int domains;
    int delta_phi_star;
    unsigned int unused[2];
};

struct __align__(16) ScoreRow {
    unsigned int reason;
    int delta_partial;
    unsigned int left;
    unsigned int entered;
    unsigned int outside;
    unsigned int opened;
    int delta_empty;
    unsigned int residual;
};

struct __align__(16) DemandClass {
    unsigned int gpus;
    int cpu;
    int memory;
    unsigned int order;
    unsigned int domain;
    unsigned int rack;
    unsigned int pools_at;
    unsigned int gpu_milli;
};

struct __align__(16) TypicalPod {
    unsigned int cpu_milli;
    unsigned int gpu_milli;
    unsigned int gpus;
    unsigned int count;
};

struct FgdRow {
    unsigned int growth_low;
    unsigned int growth_high;
    unsigned int gpus;
};

struct __align__(16) PoolCensus {
    unsigned int nodes;
    unsigned int unschedulable;
    unsigned int empty;
    unsigned int partial;
    unsigned int full;
    unsigned int slots_overflow;
    unsigned int no_vacancy;
    unsigned int by_free[17];
};

// NVRTC has no header that has offsetof.
#ifndef offsetof
#define offsetof(type, member) reinterpret_cast<size_t>(&static_cast<type*>(nullptr)->member)
#endif

static_assert(sizeof(NodeBits) == 8 && offsetof(NodeBits, free) == 2, "NodeBits");
static_assert(offsetof(NodeBits, state) == 4, "NodeBits");
static_assert(sizeof(NodeAmounts) == 8 && offsetof(NodeAmounts, memory) == 4, "NodeAmounts");
static_assert(sizeof(NodeAttributes) == 16 && offsetof(NodeAttributes, rack) == 8, "NodeAttributes");
static_assert(offsetof(NodeAttributes, composition) == 12, "NodeAttributes");
static_assert(sizeof(NodeGpuMilli) == 32, "NodeGpuMilli");
static_assert(sizeof(NodeEdit) == 80 && offsetof(NodeEdit, bits) == 16, "NodeEdit");
static_assert(offsetof(NodeEdit, amounts) == 24, "NodeEdit");
static_assert(offsetof(NodeEdit, attributes) == 32 && offsetof(NodeEdit, gpu_milli) == 48, "NodeEdit");
static_assert(sizeof(Touch) == 16 && offsetof(Touch, freed) == 8, "Touch");
static_assert(offsetof(Touch, taken) == 10 && offsetof(Touch, step) == 12, "Touch");
static_assert(sizeof(Need) == 8 && offsetof(Need, memory) == 4, "Need");
static_assert(sizeof(Candidate) == 32 && offsetof(Candidate, racks) == 12, "Candidate");
static_assert(offsetof(Candidate, delta_phi_star) == 20, "Candidate");
static_assert(sizeof(ScoreRow) == 32 && offsetof(ScoreRow, opened) == 20, "ScoreRow");
static_assert(offsetof(ScoreRow, residual) == 28, "ScoreRow");
static_assert(sizeof(DemandClass) == 32 && offsetof(DemandClass, pools_at) == 24, "DemandClass");
static_assert(sizeof(TypicalPod) == 16 && offsetof(TypicalPod, count) == 12, "TypicalPod");
static_assert(sizeof(FgdRow) == 12 && offsetof(FgdRow, gpus) == 8, "FgdRow");
static_assert(sizeof(PoolCensus) == 96 && offsetof(PoolCensus, by_free) == 28, "PoolCensus");

// Rows in words, each with one load.

// {free << 16 | capacity, state}
__device__ __forceinline__ uint2 words(const NodeBits* node) { return __ldg(reinterpret_cast<const uint2*>(node)); }

// {cpu, memory}
__device__ __forceinline__ int2 words(const NodeAmounts* amounts) { return __ldg(reinterpret_cast<const int2*>(amounts)); }

// {cpu, memory}
__device__ __forceinline__ int2 words(const Need* need) { return __ldg(reinterpret_cast<const int2*>(need)); }

// {pool, domain, rack, flags << 16 | composition}
__device__ __forceinline__ uint4 words(const NodeAttributes* attributes) {
    return __ldg(reinterpret_cast<const uint4*>(attributes));
}

// {cpu_milli, gpu_milli, gpus, count}
__device__ __forceinline__ uint4 words(const TypicalPod* pod) { return __ldg(reinterpret_cast<const uint4*>(pod)); }

// {node, need, taken << 16 | freed, step}; read once, so that it need not stay in a cache.
__device__ __forceinline__ uint4 words(const Touch* touch) { return __ldcs(reinterpret_cast<const uint4*>(touch)); }

// The first of some lanes; there is one at least.
__device__ __forceinline__ unsigned int first_lane(unsigned int lanes) { return __ffs(lanes) - 1; }

// The least of a word over the lanes of a warp, for all of them.
__device__ __forceinline__ unsigned int warp_min(unsigned int word) {
    for (unsigned int distance = WARP / 2; distance > 0; distance /= 2) {
        word = min(word, __shfl_xor_sync(ALL_LANES, word, distance));
    }
    return word;
}

// The first of `n` ascending offsets, less `base`, that is not below `position`; `n` if none is. For a whole warp: every
// step asks at 32 places at once, so that a million offsets take four loads in a row instead of twenty.
__device__ __forceinline__ unsigned int first_not_below(
    const unsigned int* offsets, unsigned int n, unsigned int base, unsigned int position) {
    const unsigned int lane = threadIdx.x % WARP;
    unsigned int low = 0;
    unsigned int high = n;
    while (low < high) {
        const unsigned int step = (high - low + WARP - 1) / WARP;
        const unsigned int at = low + lane * step + (step - 1);
        const bool reached = at >= high || __ldg(offsets + at) - base >= position;
        const unsigned int lanes = __ballot_sync(ALL_LANES, reached);
        if (lanes == 0) {
            return high;
        }
        const unsigned int first = first_lane(lanes);
        low += first * step;
        high = min(high, low + (step - 1));
    }
    return low;
}
