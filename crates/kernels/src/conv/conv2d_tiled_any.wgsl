// A convolution as an implicit product, y = epilogue(patches(x) weight), and with GRAD the gradient in its input, any shape: 64 result pixels by
// 64 columns a workgroup, its operands in workgroup memory 16 places of the sum at a time, 4 x 4 results a lane.
// Twins: conv2d_cpu.rs, conv2d_grad_input_cpu.rs. Reads what the windows cover once for 64 columns, and the weights once for 64 pixels.
// Ladder: conv2d_direct.wgsl (each lane reads for itself) -> this, made like matmul_tiled_any.wgsl -> conv2d_tiled.wgsl (vec4 loads, larger blocks).
// For hardware: on a software adapter barriers are ruinous.
//
// The places of a sum run over the taps and, in each, over the channels, so that neighbouring lanes read neighbouring channels of a pixel.
// The four values of a patch that a lane fetches are at one place of four pixels, whose coordinates it works out once.

// Pairs are (along the height, along the width).
struct Params {
    source_size: vec2u,
    result_size: vec2u,
    kernel_size: vec2u,
    stride: vec2u,
    padding: vec2u,
    n_images: u32,
    // Of the source: with the taps, what is summed over.
    n_channels: u32,
    // Channels of the result.
    n_cols: u32,
    // Groups of rows of the product that a phase has.
    n_row_groups: u32,
    n_phases: u32,
    pad: u32,
}

const TILE = 64u;
const DEPTH = 16u;
const LANES = 256u;
// Elements of a tile of one operand that each lane fetches.
const FETCHED = 4u;
// A column of the tile of patches, in vec4s, with one more so that the transposing writes fall into different banks.
const A_STRIDE = 17u;
override GRAD: u32 = 0u;
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

// As stored: src/stored_types.rs. Results in 16 bits are two neighbouring channels of a pixel, so that there is an even number of them.
alias SOURCE = f32;
alias WEIGHT = f32;
alias FUSED = f32;
alias Y = f32;
fn load_source(i: u32) -> f32 { return source[i]; }
fn load_weight(i: u32) -> f32 { return weight[i]; }
fn load_fused(i: u32) -> f32 { return fused[i]; }
fn store_y(i: u32, v: vec2f, n: u32) { y[i] = v.x; if n > 1u { y[i + 1u] = v.y; } }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<SOURCE>;
// [kernel height, kernel width, n_channels, n_cols].
@group(0) @binding(2) var<storage, read> weight: array<WEIGHT>;
// The bias [n_cols], or the result of the layer below whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// a_tile[place][pixel / 4][pixel % 4], b_tile[place][col / 4][col % 4].
var<workgroup> a_tile: array<vec4f, 272>;
var<workgroup> b_tile: array<vec4f, 256>;

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: vec2f, y: vec2f) -> vec2f {
    return select(y, v, (bitcast<vec2u>(v) & vec2u(0x7FFFFFFFu)) > vec2u(0x7F800000u));
}

fn act(v: vec2f) -> vec2f {
    switch ACTIVATION {
        case 1u: { return select(v, vec2f(), v < vec2f()); }
        case 2u: { return select(v, ALPHA * (exp(min(v, vec2f()) / ALPHA) - 1.0), v < vec2f()); }
        case 3u: { return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, vec2f(-87.0), vec2f(87.0))))); }
        case 4u: { return or_nan(v, tanh(clamp(v, vec2f(-10.0), vec2f(10.0)))); }
        default: { return v; }
    }
}

fn slope_from_output(v: vec2f) -> vec2f {
    switch ACTIVATION {
        case 1u: { return select(vec2f(), vec2f(1.0), v > vec2f()); }
        case 2u: { return select(v / ALPHA + 1.0, vec2f(1.0), v > vec2f()); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return vec2f(1.0); }
    }
}

