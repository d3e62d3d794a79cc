// The best candidate of every job: the least rank key, the first of equals.
//
// Cut as score_candidates is: a block takes a tile of 256 candidates, whatever jobs they belong to, and the jobs that
// begin in it; what a job has beyond goes to scratch, one candidate a tile, and the second pass compares those. A warp
// looks at one job at a time: its lanes stride over the candidates, then find the least key word by word, and stop as
// soon as one lane is left, mostly after a word or two. Every row and candidate is read once: 64 bytes.
#include "abi.cuh"

constexpr unsigned int TILE = 256;
constexpr unsigned int THREADS = 128;
constexpr unsigned int WARPS = THREADS / WARP;
constexpr unsigned int KEY_WORDS = 8;

// The least rank key that a lane has seen, and whose it is; NONE if it has seen none.
struct Best {
    unsigned int key[KEY_WORDS];
    unsigned int candidate;
};

// Takes a candidate into account if it is feasible. For equal keys the one that was seen before stays.
__device__ __forceinline__ void consider(
    Best& best, const ScoreRow* rows, const Candidate* candidates, unsigned int candidate) {
    const uint4* row = reinterpret_cast<const uint4*>(rows + candidate);
    const uint4* columns = reinterpret_cast<const uint4*>(candidates + candidate);
    // {reason, delta_partial, left, entered}, {outside, opened, delta_empty, residual}
    const uint4 row_low = row[0];
    const uint4 row_high = row[1];
    // {job, moves, moved_gpus, racks}, {domains, delta_phi_star, unused, unused}
    const uint4 low = __ldg(columns);
    const uint4 high = __ldg(columns + 1);
    if (row_low.x != 0) {
        return;
    }
    const unsigned int sif = (row_low.y - high.y) ^ 1u << 31;
    const unsigned int key[KEY_WORDS] = {row_low.z, sif, low.y, low.z, row_high.y, row_high.w, low.w, high.x};
    bool less = best.candidate == NONE;
    bool equal = !less;
    for (unsigned int word = 0; word < KEY_WORDS; ++word) {
        less = less || (equal && key[word] < best.key[word]);
        equal = equal && key[word] == best.key[word];
    }
    if (less) {
        for (unsigned int word = 0; word < KEY_WORDS; ++word) {
            best.key[word] = key[word];
        }
        best.candidate = candidate;
    }
}

// The best of what the lanes of a warp have seen.
__device__ __forceinline__ unsigned int best_of_warp(const Best& best) {
    bool in = best.candidate != NONE;
#pragma unroll
    for (unsigned int word = 0; word < KEY_WORDS; ++word) {
        if (__popc(__ballot_sync(ALL_LANES, in)) <= 1) {
            break;
        }
        // All lanes take part, also those that are out.
        const unsigned int least = warp_min(in ? best.key[word] : NONE);
        in = in && best.key[word] == least;
    }
    return warp_min(in ? best.candidate : NONE);
}

// The best of the candidates `begin..end`, for a whole warp.
__device__ __forceinline__ unsigned int best_in(
    const ScoreRow* rows, const Candidate* candidates, unsigned int begin, unsigned int end) {
    Best best;
    best.candidate = NONE;
    for (unsigned int candidate = begin + threadIdx.x % WARP; candidate < end; candidate += WARP) {
        consider(best, rows, candidates, candidate);
    }
    return best_of_warp(best);
}

