// Scores every candidate of a batch on the resident nodes.
//
// Work is cut by touches, not by candidates: a block takes a tile of 512 of them, whatever candidates they belong to, so
// that candidates of one touch and of a hundred thousand cost the same a touch. Each touch becomes a few counters packed
// in four words; the block turns them into prefix sums in shared memory; and the sums of a candidate are the difference
// of two of those. A tile has 512 touches because that is what the counters then need: ten bits, three a word.
//
// Memory is passed over once: 16 bytes a touch and 8 of its node (from the caches, where the nodes fit), 8 a candidate
// for its offset and reason and 32 for its row, 36 a tile for what a candidate has beyond the tile in which it begins.
// That goes to scratch with plain stores, one part a tile, so that nothing need be cleared and nothing is atomic; the
// second pass adds the parts up, one warp to a candidate.
#include "abi.cuh"

constexpr unsigned int TILE = 512;
constexpr unsigned int THREADS = 128;
constexpr unsigned int WARPS = THREADS / WARP;
constexpr unsigned int EACH = TILE / THREADS;

// What is counted of touches, so many that no field overflows:
//
// | word | bits   | number                                |
// |------|--------|---------------------------------------|
// | x    | 0..16  | free GPUs afterwards + 31             |
// | x    | 16..28 | partial afterwards less before + 2    |
// | y    | 0..10  | left the space                        |
// | y    | 10..20 | entered it                            |
// | y    | 20..31 | empty afterwards less before + 1      |
// | z    | 0..10  | outside afterwards                    |
// | z    | 10..20 | opened                                |
// | z    | 20..30 | take a GPU that is busy               |
// | w    | 0..10  | ask for more CPU than there is        |
// | w    | 10..20 | ask for more memory than there is     |
using Counts = uint4;

constexpr unsigned int COUNT = 0x3ff;
static_assert(EACH == 4, "four words are loaded and stored at once");
static_assert(TILE <= COUNT && TILE * 63 < 1 << 16, "the counters overflow");

__device__ __forceinline__ Counts plus(Counts a, Counts b) {
    return make_uint4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__device__ __forceinline__ Counts minus(Counts a, Counts b) {
    return make_uint4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w);
}

// What one touch counts; `refused` is the last word.
__device__ __forceinline__ Counts counts_of(uint4 touch, uint2 node, unsigned int refused) {
    const unsigned int before = node.y;
    const unsigned int after = before + touch.w;
    // All as bit 5: an anchor and negative slack, or an overflow.
    const unsigned int outside = ((after & ~(after >> 6)) | after >> 24) & ANCHOR;
    const unsigned int was_outside = before >> 25 & ANCHOR;
    const unsigned int left = outside & ~was_outside;
    const unsigned int entered = was_outside & ~outside;
    // All as bit 0: not empty, not full. Partial is both; the number of the two less one is that, and is -1 for a node
    // without a working device, which is neither before and after every step.
    const unsigned int held = after >> 23 & 1;
    const unsigned int was_held = before >> 23 & 1;
    const unsigned int partial = held + (after >> 17 & 1);
    const unsigned int was_partial = was_held + (before >> 17 & 1);
    // The masks that are taken, free and given back, in the high half of a word.
    const bool busy = (touch.z & ~(node.x | touch.z << 16)) >> 16 != 0;
    Counts counts;
    counts.x = (after >> 12 & 0x3f) + ((partial + 2 - was_partial) << 16);
    counts.y = left >> 5 | entered << 5 | (was_held + 1 - held) << 20;
    counts.z = outside >> 5 | (held & ~was_held) << 10 | (busy ? 1u << 20 : 0u);
    counts.w = refused;
    return counts;
}