// Where the result pixels of a phase lie, and what they read: pixel `place` is result pixel `at + spacing * place`, and its tap `tap`,
// tap `first_tap + tap_spacing * tap` of the weights, reads source pixel `start + step * place + tap_step * tap`.
struct Walk {
    n: vec2u,
    at: vec2u,
    spacing: vec2u,
    n_taps: vec2u,
    first_tap: vec2u,
    tap_spacing: vec2u,
    start: vec2i,
    pixel_step: vec2i,
    tap_step: i32,
}

fn walk_of(phase: u32) -> Walk {
    var walk: Walk;
    if GRAD == 0u {
        walk.n = params.result_size;
        walk.at = vec2u(0u);
        walk.spacing = vec2u(1u);
        walk.n_taps = params.kernel_size;
        walk.first_tap = vec2u(0u);
        walk.tap_spacing = vec2u(1u);
        walk.start = -vec2i(params.padding);
        walk.pixel_step = vec2i(params.stride);
        walk.tap_step = 1;
        return walk;
    }
    walk.at = vec2u(phase / params.stride.y, phase % params.stride.y);
    walk.n = (max(params.result_size, walk.at) - walk.at + params.stride - 1u) / params.stride;
    walk.spacing = params.stride;
    walk.first_tap = (walk.at + params.padding) % params.stride;
    walk.n_taps = (max(params.kernel_size, walk.first_tap) - walk.first_tap + params.stride - 1u) / params.stride;
    walk.tap_spacing = params.stride;
    walk.start = vec2i((walk.at + params.padding) / params.stride);
    walk.pixel_step = vec2i(1);
    walk.tap_step = -1;
    return walk;
}

// The image of result pixel `i` of a phase, and its place in the walk.
fn place_of(walk: Walk, i: u32) -> vec3u {
    return vec3u(i / (walk.n.x * walk.n.y), i / walk.n.y % walk.n.x, i % walk.n.y);
}

// Where the channels of result pixel `i` of a phase begin.
fn result_of(walk: Walk, i: u32) -> u32 {
    let place = place_of(walk, i);
    let pixel = walk.at + walk.spacing * place.yz;
    return ((place.x * params.result_size.x + pixel.x) * params.result_size.y + pixel.y) * params.n_cols;
}

// Two neighbouring channels, of which the second may be beyond the last.
fn store_two(walk: Walk, row: u32, col: u32, sums: vec2f) {
    if row >= params.n_images * walk.n.x * walk.n.y || col >= params.n_cols {
        return;
    }
    let i = result_of(walk, row) + col;
    let next = select(0u, 1u, col + 1u < params.n_cols);
    switch EPILOGUE {
        case 1u: { store_y(i, act(sums + vec2f(load_fused(col), load_fused(col + next))), 1u + next); }
        case 2u: { store_y(i, sums * slope_from_output(vec2f(load_fused(i), load_fused(i + next))), 1u + next); }
        default: { store_y(i, act(sums), 1u + next); }
    }
}

fn store(walk: Walk, row: u32, col: u32, sums: vec4f) {
    store_two(walk, row, col, sums.xy);
    store_two(walk, row, col + 2u, sums.zw);
}

// What four result pixels read: the images they are of, and the source pixels of their first taps. Pixels beyond the last read none.
struct Sources {
    image: vec4u,
    y: vec4i,
    x: vec4i,
}

fn sources_of(walk: Walk, rows: vec4u) -> Sources {
    var sources: Sources;
    for (var i = 0u; i < 4u; i += 1u) {
        let place = place_of(walk, rows[i]);
        let first = walk.start + walk.pixel_step * vec2i(place.yz);
        sources.image[i] = place.x;
        sources.y[i] = select(-1 - i32(params.kernel_size.x), first.x, place.x < params.n_images);
        sources.x[i] = first.y;
    }
    return sources;
}

fn value_at(image: u32, pixel: vec2i, channel: u32) -> f32 {
    let size = vec2i(params.source_size);
    if pixel.x < 0 || pixel.x >= size.x || pixel.y < 0 || pixel.y >= size.y {
        return 0.0;
    }
    return load_source(((image * params.source_size.x + u32(pixel.x)) * params.source_size.y + u32(pixel.y)) * params.n_channels + channel);
}

