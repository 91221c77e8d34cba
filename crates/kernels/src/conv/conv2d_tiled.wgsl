// A convolution as an implicit product, y = epilogue(patches(x) weight), and with GRAD the gradient in its input, by tiles of both operands in
// workgroup memory, each invocation with ROW_BLOCKS by COL_BLOCKS blocks of 4 by 4 results. n_channels and n_cols are multiples of 4.
// Twins: conv2d_cpu.rs, conv2d_grad_input_cpu.rs. Reads what the windows cover once for a tile's columns, and the weights, as they are
// stored, once for its pixels.
// Ladder: conv2d_tiled_any.wgsl (scalar loads, any shape) -> this, whose tiles are those of matmul_tiled.wgsl, and what bounds them ->
// conv2d_coop.wgsl (tensor cores). For hardware: on a software adapter barriers are ruinous.
//
// The places of a sum run over the taps and, in each, over the channels: four places are four channels of one tap, a vec4. An invocation fetches the
// same four pixels all along, and computes where they lie once. Neighbouring pixels read the same source pixels, so most of what is read
// for the taps of a window is in a cache already.

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<SOURCE>;
// [n_cols, kernel height, kernel width, n_channels]; with GRAD [n_channels, kernel height, kernel width, n_cols].
@group(0) @binding(2) var<storage, read> weight: array<WEIGHT>;
// The bias [n_cols], or the result of the layer below whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// What a workgroup computes: blocks from `row` and `col` on, over the indices of the sum from `first` to `end`.
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
    let row = row_group % params.n_row_groups * TILE_ROWS;
    let exists = row_group / params.n_row_groups < params.n_phases && 4u * row < params.n_images * walk.n.x * walk.n.y;
    return Job(exists, row, group.x * TILE_COLS, 0u, walk.n_taps.x * walk.n_taps.y * params.n_channels, walk);
}

// Which operands are stored with the indices of the sum fastest.
fn a_along_k() -> bool { return true; }
fn b_along_k() -> bool { return GRAD == 0u; }

alias RowsOfA = Sources;
alias ColsOfB = u32;
fn cols_of_b(job: Job, col: u32) -> ColsOfB { return col; }

// Four columns of one result pixel; `col` counts vec4s.
fn store_row(walk: Walk, row: u32, col: u32, sum: vec4f) {
    if row >= params.n_images * walk.n.x * walk.n.y {
        return;
    }
    let i = result_of(walk, row) / 4u + col;
    y[i] = store_y(finished(sum, i, col));
}

// A block of 4 by 4 results, a pixel a column of the matrix; `row` and `col` count blocks.
fn store(job: Job, row: u32, col: u32, sums: mat4x4f) {
    if col < params.n_cols / 4u {
        store_row(job.walk, 4u * row, col, sums[0]);
        store_row(job.walk, 4u * row + 1u, col, sums[1]);
        store_row(job.walk, 4u * row + 2u, col, sums[2]);
        store_row(job.walk, 4u * row + 3u, col, sums[3]);
    }
}

// What four result pixels read: where their images begin, and the source pixels of their first taps. Pixels beyond the last read none.
struct Sources {
    image: vec4u,
    y: vec4i,
    x: vec4i,
}

fn rows_of_a(job: Job, block: u32) -> RowsOfA {
    let walk = job.walk;
    let row = 4u * block;
    var sources: Sources;
    for (var i = 0u; i < 4u; i += 1u) {
        let place = place_of(walk, row + i);
        let first = walk.start + walk.pixel_step * vec2i(place.yz);
        sources.image[i] = place.x * params.source_size.x * params.source_size.y;
        sources.y[i] = select(-1 - i32(params.kernel_size.x), first.x, place.x < params.n_images);
        sources.x[i] = first.y;
    }
    return sources;
}

// Four channels from `channel` on of a pixel of an image, 0 in the padding.
fn value_at(image: u32, pixel: vec2i, channel: u32) -> TILE {
    let size = vec2i(params.source_size);
    if pixel.x < 0 || pixel.x >= size.x || pixel.y < 0 || pixel.y >= size.y {
        return TILE(0.0);
    }
    let at = image + u32(pixel.x) * params.source_size.y + u32(pixel.y);
    return store_tile(load_source(source[(at * params.n_channels + channel) / 4u]));
}

// What four result pixels have at four indices of the sum from `place` on, 0 after the last.
fn block_of_a(job: Job, sources: RowsOfA, place: u32) -> Block {
    let walk = job.walk;
    let tap = place / params.n_channels;
    if tap >= walk.n_taps.x * walk.n_taps.y {
        return Block();
    }
    let channel = place % params.n_channels;
    let tap_offset = walk.tap_step * vec2i(vec2u(tap / walk.n_taps.y, tap % walk.n_taps.y));
    return turned(Block(
        value_at(sources.image.x, vec2i(sources.y.x, sources.x.x) + tap_offset, channel),
        value_at(sources.image.y, vec2i(sources.y.y, sources.x.y) + tap_offset, channel),
        value_at(sources.image.z, vec2i(sources.y.z, sources.x.z) + tap_offset, channel),
        value_at(sources.image.w, vec2i(sources.y.w, sources.x.w) + tap_offset, channel),
    ));
}

// The weights of four columns at four indices of the sum; columns beyond the last read the last ones again, and are
// not stored.
fn block_of_b(job: Job, col: ColsOfB, place: u32) -> Block {
    let walk = job.walk;
    let i = place / params.n_channels;
    if i >= walk.n_taps.x * walk.n_taps.y {
        return Block();
    }
    let n_taps = params.kernel_size.x * params.kernel_size.y;
    let block = min(col, params.n_cols / 4u - 1u);
    if GRAD == 0u {
        let stride = n_taps * params.n_channels / 4u;
        let at = 4u * block * stride + place / 4u;
        return turned(Block(
            store_tile(load_weight(weight[at])),
            store_tile(load_weight(weight[at + stride])),
            store_tile(load_weight(weight[at + 2u * stride])),
            store_tile(load_weight(weight[at + 3u * stride])),
        ));
    }
    let tap = walk.first_tap + walk.tap_spacing * vec2u(i / walk.n_taps.y, i % walk.n_taps.y);
    let stride = n_taps * params.n_cols / 4u;
    let at = place % params.n_channels * stride + (tap.x * params.kernel_size.y + tap.y) * (params.n_cols / 4u) + block;
    return Block(
        store_tile(load_weight(weight[at])),
        store_tile(load_weight(weight[at + stride])),
        store_tile(load_weight(weight[at + 2u * stride])),
        store_tile(load_weight(weight[at + 3u * stride])),
    );
}