// Finds the best candidates of a chunk of jobs: `n_jobs` that stand together in the batch, with all of their
// candidates. What a job has in a tile of candidates that it does not begin in goes to scratch; `best_candidate_join`
// compares it.
//
// rows, candidates   of the chunk's candidates, `n_candidates`
// jobs               the batch's job offsets from the chunk's first job on, `n_jobs` + 1
// first_candidate    jobs[0]: the position in the batch of the chunk's first candidate
// best               out: for each job of the chunk the best candidate, counted in the batch, or NONE
// parts              scratch: a word a tile, the best candidate in the tile of the job in `carried`
// carried            scratch: a word a tile, a job (counted in the chunk), or NONE
//
// At least 8 blocks a multiprocessor: said so that the assembler takes the registers it needs.
extern "C" __global__ void __launch_bounds__(THREADS, 8) best_candidate(
    const ScoreRow* __restrict__ rows, const Candidate* __restrict__ candidates,
    const unsigned int* __restrict__ jobs, unsigned int first_candidate, unsigned int n_candidates,
    unsigned int n_jobs, unsigned int* __restrict__ best, unsigned int* __restrict__ parts,
    unsigned int* __restrict__ carried) {
    const unsigned int lane = threadIdx.x % WARP;
    const unsigned int warp = threadIdx.x / WARP;
    const unsigned int start = blockIdx.x * TILE;
    const unsigned int stop = start + min(TILE, n_candidates - start);
    const unsigned int first = first_not_below(jobs, n_jobs, first_candidate, start);
    const bool last = blockIdx.x == gridDim.x - 1;

    // Number 0 is the job before the first, which may have candidates here; from 1 on follow the jobs that begin in this
    // tile, at the end of the last one maybe some without candidates. Each lane knows one of them, and the warp looks at
    // those that have candidates one after the other.
    bool some = true;
    for (unsigned int group = 0; some; group += THREADS) {
        const unsigned int number = group + lane * WARPS + warp;
        const bool inherited = number == 0;
        const unsigned int job = first + number - 1;
        bool mine = job < n_jobs;
        const unsigned int from = mine ? jobs[job] - first_candidate : 0;
        mine = mine && (inherited || last || from - start < TILE);
        const unsigned int begin = inherited ? start : from;
        const unsigned int end = mine ? min(jobs[job + 1] - first_candidate, stop) : 0;
        const bool any = mine && begin < end;
        unsigned int found = NONE;
        for (unsigned int lanes = __ballot_sync(ALL_LANES, any); lanes != 0; lanes &= lanes - 1) {
            const unsigned int which = first_lane(lanes);
            const unsigned int to = __shfl_sync(ALL_LANES, end, which);
            const unsigned int best_here = best_in(rows, candidates, __shfl_sync(ALL_LANES, begin, which), to);
            found = lane == which ? best_here : found;
        }
        found = found == NONE ? NONE : found + first_candidate;
        if (inherited) {
            carried[blockIdx.x] = any ? job : NONE;
            parts[blockIdx.x] = found;
        } else if (mine) {
            best[job] = found;
        }
        some = __any_sync(ALL_LANES, mine);
    }
}

// Compares the parts of the jobs that have candidates in several tiles. `n_tiles` is the grid of `best_candidate`; the
// other parameters are those it had.
extern "C" __global__ void __launch_bounds__(THREADS) best_candidate_join(
    const ScoreRow* __restrict__ rows, const Candidate* __restrict__ candidates,
    const unsigned int* __restrict__ jobs, unsigned int first_candidate, unsigned int n_tiles,
    const unsigned int* __restrict__ parts, const unsigned int* __restrict__ carried,
    unsigned int* __restrict__ best) {
    const unsigned int lane = threadIdx.x % WARP;
    const unsigned int tile = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (tile >= n_tiles || carried[tile] == NONE) {
        return;
    }
    const unsigned int job = carried[tile];
    const unsigned int begin = jobs[job] - first_candidate;
    const unsigned int end = jobs[job + 1] - first_candidate;
    // One warp does it: that of the first tile after the one in which the job begins.
    if (begin / TILE + 1 != tile) {
        return;
    }
    Best least;
    least.candidate = NONE;
    if (lane == 0 && best[job] != NONE) {
        consider(least, rows, candidates, best[job] - first_candidate);
    }
    for (unsigned int part = tile + lane; part <= (end - 1) / TILE; part += WARP) {
        if (parts[part] != NONE) {
            consider(least, rows, candidates, parts[part] - first_candidate);
        }
    }
    const unsigned int found = best_of_warp(least);
    if (lane == 0) {
        best[job] = found == NONE ? NONE : found + first_candidate;
    }
}
