// A convolution as an implicit product, y = epilogue(patches(x) weight), and with GRAD the gradient in its input, without barriers: each lane
// has a register block of 8 result pixels by 2 vec4s of columns. n_channels and n_cols are multiples of 4.
// Twins: conv2d_cpu.rs, conv2d_grad_input_cpu.rs. Reads what the windows cover once for 64 columns, and the weights once for 8 pixels.
// Ladder: conv2d.wgsl (scalar loads, any shape) -> this (vec4 loads, blocks of 4 by 4 as matrices) -> conv2d_tiled.wgsl (shared tiles).

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

const ROWS = 8u;
const LANES = 8u;
override GRAD: u32 = 0u;
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

// How each is stored: src/stored_types.rs.
alias SOURCE = vec4f;
alias FUSED = vec4f;
alias Y = vec4f;
fn load_source(v: SOURCE) -> vec4f { return vec4f(v); }
fn load_fused(v: FUSED) -> vec4f { return vec4f(v); }
fn store_y(v: vec4f) -> Y { return v; }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<SOURCE>;
// [kernel height, kernel width, n_channels, n_cols].
@group(0) @binding(2) var<storage, read> weight: array<vec4f>;
// The bias [n_cols], or the result of the layer below whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: vec4f, y: vec4f) -> vec4f {
    return select(y, v, (bitcast<vec4u>(v) & vec4u(0x7FFFFFFFu)) > vec4u(0x7F800000u));
}

fn act(v: vec4f) -> vec4f {
    switch ACTIVATION {
        case 1u: { return select(v, vec4f(), v < vec4f()); }
        case 2u: { return select(v, ALPHA * (exp(min(v, vec4f()) / ALPHA) - 1.0), v < vec4f()); }
        case 3u: { return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, vec4f(-87.0), vec4f(87.0))))); }
        case 4u: { return or_nan(v, tanh(clamp(v, vec4f(-10.0), vec4f(10.0)))); }
        default: { return v; }
    }
}

fn slope_from_output(v: vec4f) -> vec4f {
    switch ACTIVATION {
        case 1u: { return select(vec4f(), vec4f(1.0), v > vec4f()); }
        case 2u: { return select(v / ALPHA + 1.0, vec4f(1.0), v > vec4f()); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return vec4f(1.0); }
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

fn store(walk: Walk, row: u32, col: u32, sum: vec4f) {
    if row >= params.n_images * walk.n.x * walk.n.y || col >= params.n_cols / 4u {
        return;
    }
    let i = result_of(walk, row) / 4u + col;
    switch EPILOGUE {
        case 1u: { y[i] = store_y(act(sum + load_fused(fused[col]))); }
        case 2u: { y[i] = store_y(sum * slope_from_output(load_fused(fused[i]))); }
        default: { y[i] = store_y(act(sum)); }
    }
}

// What four result pixels read: the images they are of, and the source pixels of their first taps.
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
        sources.y[i] = first.x;
        sources.x[i] = first.y;
    }
    return sources;
}

struct Taps {
    at: vec4u,
    inside: vec4<bool>,
}

// Where the channels of one tap of four result pixels begin, in vec4s, and whether the image has them.
fn taps_of(sources: Sources, tap: vec2i) -> Taps {
    let y = sources.y + tap.x;
    let x = sources.x + tap.y;
    let size = vec2i(params.source_size);
    let inside = (y >= vec4i(0)) & (y < vec4i(size.x)) & (x >= vec4i(0)) & (x < vec4i(size.y));
    let pixel = (sources.image * params.source_size.x + vec4u(y)) * params.source_size.y + vec4u(x);
    return Taps(select(vec4u(0u), pixel * (params.n_channels / 4u), inside), inside);
}

// Four channels of one tap of four result pixels, a pixel a column of the matrix.
fn values_at(taps: Taps, channels: u32) -> mat4x4f {
    let at = taps.at + channels;
    return mat4x4f(
        select(vec4f(), load_source(source[at.x]), taps.inside.x),
        select(vec4f(), load_source(source[at.y]), taps.inside.y),
        select(vec4f(), load_source(source[at.z]), taps.inside.z),
        select(vec4f(), load_source(source[at.w]), taps.inside.w),
    );
}

