// y[r,c] = (x[r,c] - mean) s weight[c] + bias[c], s = 1 / sqrt(mean of (x - mean)^2 + eps); stats[r] = (mean, s).
// Twin: layer_norm_cpu.rs. Moves 8 bytes an element, if the second and third reading of x come from a cache.
// Ladder: row_an_invocation (no barrier, for narrow rows and software adapters) -> row_a_group (coalesced).

override HAS_WEIGHT: u32 = 0u;
override HAS_BIAS: u32 = 0u;

alias Sums = f32;

// Of the differences from the first element of the row.
fn sum(row: u32, first: u32, stride: u32) -> f32 {
    let origin = x[row * params.n_cols];
    var sum = 0.0;
    for (var col = first; col < params.n_cols; col += stride) {
        sum += x[row * params.n_cols + col] - origin;
    }
    return sum;
}

fn sum_of_squares(row: u32, mean: f32, first: u32, stride: u32) -> f32 {
    var sum = 0.0;
    for (var col = first; col < params.n_cols; col += stride) {
        let off = x[row * params.n_cols + col] - mean;
        sum += off * off;
    }
    return sum;
}

fn inv_std(squares: f32) -> f32 {
    return 1.0 / sqrt(squares / f32(params.n_cols) + params.eps);
}

fn store(row: u32, of_row: vec2f, first: u32, stride: u32) {
    for (var col = first; col < params.n_cols; col += stride) {
        let i = row * params.n_cols + col;
        var value = (x[i] - of_row.x) * of_row.y;
        if HAS_WEIGHT == 1u {
            value *= weight[col];
        }
        if HAS_BIAS == 1u {
            value += bias[col];
        }
        y[i] = value;
    }
    if first == 0u {
        stats[row] = of_row;
    }
}

@compute @workgroup_size(WG)
fn row_an_invocation(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let row = (group.y * groups.x + group.x) * WG + invocation;
    if row < params.n_rows {
        let mean = x[row * params.n_cols] + sum(row, 0u, 1u) / f32(params.n_cols);
        store(row, vec2f(mean, inv_std(sum_of_squares(row, mean, 0u, 1u))), 0u, 1u);
    }
}

// The sum over all invocations.
fn sum_over_workgroup(invocation: u32, value: f32) -> f32 {
    let sum = join_group(value, invocation);
    workgroupBarrier();
    return sum;
}

@compute @workgroup_size(WG)
fn row_a_group(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let row = group.y * groups.x + group.x;
    if row >= params.n_rows {
        return;
    }
    let mean = x[row * params.n_cols] + sum_over_workgroup(invocation, sum(row, invocation, WG)) / f32(params.n_cols);
    let squares = sum_over_workgroup(invocation, sum_of_squares(row, mean, invocation, WG));
    store(row, vec2f(mean, inv_std(squares)), invocation, WG);
}
