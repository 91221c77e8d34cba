// weights[i] = the weight of row i of the sorted pairs, for class 0 and for class 1. Then roc_auc_sums.wgsl.
// Twin: roc_auc_cpu.rs. Moves 16 bytes a row.

struct Params {
    n: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

override WG: u32 = 64u;
const SIGN = 0x80000000u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> pairs: array<vec2u>;
@group(0) @binding(2) var<storage, read_write> weights: array<vec2f>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n {
        return;
    }
    let labelled = pairs[i].y;
    let weight = bitcast<f32>(labelled & ~SIGN);
    weights[i] = select(vec2f(weight, 0.0), vec2f(0.0, weight), labelled >= SIGN);
}
