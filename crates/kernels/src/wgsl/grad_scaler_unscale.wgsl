// g *= 1 / scale.
// Twin: src/cpu/grad_scaler.rs. Moves 8 bytes a gradient.

override WG: u32 = 64u;

@group(0) @binding(0) var<storage, read> scale: array<f32>;
@group(0) @binding(1) var<storage, read_write> grads: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < arrayLength(&grads) {
        grads[i] *= 1.0 / scale[0];
    }
}
