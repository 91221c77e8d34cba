// y[row, first + col] = x[row, col]: one of the matrices that stand side by side in y.
// Twin: concat_columns_cpu.rs. Moves 8 bytes an element, 4 in 16 bits.

struct Params {
    width: u32,
    n_cols: u32,
    first: u32,
    pad: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<X>;
@group(0) @binding(2) var<storage, read_write> y: array<X>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < arrayLength(&x) {
        y[i / params.width * params.n_cols + params.first + i % params.width] = store_x(load_x(x[i]));
    }
}
