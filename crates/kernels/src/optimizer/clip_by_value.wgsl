// g = g cut to -limit..limit, NaN left as it is.
// Twin: clip_cpu.rs. Moves 8 bytes a gradient.

struct Params {
    limit: f32,
    pad0: f32,
    pad1: f32,
    pad2: f32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> grads: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < arrayLength(&grads) {
        let g = grads[i];
        grads[i] = select(select(g, params.limit, g > params.limit), -params.limit, g < -params.limit);
    }
}
