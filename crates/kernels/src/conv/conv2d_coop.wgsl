enable f16;
enable wgpu_cooperative_matrix;

// A convolution as an implicit product, y = epilogue(patches(x) weight), and with GRAD the gradient in its input, for a source and weights stored in f16, on
// the matrix units: each subgroup has MATRICES by MATRICES results of SIZE by SIZE, pixels by columns, whose sums are kept in f32. n_channels and n_cols are
// multiples of SIZE.
// Twins: conv2d_cpu.rs, conv2d_grad_input_cpu.rs. Reads what the windows cover once for a tile's columns, and the weights, as they are stored, once
// for a block's pixels, from the nearest cache in most cases.
// Ladder: conv2d_tiled.wgsl (multiply-adds of the lanes) -> this (of the matrix units, like matmul_coop.wgsl).
//
// The source pixels of neighbouring results are not evenly spaced, row ends and padding lie between them, so that no unit can load them. The lanes of a group
// gather the patches of a tile's pixels into workgroup memory, DEPTH places of the sum at a time, 0 in the padding, and the units load them there; weights they
// load where they lie. The patches of the next places are on their way in registers meanwhile, and go to the other half of the memory: one barrier for DEPTH
// places. A lane gathers eight channels, 16 bytes, for the same four pixels all along, and works out where they lie once.
//
// What bounds it, for 2 by 2 subgroups of 4 by 4 matrices of 16 by 16: at a place of the sum a subgroup reads 64 values of f16 from workgroup memory and 64 from
// the nearest cache for 2 * 64 * 64 operations, 32 a byte as matmul_coop.wgsl; a value that is gathered serves 2 * 128 operations, and is read from the source
// once for each tap of its window, by which it is in a cache.
//
// A matrix has no elements that a lane could get at, so sums go through workgroup memory for the epilogue, one matrix of each subgroup at a time. Every lane of a
// group comes to all barriers. How many subgroups a group has may differ from group to group: where there are fewer than blocks they go round for the others,
// with patches gathered anew, and where there are more, those without a block only gather.

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

// The form for units of 8 by 8 swaps these four lines, and those that say so: src/coop_tiles.rs.
const SIZE = 16u;
alias OfA = coop_mat16x16<f16, A>;
alias OfB = coop_mat16x16<f16, B>;
alias Sum = coop_mat16x16<f32, C>;

override LANES: u32 = 128u;
// Blocks of a tile, each a subgroup's, along the pixels, whose patches are gathered, and along the columns, whose weights are loaded.
override GATHERED_BLOCKS: u32 = 2u;
override LOADED_BLOCKS: u32 = 2u;
// Matrices of a block along either side: 2 or 4.
override MATRICES: u32 = 4u;
override GRAD: u32 = 0u;
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

override TILE_ROWS: u32 = GATHERED_BLOCKS * MATRICES * SIZE;
override TILE_COLS: u32 = LOADED_BLOCKS * MATRICES * SIZE;
// Places of the sum in workgroup memory: four times eight for each lane.
override DEPTH: u32 = 32u * LANES / TILE_ROWS;
// From a pixel to the next, 16 bytes further so that rows of a matrix begin in different banks.
override STRIDE: u32 = DEPTH + 8u;
override HALF: u32 = TILE_ROWS * STRIDE;
override N_BLOCKS: u32 = GATHERED_BLOCKS * LOADED_BLOCKS;
override RESULTS_LEN: u32 = N_BLOCKS * SIZE * SIZE;
// Values in an element of that memory: one for units of 8 by 8, since Metal loads no matrix by a pointer to vectors.
const WIDTH = 4u;
override PATCHES_LEN: u32 = 2u * HALF / WIDTH;

