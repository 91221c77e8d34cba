// y[row, col] = x[row, col + shift], 0 where x has no such column.
// Twin: shift_columns_cpu.rs. Moves 8 bytes an element, 4 in 16 bits.

struct Params {
    n_x_cols: u32,
    n_y_cols: u32,
    shift: u32,
    pad: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<X>;
@group(0) @binding(2) var<storage, read_write> y: array<X>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&y) {
        return;
    }
    // A column before the first wraps to one beyond the last.
    let col = i % params.n_y_cols + params.shift;
    var value = V();
    if col < params.n_x_cols {
        value = load_x(x[i / params.n_y_cols * params.n_x_cols + col]);
    }
    y[i] = store_x(value);
}
