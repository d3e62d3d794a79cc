// FGD's score of every node for each class of demand: by how much the fragment of the node grows if it takes an
// instance, and which devices that would get.
//
// A thread a node and class. What is left of the 16 devices stands in four vectors, and so does the fragment after each
// choice of a share: a typical pod takes no loop over devices (see `ROUNDS` in webgpu/fgd.rs).
// Growths are sums of count times milli-GPU, in two words.

struct Params {
    // The first node of this part, and how many.
    first: u32,
    nodes: u32,
    classes: u32,
    pods: u32,
    // Words of a pool's set of typical pods.
    words: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> amounts: array<NodeAmounts>;
@group(0) @binding(2) var<storage, read> attributes: array<NodeAttributes>;
@group(0) @binding(3) var<storage, read> gpu_milli: array<NodeGpuMilli>;
@group(0) @binding(4) var<storage, read> classes: array<DemandClass>;
@group(0) @binding(5) var<storage, read> pool_bits: array<u32>;
@group(0) @binding(6) var<storage, read> pods: array<TypicalPod>;
// For each pool, a bit for each typical pod that its model is allowed to.
@group(0) @binding(7) var<storage, read> allowed: array<u32>;
// So many nodes a class.
@group(0) @binding(8) var<storage, read_write> rows: array<FgdRow>;

const WHOLE_GPU: u32 = 1000u;
const UNLIMITED: i32 = 0x7fffffffi;

// What is left of a node: milli-cores, and thousandths of the devices, four and four.
struct Left {
    cpu: u32,
    a: vec4<u32>,
    b: vec4<u32>,
    c: vec4<u32>,
    d: vec4<u32>,
}

// Sums of 64 bits, four at a time.
struct Sums {
    low: vec4<u32>,
    high: vec4<u32>,
}

// Adds `count` times each of these, which have 14 bits.
fn add(sums: Sums, count: u32, lost: vec4<u32>) -> Sums {
    let lower = (count & 0xffffu) * lost;
    let upper = (count >> 16u) * lost;
    let product = lower + (upper << vec4<u32>(16u));
    let low = sums.low + product;
    let carries = vec4<u32>(product < lower) + vec4<u32>(low < product);
    return Sums(low, sums.high + (upper >> vec4<u32>(16u)) + carries);
}

fn total(a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32>) -> u32 {
    return dot(a + b + c + d, vec4<u32>(1u));
}

// Which of four devices have enough left, and what is left of the others.
fn able(left: vec4<u32>, wanted: u32) -> vec4<u32> {
    return vec4<u32>(left >= vec4<u32>(wanted));
}

fn small(left: vec4<u32>, wanted: u32) -> vec4<u32> {
    return select(left, vec4<u32>(0u), left >= vec4<u32>(wanted));
}

fn n_able(left: Left, wanted: u32) -> u32 {
    return total(able(left.a, wanted), able(left.b, wanted), able(left.c, wanted), able(left.d, wanted));
}

fn sum_small(left: Left, wanted: u32) -> u32 {
    return total(small(left.a, wanted), small(left.b, wanted), small(left.c, wanted), small(left.d, wanted));
}

fn idle(left: Left) -> u32 {
    return total(left.a, left.b, left.c, left.d);
}

// The milli-GPU of a node that a pod could not use.
fn lost(left: Left, pod: TypicalPod, here: bool) -> u32 {
    let fits = here && left.cpu >= pod.cpu_milli && n_able(left, pod.gpu_milli) >= pod.gpus;
    return select(idle(left), sum_small(left, pod.gpu_milli), fits);
}

// What a pod finds on all devices: those that have enough left, and what is left of the others; and then, whichever
// device the share is taken from, whether CPU suffices, and what is left of all.
struct All {
    able: u32,
    small: u32,
    fits_after: bool,
    idle_after: u32,
}

// The milli-GPU that a pod could not use after a share was taken from each of four devices, one at a time.
fn lost_after(before: vec4<u32>, after: vec4<u32>, pod: TypicalPod, all: All) -> vec4<u32> {
    let n = all.able - able(before, pod.gpu_milli) + able(after, pod.gpu_milli);
    let rest = all.small - small(before, pod.gpu_milli) + small(after, pod.gpu_milli);
    return select(vec4<u32>(all.idle_after), rest, vec4<bool>(all.fits_after) & (n >= vec4<u32>(pod.gpus)));
}

// Whether a pod that asks for devices may be on nodes of a pool.
fn is_here(pod: TypicalPod, number: u32, pool: u32) -> bool {
    return pod.gpus != 0u && has(allowed[pool * params.words + number / 32u], 1u << (number % 32u));
}

fn taken_from(left: vec4<u32>, share: u32) -> vec4<u32> {
    return left - min(left, vec4<u32>(share));
}

// A growth: the difference of two sums.
fn growth_of(after: vec2<u32>, before: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(after.x - before.x, after.y - before.y - select(0u, 1u, after.x < before.x));
}

fn less(a: vec2<u32>, b: vec2<u32>) -> bool {
    let high = vec2<i32>(bitcast<i32>(a.y), bitcast<i32>(b.y));
    return high.x < high.y || (high.x == high.y && a.x < b.x);
}

// A share goes to the device on which the fragment grows the least, the lowest of equal ones.
fn of_share(left: Left, cpu_after: u32, share: u32, pool: u32) -> FgdRow {
    let all_idle = idle(left);
    if all_idle < share {
        return FgdRow(0u, 0u, NONE);
    }
    let a = taken_from(left.a, share);
    let b = taken_from(left.b, share);
    let c = taken_from(left.c, share);
    let d = taken_from(left.d, share);
    var before = Sums();
    var after_a = Sums();
    var after_b = Sums();
    var after_c = Sums();
    var after_d = Sums();
    for (var i = 0u; i < params.pods; i++) {
        let pod = pods[i];
        let here = is_here(pod, i, pool);
        let all = All(
            n_able(left, pod.gpu_milli),
            sum_small(left, pod.gpu_milli),
            here && cpu_after >= pod.cpu_milli,
            all_idle - share,
        );
        let fits = here && left.cpu >= pod.cpu_milli && all.able >= pod.gpus;
        before = add(before, pod.count, vec4<u32>(select(all_idle, all.small, fits), 0u, 0u, 0u));
        after_a = add(after_a, pod.count, lost_after(left.a, a, pod, all));
        after_b = add(after_b, pod.count, lost_after(left.b, b, pod, all));
        after_c = add(after_c, pod.count, lost_after(left.c, c, pod, all));
        after_d = add(after_d, pod.count, lost_after(left.d, d, pod, all));
    }
    var after = array<Sums, 4>(after_a, after_b, after_c, after_d);
    var milli = array<vec4<u32>, 4>(left.a, left.b, left.c, left.d);
    var row = FgdRow(0u, 0u, NONE);
    for (var gpu = 0u; gpu < 16u; gpu++) {
        let sums = after[gpu / 4u];
        let of_gpu = vec2<u32>(sums.low[gpu % 4u], sums.high[gpu % 4u]);
        let growth = growth_of(of_gpu, vec2<u32>(before.low.x, before.high.x));
        let is_able = milli[gpu / 4u][gpu % 4u] >= share;
        if is_able && (row.gpus == NONE || less(growth, vec2<u32>(row.growth_low, row.growth_high))) {
            row = FgdRow(growth.x, growth.y, 1u << gpu);
        }
    }
    return row;
}

// Whole devices are the lowest that have enough left.
fn of_whole(left: Left, cpu_after: u32, demand: DemandClass, pool: u32) -> FgdRow {
    var milli = array<vec4<u32>, 4>(left.a, left.b, left.c, left.d);
    var wanted = demand.gpus;
    var gpus = 0u;
    for (var gpu = 0u; gpu < 16u; gpu++) {
        if wanted > 0u && milli[gpu / 4u][gpu % 4u] >= demand.gpu_milli {
            milli[gpu / 4u][gpu % 4u] -= demand.gpu_milli;
            gpus |= 1u << gpu;
            wanted--;
        }
    }
    if wanted > 0u {
        return FgdRow(0u, 0u, NONE);
    }
    let after = Left(cpu_after, milli[0], milli[1], milli[2], milli[3]);
    var sums = Sums();
    for (var i = 0u; i < params.pods; i++) {
        let pod = pods[i];
        let here = is_here(pod, i, pool);
        sums = add(sums, pod.count, vec4<u32>(lost(left, pod, here), lost(after, pod, here), 0u, 0u));
    }
    let growth = growth_of(vec2<u32>(sums.low.y, sums.high.y), vec2<u32>(sums.low.x, sums.high.x));
    return FgdRow(growth.x, growth.y, gpus);
}

// Whether the node may host the class, and has CPU and memory for it.
fn admits(demand: DemandClass, amount: NodeAmounts, labels: NodeAttributes) -> bool {
    let admitted = has(labels.composition_flags, SCHEDULABLE)
        && demand.cpu <= amount.cpu
        && demand.memory <= amount.memory
        && (demand.domain == NONE || demand.domain == labels.domain)
        && (demand.rack == NONE || demand.rack == labels.rack);
    if !admitted || demand.pools_at == NONE {
        return admitted;
    }
    return has(pool_bits[demand.pools_at + labels.pool / 32u], 1u << (labels.pool % 32u));
}

fn score(demand: DemandClass, node: u32) -> FgdRow {
    let amount = amounts[node];
    let labels = attributes[node];
    if !admits(demand, amount, labels) {
        return FgdRow(0u, 0u, NONE);
    }
    let low = gpu_milli[node].left[0];
    let high = gpu_milli[node].left[1];
    let left = Left(
        select(u32(max(amount.cpu, 0i)), NONE, amount.cpu == UNLIMITED),
        vec4<u32>(low.x & 0xffffu, low.x >> 16u, low.y & 0xffffu, low.y >> 16u),
        vec4<u32>(low.z & 0xffffu, low.z >> 16u, low.w & 0xffffu, low.w >> 16u),
        vec4<u32>(high.x & 0xffffu, high.x >> 16u, high.y & 0xffffu, high.y >> 16u),
        vec4<u32>(high.z & 0xffffu, high.z >> 16u, high.w & 0xffffu, high.w >> 16u),
    );
    let cpu_after = select(left.cpu - u32(max(demand.cpu, 0i)), NONE, left.cpu == NONE);
    if demand.gpus == 1u && demand.gpu_milli < WHOLE_GPU {
        return of_share(left, cpu_after, demand.gpu_milli, labels.pool);
    }
    return of_whole(left, cpu_after, demand, labels.pool);
}

@compute @workgroup_size(64)
fn score_fgd(@builtin(global_invocation_id) thread: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = thread.x; i < params.classes * params.nodes; i += groups.x * 64u) {
        rows[i] = score(classes[i / params.nodes], params.first + i % params.nodes);
    }
}
