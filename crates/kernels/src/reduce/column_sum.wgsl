// y[col] = sum of x[row, col] over the rows, in two dispatches: runs of 64 rows, then the runs in order.
// Twin: column_sum_cpu.rs. Moves 4 bytes an element, 2 in 16 bits.
// Ladder: one invocation a column (serial over all rows) -> one a column and run of rows, here; no barrier in either.

struct Params {
    n_rows: u32,
    n_cols: u32,
    n_parts: u32,
    pad: u32,
}

override WG: u32 = 64u;
const PART_ROWS = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<X>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn sum_parts(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n_parts * params.n_cols {
        return;
    }
    let col = i % params.n_cols;
    let first = i / params.n_cols * PART_ROWS;
    let end = min(first + PART_ROWS, params.n_rows);
    var sum = 0.0;
    for (var row = first; row < end; row += 1u) {
        sum += load_x(row * params.n_cols + col);
    }
    y[i] = sum;
}

@compute @workgroup_size(WG)
fn add_parts(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let col = (group.y * groups.x + group.x) * WG + lane;
    if col >= params.n_cols {
        return;
    }
    var sum = 0.0;
    for (var part = 0u; part < params.n_parts; part += 1u) {
        sum += load_x(part * params.n_cols + col);
    }
    y[col] = sum;
}
