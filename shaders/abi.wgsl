// The rows of src/evaluate/abi.rs, query.rs, fgd.rs and census.rs: the same bytes, which a test compares field by field. Fields
// of less than a word lie together in one, whose name lists them from the lowest bits up.
//
// This text goes before that of every kernel. A kernel walks its work in steps of the whole dispatch, so that any
// number of workgroups does all of it; only words of 32 bits, no optional feature, eight storage buffers at most.

// "None" in a word that otherwise holds an index.
const NONE: u32 = 0xffffffffu;

struct NodeBits {
    capacity_unused_free: u32,
    state: u32,
}

struct NodeAmounts {
    cpu: i32,
    memory: i32,
}

alias Need = NodeAmounts;

struct NodeAttributes {
    pool: u32,
    domain: u32,
    rack: u32,
    composition_flags: u32,
}

// Two devices a word.
struct NodeGpuMilli {
    left: array<vec4<u32>, 2>,
}

struct NodeEdit {
    node: u32,
    unused: array<u32, 3>,
    bits: NodeBits,
    amounts: NodeAmounts,
    attributes: NodeAttributes,
    gpu_milli: NodeGpuMilli,
}

struct Touch {
    node: u32,
    need: u32,
    freed_taken: u32,
    step: u32,
}

struct Candidate {
    job: u32,
    moves: u32,
    moved_gpus: u32,
    racks: u32,
    domains: u32,
    delta_phi_star: i32,
    unused: array<u32, 2>,
}

struct ScoreRow {
    reason: u32,
    delta_partial: i32,
    left: u32,
    entered: u32,
    outside: u32,
    opened: u32,
    delta_empty: i32,
    residual: u32,
}

struct DemandClass {
    gpus: u32,
    cpu: i32,
    memory: i32,
    order: u32,
    domain: u32,
    rack: u32,
    pools_at: u32,
    gpu_milli: u32,
}

struct TypicalPod {
    cpu_milli: u32,
    gpu_milli: u32,
    gpus: u32,
    count: u32,
}

struct FgdRow {
    growth_low: u32,
    growth_high: u32,
    gpus: u32,
}

// `PackedState`: the top bits of its fields, and what was before any step.
const ANCHOR: u32 = 1u << 5u;
const SLACK: u32 = 1u << 11u;
const NOT_FULL: u32 = 1u << 17u;
const NOT_EMPTY: u32 = 1u << 23u;
const OVERFLOW: u32 = 1u << 29u;
const WAS_OUTSIDE: u32 = 1u << 30u;

// `NodeAttributes::SCHEDULABLE`, in its word.
const SCHEDULABLE: u32 = 1u << 16u;

fn has(state: u32, bit: u32) -> bool {
    return (state & bit) != 0u;
}

// A field of a state, by the place of its lowest bit.
fn state_field(state: u32, at: u32) -> u32 {
    return extractBits(state, at, 6u);
}

fn overflows(state: u32) -> bool {
    return has(state, OVERFLOW);
}

fn lacks_vacancy(state: u32) -> bool {
    return has(state, ANCHOR) && !has(state, SLACK);
}

// The devices of a node that work and that nobody holds.
fn free_mask(node: NodeBits) -> u32 {
    return node.capacity_unused_free >> 16u;
}

fn capacity(node: NodeBits) -> u32 {
    return node.capacity_unused_free & 0xffu;
}
