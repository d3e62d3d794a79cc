// The best candidate of every job: the least rank key, the first of equals.
#include "abi.cuh"

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
extern "C" __global__ void best_candidate(
    const ScoreRow* __restrict__ rows, const Candidate* __restrict__ candidates,
    const unsigned int* __restrict__ jobs, unsigned int first_candidate, unsigned int n_candidates,
    unsigned int n_jobs, unsigned int* __restrict__ best, unsigned int* __restrict__ parts,
    unsigned int* __restrict__ carried) {}

// Compares the parts of the jobs that have candidates in several tiles. `n_tiles` is the grid of `best_candidate`; the
// other parameters are those it had.
extern "C" __global__ void best_candidate_join(
    const ScoreRow* __restrict__ rows, const Candidate* __restrict__ candidates,
    const unsigned int* __restrict__ jobs, unsigned int first_candidate, unsigned int n_tiles,
    const unsigned int* __restrict__ parts, const unsigned int* __restrict__ carried,
    unsigned int* __restrict__ best) {}