// How each is stored: src/stored_types.rs.
alias FUSED = vec4f;
alias Y = vec4f;
fn load_fused(v: FUSED) -> vec4f { return vec4f(v); }
fn store_y(v: vec4f) -> Y { return v; }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<vec4<f16>>;
// [n_cols, kernel height, kernel width, n_channels]; with GRAD [n_channels, kernel height, kernel width, n_cols].
@group(0) @binding(2) var<storage, read> weight: array<f16>;
// The bias [n_cols], or the result of the layer below whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// patches[half][pixel][place].
var<workgroup> patches: array<vec4<f16>, PATCHES_LEN>;
// results[block][pixel][col].
var<workgroup> results: array<f32, RESULTS_LEN>;

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

// Where the channels of result pixel `i` of a phase begin, in vec4s.
fn result_of(walk: Walk, i: u32) -> u32 {
    var at = i;
    if params.n_phases > 1u {
        let place = place_of(walk, i);
        let pixel = walk.at + walk.spacing * place.yz;
        at = (place.x * params.result_size.x + pixel.x) * params.result_size.y + pixel.y;
    }
    return at * (params.n_cols / 4u);
}

// Four columns of one result pixel; `col` counts vec4s.
fn store(walk: Walk, row: u32, col: u32, sum: vec4f) {
    if row >= params.n_images * walk.n.x * walk.n.y {
        return;
    }
    let i = result_of(walk, row) + col;
    switch EPILOGUE {
        case 1u: { y[i] = store_y(act(sum + load_fused(fused[col]))); }
        case 2u: { y[i] = store_y(sum * slope_from_output(load_fused(fused[i]))); }
        default: { y[i] = store_y(act(sum)); }
    }
}

// What four result pixels read, each a quarter of a tile behind the one before: where their images begin, and the source pixels of their first taps. Pixels
// beyond the last read none.
struct Sources {
    image: vec4u,
    y: vec4i,
    x: vec4i,
}

fn sources_of(walk: Walk, row: u32) -> Sources {
    var sources: Sources;
    for (var i = 0u; i < 4u; i += 1u) {
        let place = place_of(walk, row + i * (TILE_ROWS / 4u));
        let first = walk.start + walk.pixel_step * vec2i(place.yz);
        sources.image[i] = place.x * params.source_size.x * params.source_size.y;
        sources.y[i] = select(-1 - i32(params.kernel_size.x), first.x, place.x < params.n_images);
        sources.x[i] = first.y;
    }
    return sources;
}

struct EightChannels {
    low: vec4<f16>,
    high: vec4<f16>,
}

// Those from `channel` on of a pixel of an image, 0 in the padding.
fn channels_at(image: u32, pixel: vec2i, channel: u32) -> EightChannels {
    let size = vec2i(params.source_size);
    if pixel.x < 0 || pixel.x >= size.x || pixel.y < 0 || pixel.y >= size.y {
        return EightChannels();
    }
    let at = ((image + u32(pixel.x) * params.source_size.y + u32(pixel.y)) * params.n_channels + channel) / 4u;
    return EightChannels(source[at], source[at + 1u]);
}

struct Gathered {
    of_0: EightChannels,
    of_1: EightChannels,
    of_2: EightChannels,
    of_3: EightChannels,
}

// What four result pixels have at eight places of the sum from `place` on, 0 behind the last.
fn gather(walk: Walk, sources: Sources, place: u32) -> Gathered {
    let tap = place / params.n_channels;
    if tap >= walk.n_taps.x * walk.n_taps.y {
        return Gathered();
    }
    let channel = place % params.n_channels;
    let tap_offset = walk.tap_step * vec2i(vec2u(tap / walk.n_taps.y, tap % walk.n_taps.y));
    return Gathered(
        channels_at(sources.image.x, vec2i(sources.y.x, sources.x.x) + tap_offset, channel),
        channels_at(sources.image.y, vec2i(sources.y.y, sources.x.y) + tap_offset, channel),
        channels_at(sources.image.z, vec2i(sources.y.z, sources.x.z) + tap_offset, channel),
        channels_at(sources.image.w, vec2i(sources.y.w, sources.x.w) + tap_offset, channel),
    );
}

