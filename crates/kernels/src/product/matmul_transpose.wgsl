// turned[col, row] = x[row, col]: one invocation an element of the result, so that writes are in order.
// Twin: matmul_cpu.rs, `transpose_into`. Moves 8 bytes an element, 6 from 16 bits.

struct Params {
    n_rows: u32,
    n_cols: u32,
    pad0: u32,
    pad1: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<X>;
@group(0) @binding(2) var<storage, read_write> turned: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < params.n_rows * params.n_cols {
        turned[i] = load_x(i % params.n_rows * params.n_cols + i / params.n_rows);
    }
}
