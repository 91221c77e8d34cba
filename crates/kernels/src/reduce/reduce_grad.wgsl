// grad_x[o, k, i] = grad_y[o, i], over n for a mean.
// Twin: reduce_cpu.rs. Moves 4 bytes an element.

struct Params {
    n: u32,
    n_inner: u32,
    mean: u32,
    pad: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<f32>;
@group(0) @binding(2) var<storage, read_write> grad_x: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < arrayLength(&grad_x) {
        let result = i / (params.n * params.n_inner) * params.n_inner + i % params.n_inner;
        grad_x[i] = grad_y[result] / select(1.0, f32(params.n), params.mean == 1u);
    }
}