// The row that the counts of `n` touches make: of a feasible candidate, but with the first reason against it.
__device__ __forceinline__ ScoreRow row_of(Counts counts, unsigned int n) {
    const unsigned int no_cpu = counts.w & COUNT;
    const unsigned int no_memory = counts.w >> 10;
    ScoreRow row;
    row.reason = counts.z >> 20 != 0 ? GPU_BUSY : no_cpu != 0 ? NO_CPU : no_memory != 0 ? NO_MEMORY : 0;
    row.delta_partial = (counts.x >> 16) - 2 * n;
    row.left = counts.y & COUNT;
    row.entered = counts.y >> 10 & COUNT;
    row.outside = counts.z & COUNT;
    row.opened = counts.z >> 10 & COUNT;
    row.delta_empty = (counts.y >> 20) - n;
    row.residual = (counts.x & 0xffff) - 31 * n;
    return row;
}

// The first of two reasons; 0, which is none, comes last.
__device__ __forceinline__ unsigned int first_reason(unsigned int a, unsigned int b) { return min(a - 1, b - 1) + 1; }

__device__ __forceinline__ ScoreRow plus(ScoreRow a, ScoreRow b) {
    a.reason = first_reason(a.reason, b.reason);
    a.delta_partial += b.delta_partial;
    a.left += b.left;
    a.entered += b.entered;
    a.outside += b.outside;
    a.opened += b.opened;
    a.delta_empty += b.delta_empty;
    a.residual += b.residual;
    return a;
}

// The row as it is given out: of an infeasible candidate only the reason, and the one that was known before if any.
__device__ __forceinline__ ScoreRow finished(ScoreRow row, unsigned int given) {
    const unsigned int reason = given != 0 ? given : row.reason;
    if (reason != 0) {
        row = ScoreRow{};
        row.reason = reason;
    }
    return row;
}

__device__ __forceinline__ ScoreRow load(const ScoreRow* row) {
    const uint4 low = reinterpret_cast<const uint4*>(row)[0];
    const uint4 high = reinterpret_cast<const uint4*>(row)[1];
    return ScoreRow{low.x, static_cast<int>(low.y), low.z, low.w, high.x, high.y, static_cast<int>(high.z), high.w};
}

__device__ __forceinline__ void store(ScoreRow* to, ScoreRow row) {
    const unsigned int delta_partial = row.delta_partial;
    const unsigned int delta_empty = row.delta_empty;
    reinterpret_cast<uint4*>(to)[0] = make_uint4(row.reason, delta_partial, row.left, row.entered);
    reinterpret_cast<uint4*>(to)[1] = make_uint4(row.outside, row.opened, delta_empty, row.residual);
}

// The sum of a word over the lanes up to this one.
__device__ __forceinline__ unsigned int warp_scan(unsigned int word) {
    const unsigned int lane = threadIdx.x % WARP;
    for (unsigned int distance = 1; distance < WARP; distance *= 2) {
        const unsigned int other = __shfl_up_sync(ALL_LANES, word, distance);
        if (lane >= distance) {
            word += other;
        }
    }
    return word;
}

// The counts of the touches of a tile before each position, a word at a time.
struct Prefixes {
    // One more than touches, and 16 bytes to a row's alignment.
    unsigned int words[4][TILE + 4];

    // A word of four touches that stand together.
    __device__ __forceinline__ uint4* four(unsigned int word, unsigned int at) {
        return reinterpret_cast<uint4*>(&words[word][at]);
    }

    __device__ __forceinline__ Counts before(unsigned int at) const {
        return make_uint4(words[0][at], words[1][at], words[2][at], words[3][at]);
    }

    __device__ __forceinline__ ScoreRow row(unsigned int begin, unsigned int end) const {
        return row_of(minus(before(end), before(begin)), end - begin);
    }
};

