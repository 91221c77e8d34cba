// pairs[i] = bits that are ordered as the scores are, and the weight with the label for its sign; what is after the last row is the greatest
// and weighs nothing. Then roc_auc_sort.wgsl.
// Twin: roc_auc_cpu.rs. Moves 20 bytes a row.

struct Params {
    n_padded: u32,
    n: u32,
    pad0: u32,
    pad1: u32,
}

override WG: u32 = 64u;
const SIGN = 0x80000000u;
const QUIET_NAN = 0x7FC00000u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> scores: array<f32>;
@group(0) @binding(2) var<storage, read> labels: array<f32>;
@group(0) @binding(3) var<storage, read> weights: array<f32>;
@group(0) @binding(4) var<storage, read_write> pairs: array<vec2u>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n_padded {
        return;
    }
    if i >= params.n {
        pairs[i] = vec2u(0xFFFFFFFFu, 0u);
        return;
    }
    var bits = bitcast<u32>(scores[i]);
    // Zeros of both signs are the same.
    bits = select(bits, 0u, bits == SIGN);
    let key = select(bits | SIGN, ~bits, bits >= SIGN);
    var weight = bitcast<u32>(weights[i]) & ~SIGN;
    let is_nan = (bits & ~SIGN) > 0x7F800000u;
    weight = select(weight, QUIET_NAN, is_nan && weight != 0u);
    pairs[i] = vec2u(key, weight | select(0u, SIGN, labels[i] > 0.0));
}
