// A convolution as an implicit product, y = epilogue(patches(x) weight), and with GRAD the gradient in its input, grad_x = epilogue(patches(grad_y)
// weight), for any shape. Each invocation has 2 columns of a block of 8 result pixels.
// Twins: conv2d_cpu.rs, conv2d_grad_input_cpu.rs. Reads what the windows cover once for 16 columns, and the weights once for 8 pixels.
// Ladder: this -> conv2d_direct.wgsl (vec4 loads, for channels that are multiples of 4) -> conv2d_tiled.wgsl (shared tiles).

const ROWS = 8u;
const LANES = 8u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<SOURCE>;
// [kernel height, kernel width, n_channels, n_cols].
@group(0) @binding(2) var<storage, read> weight: array<WEIGHT>;
// The bias [n_cols], or the result of the layer below whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

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
        store_two(walk, row + i, col, vec2f(upper0[i], upper1[i]));
        store_two(walk, row + 4u + i, col, vec2f(lower0[i], lower1[i]));
    }
}
