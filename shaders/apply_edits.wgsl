// Replaces the rows of edited nodes. Every node is edited at most once, so the edits have no order.

struct Params {
    edits: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> edits: array<NodeEdit>;
@group(0) @binding(2) var<storage, read_write> bits: array<NodeBits>;
@group(0) @binding(3) var<storage, read_write> amounts: array<NodeAmounts>;
@group(0) @binding(4) var<storage, read_write> attributes: array<NodeAttributes>;
@group(0) @binding(5) var<storage, read_write> gpu_milli: array<NodeGpuMilli>;

@compute @workgroup_size(64)
fn apply_edits(@builtin(global_invocation_id) thread: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = thread.x; i < params.edits; i += groups.x * 64u) {
        let edit = edits[i];
        bits[edit.node] = edit.bits;
        amounts[edit.node] = edit.amounts;
        attributes[edit.node] = edit.attributes;
        gpu_milli[edit.node] = edit.gpu_milli;
    }
}