// Scores the candidates of a chunk: `n_candidates` that stand together in the batch, with all of their touches. What a
// candidate has in a tile of touches that it does not begin in goes to scratch; `score_candidates_join` adds it.
//
// touches       the chunk's touches, `n_touches`
// offsets       the batch's offsets from the chunk's first candidate on, `n_candidates` + 1
// first_touch   offsets[0]: the position in the batch of the chunk's first touch
// given         the reasons known before, of the chunk's candidates
// needs         the batch's table of needs
// rows          out: a row for each candidate of the chunk
// parts         scratch: a row a tile
// carried       scratch: a word a tile, the candidate (counted in the chunk) that `parts` is about, or NONE
//
// At least 8 blocks a multiprocessor: said so that the assembler takes enough registers to have all loads in flight.
extern "C" __global__ void __launch_bounds__(THREADS, 8) score_candidates(
    const NodeBits* __restrict__ bits, const NodeAmounts* __restrict__ amounts, const Touch* __restrict__ touches,
    const unsigned int* __restrict__ offsets, const unsigned int* __restrict__ given, const Need* __restrict__ needs,
    unsigned int first_touch, unsigned int n_touches, unsigned int n_candidates, ScoreRow* __restrict__ rows,
    ScoreRow* __restrict__ parts, unsigned int* __restrict__ carried) {
    __shared__ __align__(16) Prefixes prefixes;
    __shared__ Counts of_warp[WARPS];
    __shared__ unsigned int first_shared;

    const unsigned int lane = threadIdx.x % WARP;
    const unsigned int warp = threadIdx.x / WARP;
    const unsigned int start = blockIdx.x * TILE;
    const unsigned int n = min(TILE, n_touches - start);
    const unsigned int of_this_warp = warp * (WARP * EACH);

    // All loads of a kind are on their way before the first is waited for, the touches also while the first warp searches.
    // A thread beyond the last touch does that one again: nobody asks for the sums there, and there is no branch.
    uint4 touch[EACH] = {};
    uint2 node[EACH] = {};
    if (n > 0) {
        for (unsigned int i = 0; i < EACH; ++i) {
            touch[i] = words(touches + start + min(of_this_warp + i * WARP + lane, n - 1));
        }
    }
    if (warp == 0) {
        const unsigned int first = first_not_below(offsets, n_candidates, first_touch, start);
        if (lane == 0) {
            first_shared = first;
        }
    }
    if (n > 0) {
        for (unsigned int i = 0; i < EACH; ++i) {
            node[i] = words(bits + touch[i].x);
        }
    }
    // Few touches ask for CPU or memory, so that mostly the whole warp passes by.
    unsigned int refused[EACH] = {};
    if (__any_sync(ALL_LANES, (touch[0].y | touch[1].y | touch[2].y | touch[3].y) != 0)) {
        for (unsigned int i = 0; i < EACH; ++i) {
            if (touch[i].y != 0) {
                const int2 free = words(amounts + touch[i].x);
                const int2 need = words(needs + touch[i].y);
                refused[i] = (need.x > free.x ? 1u : 0u) | (need.y > free.y ? 1u << 10 : 0u);
            }
        }
    }
    for (unsigned int i = 0; i < EACH; ++i) {
        const unsigned int at = of_this_warp + i * WARP + lane;
        const Counts counts = counts_of(touch[i], node[i], refused[i]);
        prefixes.words[0][at] = counts.x;
        prefixes.words[1][at] = counts.y;
        prefixes.words[2][at] = counts.z;
        prefixes.words[3][at] = counts.w;
    }
    __syncwarp();

    // Each thread adds up four neighbours, the warp adds up its threads, the block its warps.
    const unsigned int mine = of_this_warp + lane * EACH;
    Counts before[4];
    unsigned int sums[4];
    for (unsigned int word = 0; word < 4; ++word) {
        const uint4 four = *prefixes.four(word, mine);
        const unsigned int sum = four.x + four.y + four.z + four.w;
        sums[word] = warp_scan(sum);
        const unsigned int base = sums[word] - sum;
        before[word] = make_uint4(base, base + four.x, base + four.x + four.y, base + four.x + four.y + four.z);
    }
    if (lane == WARP - 1) {
        of_warp[warp] = make_uint4(sums[0], sums[1], sums[2], sums[3]);
    }
    __syncthreads();
    Counts warps_before = make_uint4(0, 0, 0, 0);
    for (unsigned int other = 0; other < WARPS - 1; ++other) {
        if (other < warp) {
            warps_before = plus(warps_before, of_warp[other]);
        }
    }
    const unsigned int bases[4] = {warps_before.x, warps_before.y, warps_before.z, warps_before.w};
    for (unsigned int word = 0; word < 4; ++word) {
        const unsigned int base = bases[word];
        const Counts four = before[word];
        *prefixes.four(word, mine) = make_uint4(base + four.x, base + four.y, base + four.z, base + four.w);
        if (threadIdx.x == THREADS - 1) {
            prefixes.words[word][TILE] = base + sums[word];
        }
    }
    __syncthreads();

    // Offsets from here on are counted from the tile's start.
    const unsigned int base = first_touch + start;
    const unsigned int first = first_shared;
    if (threadIdx.x == THREADS - 1) {
        const unsigned int end = offsets[first] - base;
        const bool inherits = first > 0 && end > 0;
        carried[blockIdx.x] = inherits ? first - 1 : NONE;
        if (inherits) {
            store(parts + blockIdx.x, prefixes.row(0, min(end, TILE)));
        }
    }
    // Those that begin in this tile; at the end of the last one there may be some without touches.
    const bool last = blockIdx.x == gridDim.x - 1;
    for (unsigned int candidate = first + threadIdx.x; candidate < n_candidates; candidate += THREADS) {
        const unsigned int begin = offsets[candidate] - base;
        if (begin >= TILE && !last) {
            break;
        }
        const unsigned int end = offsets[candidate + 1] - base;
        const ScoreRow row = prefixes.row(begin, min(end, TILE));
        store(rows + candidate, end > TILE ? row : finished(row, given[candidate]));
    }
}

