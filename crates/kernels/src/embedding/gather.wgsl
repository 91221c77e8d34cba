// y[o, k, i] = x[o, index[o, k, i], i]; an index beyond the last is read as 0.
// Twin: gather_cpu.rs. Moves 12 bytes an element.

override WG: u32 = 64u;

@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> index: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&y) {
        return;
    }
    let outer = i / params.n_inner / params.n;
    y[i] = x[(outer * params.n_x + named(i)) * params.n_inner + i % params.n_inner];
}
