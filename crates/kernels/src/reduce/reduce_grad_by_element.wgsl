// grad_x[o, k, i] = grad_y[o, i] of_elements[o, k, i] / of_results[o, i], 0 where the element is 0: x and y of a norm, the mask of the greatest or
// least and how many those are.
// Twin: reduce_cpu.rs. Moves 8 bytes an element.

struct Params {
    n: u32,
    n_inner: u32,
    mean: u32,
    pad: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<f32>;
@group(0) @binding(2) var<storage, read> of_elements: array<f32>;
@group(0) @binding(3) var<storage, read> of_results: array<f32>;
@group(0) @binding(4) var<storage, read_write> grad_x: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < arrayLength(&grad_x) {
        let result = i / (params.n * params.n_inner) * params.n_inner + i % params.n_inner;
        let part = of_elements[i];
        // The divisor is 1 where it is not used: 0 / 0 would be NaN.
        let is_zero = part == 0.0;
        grad_x[i] = grad_y[result] * part / select(of_results[result], 1.0, is_zero);
    }
}
