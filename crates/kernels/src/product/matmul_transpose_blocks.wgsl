// turned[col, row] = x[row, col] for sizes that are multiples of 4: one invocation a block of 4 by 4, which it reads and writes by vectors.
// Twin: matmul_cpu.rs, `transpose_into`. Moves an element of either type.
// Ladder: matmul_transpose.wgsl (one invocation an element, any sizes) -> this.

struct Params {
    n_rows: u32,
    n_cols: u32,
    pad0: u32,
    pad1: u32,
}

override WG: u32 = 64u;

// How it is stored: src/stored_types.rs.

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<X>;
@group(0) @binding(2) var<storage, read_write> turned: array<vec4f>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    let n_row_blocks = params.n_rows / 4u;
    let n_col_blocks = params.n_cols / 4u;
    if i >= n_row_blocks * n_col_blocks {
        return;
    }
    // Neighbours write beside each other.
    let row = i % n_row_blocks;
    let col = i / n_row_blocks;
    let at = 4u * row * n_col_blocks + col;
    let block = transpose(mat4x4f(
        load_x(x[at]),
        load_x(x[at + n_col_blocks]),
        load_x(x[at + 2u * n_col_blocks]),
        load_x(x[at + 3u * n_col_blocks]),
    ));
    let to = 4u * col * n_row_blocks + row;
    turned[to] = block[0];
    turned[to + n_row_blocks] = block[1];
    turned[to + 2u * n_row_blocks] = block[2];
    turned[to + 3u * n_row_blocks] = block[3];
}
