// A convolution as an implicit product, y = epilogue(patches(x) weight), and with GRAD the gradient in its input, without barriers: each invocation
// has a register block of 8 result pixels by 2 vec4s of columns. n_channels and n_cols are multiples of 4.
// Twins: conv2d_cpu.rs, conv2d_grad_input_cpu.rs. Reads what the windows cover once for 64 columns, and the weights once for 8 pixels.
// Ladder: conv2d.wgsl (scalar loads, any shape) -> this (vec4 loads, blocks of 4 by 4 as matrices) -> conv2d_tiled.wgsl (shared tiles).

const ROWS = 8u;
const LANES = 8u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<SOURCE>;
// [kernel height, kernel width, n_channels, n_cols].
@group(0) @binding(2) var<storage, read> weight: array<vec4f>;
// The bias [n_cols], or the result of the layer below whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

fn store(walk: Walk, row: u32, col: u32, sum: vec4f) {
    if row >= params.n_images * walk.n.x * walk.n.y || col >= params.n_cols / 4u {
        return;
    }
    let i = result_of(walk, row) / 4u + col;
    y[i] = store_y(finished(sum, i, col));
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
