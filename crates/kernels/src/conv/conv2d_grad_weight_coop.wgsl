// parts[run, o, u, v, c] = sum of grad_y[b, i, j, o] x[b, i sy - py + u, j sx - px + v, c] over the result pixels of a run, for grad_y and x stored in f16, on the matrix
// units: each subgroup has MATRICES by MATRICES results of SIZE by SIZE, outputs o by columns (u, v, c), whose sums are kept in f32. n_channels and n_out are
// multiples of SIZE, and there are SIZE result pixels at least. The runs are then added by map/map_reduce.rs.
// Twin: conv2d_grad_weight_cpu.rs. Reads what the windows cover once for a tile's outputs, and grad_y once for a block's columns, from the nearest cache in
// most cases.
// Ladder: conv2d_grad_weight_tiled.wgsl (multiply-adds of the invocations) -> this (of tensor cores, like matmul_coop.wgsl).
//
// As in conv2d_coop.wgsl, whose bounds are those of this as well, the invocations of a group gather patches into workgroup memory, DEPTH pixels of a tile's columns at a
// time, 0 in the padding, and the units load them there; grad_y they load where it lies, which is a matrix. An invocation gathers the same eight columns of four pixels
// all along. Sums go to memory as the units have them. Of subgroups there may be fewer or more than blocks here too.
//
// Runs are of whole matrices of pixels. Where the batch ends within one, its last SIZE pixels are taken, and those that have been summed are 0 among the patches.

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
    // Result pixels of a run, a multiple of SIZE.
    part_pixels: u32,
    pad: vec2u,
}

override LANES: u32 = 128u;
// Blocks of a tile, each a subgroup's, along the columns, which are gathered, and along the outputs, which are loaded.
override GATHERED_BLOCKS: u32 = 2u;
override LOADED_BLOCKS: u32 = 2u;
// Matrices of a block along either side.
const MATRICES = 2u;

override N_BLOCKS: u32 = GATHERED_BLOCKS * LOADED_BLOCKS;
override TILE_ROWS: u32 = LOADED_BLOCKS * MATRICES * SIZE;
override TILE_COLS: u32 = GATHERED_BLOCKS * MATRICES * SIZE;
// Pixels in workgroup memory: four times eight columns for each invocation.
override DEPTH: u32 = 32u * LANES / TILE_COLS;
// From a pixel to the next, 16 bytes further so that rows of a matrix begin in different banks.
override STRIDE: u32 = TILE_COLS + 8u;
override HALF: u32 = DEPTH * STRIDE;
override PATCHES_LEN: u32 = 2u * HALF / WIDTH;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<f16>;
@group(0) @binding(2) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(3) var<storage, read_write> parts: array<f32>;

// patches[half][pixel][col].
var<workgroup> patches: array<PATCH, PATCHES_LEN>;

// Eight columns of the weights: the first one's channel, and the pixel that their tap reads for result pixel (0, 0); those beyond the last read none.
struct Columns {
    channel: u32,
    first: vec2i,
    exist: bool,
}

fn columns_of(col: u32) -> Columns {
    let tap = col / params.n_channels;
    let pixel = vec2i(vec2u(tap / params.kernel_size.y, tap % params.kernel_size.y)) - vec2i(params.padding);
    return Columns(col % params.n_channels, pixel, tap < params.kernel_size.x * params.kernel_size.y);
}

// What eight columns read for place `i` of the pixels, 0 in the padding and for those that are not summed.
fn channels_at(columns: Columns, i: u32, n_pixels: u32) -> EightChannels {
    let first_pixel = i / SIZE * SIZE;
    let at = i - (max(first_pixel + SIZE, n_pixels) - n_pixels);
    if first_pixel >= n_pixels || at < first_pixel || !columns.exist {
        return EightChannels();
    }
    let row = at / params.y_size.y;
    let pixel = columns.first + vec2i(params.stride * vec2u(row % params.y_size.x, at % params.y_size.y));
    let size = vec2i(params.x_size);
    if pixel.x < 0 || pixel.x >= size.x || pixel.y < 0 || pixel.y >= size.y {
        return EightChannels();
    }
    let of_x = (row / params.y_size.x * params.x_size.x + u32(pixel.x)) * params.x_size.y + u32(pixel.y);
    let four = (of_x * params.n_channels + columns.channel) / 4u;
    return EightChannels(x[four], x[four + 1u]);
}

