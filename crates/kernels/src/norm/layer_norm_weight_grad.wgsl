// parts[p,c] = sum of grad_y[r,c] (x[r,c] - mean_r) s_r over run p of 64 rows, (mean, s) = stats[r]; add_parts of column_sum.wgsl adds the runs.
// Twin: layer_norm_cpu.rs. Moves 8 bytes an element.
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
@group(0) @binding(1) var<storage, read> grad_y: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> stats: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> parts: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n_parts * params.n_cols {
        return;
    }
    let col = i % params.n_cols;
    let first = i / params.n_cols * PART_ROWS;
    let end = min(first + PART_ROWS, params.n_rows);
    var sum = 0.0;
    for (var row = first; row < end; row += 1u) {
        let at = row * params.n_cols + col;
        sum += grad_y[at] * (x[at] - stats[row].x) * stats[row].y;
    }
    parts[i] = sum;
}
