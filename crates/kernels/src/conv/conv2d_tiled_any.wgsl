// A convolution as an implicit product, y = epilogue(patches(x) weight), and with GRAD the gradient in its input, any shape: 64 result pixels by
// 64 columns a workgroup, its operands in workgroup memory 16 indices of the sum at a time, 4 x 4 results an invocation.
// Twins: conv2d_cpu.rs, conv2d_grad_input_cpu.rs. Reads what the windows cover once for 64 columns, and the weights once for 64 pixels.
// Ladder: conv2d_direct.wgsl (each invocation reads for itself) -> this, made like matmul_tiled_any.wgsl -> conv2d_tiled.wgsl (vec4 loads, larger blocks).
// For hardware: on a software adapter barriers are ruinous.
//
// The places of a sum run over the taps and, in each, over the channels, so that neighbouring invocations read neighbouring channels of a pixel.
// The four values of a patch that an invocation fetches are at one place of four pixels, whose coordinates it computes once.

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<SOURCE>;
// [kernel height, kernel width, n_channels, n_cols].
@group(0) @binding(2) var<storage, read> weight: array<WEIGHT>;
// The bias [n_cols], or the result of the layer below whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// What a workgroup computes: results from `row` and `col` on, over all taps and channels.
struct Job {
    exists: bool,
    row: u32,
    col: u32,
    first: u32,
    end: u32,
    walk: Walk,
}

fn job_of(group: vec3u, groups: vec3u) -> Job {
    let row_group = group.z * groups.y + group.y;
    let walk = walk_of(row_group / params.n_row_groups);
    let row = row_group % params.n_row_groups * TILE;
    let exists = row_group / params.n_row_groups < params.n_phases && row < params.n_images * walk.n.x * walk.n.y;
    return Job(exists, row, group.x * TILE, 0u, walk.n_taps.x * walk.n_taps.y * params.n_channels, walk);
}

fn a_along_k() -> bool { return true; }
fn b_along_k() -> bool { return false; }

alias RowsOfA = Sources;
alias ColsOfB = vec4u;
fn cols_of_b(job: Job, cols: vec4u) -> ColsOfB { return cols; }

fn store(job: Job, row: u32, col: u32, sums: vec4f) {
    store_two(job.walk, row, col, sums.xy);
    store_two(job.walk, row, col + 2u, sums.zw);
}

// What four result pixels read: the images they are of, and the source pixels of their first taps. Pixels beyond the last read none.
struct Sources {
    image: vec4u,
    y: vec4i,
    x: vec4i,
}

fn rows_of_a(job: Job, rows: vec4u) -> RowsOfA {
    let walk = job.walk;
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

// What four result pixels have at one place of the sum, 0 after the last.
fn four_of_a(job: Job, sources: RowsOfA, places: vec4u) -> vec4f {
    let walk = job.walk;
    let place = places.x;
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

fn four_of_b(job: Job, cols: ColsOfB, places: vec4u) -> vec4f {
    return vec4f(
        weight_at(job.walk, places.x, cols.x),
        weight_at(job.walk, places.y, cols.y),
        weight_at(job.walk, places.z, cols.z),
        weight_at(job.walk, places.w, cols.w),
    );
}
