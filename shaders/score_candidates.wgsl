// Scores every candidate of a batch on the resident nodes.
//
// The touches are cut into tiles of equal size, whatever the sizes of candidates. A workgroup sums up, for every touch
// of its tile, what all touches up to it add to the score; the score of a candidate within the tile is the difference
// of two such sums. What a candidate from an earlier tile has in this one is put down as the tile's head, and
// `score_candidates_join` adds the heads up.
//
// A piece of a batch is scored at a time. A candidate may go on from piece to piece: its sums so far come in as `carry`,
// and stay in its row, unfinished, if it goes on.

struct Params {
    // The number of the first touch of the piece in the batch.
    first: u32,
    // Touches of the piece.
    touches: u32,
    // Candidates of the piece.
    candidates: u32,
    // Tiles of the piece, at least one.
    tiles: u32,
}

// What a tile has of a candidate that began before it; `NONE` if there is none.
struct Head {
    row: ScoreRow,
    candidate: u32,
    unused: array<u32, 3>,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> bits: array<NodeBits>;
@group(0) @binding(2) var<storage, read> amounts: array<NodeAmounts>;
@group(0) @binding(3) var<storage, read> touches: array<Touch>;
@group(0) @binding(4) var<storage, read> needs: array<Need>;
// Numbers of touches in the batch, one more than candidates.
@group(0) @binding(5) var<storage, read> offsets: array<u32>;
@group(0) @binding(6) var<storage, read> given: array<u32>;
@group(0) @binding(7) var<storage, read_write> rows: array<ScoreRow>;
@group(0) @binding(8) var<storage, read_write> heads: array<Head>;
@group(0) @binding(9) var<storage, read> carry: array<ScoreRow>;

const THREADS: u32 = 128u;
// Touches a thread.
const EACH: u32 = 4u;
const TILE: u32 = EACH * THREADS;

// Threads whose sums one thread adds up.
const RUN: u32 = 16u;

// What a touch adds to the score of its candidate, in fields with room for the sum of a tile:
//
// x: 0 entered Σ, 10 outside Σ afterwards, 20 left Σ
// y: 0 a GPU is taken that is busy, 10 too little CPU, 20 too little memory
// z: 0 not empty afterwards less before + 1, 22 opened
// w: 0 free GPUs afterwards + 31, 16 partial afterwards less before + 2
alias Sums = vec4<u32>;

// What stands against a candidate, in the reason of an unfinished row.
const GPU_BUSY: u32 = 1u;
const NO_CPU: u32 = 2u;
const NO_MEMORY: u32 = 4u;

// The numbers of `Reason`.
const REASON_GPU_BUSY: u32 = 11u;
const REASON_NO_CPU: u32 = 12u;
const REASON_NO_MEMORY: u32 = 13u;

// The sums of the touches of each thread up to and with each.
var<workgroup> up_to: array<Sums, TILE>;
// The sums of the touches of each thread; then, of those of all threads before.
var<workgroup> of_threads: array<Sums, THREADS>;
var<workgroup> of_runs: array<Sums, THREADS / RUN>;
// The first candidate that begins in the tile, and the first behind.
var<workgroup> begins: array<u32, 2>;

fn contribution(touch: Touch) -> Sums {
    let node = bits[touch.node];
    let before = node.state;
    let after = before + touch.step;
    let was_outside = has(before, WAS_OUTSIDE);
    let outside = overflows(after) || lacks_vacancy(after);
    let filled = select(0u, 1u, has(after, NOT_EMPTY));
    let was_filled = select(0u, 1u, has(before, NOT_EMPTY));
    // Partial is neither full nor empty. A node without a working device is both before and after every step.
    let partial = filled + select(0u, 1u, has(after, NOT_FULL));
    let was_partial = was_filled + select(0u, 1u, has(before, NOT_FULL));
    let opened = filled & ~was_filled;
    let free = free_mask(node) | (touch.freed_taken & 0xffffu);
    var against = select(0u, 1u, ((touch.freed_taken >> 16u) & ~free) != 0u);
    if touch.need != 0u {
        let need = needs[touch.need];
        let amount = amounts[touch.node];
        against |= select(0u, 1u << 10u, need.cpu > amount.cpu) | select(0u, 1u << 20u, need.memory > amount.memory);
    }
    return Sums(
        select(0u, 1u, was_outside && !outside) | select(0u, 1u << 10u, outside)
            | select(0u, 1u << 20u, outside && !was_outside),
        against,
        (filled + 1u - was_filled) | (opened << 22u),
        state_field(after, 12u) | ((partial + 2u - was_partial) << 16u),
    );
}

// The unfinished row of `n` touches.
fn row_of(sums: Sums, n: u32) -> ScoreRow {
    var row: ScoreRow;
    row.reason = select(0u, GPU_BUSY, extractBits(sums.y, 0u, 10u) != 0u)
        | select(0u, NO_CPU, extractBits(sums.y, 10u, 10u) != 0u)
        | select(0u, NO_MEMORY, extractBits(sums.y, 20u, 10u) != 0u);
    row.delta_partial = i32((sums.w >> 16u) - 2u * n);
    row.left = extractBits(sums.x, 20u, 10u);
    row.entered = extractBits(sums.x, 0u, 10u);
    row.outside = extractBits(sums.x, 10u, 10u);
    row.opened = extractBits(sums.z, 22u, 10u);
    row.delta_empty = i32(n - extractBits(sums.z, 0u, 11u));
    row.residual = (sums.w & 0xffffu) - 31u * n;
    return row;
}

fn add(a: ScoreRow, b: ScoreRow) -> ScoreRow {
    return ScoreRow(
        a.reason | b.reason,
        a.delta_partial + b.delta_partial,
        a.left + b.left,
        a.entered + b.entered,
        a.outside + b.outside,
        a.opened + b.opened,
        a.delta_empty + b.delta_empty,
        a.residual + b.residual,
    );
}

// The row of a candidate all of whose touches are in `row`.
fn finished(row: ScoreRow, known: u32) -> ScoreRow {
    if (row.reason | known) == 0u {
        return row;
    }
    var reason = REASON_NO_MEMORY;
    if known != 0u {
        reason = known;
    } else if has(row.reason, GPU_BUSY) {
        reason = REASON_GPU_BUSY;
    } else if has(row.reason, NO_CPU) {
        reason = REASON_NO_CPU;
    }
    var infeasible: ScoreRow;
    infeasible.reason = reason;
    return infeasible;
}

// The first candidate whose touches begin at this touch of the batch, or behind it.
fn first_from(touch: u32) -> u32 {
    var low = 0u;
    var high = params.candidates;
    while low < high {
        let middle = low + (high - low) / 2u;
        if offsets[middle] < touch {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

// The sums of the first `n` touches of the tile.
fn sums_of_first(n: u32) -> Sums {
    if n == 0u {
        return Sums();
    }
    return up_to[n - 1u] + of_threads[(n - 1u) / EACH];
}

fn score_tile(tile: u32, thread: u32) {
    let start = tile * TILE;
    let end = min(start + TILE, params.touches);
    // Candidates without touches behind the last touch are the last tile's.
    if thread == 0u {
        begins[0] = first_from(params.first + start);
    } else if thread == 32u {
        begins[1] = params.candidates;
        if tile + 1u < params.tiles {
            begins[1] = first_from(params.first + end);
        }
    }
    var own = Sums();
    for (var i = thread * EACH; i < (thread + 1u) * EACH; i++) {
        if start + i < end {
            own += contribution(touches[start + i]);
        }
        up_to[i] = own;
    }
    of_threads[thread] = own;
    workgroupBarrier();
    if thread < THREADS / RUN {
        var sum = Sums();
        for (var i = thread * RUN; i < (thread + 1u) * RUN; i++) {
            let next = of_threads[i];
            of_threads[i] = sum;
            sum += next;
        }
        of_runs[thread] = sum;
    }
    workgroupBarrier();
    var before = of_threads[thread];
    for (var i = 0u; i < thread / RUN; i++) {
        before += of_runs[i];
    }
    of_threads[thread] = before;
    workgroupBarrier();
    for (var candidate = begins[0] + thread; candidate < begins[1]; candidate += THREADS) {
        let begin = offsets[candidate] - params.first - start;
        let stop = offsets[candidate + 1u] - params.first;
        let n = min(stop, end) - start;
        let row = row_of(sums_of_first(n) - sums_of_first(begin), n - begin);
        if stop <= end {
            rows[candidate] = finished(row, given[candidate]);
        } else {
            rows[candidate] = row;
        }
    }
    if thread == 0u {
        heads[tile].candidate = NONE;
        if begins[0] > 0u && offsets[begins[0]] > params.first + start {
            let n = min(offsets[begins[0]] - params.first, end) - start;
            heads[tile].row = row_of(sums_of_first(n), n);
            heads[tile].candidate = begins[0] - 1u;
        }
    }
}

@compute @workgroup_size(THREADS)
fn score_candidates(
    @builtin(local_invocation_index) thread: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var tile = group.x; tile < params.tiles; tile += groups.x) {
        score_tile(tile, thread);
        workgroupBarrier();
    }
}

const JOINERS: u32 = 64u;

// The tile from which a candidate with more tiles than one thread should add up goes on; of that many tiles in a row
// only one can begin such a candidate.
var<workgroup> long_from: u32;
var<workgroup> parts: array<ScoreRow, JOINERS>;

fn end_in_piece(candidate: u32) -> u32 {
    return min(offsets[candidate + 1u] - params.first, params.touches);
}

fn finish_joined(candidate: u32, row: ScoreRow) {
    if offsets[candidate + 1u] - params.first <= params.touches {
        rows[candidate] = finished(row, given[candidate]);
    } else {
        rows[candidate] = row;
    }
}

// What there is of a candidate before this tile, the first that it goes on in.
fn row_before(candidate: u32, tile: u32) -> ScoreRow {
    if tile == 0u {
        return carry[0];
    }
    return rows[candidate];
}

// Puts candidates together that lie in several tiles: a thread for each tile, one of them each candidate.
@compute @workgroup_size(JOINERS)
fn score_candidates_join(
    @builtin(local_invocation_index) thread: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var first = group.x * JOINERS; first < params.tiles; first += groups.x * JOINERS) {
        if thread == 0u {
            long_from = NONE;
        }
        workgroupBarrier();
        let tile = first + thread;
        if tile < params.tiles {
            let candidate = heads[tile].candidate;
            // Only where it goes on for the first time.
            if candidate != NONE && (tile == 0u || offsets[candidate] >= params.first + (tile - 1u) * TILE) {
                let stop = (end_in_piece(candidate) + TILE - 1u) / TILE;
                if stop - tile < JOINERS {
                    var row = row_before(candidate, tile);
                    for (var i = tile; i < stop; i++) {
                        row = add(row, heads[i].row);
                    }
                    finish_joined(candidate, row);
                } else {
                    long_from = tile;
                }
            }
        }
        let from_tile = workgroupUniformLoad(&long_from);
        if from_tile != NONE {
            let candidate = heads[from_tile].candidate;
            let stop = (end_in_piece(candidate) + TILE - 1u) / TILE;
            var row: ScoreRow;
            for (var i = from_tile + thread; i < stop; i += JOINERS) {
                row = add(row, heads[i].row);
            }
            parts[thread] = row;
            for (var half = JOINERS / 2u; half > 0u; half /= 2u) {
                workgroupBarrier();
                if thread < half {
                    parts[thread] = add(parts[thread], parts[thread + half]);
                }
            }
            if thread == 0u {
                finish_joined(candidate, add(row_before(candidate, from_tile), parts[0]));
            }
        }
        workgroupBarrier();
    }
}