// What they read for four pixels, each a quarter of the depth after the one before.
fn gather(columns: Columns, i: u32, n_pixels: u32) -> Gathered {
    return Gathered(
        channels_at(columns, i, n_pixels),
        channels_at(columns, i + DEPTH / 4u, n_pixels),
        channels_at(columns, i + DEPTH / 4u * 2u, n_pixels),
        channels_at(columns, i + DEPTH / 4u * 3u, n_pixels),
    );
}

// The matrix of grad_y, transposed, of SIZE pixels and of outputs from `out` on. One beyond the last output is the last one, one beyond the last pixel too.
fn load_a(out_channel: u32, pixel: u32, n_pixels: u32) -> OfA {
    let first = min(pixel, n_pixels - SIZE);
    return coopLoad<OfA>(&grad_y[first * params.n_out + min(out_channel, params.n_out - SIZE)], params.n_out);
}

fn load_b(at: u32) -> OfB {
    return coopLoadT<OfB>(&patches[at / WIDTH], STRIDE / WIDTH);
}

// A subgroup's block: the first output and column of its results in a run. Without a block it stores nothing.
struct Block {
    exists: bool,
    part: u32,
    row: u32,
    col: u32,
}

fn finish(block: Block, row: u32, col: u32, sum: Sum) {
    let n_cols = params.kernel_size.x * params.kernel_size.y * params.n_channels;
    let first_row = block.row + row * SIZE;
    let first_col = block.col + col * SIZE;
    if block.exists && first_row < params.n_out && first_col < n_cols {
        // Computed first: naga has no place for it within.
        let at = (block.part * params.n_out + first_row) * n_cols + first_col;
        coopStoreT(sum, &parts[at], n_cols);
    }
}

@compute @workgroup_size(LANES)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) n_subgroups: u32,
    @builtin(local_invocation_index) lane_of_group: u32,
) {
    let tile_row = group.y * TILE_ROWS;
    let tile_col = group.x * TILE_COLS;
    let n_pixels = params.n_images * params.y_size.x * params.y_size.y;
    // A run may lie beyond the last pixel: its sums are 0.
    let first = min(group.z * params.part_pixels, n_pixels);
    let end = min((group.z + 1u) * params.part_pixels, n_pixels);

    // Neighbouring invocations gather adjacent values.
    let of_lane = vec2u(lane_of_group % (TILE_COLS / 8u), lane_of_group / (TILE_COLS / 8u));
    let columns = columns_of(tile_col + 8u * of_lane.x);
    let put_at = of_lane.y * STRIDE + 8u * of_lane.x;

    var stage = 0u;
    for (var first_block = 0u; first_block < N_BLOCKS; first_block += n_subgroups) {
        let number = first_block + subgroup;
        var block: Block;
        block.exists = number < N_BLOCKS;
        block.part = group.z;
        block.row = tile_row + number / GATHERED_BLOCKS * MATRICES * SIZE;
        let block_col = number % GATHERED_BLOCKS * MATRICES * SIZE;
        block.col = tile_col + block_col;

        var s00 = Sum();
        var s01 = Sum();
        var s10 = Sum();
        var s11 = Sum();
        var next = gather(columns, first + of_lane.y, n_pixels);
        for (var start = first; start < end; start += DEPTH) {
            put(stage + put_at, next);
            // The other half is still being read by some, this one by none: they are past the barrier before.
            workgroupBarrier();
            if start + DEPTH < end {
                next = gather(columns, start + DEPTH + of_lane.y, n_pixels);
            }
            let depth = select(0u, min(DEPTH, end - start), block.exists);
            for (var k = 0u; k < depth; k += SIZE) {
                let b = stage + k * STRIDE + block_col;
                let a0 = load_a(block.row, start + k, n_pixels);
                let a1 = load_a(block.row + SIZE, start + k, n_pixels);
                let b0 = load_b(b);
                let b1 = load_b(b + SIZE);
                s00 = coopMultiplyAdd(a0, b0, s00);
                s01 = coopMultiplyAdd(a0, b1, s01);
                s10 = coopMultiplyAdd(a1, b0, s10);
                s11 = coopMultiplyAdd(a1, b1, s11);
            }
            stage = HALF - stage;
        }

        finish(block, 0u, 0u, s00);
        finish(block, 0u, 1u, s01);
        finish(block, 1u, 0u, s10);
        finish(block, 1u, 1u, s11);
    }
}
