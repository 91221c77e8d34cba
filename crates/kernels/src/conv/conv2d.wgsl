// A convolution as an implicit product, y = epilogue(patches(x) weight), and with GRAD the gradient in its input, grad_x = epilogue(patches(grad_y)
// weight), for any shape. Each lane has 2 columns of a block of 8 result pixels.
// Twins: conv2d_cpu.rs, conv2d_grad_input_cpu.rs. Reads what the windows cover once for 16 columns, and the weights once for 8 pixels.
// Ladder: this -> conv2d_direct.wgsl (vec4 loads, for channels that are multiples of 4) -> conv2d_tiled.wgsl (shared tiles).

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
fn store(walk: Walk, row: u32, col: u32, sums: vec2f) {
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

// Where the channels of one tap of four result pixels begin, and whether the image has them.
fn taps_of(sources: Sources, tap: vec2i) -> Taps {
    let y = sources.y + tap.x;
    let x = sources.x + tap.y;
    let size = vec2i(params.source_size);
    let inside = (y >= vec4i(0)) & (y < vec4i(size.x)) & (x >= vec4i(0)) & (x < vec4i(size.y));
    let pixel = (sources.image * params.source_size.x + vec4u(y)) * params.source_size.y + vec4u(x);
    return Taps(select(vec4u(0u), pixel * params.n_channels, inside), inside);
}

fn values_at(taps: Taps, channel: u32) -> vec4f {
    let at = taps.at + channel;
    return select(vec4f(), vec4f(load_source(at.x), load_source(at.y), load_source(at.z), load_source(at.w)), taps.inside);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row_group = group.z * groups.y + group.y;
    let walk = walk_of(row_group / params.n_row_groups);
    let row = row_group % params.n_row_groups * ROWS;
    let col = (group.x * LANES + lane) * 2u;
    let n_pixels = params.n_images * walk.n.x * walk.n.y;
    if row_group / params.n_row_groups >= params.n_phases || row >= n_pixels || col >= params.n_cols {
        return;
    }
    // Pixels and columns beyond the last read the last one again, and are not stored.
    let rows = vec4u(row, row + 1u, row + 2u, row + 3u);
    let upper_sources = sources_of(walk, min(rows, vec4u(n_pixels - 1u)));
    let lower_sources = sources_of(walk, min(rows + 4u, vec4u(n_pixels - 1u)));
    var upper0 = vec4f();
    var lower0 = vec4f();
    var upper1 = vec4f();
    var lower1 = vec4f();
    for (var u = 0u; u < walk.n_taps.x; u += 1u) {
        for (var v = 0u; v < walk.n_taps.y; v += 1u) {
            let tap_offset = walk.tap_step * vec2i(vec2u(u, v));
            let upper_taps = taps_of(upper_sources, tap_offset);
            let lower_taps = taps_of(lower_sources, tap_offset);
            let tap = walk.first_tap + walk.tap_spacing * vec2u(u, v);
            let first = (tap.x * params.kernel_size.y + tap.y) * params.n_channels * params.n_cols;
            var b0_at = first + col;
            var b1_at = first + min(col + 1u, params.n_cols - 1u);
            for (var c = 0u; c < params.n_channels; c += 1u) {
                let upper = values_at(upper_taps, c);
                let lower = values_at(lower_taps, c);
                let b0 = load_weight(b0_at);
                let b1 = load_weight(b1_at);
                upper0 += upper * b0;
                lower0 += lower * b0;
                upper1 += upper * b1;
                lower1 += lower * b1;
                b0_at += params.n_cols;
                b1_at += params.n_cols;
            }
        }
    }
    for (var i = 0u; i < 4u; i += 1u) {
        store(walk, row + i, col, vec2f(upper0[i], upper1[i]));
        store(walk, row + 4u + i, col, vec2f(lower0[i], lower1[i]));
    }
}
