// y[i, c] = (table[rows[i] - first_row, c] - mean[c]) * inv_std[c] for the rows that the table holds; for others 0 if first_row is 0.
// Twin: gather_rows_cpu.rs. Moves 8 bytes an element, 6 where y is stored in 16 bits.

struct Params {
    n_cols: u32,
    first_row: u32,
    n_table_rows: u32,
    pad: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> table: array<V>;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
@group(0) @binding(3) var<storage, read> mean: array<V>;
@group(0) @binding(4) var<storage, read> inv_std: array<V>;
@group(0) @binding(5) var<storage, read_write> y: array<X>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&y) {
        return;
    }
    let col = i % params.n_cols;
    // A row before the window wraps to one beyond it.
    let row = rows[i / params.n_cols] - params.first_row;
    if row < params.n_table_rows {
        y[i] = store_x((table[row * params.n_cols + col] - mean[col]) * inv_std[col]);
    } else if params.first_row == 0u {
        y[i] = store_x(V());
    }
}
