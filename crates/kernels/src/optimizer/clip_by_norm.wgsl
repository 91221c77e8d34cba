// g *= min(1, max_norm / (norm + 1e-6)), but where g is 0, whatever the norm.
// Twin: clip_cpu.rs. Moves 8 bytes a gradient.

struct Params {
    max_norm: f32,
    pad0: f32,
    pad1: f32,
    pad2: f32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> norm: array<f32>;
@group(0) @binding(2) var<storage, read_write> grads: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    // Told by its bits, since a comparison may take for granted that there is no NaN.
    if i < arrayLength(&grads) && (bitcast<u32>(grads[i]) << 1u) != 0u {
        let factor = params.max_norm / (norm[0] + 1e-6);
        // Not `min`, which may pass NaN over.
        grads[i] *= select(factor, 1.0, factor > 1.0);
    }
}
