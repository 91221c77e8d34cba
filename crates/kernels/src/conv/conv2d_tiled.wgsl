// A convolution as an implicit product, y = epilogue(patches(x) weight), and with GRAD the gradient in its input, by tiles of both operands in
// workgroup memory, each lane with ROW_BLOCKS by COL_BLOCKS blocks of 4 by 4 results. n_channels and n_cols are multiples of 4.
// Twins: conv2d_cpu.rs, conv2d_grad_input_cpu.rs. Reads what the windows cover once for a tile's columns, and the weights, as they are
// stored, once for its pixels.
// Ladder: conv2d_tiled_any.wgsl (scalar loads, any shape) -> this, whose tiles are those of matmul_tiled.wgsl, and what bounds them ->
// conv2d_coop.wgsl (the matrix units). For hardware: on a software adapter barriers are ruinous.
//
// The places of a sum run over the taps and, in each, over the channels: four places are four channels of one tap, a vec4. A lane fetches the
// same four pixels all along, and works out where they lie once. Neighbouring pixels read the same source pixels, so most of what is read
// for the taps of a window is in a cache already.

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

override LANE_ROWS: u32 = 8u;
override LANE_COLS: u32 = 8u;
override ROW_BLOCKS: u32 = 2u;
override COL_BLOCKS: u32 = 2u;
override DEPTH: u32 = 8u;
override BY_TILE: u32 = 0u;
override GRAD: u32 = 0u;
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

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
alias SOURCE = vec4f;
alias WEIGHT = vec4f;
alias FUSED = vec4f;
alias Y = vec4f;
fn load_source(v: SOURCE) -> vec4f { return vec4f(v); }
fn load_weight(v: WEIGHT) -> vec4f { return vec4f(v); }
fn load_fused(v: FUSED) -> vec4f { return vec4f(v); }
fn store_y(v: vec4f) -> Y { return v; }
// In workgroup memory: in f16 where both operands are, and the device has the type.
alias TILE = vec4f;
fn load_tile(v: TILE) -> SUM { return SUM(v); }
fn store_tile(v: vec4f) -> TILE { return TILE(v); }
// What products are added in: with BY_TILE that may be f16, for the places of one tile, whose sums are added in f32.
alias SUM = vec4f;
fn load_sum(v: SUM) -> vec4f { return vec4f(v); }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<SOURCE>;
// [n_cols, kernel height, kernel width, n_channels]; with GRAD [n_channels, kernel height, kernel width, n_cols].
@group(0) @binding(2) var<storage, read> weight: array<WEIGHT>;
// The bias [n_cols], or the result of the layer below whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// a_tile[half][place][pixel / 4], b_tile[half][place][col / 4].
var<workgroup> a_tile: array<TILE, A_HALVES>;
var<workgroup> b_tile: array<TILE, B_HALVES>;

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
    let place = place_of(walk, i);
    let pixel = walk.at + walk.spacing * place.yz;
    return ((place.x * params.result_size.x + pixel.x) * params.result_size.y + pixel.y) * (params.n_cols / 4u);
}

// Four columns of one result pixel; `col` counts vec4s.
fn store_row(walk: Walk, row: u32, col: u32, sum: vec4f) {
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

// A block of 4 by 4 results, a pixel a column of the matrix; `row` and `col` count blocks.
fn store(walk: Walk, row: u32, col: u32, sums: mat4x4f) {
    if col < params.n_cols / 4u {
        store_row(walk, 4u * row, col, sums[0]);
        store_row(walk, 4u * row + 1u, col, sums[1]);
        store_row(walk, 4u * row + 2u, col, sums[2]);
        store_row(walk, 4u * row + 3u, col, sums[3]);
    }
}

// What four result pixels read: where their images begin, and the source pixels of their first taps. Pixels beyond the last read none.
struct Sources {
    image: vec4u,
    y: vec4i,
    x: vec4i,
}

fn sources_of(walk: Walk, row: u32) -> Sources {
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

// What a lane fetches: four pixels or columns at four places of the sum, as they go into a tile.
struct Block {
    at0: TILE,
    at1: TILE,
    at2: TILE,
    at3: TILE,
}

// Four pixels of four places as four places of four pixels.
fn turned(pixels: Block) -> Block {
    return Block(
        TILE(pixels.at0.x, pixels.at1.x, pixels.at2.x, pixels.at3.x),
        TILE(pixels.at0.y, pixels.at1.y, pixels.at2.y, pixels.at3.y),
        TILE(pixels.at0.z, pixels.at1.z, pixels.at2.z, pixels.at3.z),
        TILE(pixels.at0.w, pixels.at1.w, pixels.at2.w, pixels.at3.w),
    );
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

// What four result pixels have at four places of the sum from `place` on, 0 behind the last.
fn block_of_a(walk: Walk, sources: Sources, place: u32) -> Block {
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

// The weights of four columns at four places of the sum; columns beyond the last read the last ones again, and are
// not stored.
fn block_of_b(walk: Walk, col: u32, place: u32) -> Block {
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

// Which block of a tile a lane fetches: its number along the rows or columns, and along k. Neighbours read what lies beside each other.
fn fetched(lane: u32, n_blocks: u32, k_fastest: bool) -> vec2u {
    if k_fastest {
        return vec2u(lane / (DEPTH / 4u), lane % (DEPTH / 4u));
    }
    return vec2u(lane % n_blocks, lane / n_blocks);
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
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row_group = group.z * groups.y + group.y;
    // Whole groups leave here, so that the barriers below are reached by all lanes of a group or by none.
    let walk = walk_of(row_group / params.n_row_groups);
    let tile_row = row_group % params.n_row_groups * TILE_ROWS;
    let tile_col = group.x * TILE_COLS;
    if row_group / params.n_row_groups >= params.n_phases || 4u * tile_row >= params.n_images * walk.n.x * walk.n.y {
        return;
    }
    let n_places = walk.n_taps.x * walk.n_taps.y * params.n_channels;

    // The first lanes fetch patches, the last ones weights: those are others where a tile has fewer blocks than there are lanes.
    let of_a = fetched(lane, TILE_ROWS, true);
    let b_lane = LANE_ROWS * LANE_COLS - 1u - lane;
    let of_b = fetched(b_lane, TILE_COLS, GRAD == 0u);
    let fetches_a = lane < TILE_ROWS * DEPTH / 4u;
    let fetches_b = b_lane < TILE_COLS * DEPTH / 4u;
    let sources = sources_of(walk, 4u * (tile_row + of_a.x));

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
        next_a = block_of_a(walk, sources, 4u * of_a.y);
    }
    if fetches_b {
        next_b = block_of_b(walk, tile_col + of_b.x, 4u * of_b.y);
    }
    var stage = 0u;
    for (var start = 0u; start < n_places; start += DEPTH) {
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
        if fetches_a && start + DEPTH < n_places {
            next_a = block_of_a(walk, sources, start + DEPTH + 4u * of_a.y);
        }
        if fetches_b && start + DEPTH < n_places {
            next_b = block_of_b(walk, tile_col + of_b.x, start + DEPTH + 4u * of_b.y);
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
    store(walk, row, col, add_sums(t00, s00));
    if COL_BLOCKS == 2u {
        store(walk, row, col + LANE_COLS, add_sums(t01, s01));
    }
    if ROW_BLOCKS == 2u {
        store(walk, row + LANE_ROWS, col, add_sums(t10, s10));
    }
    if ROW_BLOCKS == 2u && COL_BLOCKS == 2u {
        store(walk, row + LANE_ROWS, col + LANE_COLS, add_sums(t11, s11));
    }
}
