// mask[o, k, i] = 1 where x[o, k, i] = y[o, i], else 0.
// Twin: reduce_cpu.rs. Moves 8 bytes an element.

struct Params {
    n: u32,
    n_inner: u32,
    pad0: u32,
    pad1: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> mask: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < arrayLength(&mask) {
        let result = i / (params.n * params.n_inner) * params.n_inner + i % params.n_inner;
        mask[i] = select(0.0, 1.0, x[i] == y[result]);
    }
}
