// Scores every candidate of a batch on the resident nodes.
#include "abi.cuh"

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
extern "C" __global__ void score_candidates(
    const NodeBits* __restrict__ bits, const NodeAmounts* __restrict__ amounts, const Touch* __restrict__ touches,
    const unsigned int* __restrict__ offsets, const unsigned int* __restrict__ given, const Need* __restrict__ needs,
    unsigned int first_touch, unsigned int n_touches, unsigned int n_candidates, ScoreRow* __restrict__ rows,
    ScoreRow* __restrict__ parts, unsigned int* __restrict__ carried) {}

// Adds up the parts of the candidates that have touches in several tiles, and finishes their rows. `n_tiles` is the
// grid of `score_candidates`; the other parameters are those it had.
extern "C" __global__ void score_candidates_join(
    const unsigned int* __restrict__ offsets, const unsigned int* __restrict__ given, unsigned int first_touch,
    unsigned int n_tiles, const ScoreRow* __restrict__ parts, const unsigned int* __restrict__ carried,
    ScoreRow* __restrict__ rows) {}
