// The best candidate of every job: the least rank key, the first of equals.
//
// A thread goes through a job of few candidates, a workgroup through one of many. Jobs without candidates are not
// here, and of a job that does not lie in the piece as a whole this is the best of a part: the host knows the rest.

struct Params {
    // Jobs of few candidates; they stand first.
    small: u32,
    // Jobs of many.
    large: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
// The first candidate of each job, and the first behind.
@group(0) @binding(1) var<storage, read> spans: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> rows: array<ScoreRow>;
@group(0) @binding(3) var<storage, read> candidates: array<Candidate>;
// A candidate a job, or `NONE`.
@group(0) @binding(4) var<storage, read_write> best: array<u32>;

const THREADS: u32 = 256u;

var<workgroup> found: array<u32, THREADS>;

// The words of `RankKey`, most significant first.
struct Key {
    high: vec4<u32>,
    low: vec4<u32>,
}

fn key_of(index: u32) -> Key {
    let row = rows[index];
    let candidate = candidates[index];
    let sif = bitcast<u32>(row.delta_partial - candidate.delta_phi_star) ^ 0x80000000u;
    return Key(
        vec4<u32>(row.left, sif, candidate.moves, candidate.moved_gpus),
        vec4<u32>(row.opened, row.residual, candidate.racks, candidate.domains),
    );
}

// Negative, zero or positive as a is before b, equal or behind. No loop: Mesa's driver for processors ends a thread's loops
// after 65,535 rounds of all of them together, and there may be thousands of candidates a thread.
fn order(a: vec4<u32>, b: vec4<u32>) -> i32 {
    // The first word that differs outweighs all behind it.
    return dot(vec4<i32>(a > b) - vec4<i32>(a < b), vec4<i32>(8, 4, 2, 1));
}

fn less(a: Key, b: Key) -> bool {
    let high = order(a.high, b.high);
    return high < 0 || (high == 0 && order(a.low, b.low) < 0);
}

// The best of every `step`th candidate of a span.
fn best_of(begin: u32, end: u32, step: u32) -> u32 {
    var best_index = NONE;
    var best_key: Key;
    for (var index = begin; index < end; index += step) {
        if rows[index].reason == 0u {
            let key = key_of(index);
            if best_index == NONE || less(key, best_key) {
                best_index = index;
                best_key = key;
            }
        }
    }
    return best_index;
}

// The better of two candidates, either of which may be `NONE`.
fn better(a: u32, b: u32) -> u32 {
    if a == NONE || b == NONE {
        return min(a, b);
    }
    let low = min(a, b);
    let high = max(a, b);
    return select(low, high, less(key_of(high), key_of(low)));
}

@compute @workgroup_size(64)
fn best_candidate_small(
    @builtin(global_invocation_id) thread: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var job = thread.x; job < params.small; job += groups.x * 64u) {
        best[job] = best_of(spans[job].x, spans[job].y, 1u);
    }
}

@compute @workgroup_size(THREADS)
fn best_candidate_large(
    @builtin(local_invocation_index) thread: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var large = group.x; large < params.large; large += groups.x) {
        let job = params.small + large;
        let span = spans[job];
        found[thread] = best_of(span.x + thread, span.y, THREADS);
        for (var half = THREADS / 2u; half > 0u; half /= 2u) {
            workgroupBarrier();
            if thread < half {
                found[thread] = better(found[thread], found[thread + half]);
            }
        }
        if thread == 0u {
            best[job] = found[0];
        }
        workgroupBarrier();
    }
}
