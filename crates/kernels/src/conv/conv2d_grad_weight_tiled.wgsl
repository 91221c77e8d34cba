// parts[run, o, u, v, c] = sum of grad_y[b, i, j, o] x[b, i sy - py + u, j sx - px + v, c] over the result pixels of a run, by tiles of both operands in
// workgroup memory, each lane with ROW_BLOCKS by COL_BLOCKS blocks of 4 outputs o by 4 columns (u, v, c). n_channels and n_out are multiples of 4.
// The runs are then added in order by column_sum.wgsl.
// Twin: conv2d_grad_weight_cpu.rs. Reads grad_y once for a tile's columns, and what the windows cover once for its outputs.
// Ladder: conv2d_grad_weight_tiled_any.wgsl (scalar loads, any shape) -> this, whose tiles are those of matmul_tiled.wgsl, and what bounds them ->
// conv2d_grad_weight_coop.wgsl (the matrix units). For hardware: on a software adapter barriers are ruinous.
//
// The places of the sum are pixels, so both operands have their columns fastest and go into the tiles as they are read. There are few results
// and many pixels: the runs fill the card.

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
    // Rows of result pixels of a run.
    part_rows: u32,
    pad: vec2u,
}

override LANE_ROWS: u32 = 8u;
override LANE_COLS: u32 = 8u;
override ROW_BLOCKS: u32 = 2u;
override COL_BLOCKS: u32 = 2u;
override DEPTH: u32 = 8u;
override BY_TILE: u32 = 0u;

// A tile's rows and columns in blocks, and what a place of k takes in workgroup memory.
override TILE_ROWS: u32 = LANE_ROWS * ROW_BLOCKS;
override TILE_COLS: u32 = LANE_COLS * COL_BLOCKS;
override A_STRIDE: u32 = TILE_ROWS + 1u;
override B_STRIDE: u32 = TILE_COLS + 1u;
override A_LEN: u32 = DEPTH * A_STRIDE;
override B_LEN: u32 = DEPTH * B_STRIDE;
override A_HALVES: u32 = 2u * A_LEN;
override B_HALVES: u32 = 2u * B_LEN;

// How each is stored: src/stored_types.rs.
alias GRAD_Y = vec4f;
alias X = vec4f;
fn load_grad_y(v: GRAD_Y) -> vec4f { return vec4f(v); }
fn load_x(v: X) -> vec4f { return vec4f(v); }
// In workgroup memory: in f16 where both operands are, and the device has the type.
alias TILE = vec4f;
fn load_tile(v: TILE) -> SUM { return SUM(v); }
fn store_tile(v: vec4f) -> TILE { return TILE(v); }
// What products are added in: with BY_TILE that may be f16, for the places of one tile, whose sums are added in f32.
alias SUM = vec4f;
fn load_sum(v: SUM) -> vec4f { return vec4f(v); }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<GRAD_Y>;
@group(0) @binding(2) var<storage, read> x: array<X>;
@group(0) @binding(3) var<storage, read_write> parts: array<vec4f>;

// a_tile[half][pixel][out / 4], b_tile[half][pixel][col / 4].
var<workgroup> a_tile: array<TILE, A_HALVES>;
var<workgroup> b_tile: array<TILE, B_HALVES>;

// Four columns of the weights: the first one's channel, and the pixel that their tap reads for result pixel (0, 0); those beyond the last read none.
struct Column {
    channel: u32,
    first: vec2i,
    exists: bool,
}

fn column_of(col: u32) -> Column {
    let tap = col / params.n_channels;
    let pixel = vec2i(vec2u(tap / params.kernel_size.y, tap % params.kernel_size.y)) - vec2i(params.padding);
    return Column(col % params.n_channels, pixel, tap < params.kernel_size.x * params.kernel_size.y);
}

