// parts[run, o, u, v, c] = sum of grad_y[b, i, j, o] x[b, i sy - py + u, j sx - px + v, c] over the result pixels of a run: 64 outputs o by 64 columns
// (u, v, c) a workgroup, its operands in workgroup memory 16 pixels at a time, 4 x 4 results a lane. The runs are then added in order by
// column_sum.wgsl.
// Twin: conv2d_grad_weight_cpu.rs. Reads grad_y once for 64 columns, and what the windows cover once for 64 outputs.
// Ladder: conv2d_grad_weight.wgsl (each lane reads for itself) -> this -> conv2d_grad_weight_tiled.wgsl (vec4 loads, larger blocks). For hardware:
// on a software adapter barriers are ruinous.

// Pairs are (along the height, along the width).
struct Params {
    x_size: vec2u,
    y_size: vec2u,
    kernel_size: vec2u,
    stride: vec2u,
    padding: vec2u,
    n_images: u32,
    n_channels: u32,
    n_out: u32,
    // Rows of result pixels of a run.
    part_rows: u32,
    pad: vec2u,
}

const TILE = 64u;
const DEPTH = 16u;
const LANES = 256u;

// As stored: src/stored_types.rs.
alias GRAD_Y = f32;
alias X = f32;
fn load_grad_y(i: u32) -> f32 { return grad_y[i]; }
fn load_x(i: u32) -> f32 { return x[i]; }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<GRAD_Y>;
@group(0) @binding(2) var<storage, read> x: array<X>;
@group(0) @binding(3) var<storage, read_write> parts: array<f32>;

// a_tile[pixel][out / 4][out % 4], b_tile[pixel][col / 4][col % 4].
var<workgroup> a_tile: array<vec4f, 256>;
var<workgroup> b_tile: array<vec4f, 256>;

// A column of the weights: its channel, and the pixel that its tap reads for result pixel (0, 0); one beyond the last reads none.
struct Column {
    channel: u32,
    first: vec2i,
    exists: bool,
}

fn column_of(col: u32) -> Column {
    let tap = col / params.n_channels;
    let pixel = vec2i(vec2u(tap / params.kernel_size.y, tap % params.kernel_size.y)) - vec2i(params.padding);
    return Column(col % params.n_channels, pixel, tap < params.kernel_size.x * params.kernel_size.y);
}

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

fn fetch_grad_y(out_channel: u32, i: u32, end: u32) -> vec4f {
    return vec4f(
        value_of_grad_y(out_channel, i, end),
        value_of_grad_y(out_channel, i + 4u, end),
        value_of_grad_y(out_channel, i + 8u, end),
        value_of_grad_y(out_channel, i + 12u, end),
    );
}

fn fetch_x(column: Column, i: u32, end: u32) -> vec4f {
    return vec4f(
        value_of_x(column, i, end),
        value_of_x(column, i + 4u, end),
        value_of_x(column, i + 8u, end),
        value_of_x(column, i + 12u, end),
    );
}

fn store(part: u32, out_channel: u32, col: u32, sums: vec4f) {
    let n_cols = params.kernel_size.x * params.kernel_size.y * params.n_channels;
    if out_channel >= params.n_out {
        return;
    }
    for (var j = 0u; j < 4u && col + j < n_cols; j += 1u) {
        parts[(part * params.n_out + out_channel) * n_cols + col + j] = sums[j];
    }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let tile_out = group.y * TILE;
    let tile_col = group.x * TILE;
    let n_rows = params.n_images * params.y_size.x;
    let first = min(group.z * params.part_rows, n_rows) * params.y_size.y;
    let end = min((group.z + 1u) * params.part_rows, n_rows) * params.y_size.y;
    let fetched = lane % TILE;
    let column = column_of(tile_col + fetched);
    let lane_row = lane / 16u;
    let lane_col = lane % 16u;
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    var next_a = fetch_grad_y(tile_out + fetched, first + lane / TILE, end);
    var next_b = fetch_x(column, first + lane / TILE, end);
    for (var start = first; start < end; start += DEPTH) {
        for (var i = 0u; i < 4u; i += 1u) {
            let at = (lane / TILE + 4u * i) * 16u + fetched / 4u;
            a_tile[at][fetched % 4u] = next_a[i];
            b_tile[at][fetched % 4u] = next_b[i];
        }
        workgroupBarrier();
        next_a = fetch_grad_y(tile_out + fetched, start + DEPTH + lane / TILE, end);
        next_b = fetch_x(column, start + DEPTH + lane / TILE, end);
        for (var k = 0u; k < DEPTH; k += 1u) {
            let rows = a_tile[k * 16u + lane_row];
            let cols = b_tile[k * 16u + lane_col];
            sum0 += rows.x * cols;
            sum1 += rows.y * cols;
            sum2 += rows.z * cols;
            sum3 += rows.w * cols;
        }
        workgroupBarrier();
    }
    let out_channel = tile_out + 4u * lane_row;
    let col = tile_col + 4u * lane_col;
    store(group.z, out_channel, col, sum0);
    store(group.z, out_channel + 1u, col, sum1);
    store(group.z, out_channel + 2u, col, sum2);
    store(group.z, out_channel + 3u, col, sum3);
}