// What four result pixels have at one place of the sum, 0 behind the last.
fn fetch_a(walk: Walk, sources: Sources, place: u32) -> vec4f {
    let tap = place / params.n_channels;
    if tap >= walk.n_taps.x * walk.n_taps.y {
        return vec4f();
    }
    let channel = place % params.n_channels;
    let tap_offset = walk.tap_step * vec2i(vec2u(tap / walk.n_taps.y, tap % walk.n_taps.y));
    return vec4f(
        value_at(sources.image.x, vec2i(sources.y.x, sources.x.x) + tap_offset, channel),
        value_at(sources.image.y, vec2i(sources.y.y, sources.x.y) + tap_offset, channel),
        value_at(sources.image.z, vec2i(sources.y.z, sources.x.z) + tap_offset, channel),
        value_at(sources.image.w, vec2i(sources.y.w, sources.x.w) + tap_offset, channel),
    );
}

fn weight_at(walk: Walk, place: u32, col: u32) -> f32 {
    if place >= walk.n_taps.x * walk.n_taps.y * params.n_channels || col >= params.n_cols {
        return 0.0;
    }
    var row = place;
    if GRAD == 1u {
        let i = place / params.n_channels;
        let tap = walk.first_tap + walk.tap_spacing * vec2u(i / walk.n_taps.y, i % walk.n_taps.y);
        row = (tap.x * params.kernel_size.y + tap.y) * params.n_channels + place % params.n_channels;
    }
    return load_weight(row * params.n_cols + col);
}

fn fetch_b(walk: Walk, start: u32, col: u32, lane: u32) -> vec4f {
    let at = vec2u(start + lane / TILE, col + lane % TILE);
    return vec4f(
        weight_at(walk, at.x, at.y),
        weight_at(walk, at.x + 4u, at.y),
        weight_at(walk, at.x + 8u, at.y),
        weight_at(walk, at.x + 12u, at.y),
    );
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row_group = group.z * groups.y + group.y;
    // Whole groups leave here, so that the barriers below are reached by all lanes of a group or by none.
    let walk = walk_of(row_group / params.n_row_groups);
    let tile_row = row_group % params.n_row_groups * TILE;
    let tile_col = group.x * TILE;
    if row_group / params.n_row_groups >= params.n_phases || tile_row >= params.n_images * walk.n.x * walk.n.y {
        return;
    }
    let fetched_row = tile_row + lane / DEPTH;
    let sources = sources_of(walk, vec4u(fetched_row, fetched_row + 16u, fetched_row + 32u, fetched_row + 48u));
    let lane_row = lane / 16u;
    let lane_col = lane % 16u;
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    let n_places = walk.n_taps.x * walk.n_taps.y * params.n_channels;
    var next_a = fetch_a(walk, sources, lane % DEPTH);
    var next_b = fetch_b(walk, 0u, tile_col, lane);
    for (var start = 0u; start < n_places; start += DEPTH) {
        for (var i = 0u; i < FETCHED; i += 1u) {
            let row = lane / DEPTH + 16u * i;
            a_tile[lane % DEPTH * A_STRIDE + row / 4u][row % 4u] = next_a[i];
            let col = lane % TILE;
            b_tile[(lane / TILE + 4u * i) * 16u + col / 4u][col % 4u] = next_b[i];
        }
        workgroupBarrier();
        next_a = fetch_a(walk, sources, start + DEPTH + lane % DEPTH);
        next_b = fetch_b(walk, start + DEPTH, tile_col, lane);
        for (var k = 0u; k < DEPTH; k += 1u) {
            let rows = a_tile[k * A_STRIDE + lane_row];
            let cols = b_tile[k * 16u + lane_col];
            sum0 += rows.x * cols;
            sum1 += rows.y * cols;
            sum2 += rows.z * cols;
            sum3 += rows.w * cols;
        }
        workgroupBarrier();
    }
    let row = tile_row + 4u * lane_row;
    let col = tile_col + 4u * lane_col;
    store(walk, row, col, sum0);
    store(walk, row + 1u, col, sum1);
    store(walk, row + 2u, col, sum2);
    store(walk, row + 3u, col, sum3);
}