// One vector of columns of the weights of four channels.
fn weights_at(at: u32, stride: u32) -> mat4x4f {
    return mat4x4f(weight[at], weight[at + stride], weight[at + 2u * stride], weight[at + 3u * stride]);
}

// sum + b a, added in the order of the channels.
fn add_product(sum: mat4x4f, b: mat4x4f, a: mat4x4f) -> mat4x4f {
    return mat4x4f(
        fma(vec4f(a[0].w), b[3], fma(vec4f(a[0].z), b[2], fma(vec4f(a[0].y), b[1], fma(vec4f(a[0].x), b[0], sum[0])))),
        fma(vec4f(a[1].w), b[3], fma(vec4f(a[1].z), b[2], fma(vec4f(a[1].y), b[1], fma(vec4f(a[1].x), b[0], sum[1])))),
        fma(vec4f(a[2].w), b[3], fma(vec4f(a[2].z), b[2], fma(vec4f(a[2].y), b[1], fma(vec4f(a[2].x), b[0], sum[2])))),
        fma(vec4f(a[3].w), b[3], fma(vec4f(a[3].z), b[2], fma(vec4f(a[3].y), b[1], fma(vec4f(a[3].x), b[0], sum[3])))),
    );
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row_group = group.z * groups.y + group.y;
    let walk = walk_of(row_group / params.n_row_groups);
    let row = row_group % params.n_row_groups * ROWS;
    let col = group.x * LANES * 2u + lane;
    let n_pixels = params.n_images * walk.n.x * walk.n.y;
    let stride = params.n_cols / 4u;
    if row_group / params.n_row_groups >= params.n_phases || row >= n_pixels || col >= stride {
        return;
    }
    // Pixels and columns beyond the last read the last one again, and are not stored.
    let rows = vec4u(row, row + 1u, row + 2u, row + 3u);
    let upper_sources = sources_of(walk, min(rows, vec4u(n_pixels - 1u)));
    let lower_sources = sources_of(walk, min(rows + 4u, vec4u(n_pixels - 1u)));
    var upper0 = mat4x4f();
    var lower0 = mat4x4f();
    var upper1 = mat4x4f();
    var lower1 = mat4x4f();
    for (var u = 0u; u < walk.n_taps.x; u += 1u) {
        for (var v = 0u; v < walk.n_taps.y; v += 1u) {
            let tap_offset = walk.tap_step * vec2i(vec2u(u, v));
            let upper_taps = taps_of(upper_sources, tap_offset);
            let lower_taps = taps_of(lower_sources, tap_offset);
            let tap = walk.first_tap + walk.tap_spacing * vec2u(u, v);
            let first = (tap.x * params.kernel_size.y + tap.y) * params.n_channels * stride;
            var b0_at = first + col;
            var b1_at = first + min(col + LANES, stride - 1u);
            for (var c = 0u; c < params.n_channels / 4u; c += 1u) {
                let b0 = weights_at(b0_at, stride);
                let b1 = weights_at(b1_at, stride);
                let upper = values_at(upper_taps, c);
                upper0 = add_product(upper0, b0, upper);
                upper1 = add_product(upper1, b1, upper);
                let lower = values_at(lower_taps, c);
                lower0 = add_product(lower0, b0, lower);
                lower1 = add_product(lower1, b1, lower);
                b0_at += 4u * stride;
                b1_at += 4u * stride;
            }
        }
    }
    for (var i = 0u; i < 2u; i += 1u) {
        var p0 = upper0;
        var p1 = upper1;
        if i == 1u {
            p0 = lower0;
            p1 = lower1;
        }
        for (var j = 0u; j < 4u; j += 1u) {
            store(walk, row + 4u * i + j, col, p0[j]);
            store(walk, row + 4u * i + j, col + LANES, p1[j]);
        }
    }
}