// What four columns read for result pixel `i` of the batch, 0 in the padding and from `end` on.
fn value_of_x(column: Column, i: u32, end: u32) -> TILE {
    if i >= end || !column.exists {
        return TILE(0.0);
    }
    let row = i / params.y_size.y;
    let pixel = column.first + vec2i(params.stride * vec2u(row % params.y_size.x, i % params.y_size.y));
    let size = vec2i(params.x_size);
    if pixel.x < 0 || pixel.x >= size.x || pixel.y < 0 || pixel.y >= size.y {
        return TILE(0.0);
    }
    let at = (row / params.y_size.x * params.x_size.x + u32(pixel.x)) * params.x_size.y + u32(pixel.y);
    return store_tile(load_x(x[(at * params.n_channels + column.channel) / 4u]));
}

// Four outputs of result pixel `i`; `out` counts vec4s.
fn value_of_grad_y(out_channel: u32, i: u32, end: u32) -> TILE {
    if i >= end || out_channel >= params.n_out / 4u {
        return TILE(0.0);
    }
    return store_tile(load_grad_y(grad_y[i * (params.n_out / 4u) + out_channel]));
}

// What a lane fetches: four outputs or columns at four pixels, as they go into a tile.
struct Block {
    at0: TILE,
    at1: TILE,
    at2: TILE,
    at3: TILE,
}

fn block_of_grad_y(out_channel: u32, i: u32, end: u32) -> Block {
    return Block(
        value_of_grad_y(out_channel, i, end),
        value_of_grad_y(out_channel, i + 1u, end),
        value_of_grad_y(out_channel, i + 2u, end),
        value_of_grad_y(out_channel, i + 3u, end),
    );
}

fn block_of_x(column: Column, i: u32, end: u32) -> Block {
    return Block(
        value_of_x(column, i, end),
        value_of_x(column, i + 1u, end),
        value_of_x(column, i + 2u, end),
        value_of_x(column, i + 3u, end),
    );
}

// A block of 4 by 4 results, an output a column of the matrix; `out` and `col` count blocks.
fn store(part: u32, out_channel: u32, col: u32, sums: mat4x4f) {
    let stride = params.kernel_size.x * params.kernel_size.y * params.n_channels / 4u;
    if out_channel >= params.n_out / 4u || col >= stride {
        return;
    }
    let at = (part * params.n_out + 4u * out_channel) * stride + col;
    parts[at] = sums[0];
    parts[at + stride] = sums[1];
    parts[at + 2u * stride] = sums[2];
    parts[at + 3u * stride] = sums[3];
}

// A block of 4 by 4 sums.
struct Sums {
    of_x: SUM,
    of_y: SUM,
    of_z: SUM,
    of_w: SUM,
}

fn add_product(sums: Sums, a: SUM, b: SUM) -> Sums {
    return Sums(
        fma(SUM(a.x), b, sums.of_x),
        fma(SUM(a.y), b, sums.of_y),
        fma(SUM(a.z), b, sums.of_z),
        fma(SUM(a.w), b, sums.of_w),
    );
}

fn add_sums(totals: mat4x4f, sums: Sums) -> mat4x4f {
    return totals + mat4x4f(load_sum(sums.of_x), load_sum(sums.of_y), load_sum(sums.of_z), load_sum(sums.of_w));
}

