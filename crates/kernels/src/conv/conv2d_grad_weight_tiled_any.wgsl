// parts[run, o, u, v, c] = sum of grad_y[b, i, j, o] x[b, i sy - py + u, j sx - px + v, c] over the result pixels of a run: 64 outputs o by 64 columns
// (u, v, c) a workgroup, its operands in workgroup memory 16 pixels at a time, 4 x 4 results an invocation. The runs are then added by
// map/map_reduce.rs.
// Twin: conv2d_grad_weight_cpu.rs. Reads grad_y once for 64 columns, and what the windows cover once for 64 outputs.
// Ladder: conv2d_grad_weight.wgsl (each invocation reads for itself) -> this -> conv2d_grad_weight_tiled.wgsl (vec4 loads, larger blocks). For hardware:
// on a software adapter barriers are ruinous.

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<GRAD_Y>;
@group(0) @binding(2) var<storage, read> x: array<X>;
@group(0) @binding(3) var<storage, read_write> parts: array<f32>;

// What a workgroup computes: results from output `row` and column `col` on, over the result pixels from `first` to `end`.
struct Job {
    exists: bool,
    row: u32,
    col: u32,
    first: u32,
    end: u32,
    part: u32,
}

fn job_of(group: vec3u, groups: vec3u) -> Job {
    let n_rows = params.n_images * params.y_size.x;
    let first = min(group.z * params.part_rows, n_rows) * params.y_size.y;
    let end = min((group.z + 1u) * params.part_rows, n_rows) * params.y_size.y;
    return Job(true, group.y * TILE, group.x * TILE, first, end, group.z);
}

fn a_along_k() -> bool { return false; }
fn b_along_k() -> bool { return false; }

alias RowsOfA = u32;
alias ColsOfB = Column;
fn rows_of_a(job: Job, rows: vec4u) -> RowsOfA { return rows.x; }
fn cols_of_b(job: Job, cols: vec4u) -> ColsOfB { return column_of(cols.x); }

// What a column reads for result pixel `i` of the batch, 0 in the padding and from `end` on.
fn value_of_x(column: Column, i: u32, end: u32) -> f32 {
    if i >= end || !column.exists {
        return 0.0;
    }
    let row = i / params.y_size.y;
    let pixel = column.first + vec2i(params.stride * vec2u(row % params.y_size.x, i % params.y_size.y));
    let size = vec2i(params.x_size);
    if pixel.x < 0 || pixel.x >= size.x || pixel.y < 0 || pixel.y >= size.y {
        return 0.0;
    }
    let image = row / params.y_size.x;
    return load_x(((image * params.x_size.x + u32(pixel.x)) * params.x_size.y + u32(pixel.y)) * params.n_channels + column.channel);
}

fn value_of_grad_y(out_channel: u32, i: u32, end: u32) -> f32 {
    if i >= end || out_channel >= params.n_out {
        return 0.0;
    }
    return load_grad_y(i * params.n_out + out_channel);
}

fn store(job: Job, out_channel: u32, col: u32, sums: vec4f) {
    let n_cols = params.kernel_size.x * params.kernel_size.y * params.n_channels;
    if out_channel >= params.n_out {
        return;
    }
    for (var j = 0u; j < 4u && col + j < n_cols; j += 1u) {
        parts[(job.part * params.n_out + out_channel) * n_cols + col + j] = sums[j];
    }
}

fn four_of_a(job: Job, out_channel: RowsOfA, i: vec4u) -> vec4f {
    return vec4f(
        value_of_grad_y(out_channel, i.x, job.end),
        value_of_grad_y(out_channel, i.y, job.end),
        value_of_grad_y(out_channel, i.z, job.end),
        value_of_grad_y(out_channel, i.w, job.end),
    );
}

fn four_of_b(job: Job, column: ColsOfB, i: vec4u) -> vec4f {
    return vec4f(
        value_of_x(column, i.x, job.end),
        value_of_x(column, i.y, job.end),
        value_of_x(column, i.z, job.end),
        value_of_x(column, i.w, job.end),
    );
}