// Swapped for units of 8 by 8.
fn put_four(at: u32, v: vec4<f16>) { patches[at / 4u] = v; }

fn put_eight(at: u32, channels: EightChannels) {
    put_four(at, channels.low);
    put_four(at + 4u, channels.high);
}

fn put(at: u32, gathered: Gathered) {
    put_eight(at, gathered.of_0);
    put_eight(at + HALF / 4u, gathered.of_1);
    put_eight(at + HALF / 2u, gathered.of_2);
    put_eight(at + HALF / 4u * 3u, gathered.of_3);
}

fn load_a(at: u32) -> OfA {
    return coopLoadT<OfA>(&patches[at / WIDTH], STRIDE / WIDTH);
}

// The matrix of the weights from `place` of the sum and `col` on. One beyond the last column is the last one.
fn load_b(walk: Walk, place: u32, col: u32) -> OfB {
    let first = min(col, params.n_cols - SIZE);
    let n_taps = params.kernel_size.x * params.kernel_size.y;
    if GRAD == 0u {
        let stride = n_taps * params.n_channels;
        return coopLoad<OfB>(&weight[first * stride + place], stride);
    }
    let i = place / params.n_channels;
    let tap = walk.first_tap + walk.tap_spacing * vec2u(i / walk.n_taps.y, i % walk.n_taps.y);
    let stride = n_taps * params.n_cols;
    let at = place % params.n_channels * stride + (tap.x * params.kernel_size.y + tap.y) * params.n_cols + first;
    return coopLoadT<OfB>(&weight[at], stride);
}

// A subgroup's block: where its results pass through workgroup memory, its first pixel and column. Without a block it stores nothing.
struct Block {
    exists: bool,
    results: u32,
    row: u32,
    col: u32,
    lane: u32,
    n_lanes: u32,
}