@compute @workgroup_size(LANE_COLS, LANE_ROWS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let tile_row = group.y * TILE_ROWS;
    let tile_col = group.x * TILE_COLS;
    let n_rows = params.n_images * params.y_size.x;
    let first = min(group.z * params.part_rows, n_rows) * params.y_size.y;
    let end = min((group.z + 1u) * params.part_rows, n_rows) * params.y_size.y;

    // The first lanes fetch grad_y, the last ones x: those are others where a tile has fewer blocks than there are lanes.
    let of_a = vec2u(lane % TILE_ROWS, lane / TILE_ROWS);
    let b_lane = LANE_ROWS * LANE_COLS - 1u - lane;
    let of_b = vec2u(b_lane % TILE_COLS, b_lane / TILE_COLS);
    let fetches_a = lane < TILE_ROWS * DEPTH / 4u;
    let fetches_b = b_lane < TILE_COLS * DEPTH / 4u;
    let column = column_of(4u * (tile_col + of_b.x));

    let lane_row = lane / LANE_COLS;
    let lane_col = lane % LANE_COLS;
    var s00 = Sums();
    var s01 = Sums();
    var s10 = Sums();
    var s11 = Sums();
    // What is left of these without BY_TILE is 0.
    var t00 = mat4x4f();
    var t01 = mat4x4f();
    var t10 = mat4x4f();
    var t11 = mat4x4f();
    var next_a = Block();
    var next_b = Block();
    if fetches_a {
        next_a = block_of_grad_y(tile_row + of_a.x, first + 4u * of_a.y, end);
    }
    if fetches_b {
        next_b = block_of_x(column, first + 4u * of_b.y, end);
    }
    var stage = 0u;
    for (var start = first; start < end; start += DEPTH) {
        let a_stage = stage * A_LEN;
        let b_stage = stage * B_LEN;
        if fetches_a {
            let at = a_stage + 4u * of_a.y * A_STRIDE + of_a.x;
            a_tile[at] = next_a.at0;
            a_tile[at + A_STRIDE] = next_a.at1;
            a_tile[at + 2u * A_STRIDE] = next_a.at2;
            a_tile[at + 3u * A_STRIDE] = next_a.at3;
        }
        if fetches_b {
            let at = b_stage + 4u * of_b.y * B_STRIDE + of_b.x;
            b_tile[at] = next_b.at0;
            b_tile[at + B_STRIDE] = next_b.at1;
            b_tile[at + 2u * B_STRIDE] = next_b.at2;
            b_tile[at + 3u * B_STRIDE] = next_b.at3;
        }
        // The other half is still being read by some, this one by none: they are past the barrier before.
        workgroupBarrier();
        if fetches_a && start + DEPTH < end {
            next_a = block_of_grad_y(tile_row + of_a.x, start + DEPTH + 4u * of_a.y, end);
        }
        if fetches_b && start + DEPTH < end {
            next_b = block_of_x(column, start + DEPTH + 4u * of_b.y, end);
        }
        for (var k = 0u; k < DEPTH; k += 1u) {
            let a_at = a_stage + k * A_STRIDE + lane_row;
            let b_at = b_stage + k * B_STRIDE + lane_col;
            let a0 = load_tile(a_tile[a_at]);
            let b0 = load_tile(b_tile[b_at]);
            s00 = add_product(s00, a0, b0);
            if ROW_BLOCKS == 2u {
                s10 = add_product(s10, load_tile(a_tile[a_at + LANE_ROWS]), b0);
            }
            if COL_BLOCKS == 2u {
                s01 = add_product(s01, a0, load_tile(b_tile[b_at + LANE_COLS]));
            }
            if ROW_BLOCKS == 2u && COL_BLOCKS == 2u {
                s11 = add_product(s11, load_tile(a_tile[a_at + LANE_ROWS]), load_tile(b_tile[b_at + LANE_COLS]));
            }
        }
        if BY_TILE == 1u {
            t00 = add_sums(t00, s00);
            t01 = add_sums(t01, s01);
            t10 = add_sums(t10, s10);
            t11 = add_sums(t11, s11);
            s00 = Sums();
            s01 = Sums();
            s10 = Sums();
            s11 = Sums();
        }
        stage = 1u - stage;
    }

    let row = tile_row + lane_row;
    let col = tile_col + lane_col;
    store(group.z, row, col, add_sums(t00, s00));
    if COL_BLOCKS == 2u {
        store(group.z, row, col + LANE_COLS, add_sums(t01, s01));
    }
    if ROW_BLOCKS == 2u {
        store(group.z, row + LANE_ROWS, col, add_sums(t10, s10));
    }
    if ROW_BLOCKS == 2u && COL_BLOCKS == 2u {
        store(group.z, row + LANE_ROWS, col + LANE_COLS, add_sums(t11, s11));
    }
}
