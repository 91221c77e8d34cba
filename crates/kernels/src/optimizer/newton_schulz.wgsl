// y = a I + b gram + c square, for each matrix of a batch.
// Twin: newton_schulz_cpu.rs. Moves 12 bytes an element.

struct Params {
    a: f32,
    b: f32,
    c: f32,
    n: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gram: array<f32>;
@group(0) @binding(2) var<storage, read> square: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&y) {
        return;
    }
    let is_diagonal = i / params.n % params.n == i % params.n;
    y[i] = params.b * gram[i] + params.c * square[i] + select(0.0, params.a, is_diagonal);
}
