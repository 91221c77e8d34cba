// A convolution as an implicit product, y = epilogue(patches(x) weight), and with GRAD the gradient in its input, for a source and weights stored in f16, on
// tensor cores: each subgroup has MATRICES by MATRICES results of SIZE by SIZE, pixels by columns, whose sums are kept in f32. n_channels and n_cols are
// multiples of SIZE.
// Twins: conv2d_cpu.rs, conv2d_grad_input_cpu.rs. Reads what the windows cover once for a tile's columns, and the weights, as they are stored, once
// for a block's pixels, from the nearest cache in most cases.
// Ladder: conv2d_tiled.wgsl (multiply-adds of the invocations) -> this (of tensor cores, like matmul_coop.wgsl).
//
// The source pixels of neighbouring results are not evenly spaced, row ends and padding lie between them, so that no unit can load them. The invocations of a group
// gather the patches of a tile's pixels into workgroup memory, DEPTH indices of the sum at a time, 0 in the padding, and the units load them there; weights they
// load where they lie. The patches of the next places are on their way in registers meanwhile, and go to the other half of the memory: one barrier for DEPTH
// places. An invocation gathers eight channels, 16 bytes, for the same four pixels all along, and computes where they lie once.
//
// What bounds it, for 2 by 2 subgroups of 2 by 2 matrices of 16 by 16: at an index of the sum a subgroup reads 32 values of f16 from workgroup memory and 32 from
// the nearest cache for 2 * 32 * 32 operations, 16 a byte; a value that is gathered serves 2 * 64 operations, and is read from the source once for each
// tap of its window, by which it is in a cache. With 4 by 4 matrices it would be twice as many, but not all of their sums fit in registers.
//
// A matrix has no elements that an invocation could get at, so sums go through workgroup memory for the epilogue, one matrix of each subgroup at a time. Every invocation of a
// group comes to all barriers. How many subgroups a group has may differ from group to group: where there are fewer than blocks they go round for the others,
// with patches gathered anew, and where there are more, those without a block only gather.

override LANES: u32 = 128u;
// Blocks of a tile, each a subgroup's, along the pixels, whose patches are gathered, and along the columns, whose weights are loaded.
override GATHERED_BLOCKS: u32 = 2u;
override LOADED_BLOCKS: u32 = 2u;
// Matrices of a block along either side.
const MATRICES = 2u;

override TILE_ROWS: u32 = GATHERED_BLOCKS * MATRICES * SIZE;
override TILE_COLS: u32 = LOADED_BLOCKS * MATRICES * SIZE;
// Places of the sum in workgroup memory: four times eight for each invocation.
override DEPTH: u32 = 32u * LANES / TILE_ROWS;
// From a pixel to the next, 16 bytes further so that rows of a matrix begin in different banks.
override STRIDE: u32 = DEPTH + 8u;
override HALF: u32 = TILE_ROWS * STRIDE;
override N_BLOCKS: u32 = GATHERED_BLOCKS * LOADED_BLOCKS;
override RESULTS_LEN: u32 = N_BLOCKS * SIZE * SIZE;
override PATCHES_LEN: u32 = 2u * HALF / WIDTH;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<vec4<f16>>;
// [n_cols, kernel height, kernel width, n_channels]; with GRAD [n_channels, kernel height, kernel width, n_cols].
@group(0) @binding(2) var<storage, read> weight: array<f16>;
// The bias [n_cols], or the result of the layer below whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// patches[half][pixel][place].
var<workgroup> patches: array<PATCH, PATCHES_LEN>;
// results[block][pixel][col].
var<workgroup> results: array<f32, RESULTS_LEN>;

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
    y[i] = store_y(finished(sum, i, col));
}

// What four result pixels read, each a quarter of a tile after the one before: where their images begin, and the source pixels of their first taps. Pixels
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

// Those from `channel` on of a pixel of an image, 0 in the padding.
fn channels_at(image: u32, pixel: vec2i, channel: u32) -> EightChannels {
    let size = vec2i(params.source_size);
    if pixel.x < 0 || pixel.x >= size.x || pixel.y < 0 || pixel.y >= size.y {
        return EightChannels();
    }
    let at = ((image + u32(pixel.x) * params.source_size.y + u32(pixel.y)) * params.n_channels + channel) / 4u;
    return EightChannels(source[at], source[at + 1u]);
}

// What four result pixels have at eight indices of the sum from `place` on, 0 after the last.
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
    // Whole groups may lie beyond the end: they sum nothing and store nothing. Returning early would make control flow non-uniform, which naga rejects.
    let exists = row_group / params.n_row_groups < params.n_phases && tile_col < params.n_cols;
    let n_places = select(0u, walk.n_taps.x * walk.n_taps.y * params.n_channels, exists);

    // Neighbouring invocations gather adjacent values.
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
        var s10 = Sum();
        var s11 = Sum();
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
            }
            stage = HALF - stage;
        }

        finish(walk, block, 0u, 0u, s00);
        finish(walk, block, 0u, 1u, s01);
        finish(walk, block, 1u, 0u, s10);
        finish(walk, block, 1u, 1u, s11);
    }
}