// Adds up the parts of the candidates that have touches in several tiles, and finishes their rows. `n_tiles` is the
// grid of `score_candidates`; the other parameters are those it had.
extern "C" __global__ void __launch_bounds__(THREADS) score_candidates_join(
    const unsigned int* __restrict__ offsets, const unsigned int* __restrict__ given, unsigned int first_touch,
    unsigned int n_tiles, const ScoreRow* __restrict__ parts, const unsigned int* __restrict__ carried,
    ScoreRow* __restrict__ rows) {
    const unsigned int lane = threadIdx.x % WARP;
    const unsigned int tile = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (tile >= n_tiles || carried[tile] == NONE) {
        return;
    }
    const unsigned int candidate = carried[tile];
    const unsigned int begin = offsets[candidate] - first_touch;
    const unsigned int end = offsets[candidate + 1] - first_touch;
    // One warp does it: that of the first tile after the one in which the candidate begins.
    if (begin / TILE + 1 != tile) {
        return;
    }
    ScoreRow sum = ScoreRow{};
    for (unsigned int part = tile + lane; part <= (end - 1) / TILE; part += WARP) {
        sum = plus(sum, load(parts + part));
    }
    for (unsigned int distance = WARP / 2; distance > 0; distance /= 2) {
        ScoreRow other;
        other.reason = __shfl_down_sync(ALL_LANES, sum.reason, distance);
        other.delta_partial = __shfl_down_sync(ALL_LANES, sum.delta_partial, distance);
        other.left = __shfl_down_sync(ALL_LANES, sum.left, distance);
        other.entered = __shfl_down_sync(ALL_LANES, sum.entered, distance);
        other.outside = __shfl_down_sync(ALL_LANES, sum.outside, distance);
        other.opened = __shfl_down_sync(ALL_LANES, sum.opened, distance);
        other.delta_empty = __shfl_down_sync(ALL_LANES, sum.delta_empty, distance);
        other.residual = __shfl_down_sync(ALL_LANES, sum.residual, distance);
        sum = plus(sum, other);
    }
    if (lane == 0) {
        store(rows + candidate, finished(plus(sum, load(rows + candidate)), given[candidate]));
    }
}
