// y[i, c] = table[rows[i] - first_row, c] for the rows that the table holds; for others 0 if first_row is 0.
// Twin: gather_categories_cpu.rs. Moves 8 bytes an element.

struct Params {
    n_cols: u32,
    first_row: u32,
    n_table_rows: u32,
    pad: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&y) {
        return;
    }
    // A row before the window wraps to one beyond it.
    let row = rows[i / params.n_cols] - params.first_row;
    if row < params.n_table_rows {
        y[i] = table[row * params.n_cols + i % params.n_cols];
    } else if params.first_row == 0u {
        y[i] = 0u;
    }
}