fn finish(walk: Walk, block: Block, row: u32, col: u32, sum: Sum) {
    if block.exists {
        coopStoreT(sum, &results[block.results], SIZE);
    }
    workgroupBarrier();
    let first_row = block.row + row * SIZE;
    let first_col = block.col + col * SIZE;
    if block.exists && first_col < params.n_cols {
        for (var i = block.lane; i < SIZE * SIZE / 4u; i += block.n_lanes) {
            let at = block.results + 4u * i;
            let of_row = vec4f(results[at], results[at + 1u], results[at + 2u], results[at + 3u]);
            store(walk, first_row + i / (SIZE / 4u), first_col / 4u + i % (SIZE / 4u), of_row);
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(LANES)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) n_subgroups: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) n_lanes: u32,
    @builtin(local_invocation_index) lane_of_group: u32,
) {
    let row_group = group.z * groups.y + group.y;
    let walk = walk_of(row_group / params.n_row_groups);
    let tile_row = row_group % params.n_row_groups * TILE_ROWS;
    let tile_col = group.x * TILE_COLS;
    // Whole groups may lie beyond the end: they sum nothing and store nothing. To leave would be to compute where naga does not see that all do.
    let exists = row_group / params.n_row_groups < params.n_phases && tile_col < params.n_cols;
    let n_places = select(0u, walk.n_taps.x * walk.n_taps.y * params.n_channels, exists);

    // Neighbouring lanes gather what lies beside each other.
    let of_lane = vec2u(lane_of_group / (DEPTH / 8u), lane_of_group % (DEPTH / 8u));
    let sources = sources_of(walk, tile_row + of_lane.x);
    let put_at = of_lane.x * STRIDE + 8u * of_lane.y;

    var stage = 0u;
    for (var first_block = 0u; first_block < N_BLOCKS; first_block += n_subgroups) {
        let number = first_block + subgroup;
        var block: Block;
        block.exists = exists && number < N_BLOCKS;
        block.results = number * SIZE * SIZE;
        let block_row = number / LOADED_BLOCKS * MATRICES * SIZE;
        block.row = tile_row + block_row;
        block.col = tile_col + number % LOADED_BLOCKS * MATRICES * SIZE;
        block.lane = lane;
        block.n_lanes = n_lanes;

        var s00 = Sum();
        var s01 = Sum();
        var s02 = Sum();
        var s03 = Sum();
        var s10 = Sum();
        var s11 = Sum();
        var s12 = Sum();
        var s13 = Sum();
        var s20 = Sum();
        var s21 = Sum();
        var s22 = Sum();
        var s23 = Sum();
        var s30 = Sum();
        var s31 = Sum();
        var s32 = Sum();
        var s33 = Sum();
        var next = gather(walk, sources, 8u * of_lane.y);
        for (var start = 0u; start < n_places; start += DEPTH) {
            put(stage + put_at, next);
            // The other half is still being read by some, this one by none: they are past the barrier before.
            workgroupBarrier();
            if start + DEPTH < n_places {
                next = gather(walk, sources, start + DEPTH + 8u * of_lane.y);
            }
            let end = select(0u, min(DEPTH, n_places - start), block.exists);
            for (var k = 0u; k < end; k += SIZE) {
                let a = stage + block_row * STRIDE + k;
                let a0 = load_a(a);
                let a1 = load_a(a + SIZE * STRIDE);
                let b0 = load_b(walk, start + k, block.col);
                let b1 = load_b(walk, start + k, block.col + SIZE);
                s00 = coopMultiplyAdd(a0, b0, s00);
                s01 = coopMultiplyAdd(a0, b1, s01);
                s10 = coopMultiplyAdd(a1, b0, s10);
                s11 = coopMultiplyAdd(a1, b1, s11);
                if MATRICES == 4u {
                    let a2 = load_a(a + 2u * SIZE * STRIDE);
                    let a3 = load_a(a + 3u * SIZE * STRIDE);
                    s20 = coopMultiplyAdd(a2, b0, s20);
                    s21 = coopMultiplyAdd(a2, b1, s21);
                    s30 = coopMultiplyAdd(a3, b0, s30);
                    s31 = coopMultiplyAdd(a3, b1, s31);
                    let b2 = load_b(walk, start + k, block.col + 2u * SIZE);
                    s02 = coopMultiplyAdd(a0, b2, s02);
                    s12 = coopMultiplyAdd(a1, b2, s12);
                    s22 = coopMultiplyAdd(a2, b2, s22);
                    s32 = coopMultiplyAdd(a3, b2, s32);
                    let b3 = load_b(walk, start + k, block.col + 3u * SIZE);
                    s03 = coopMultiplyAdd(a0, b3, s03);
                    s13 = coopMultiplyAdd(a1, b3, s13);
                    s23 = coopMultiplyAdd(a2, b3, s23);
                    s33 = coopMultiplyAdd(a3, b3, s33);
                }
            }
            stage = HALF - stage;
        }

        finish(walk, block, 0u, 0u, s00);
        finish(walk, block, 0u, 1u, s01);
        finish(walk, block, 1u, 0u, s10);
        finish(walk, block, 1u, 1u, s11);
        if MATRICES == 4u {
            finish(walk, block, 0u, 2u, s02);
            finish(walk, block, 0u, 3u, s03);
            finish(walk, block, 1u, 2u, s12);
            finish(walk, block, 1u, 3u, s13);
            finish(walk, block, 2u, 0u, s20);
            finish(walk, block, 2u, 1u, s21);
            finish(walk, block, 2u, 2u, s22);
            finish(walk, block, 2u, 3u, s23);
            finish(walk, block, 3u, 0u, s30);
            finish(walk, block, 3u, 1u, s31);
            finish(walk, block, 3u, 2u, s32);
            finish(walk, block, 3u, 3u, s33);
        }
    }
}
